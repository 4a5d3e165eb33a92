package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sqlstore/internal/db"
)

// ChangeEdges implements [storage.EdgeChanger].
func (s *Store) ChangeEdges(ctx context.Context, from storage.UserID, changes []storage.EdgeChange, o storage.ChangeOptions) []storage.Result[storage.Changed] {
	results := make([]storage.Result[storage.Changed], len(changes))
	if len(changes) == 0 {
		return results
	}
	err := s.db.Rerouted(ctx, func() error {
		if joins(from, changes) {
			results[0] = s.changeOne(ctx, from, changes[0], o)
			return results[0].Err
		}
		return s.transactOn(ctx, "change", s.shards.Of(from), func(w *writer) error {
			return newEdgeChange(w, from, o).run(changes, results)
		})
	})
	if err != nil {
		for i := range results {
			results[i] = storage.Result[storage.Changed]{Err: err}
		}
	}
	return results
}

// change is one try of what a user does.
type change struct {
	*writer
	*judge.Judge
	user storage.UserID

	uncounted map[storage.UserID]bool // whose counts should be locked, but are missing
}

// lock locks the counts of the user and, if their rows are to be written as well, of others on the
// same shard.
func (c *change) lock(others []storage.UserID) (counted storage.Counts, err error) {
	counts, err := c.lockAll(append(others, c.user))
	if err == nil && c.uncounted[c.user] {
		err = fmt.Errorf("%w: %s", storage.ErrUserUnknown, c.user)
	}
	return counts[c.user], err
}

