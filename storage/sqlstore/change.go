package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"kith/storage"
)

// ChangeEdges implements [storage.EdgeChanger].
func (s *Store) ChangeEdges(ctx context.Context, from storage.UserID, changes []storage.EdgeChange, o storage.ChangeOptions) []storage.Result[storage.Changed] {
	results := make([]storage.Result[storage.Changed], len(changes))
	if len(changes) == 0 {
		return results
	}
	err := s.transact(ctx, "change", s.place.Of(from), func(w *writer) error {
		c := &edgeChange{writer: w, from: from, options: o}
		return c.run(changes, results)
	})
	if err != nil {
		for i := range results {
			results[i] = storage.Result[storage.Changed]{Err: err}
		}
	}
	return results
}

// edgeChange is one try of a ChangeEdges.
type edgeChange struct {
	*writer
	from    storage.UserID
	options storage.ChangeOptions

	following int64            // the user's count, as it changes
	uncounted []storage.UserID // whose counts are to be locked too, but missing
}

// run is the transaction: lock, read, judge, write, in the lock order of [Store.Apply].
func (c *edgeChange) run(changes []storage.EdgeChange, results []storage.Result[storage.Changed]) error {
	if err := c.lock(changes); err != nil {
		return err
	}
	wanted := make([]storage.Edge, len(changes))
	for i, ch := range changes {
		wanted[i] = storage.Edge{From: c.from, To: ch.To}
	}
	rows, err := c.oldRows(storage.Forward, wanted)
	if err != nil {
		return err
	}
	before := c.following
	var written []storage.Edge
	for i, ch := range changes {
		results[i] = c.judge(ch, rows)
		if results[i].Value.Changed {
			written = append(written, results[i].Value.Row)
		}
	}
	if len(written) == 0 {
		return nil
	}
	written = lastOfEach(storage.Forward, written)
	if err := c.upsertEdges(storage.Forward, written); err != nil {
		return err
	}
	if err := c.addCounts(storage.Forward, map[storage.UserID]int64{c.from: c.following - before}); err != nil {
		return err
	}
	return c.writeInverse(written, changes, results)
}

// lock locks the counts of the user and, where their rows will be written as well,
// of those on the same shard.
func (c *edgeChange) lock(changes []storage.EdgeChange) error {
	owners := []storage.UserID{c.from}
	if c.options.Inverse {
		for _, ch := range changes {
			if c.isLocal(ch.To) {
				owners = append(owners, ch.To)
			}
		}
		slices.Sort(owners)
		owners = slices.Compact(owners)
	}
	found := make(map[storage.UserID]bool, len(owners))
	for chunk := range slices.Chunk(owners, c.store.sql.maxKeys) {
		text := sqlCounts + marks(len(chunk)) + ") ORDER BY user_id" + c.store.sql.forUpdate
		err := c.read(len(chunk), text, arguments(chunk), func(rows *sql.Rows) error {
			var id storage.UserID
			var n storage.Counts
			err := rows.Scan(&id, &n.Following, &n.Follower, &n.Version)
			found[id] = true
			if id == c.from {
				c.following = n.Following
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if !found[c.from] {
		return fmt.Errorf("%w: %s", storage.ErrUserUnknown, c.from)
	}
	c.uncounted = slices.DeleteFunc(owners, func(id storage.UserID) bool { return found[id] })
	return nil
}

func (c *edgeChange) isLocal(id storage.UserID) bool { return c.store.place.Of(id) == c.shard }

// judge decides one change and puts what it leaves into rows.
func (c *edgeChange) judge(ch storage.EdgeChange, rows map[storage.Pair]storage.Edge) storage.Result[storage.Changed] {
	pair := storage.Pair{From: c.from, To: ch.To}
	old, exists := rows[pair]
	if !exists {
		old = storage.Edge{From: c.from, To: ch.To}
	}
	if old.Type == ch.Type {
		return storage.Result[storage.Changed]{Value: storage.Changed{Row: old}, Found: true}
	}
	diff := counted(ch.Type) - counted(old.Type)
	if limit := c.options.MaxFollowing; limit > 0 && diff > 0 && c.following+diff > limit {
		return storage.Result[storage.Changed]{Err: fmt.Errorf("%w: user %s follows %d", storage.ErrLimitReached, c.from, c.following)}
	}
	c.following += diff
	row := storage.Edge{From: c.from, To: ch.To, Type: ch.Type, UpdateTime: max(ch.At, old.UpdateTime+1)}
	rows[pair] = row
	return storage.Result[storage.Changed]{Value: storage.Changed{Row: row, Changed: true}, Found: true}
}

// lastOfEach keeps the last edge of each pair, in key order.
func lastOfEach(side storage.Side, edges []storage.Edge) []storage.Edge {
	last := make(map[storage.Pair]storage.Edge, len(edges))
	for _, e := range edges {
		last[e.Pair()] = e
	}
	kept := make([]storage.Edge, 0, len(last))
	for _, e := range last {
		kept = append(kept, e)
	}
	compare := byKey(side)
	slices.SortFunc(kept, func(a, b storage.Edge) int { return compare(a.Pair(), b.Pair()) })
	return kept
}

// writeInverse writes the other side of the rows whose owners lie on this shard.
func (c *edgeChange) writeInverse(written []storage.Edge, changes []storage.EdgeChange, results []storage.Result[storage.Changed]) error {
	if !c.options.Inverse {
		return nil
	}
	local := slices.DeleteFunc(slices.Clone(written), func(e storage.Edge) bool { return !c.isLocal(e.To) })
	if len(local) == 0 {
		return nil
	}
	if len(c.uncounted) > 0 {
		// Nobody has locked what is not there: another writer of these rows would
		// count them again.
		if err := c.lockCounts(ownersOf(storage.Inverse, local)); err != nil {
			return err
		}
	}
	rows, err := c.oldRows(storage.Inverse, local)
	if err != nil {
		return err
	}
	applied, err := c.writer.judge(storage.Inverse, local, storage.IfNewer, rows)
	if err != nil {
		return err
	}
	done := make(map[storage.UserID]bool, len(local))
	for i, e := range local {
		done[e.To] = applied[i].Changed
	}
	for i, ch := range changes {
		results[i].Value.Inverse = results[i].Value.Changed && done[ch.To]
	}
	return nil
}
