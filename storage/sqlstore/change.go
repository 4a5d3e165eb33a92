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
		jobs := storage.Each(changes, func(ch storage.EdgeChange) *edgeTowards { return &edgeTowards{from: from, change: ch, options: o} })
		err := s.transactOn(ctx, "change", s.shards.Of(from), func(w *writer) error { return w.changeEdges(jobs) })
		for i, j := range jobs {
			results[i] = j.result
		}
		return err
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

// edgeTowards is one user's change of its edge towards an account.
type edgeTowards struct {
	from    storage.UserID
	change  storage.EdgeChange
	options storage.ChangeOptions
	result  storage.Result[storage.Changed]
}

// edgeChange is one try of changes of edges, of one user or of several.
type edgeChange struct {
	change
	jobs []*edgeTowards // all of them with, or all without their other sides
	rows rowsOfPair     // those that decide
}

// changeEdges is the transaction: lock, read, judge, write, in the lock order of [Store.Apply]. The changes are decided one after another,
// as if each had a transaction of its own.
func (w *writer) changeEdges(jobs []*edgeTowards) error {
	c := &edgeChange{change: change{writer: w}, jobs: jobs}
	c.begin()
	counts, err := c.lockAndLook()
	if err != nil {
		return err
	}
	for {
		acted, err := c.decide(counts)
		if err != nil {
			return err
		}
		again, err := c.lockMissing()
		if err != nil {
			return err
		}
		if !again {
			return c.saveOf(acted)
		}
		c.begin()
		if err := c.look(c.Judge, c.keys(), c.rows.sides...); err != nil {
			return err
		}
	}
}

// decide judges all changes, and returns who has done something on which day.
func (c *edgeChange) decide(counts map[storage.UserID]storage.Counts) (map[storage.UserID]storage.Day, error) {
	acted := make(map[storage.UserID]storage.Day)
	actors, changes := make(map[storage.UserID]*judge.Actor), make(map[storage.UserID][]storage.EdgeChange)
	for _, j := range c.jobs {
		changes[j.from] = append(changes[j.from], j.change)
	}
	for _, j := range c.jobs {
		own, known := counts[j.from]
		if !known {
			j.result = storage.Result[storage.Changed]{Err: fmt.Errorf("%w: %s", storage.ErrUserUnknown, j.from)}
			continue
		}
		// One actor for all changes of a user: none of them has been written yet.
		by := actors[j.from]
		if by == nil {
			var err error
			if by, err = c.actor(j.from, own, j.options, changes[j.from]...); err != nil {
				return nil, err
			}
			actors[j.from] = by
		}
		j.result = c.Change(by, j.change)
		if j.result.Value.Changed {
			acted[j.from] = max(acted[j.from], storage.DayOf(j.change.At))
		}
	}
	return acted, nil
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
func (c *edgeChange) begin() {
	c.newJudge(c.jobs[0].options.Inverse)
	is := func(kind storage.EdgeType) bool {
		return slices.ContainsFunc(c.jobs, func(j *edgeTowards) bool { return j.change.Type == kind })
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

// lockAndLook locks the counts and reads all rows that decide. It returns the counts of all users who have some.
func (c *edgeChange) lockAndLook() (map[storage.UserID]storage.Counts, error) {
	if j := c.jobs[0]; len(c.jobs) == 1 && j.change.To != j.from {
		c.user = j.from
		own, err := c.lockPair(j.change.To, c.writesOther(j.change.To), c.rows)
		return map[storage.UserID]storage.Counts{c.user: own}, err
	}
	keys := c.keys()
	counts, err := c.lockAll(storage.Each(keys, func(key storage.Pair) storage.UserID { return key.From }))
	if err != nil {
		return nil, err
	}
	return counts, c.look(c.Judge, keys, c.rows.sides...)
}

// writesOther reports whether the rows of another user are written as well.
func (c *edgeChange) writesOther(id storage.UserID) bool {
	return c.jobs[0].options.Inverse && c.isLocal(id)
}

// keys lists which rows decide: those of each owner towards each peer.
func (c *edgeChange) keys() []storage.Pair {
	keys := make([]storage.Pair, 0, 2*len(c.jobs))
	for _, j := range c.jobs {
		keys = append(keys, storage.Pair{From: j.from, To: j.change.To})
		if c.writesOther(j.change.To) {
			keys = append(keys, storage.Pair{From: j.change.To, To: j.from})
		}
	}
	return keys
}