// lockAll locks the counts of owners, and notes who has none.
func (c *change) lockAll(owners []storage.UserID) (map[storage.UserID]storage.Counts, error) {
	owners = slices.Compact(slices.Sorted(slices.Values(owners)))
	counts := make(map[storage.UserID]storage.Counts, len(owners))
	c.uncounted = make(map[storage.UserID]bool)
	for _, id := range owners {
		c.uncounted[id] = true
	}
	for chunk := range slices.Chunk(owners, c.store.sql.MaxKeys) {
		err := c.readLocked(chunk, db.Listed(sqlLockCounts, len(chunk)), db.Arguments(chunk), func(rows *sql.Rows) error {
			id, n, err := c.scanLocked(rows)
			delete(c.uncounted, id)
			counts[id] = n
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return counts, nil
}

// newJudge forgets what has been read. If inverse is set, rows of other users on the same shard are
// written, too.
func (c *change) newJudge(inverse bool) {
	c.Judge = c.store.judge()
	if inverse {
		c.Inline = c.isLocal
	}
}

func (c *change) isLocal(id storage.UserID) bool { return c.store.shards.Of(id) == c.Shard }

// lockMissing makes and locks the counts of owners that had none and whose rows are to
// be written; it reports whether there were any. Counts that did not exist were not locked, so what
// was read of these owners' rows has to be read again.
func (c *change) lockMissing() (bool, error) {
	if len(c.uncounted) == 0 {
		return false, nil
	}
	missing := slices.DeleteFunc(c.Owners(), func(id storage.UserID) bool { return !c.uncounted[id] })
	if len(missing) == 0 {
		return false, nil
	}
	for _, id := range missing {
		delete(c.uncounted, id)
	}
	return true, c.lockCounts(missing)
}

// save writes rows and counts. If there is an actor, it also records the day as one on which the
// actor has done something.
func (c *change) save(actor storage.UserID, at storage.Micros) error {
	if actor == 0 {
		return c.saveOf(nil)
	}
	return c.saveOf(map[storage.UserID]storage.Day{actor: storage.DayOf(at)})
}

// saveOf is save for several users who have done something.
func (c *change) saveOf(acted map[storage.UserID]storage.Day) error {
	if len(c.Owners()) == 0 {
		return c.removeUnneeded(nil)
	}
	if err := c.write(c.Judge); err != nil {
		return err
	}
	diffs := make(judge.Diffs)
	c.AddTo(diffs)
	return c.addCountsOf(diffs, acted)
}

// edgeChange is one try of a ChangeEdges.
type edgeChange struct {
	change
	options storage.ChangeOptions
	rows    rowsOfPair // those that decide
}

func newEdgeChange(w *writer, from storage.UserID, o storage.ChangeOptions) *edgeChange {
	return &edgeChange{change: change{writer: w, user: from}, options: o}
}

// run is the transaction: lock, read, judge, write, in the lock order of [Store.Apply].
func (c *edgeChange) run(changes []storage.EdgeChange, results []storage.Result[storage.Changed]) error {
	c.begin(changes)
	counts, err := c.lockAndLook(changes)
	if err != nil {
		return err
	}
	var latest storage.Micros
	for {
		by, err := c.actor(c.user, counts, c.options, changes...)
		if err != nil {
			return err
		}
		for i, ch := range changes {
			results[i] = c.Change(by, ch)
			if results[i].Value.Changed {
				latest = max(latest, ch.At)
			}
		}
		again, err := c.lockMissing()
		if err != nil {
			return err
		}
		if !again {
			return c.save(c.user, latest)
		}
		c.begin(changes)
		if err := c.look(c.Judge, c.keys(changes), c.rows.sides...); err != nil {
			return err
		}
	}
}

// Served by idx_following_list.
const sqlTypeCount = `
SELECT COUNT(*)
FROM following
WHERE from_user_id = ? AND type = ?`

// actor is a user who makes changes. Its blocks, and its requests for follows, are counted only if one of the changes is bounded by them.
func (c *edgeChange) actor(user storage.UserID, counts storage.Counts, o storage.ChangeOptions, changes ...storage.EdgeChange) (*judge.Actor, error) {
	by := &judge.Actor{User: user, Follows: counts.Following, MaxFollowing: o.MaxFollowing, MaxBlocks: o.MaxBlocks}
	for _, bound := range []struct {
		kind storage.EdgeType
		most int64
		n    *int64
	}{{storage.Blocking, o.MaxBlocks, &by.Blocks}, {storage.Requested, o.MaxFollowing, &by.Requests}} {
		if bound.most == 0 || !slices.ContainsFunc(changes, func(ch storage.EdgeChange) bool { return ch.Type == bound.kind }) {
			continue
		}
		if _, err := c.readOne(sqlTypeCount, []any{int64(user), int64(bound.kind)}, bound.n); err != nil {
			return nil, err
		}
	}
	return by, nil
}

// begin forgets what has been read, and determines which rows decide.
func (c *edgeChange) begin(changes []storage.EdgeChange) {
	c.newJudge(c.options.Inverse)
	is := func(kinds ...storage.EdgeType) bool {
		return slices.ContainsFunc(changes, func(ch storage.EdgeChange) bool { return slices.Contains(kinds, ch.Type) })
	}
	switch {
	case is(storage.Blocking):
		c.rows = allRowsOfPair
	case is(storage.None):
		c.rows = followsAndMarks
		c.Marked = make(map[storage.Pair]bool)
	default:
		c.rows = follows
	}
}

// lockAndLook locks the counts and reads all rows that decide.
func (c *edgeChange) lockAndLook(changes []storage.EdgeChange) (storage.Counts, error) {
	if to := changes[0].To; len(changes) == 1 && to != c.user {
		return c.lockPair(to, c.writesOther(to), c.rows)
	}
	var others []storage.UserID
	for _, ch := range changes {
		if c.writesOther(ch.To) {
			others = append(others, ch.To)
		}
	}
	counts, err := c.lock(others)
	if err != nil {
		return counts, err
	}
	return counts, c.look(c.Judge, c.keys(changes), c.rows.sides...)
}

// writesOther reports whether the rows of another user are written as well.
func (c *edgeChange) writesOther(id storage.UserID) bool { return c.options.Inverse && c.isLocal(id) }

// keys lists which rows decide: those of each owner towards each peer.
func (c *edgeChange) keys(changes []storage.EdgeChange) []storage.Pair {
	keys := make([]storage.Pair, 0, 2*len(changes))
	for _, ch := range changes {
		keys = append(keys, storage.Pair{From: c.user, To: ch.To})
		if c.writesOther(ch.To) {
			keys = append(keys, storage.Pair{From: ch.To, To: c.user})
		}
	}
	return keys
}
