package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// Who compares long lists once, and keeps none of them, needs the ids and nothing else: they
// come out of the chunks without times, edges and blocks. Of a list that is not packed the
// statement reads the counts only.

// Served by the primary keys. The cast keeps MariaDB from making decimals of numbers with a
// sign and without.
const sqlPackedNeighbours = `
SELECT 0 AS part, c.{count} AS a, {is packed} AS b, NULL AS data
FROM user_counts c
WHERE c.user_id = ?
UNION ALL
SELECT 1, p.peer, CAST(p.type AS SIGNED), NULL
FROM user_counts c
JOIN packed_change p ON p.owner = c.user_id AND p.side = ?
WHERE c.user_id = ? AND {is packed}
UNION ALL
SELECT 2, p.first_peer, 0, p.data
FROM user_counts c
JOIN packed_chunk p ON p.owner = c.user_id AND p.side = ?
WHERE c.user_id = ? AND {is packed}`

var packedNeighbours = [2]string{
	storage.Forward: packedNeighboursOf(storage.Forward),
	storage.Inverse: packedNeighboursOf(storage.Inverse),
}

func packedNeighboursOf(side storage.Side) string {
	return packedSpelled(side, strings.Replace(sqlPackedNeighbours, "{count}", db.TableOf(side).Count, 1))
}

// packedAtOnce is how many packed lists one call reads from a shard at a time.
const packedAtOnce = 4

// PackedNeighbours implements [storage.PackedReader]. A list that is worth it and is not packed
// is packed soon, see [packQueue].
func (s *Store) PackedNeighbours(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	if side > storage.Inverse {
		return make([]storage.Result[[]storage.UserID], len(owners))
	}
	turns := make([]chan struct{}, len(s.db.Shards))
	for i := range turns {
		turns[i] = make(chan struct{}, packedAtOnce)
	}
	return db.LookUp(s.db, owners, 1, s.place.Of, func(shard int, owners []storage.UserID, found func(storage.UserID, []storage.UserID)) error {
		turns[shard] <- struct{}{}
		defer func() { <-turns[shard] }()
		list, ok, err := s.packedPeersOf(ctx, shard, packedName{side, owners[0]})
		if ok {
			found(owners[0], list)
		}
		return err
	})
}

// packedPeersOf reads one list; ok is false where it cannot be read packed.
func (s *Store) packedPeersOf(ctx context.Context, shard int, name packedName) (list []storage.UserID, ok bool, err error) {
	if _, doubted := s.doubted.Load(name); doubted {
		s.packSoon(name)
		return nil, false, nil
	}
	p, err := s.readPackedPeers(ctx, shard, name)
	if err != nil {
		return nil, false, err
	}
	if p.count >= int64(s.packing.from) && (!p.whole || len(p.changes) > s.packing.changes) {
		s.packSoon(name)
	}
	if !p.whole {
		return nil, false, nil
	}
	if list, err = p.list(); err != nil {
		s.doubted.Store(name, err)
		s.packSoon(name)
		return nil, false, nil
	}
	return list, true, nil
}

// packedPeers is what has been read of a packed list, without its times.
type packedPeers struct {
	count   int64 // of follows, as the counts say
	whole   bool
	changes []peerChange
	peers   []storage.UserID // of the chunks, in the order in which these came
	err     error            // of a chunk
}

// peerChange is a peer whose row counts instead of what the chunks have.
type peerChange struct {
	peer   storage.UserID
	follow bool
}

func (s *Store) readPackedPeers(ctx context.Context, shard int, name packedName) (p packedPeers, err error) {
	owner, of := int64(name.owner), int64(name.side)
	args := []any{owner, of, owner, of, owner}
	row := db.NewNumbers(3)
	var data sql.RawBytes
	into := append(slices.Clone(row.Into), &data)
	err = s.db.Query(ctx, "packed.neighbours."+name.side.String(), shard, 1, packedNeighbours[name.side], args, func(rows *sql.Rows) error {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		switch row.At(0) {
		case 0:
			p.count, p.whole = row.At(1), row.At(2) != 0
		case 1:
			p.changes = append(p.changes, peerChange{storage.UserID(row.At(1)), storage.EdgeType(row.At(2)) == storage.Following})
		case 2:
			p.add(storage.UserID(row.At(1)), data)
		}
		return row.Err
	})
	return p, err
}

// add adds what a chunk has.
func (p *packedPeers) add(first storage.UserID, data []byte) {
	if p.err != nil {
		return
	}
	if p.peers == nil {
		p.peers = make([]storage.UserID, 0, max(0, min(p.count, maxForeseen))+maxChunk)
	}
	if p.peers, p.err = parsePeers(p.peers, data); p.err != nil {
		p.err = fmt.Errorf("chunk %s: %w", first, p.err)
	}
}

// list puts the parts together, by ascending peer. An error tells that they do not fit.
func (p *packedPeers) list() ([]storage.UserID, error) {
	if p.err != nil {
		return nil, p.err
	}
	// The members of a UNION ALL have no order of their own, though both engines go by key.
	if !ascend(p.peers) {
		slices.Sort(p.peers)
	}
	slices.SortFunc(p.changes, func(a, b peerChange) int { return cmp.Compare(a.peer, b.peer) })
	list := withChangedPeers(p.peers, p.changes)
	if !ascend(list) {
		return nil, fmt.Errorf("some of %d follows are there twice", len(list))
	}
	if n := int64(len(list)) - p.count; n != 0 {
		return nil, fmt.Errorf("%d follows more than the count", n)
	}
	return list, nil
}

// ascend tells whether ids ascend, each once.
func ascend(ids []storage.UserID) bool {
	last := storage.UserID(0)
	for _, id := range ids {
		if id <= last {
			return false
		}
		last = id
	}
	return true
}

// withChangedPeers makes changes to peers; both ascend.
func withChangedPeers(peers []storage.UserID, changes []peerChange) []storage.UserID {
	if len(changes) == 0 {
		return peers
	}
	all := make([]storage.UserID, 0, len(peers)+len(changes))
	for _, c := range changes {
		n, there := slices.BinarySearch(peers, c.peer)
		all = append(all, peers[:n]...)
		if peers = peers[n:]; there {
			peers = peers[1:]
		}
		if c.follow {
			all = append(all, c.peer)
		}
	}
	return append(all, peers...)
}
