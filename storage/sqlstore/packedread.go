package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sqlstore/internal/db"
)

// One statement, so that all of it is of one moment. Served by the primary keys and by the
// list index, which MariaDB has to be told: of the rows it wants the few that are no
// follows. The cast keeps MariaDB from making decimals of numbers with a sign and without.
const sqlPackedList = `
SELECT 0 AS part, c.version AS a, c.{count} AS b, {is packed} AS c, NULL AS data
FROM user_counts c
WHERE c.user_id = ?
UNION ALL
SELECT 1, peer, CAST(type AS SIGNED), update_time, NULL
FROM packed_change
WHERE owner = ? AND side = ?
UNION ALL
SELECT 2, {peer}, 2, update_time, NULL
FROM {table}{by list}
WHERE {owner} = ? AND type = 2
UNION ALL
SELECT 2, {peer}, 0, update_time, NULL
FROM {table}{by list}
WHERE {owner} = ? AND type = 0 AND update_time >= ?
UNION ALL
SELECT 3, first_peer, 0, 0, data
FROM packed_chunk
WHERE owner = ? AND side = ?`

// packedName names a packed list.
type packedName struct {
	side  storage.Side
	owner storage.UserID
}

// packedList answers a query for a list that is packed; from its rows where it is not any
// more, or where it is not as long as the counts say.
func (s *Store) packedList(ctx context.Context, side storage.Side, shard int, q storage.ListQuery, found func(storage.ListQuery, storage.List)) error {
	p, err := s.readPacked(ctx, side, shard, q)
	switch {
	case err != nil:
		return err
	case p.count > int64(q.Longest):
		found(q, storage.List{Version: p.version, Long: true})
		return nil
	case p.whole:
		edges, err := p.edges(side, q.Owner)
		if err == nil {
			found(q, storage.List{Version: p.version, Edges: edges})
			return nil
		}
		s.doubted.Store(packedName{side, q.Owner}, err)
	}
	_, err = s.listRows(ctx, side, shard, []storage.ListQuery{q}, false, found)
	return err
}

// packedParts is what has been read of a packed list.
type packedParts struct {
	version int64
	count   int64 // of follows, as the counts say
	whole   bool
	changed []storage.Edge // rows that count instead of what the chunks have
	others  []storage.Edge // blocks and tombstones
	chunks  []packedChunk
}

type packedChunk struct {
	first storage.UserID
	data  []byte
}

func (s *Store) readPacked(ctx context.Context, side storage.Side, shard int, q storage.ListQuery) (p packedParts, err error) {
	t := db.TableOf(side)
	text := strings.NewReplacer("{count}", t.Count, "{by list}", s.sql.By("idx_"+side.String()+"_list")).Replace(sqlPackedList)
	text = t.Spell(packedSpelled(side, text))
	owner, of := int64(q.Owner), int64(side)
	args := []any{owner, owner, of, owner, owner, int64(q.EndedSince), owner, of}
	row := db.NewNumbers(4)
	var data sql.RawBytes
	into := append(slices.Clone(row.Into), &data)
	err = s.db.Query(ctx, "packed."+side.String(), shard, 1, text, args, func(rows *sql.Rows) error {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		switch row.At(0) {
		case 0:
			p.version, p.count, p.whole = row.At(1), row.At(2), row.At(3) != 0
		case 1:
			p.changed = append(p.changed, edgeAt(row, side, q.Owner))
		case 2:
			p.others = append(p.others, edgeAt(row, side, q.Owner))
		case 3:
			p.chunks = append(p.chunks, packedChunk{storage.UserID(row.At(1)), slices.Clone(data)})
		}
		return row.Err
	})
	// The members of a UNION ALL have no order of their own, though both engines go by key.
	sortByPeer(side, p.changed)
	slices.SortFunc(p.chunks, func(a, b packedChunk) int { return cmp.Compare(a.first, b.first) })
	return p, err
}

// edgeAt makes an edge of the peer, type and time in a row of sqlPackedList.
func edgeAt(n *db.Numbers, side storage.Side, owner storage.UserID) storage.Edge {
	pair := side.Pair(owner, storage.UserID(n.At(1)))
	return storage.Edge{From: pair.From, To: pair.To, Type: storage.EdgeType(n.At(2)), UpdateTime: storage.Micros(n.At(3))}
}

// edges puts the parts together, by ascending peer. An error tells that they do not fit.
func (p *packedParts) edges(side storage.Side, owner storage.UserID) ([]storage.Edge, error) {
	instead := slices.Clone(p.others)
	for _, e := range p.changed {
		if e.Type == storage.Following {
			instead = append(instead, e)
		}
	}
	sortByPeer(side, instead)
	peerOf := func(e storage.Edge) storage.UserID { return side.Peer(e.Pair()) }

	all := make([]storage.Edge, 0, min(p.count, maxForeseen)+int64(len(instead)))
	changed := p.changed
	var follows []storage.Position
	var err error
	for _, chunk := range p.chunks {
		if follows, err = parseChunk(follows[:0], chunk.data); err != nil {
			return nil, fmt.Errorf("chunk %s: %w", chunk.first, err)
		}
		for _, f := range follows {
			for len(instead) > 0 && peerOf(instead[0]) < f.Peer {
				all, instead = append(all, instead[0]), instead[1:]
			}
			for len(changed) > 0 && peerOf(changed[0]) < f.Peer {
				changed = changed[1:]
			}
			if len(changed) > 0 && peerOf(changed[0]) == f.Peer {
				continue
			}
			pair := side.Pair(owner, f.Peer)
			all = append(all, storage.Edge{From: pair.From, To: pair.To, Type: storage.Following, UpdateTime: f.UpdateTime})
		}
	}
	all = append(all, instead...)
	return all, p.check(side, all)
}

// check tells whether a list is one: as many follows as the counts say, nobody twice.
func (p *packedParts) check(side storage.Side, edges []storage.Edge) error {
	n := -p.count
	last := storage.UserID(0)
	for _, e := range edges {
		n += judge.Counted(e.Type)
		peer := side.Peer(e.Pair())
		if peer <= last {
			return fmt.Errorf("user %s stands behind %s", peer, last)
		}
		last = peer
	}
	if n != 0 {
		return fmt.Errorf("%d follows more than the count", n)
	}
	return nil
}
