package packed

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// A comparison of long lists that keeps none of them needs the ids and nothing else: they
// come out of the chunks without times, edges and blocks. If a list is not packed, the
// statement reads only its counts.

// Served by the primary keys. The cast keeps MariaDB from making decimals of numbers with a
// sign and without.
var sqlNeighbours = db.ForSides(`
SELECT 0 AS part, c.version AS a, c.{count} AS b, (COALESCE(c.packed, 0) & {whole} <> 0 AND c.packed_version = c.version) AS c, NULL AS data
FROM user_counts c
WHERE c.user_id = ?
UNION ALL
SELECT 1, p.peer, CAST(p.type AS SIGNED), p.update_time, NULL
FROM user_counts c
JOIN packed_change p ON p.owner = c.user_id AND p.side = ?
WHERE c.user_id = ? AND (COALESCE(c.packed, 0) & {whole} <> 0 AND c.packed_version = c.version)
UNION ALL
SELECT 2, p.first_peer, 0, 0, p.data
FROM user_counts c
JOIN packed_chunk p ON p.owner = c.user_id AND p.side = ?
WHERE c.user_id = ? AND (COALESCE(c.packed, 0) & {whole} <> 0 AND c.packed_version = c.version)`, db.Follows...)

// atOnce is how many packed lists one call reads from a shard at a time.
const atOnce = 4

// Neighbours answers [storage.PackedLookups]. A list that is worth packing and is not
// packed is packed soon, see [Queue].
func (l *Lists) Neighbours(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	if side.Truth() != storage.Forward {
		return make([]storage.Result[[]storage.UserID], len(owners))
	}
	return l.neighbours(ctx, side, owners, l.db.Map.Of)
}

// neighbours reads the lists from the shards that shardOf says. A shard may be added at any time.
func (l *Lists) neighbours(ctx context.Context, side storage.Side, owners []storage.UserID, shardOf func(storage.UserID) int) []storage.Result[[]storage.UserID] {
	var turns sync.Map // shard → chan struct{}
	return db.LookUp(l.db, owners, 1, shardOf, func(shard int, owners []storage.UserID, found func(storage.UserID, []storage.UserID)) error {
		known, _ := turns.LoadOrStore(shard, make(chan struct{}, atOnce))
		turn := known.(chan struct{})
		turn <- struct{}{}
		defer func() { <-turn }()
		list, ok, err := l.peersOf(ctx, shard, Name{side, owners[0]})
		if ok {
			found(owners[0], list)
		}
		return err
	})
}

// peersOf reads one list; ok is false if it cannot be read packed.
func (l *Lists) peersOf(ctx context.Context, shard int, name Name) (list []storage.UserID, ok bool, err error) {
	if _, doubted := l.Doubted.Load(name); doubted {
		l.queue.Soon(name)
		return nil, false, nil
	}
	p, err := l.readPeers(ctx, shard, name)
	if err != nil {
		return nil, false, err
	}
	if p.count >= int64(l.Sizes.From) && (!p.whole || len(p.changed) > l.Sizes.Changes) {
		l.queue.Soon(name)
	}
	if !p.whole {
		return nil, false, nil
	}
	if list, err = p.list(); err != nil {
		l.Doubted.Store(name, err)
		l.queue.Soon(name)
		return nil, false, nil
	}
	return list, true, nil
}

// peers is what has been read of a packed list, without its times.
type peers struct {
	parts
	ids []storage.UserID // of the chunks, in the order in which these came
	err error            // of a chunk
}

func (l *Lists) readPeers(ctx context.Context, shard int, name Name) (*peers, error) {
	p := &peers{parts: parts{Name: name}}
	owner, side := int64(name.Owner), int64(name.Side)
	args := []any{owner, side, owner, side, owner}
	return p, l.read(ctx, "packed.neighbours.", shard, &p.parts, sqlNeighbours[name.Side], args, p.add)
}

// add adds what a chunk has.
func (p *peers) add(first storage.UserID, data []byte) {
	if p.err != nil {
		return
	}
	if p.ids == nil {
		p.ids = make([]storage.UserID, 0, max(0, min(p.count, db.MaxForeseen))+maxChunk)
	}
	if p.ids, p.err = parsePeers(p.ids, data); p.err != nil {
		p.err = fmt.Errorf("chunk %s: %w", first, p.err)
	}
}

// list puts the parts together, by ascending peer. An error reports that they do not fit.
func (p *peers) list() ([]storage.UserID, error) {
	if p.err != nil {
		return nil, p.err
	}
	if !ascend(p.ids) {
		slices.Sort(p.ids)
	}
	list := p.withChanged()
	if !ascend(list) {
		return nil, fmt.Errorf("some of %d follows are there twice", len(list))
	}
	if n := int64(len(list)) - p.count; n != 0 {
		return nil, fmt.Errorf("%d follows more than the count", n)
	}
	return list, nil
}

// ascend reports whether ids ascend, each once.
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

// withChanged makes the changes to the chunks' ids.
func (p *peers) withChanged() []storage.UserID {
	if len(p.changed) == 0 {
		return p.ids
	}
	ids, all := p.ids, make([]storage.UserID, 0, len(p.ids)+len(p.changed))
	for _, e := range p.changed {
		peer := p.Side.Peer(e.Pair())
		n, there := slices.BinarySearch(ids, peer)
		all = append(all, ids[:n]...)
		if ids = ids[n:]; there {
			ids = ids[1:]
		}
		if e.Type == storage.Following {
			all = append(all, peer)
		}
	}
	return append(all, ids...)
}
