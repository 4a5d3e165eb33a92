package packed

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sqlstore/internal/db"
)

// MariaDB needs the list index as a hint: of the rows, the statement wants the few that are no
// follows. Without the cast, MariaDB would make decimals of columns that mix signed and unsigned
// numbers.
//
// Served by the primary keys and {list}.
var sqlList = db.ForSides(`
SELECT 0 AS part, c.version AS a, c.{count} AS b, (COALESCE(c.packed, 0) & {whole} <> 0 AND c.packed_version = c.version) AS c, NULL AS data
FROM user_counts c
WHERE c.user_id = ?
UNION ALL
SELECT 1, peer, CAST(type AS SIGNED), update_time, NULL
FROM packed_change
WHERE owner = ? AND side = ?
UNION ALL
SELECT 3, {peer}, CAST(type AS SIGNED), update_time, NULL
FROM {table} /*! FORCE INDEX ({list}) */
WHERE {owner} = ? AND type IN (2, 3)
UNION ALL
SELECT 3, {peer}, CAST(type AS SIGNED), update_time, NULL
FROM {table} /*! FORCE INDEX ({list}) */
WHERE {owner} = ? AND type IN (0, 4) AND update_time >= ?
UNION ALL
SELECT 2, first_peer, 0, 0, data
FROM packed_chunk
WHERE owner = ? AND side = ?`, db.Follows...)

// List answers a query for a list. ok is false if it is not packed any more, or not as long as the
// counts say: then its rows have to be read.
func (l *Lists) List(ctx context.Context, side storage.Side, shard int, q storage.ListQuery) (list storage.List, ok bool, err error) {
	p := parts{Name: Name{side, q.Owner}}
	chunks, err := l.readList(ctx, shard, &p, q.EndedSince)
	switch {
	case err != nil:
		return list, false, err
	case p.count > int64(q.Longest):
		return storage.List{Version: p.version, Long: true}, true, nil
	case !p.whole:
		return list, false, nil
	}
	edges, err := p.edges(chunks)
	if err != nil {
		l.Doubted.Store(p.Name, err)
		return list, false, nil
	}
	return storage.List{Version: p.version, Edges: edges}, true, nil
}

func (l *Lists) readList(ctx context.Context, shard int, p *parts, endedSince storage.Micros) (chunks []chunk, err error) {
	owner, side := int64(p.Owner), int64(p.Side)
	args := []any{owner, owner, side, owner, owner, int64(endedSince), owner, side}
	err = l.read(ctx, "packed.", shard, p, sqlList[p.Side], args, func(first storage.UserID, data []byte) {
		chunks = append(chunks, chunk{first, slices.Clone(data)})
	})
	slices.SortFunc(chunks, func(a, b chunk) int { return cmp.Compare(a.first, b.first) })
	return chunks, err
}

// edges puts the parts together, by ascending peer. An error reports that they do not fit.
func (p *parts) edges(chunks []chunk) ([]storage.Edge, error) {
	instead := slices.Concat(p.others, storage.Filter(p.changed, func(e storage.Edge) bool { return e.Type == storage.Following }))
	db.SortByPeer(p.Side, instead)
	peerOf := func(e storage.Edge) storage.UserID { return p.Side.Peer(e.Pair()) }

	all := make([]storage.Edge, 0, max(0, min(p.count, int64(maxChunk*len(chunks))))+int64(len(instead)))
	changed := p.changed
	var follows []storage.Position
	var err error
	for _, chunk := range chunks {
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
			pair := p.Side.Pair(p.Owner, f.Peer)
			all = append(all, storage.Edge{From: pair.From, To: pair.To, Type: storage.Following, UpdateTime: f.UpdateTime})
		}
	}
	all = append(all, instead...)
	return all, p.check(all)
}

// check returns an error unless a list has as many follows as the counts say, and no user twice.
func (p *parts) check(edges []storage.Edge) error {
	n := -p.count
	last := storage.UserID(0)
	for _, e := range edges {
		n += judge.Counted(e.Type)
		peer := p.Side.Peer(e.Pair())
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
