package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sqlstore/internal/db"
)

// ChangeEdges implements [storage.Store]. Single changes that come at the same time share a transaction, see [db.GroupCommit].
func (s *Store) ChangeEdges(ctx context.Context, side storage.Side, user storage.UserID, changes []storage.EdgeChange, o storage.ChangeOptions) []storage.Result[storage.Changed] {
	jobs := storage.Each(changes, func(ch storage.EdgeChange) *edgeJob { return &edgeJob{user: user, change: ch, options: o} })
	if len(jobs) == 0 {
		return []storage.Result[storage.Changed]{}
	}
	what := "change"
	switch {
	case side == storage.Requests:
		what = "request"
	case side.HasItem():
		what += "." + side.String()
	}
	run := func(w *writer, jobs []*edgeJob) error { return w.changeEdges(side, o.Inverse, jobs) }
	err := s.db.Rerouted(ctx, func() error {
		shard := s.shards.Of(user)
		if len(jobs) > 1 {
			return s.transactOn(ctx, what, shard, func(w *writer) error {
				if err := w.hasUser(user); err != nil {
					return err
				}
				return run(w, jobs)
			})
		}
		accounts := []storage.UserID{user}
		if to := changes[0].To; o.Inverse && s.shards.Of(to) == shard {
			accounts = append(accounts, to)
		}
		kind := struct {
			storage.Side
			inverse bool
		}{side, o.Inverse}
		return s.join(ctx, shard, together(kind, what, accounts, jobs[0], run))
	})
	return storage.Each(jobs, func(j *edgeJob) storage.Result[storage.Changed] {
		if err != nil {
			return storage.Result[storage.Changed]{Err: err}
		}
		return j.result
	})
}

// edgeJob is one user's change of an edge.
type edgeJob struct {
	user    storage.UserID
	change  storage.EdgeChange
	options storage.ChangeOptions
	result  storage.Result[storage.Changed]
}

// edgeChange is one try of changes of edges on one side, of one user or of several.
type edgeChange struct {
	*writer
	*judge.Judge
	side    storage.Side
	inverse bool // the other side is written, too, as far as it is on the same shard
	jobs    []*edgeJob
	rows    rowsOfPair // those that decide, unless they name items
}

// changeEdges is the transaction: lock, read, judge, write, in the lock order of [Store.Apply]. The changes are decided one after another,
// as if each had a transaction of its own.
func (w *writer) changeEdges(side storage.Side, inverse bool, jobs []*edgeJob) error {
	c := &edgeChange{writer: w, side: side, inverse: inverse, jobs: jobs}
	c.begin()
	if err := c.lockAndLook(); err != nil {
		return err
	}
	for {
		if err := c.decide(); err != nil {
			return err
		}
		// Counts that did not exist were not locked, so the rows of these owners have to be read again.
		missing := slices.DeleteFunc(c.Owners(), c.isLocked)
		if len(missing) == 0 {
			return c.save()
		}
		if err := c.lockCounts(missing); err != nil {
			return err
		}
		c.begin()
		if err := c.look(); err != nil {
			return err
		}
	}
}

// begin forgets what has been read, and determines which rows decide.
func (c *edgeChange) begin() {
	if c.Judge = c.store.judge(); c.inverse {
		c.Inline = c.isLocal
	}
	is := func(kind storage.EdgeType) bool {
		return slices.ContainsFunc(c.jobs, func(j *edgeJob) bool { return j.change.Type == kind })
	}
	switch {
	case c.side == storage.Requests, is(storage.Blocking):
		c.rows = allRowsOfPair
	case is(storage.None), is(storage.Denied):
		c.rows = followsAndMarks
		c.Marked = make(map[storage.Pair]bool)
	default:
		c.rows = follows
	}
}

func (c *edgeChange) isLocal(id storage.UserID) bool { return c.store.shards.Of(id) == c.Shard }

// lockAndLook locks the counts of those who have some, and reads all rows that decide.
func (c *edgeChange) lockAndLook() error {
	if j := c.jobs[0]; len(c.jobs) == 1 && !c.side.HasItem() && j.change.To != j.user {
		return c.lockPair(j.user, j.change.To)
	}
	owners := storage.Each(c.keys(), func(key storage.Pair) storage.UserID { return key.From })
	if err := c.lockKnown(storage.Distinct(owners)); err != nil {
		return err
	}
	return c.look()
}

func (c *edgeChange) look() error {
	if c.side.HasItem() {
		return c.lookItems()
	}
	return c.writer.look(c.Judge, c.keys(), c.rows.sides...)
}

// keys lists which rows decide: those of each owner towards each peer.
func (c *edgeChange) keys() []storage.Pair {
	keys := make([]storage.Pair, 0, 2*len(c.jobs))
	for _, j := range c.jobs {
		keys = append(keys, storage.Pair{From: j.user, To: j.change.To})
		if c.inverse && c.isLocal(j.change.To) {
			keys = append(keys, storage.Pair{From: j.change.To, To: j.user})
		}
	}
	return keys
}

// decide judges all changes.
func (c *edgeChange) decide() error {
	actors := make(map[storage.UserID]*judge.Actor) // one for all changes of a user: none of them has been written yet
	for _, j := range c.jobs {
		by := actors[j.user]
		if by == nil {
			var err error
			if by, err = c.actor(j.user); errors.Is(err, storage.ErrUserUnknown) {
				j.result = storage.Result[storage.Changed]{Err: err}
				continue
			} else if err != nil {
				return err
			}
			actors[j.user] = by
		}
		j.result = c.Change(c.side, by, j.change, j.options)
	}
	return nil
}

// Served by idx_following_list.
const sqlTypeCount = `
SELECT COUNT(*)
FROM following
WHERE from_user_id = ? AND type = ?`

// Served by idx_friend_request_list.
const sqlPendingRequests = `
SELECT COUNT(*)
FROM friend_request
WHERE from_user_id = ? AND type = 1 AND update_time >= ?`

// actor is a user who makes changes. Its blocks and its requests are counted only if one of the changes is bounded by them.
func (c *edgeChange) actor(user storage.UserID) (by *judge.Actor, err error) {
	if !c.isLocked(user) {
		return nil, fmt.Errorf("%w: %s", storage.ErrUserUnknown, user)
	}
	by = &judge.Actor{User: user, Follows: c.locked[user].Following}
	if c.side.HasItem() {
		return by, c.lookActor(by)
	}
	counted := make(map[*int64]bool, 1)
	for _, j := range c.jobs {
		n, bounded, text, bound := &by.Asks, j.options.MaxPending > 0 && j.change.Type == storage.Pending, sqlPendingRequests, int64(j.options.ValidFrom(j.change.At))
		if c.side == storage.Forward {
			text, bound = sqlTypeCount, int64(j.change.Type)
			switch j.change.Type {
			case storage.Blocking:
				n, bounded = &by.Blocks, j.options.MaxBlocks > 0
			case storage.Requested:
				n, bounded = &by.Waits, j.options.MaxFollowing > 0
			default:
				bounded = false
			}
		}
		if j.user != user || !bounded || counted[n] {
			continue
		}
		counted[n] = true
		if _, err := c.ReadOne(text, []any{int64(user), bound}, n); err != nil {
			return nil, err
		}
	}
	return by, nil
}

// save writes rows and counts.
func (c *edgeChange) save() error {
	for _, j := range c.jobs {
		if j.result.Value.Kept {
			c.change.AddUser(j.user, storage.Beside)
		}
	}
	if len(c.Owners()) > 0 {
		return c.writer.save(c.Judge)
	}
	if c.side.HasItem() {
		c.unchanged(nil)
	}
	return c.removeUnneeded(nil)
}

// lockKnown locks the counts of those owners who have some. The owners ascend.
func (w *writer) lockKnown(owners []storage.UserID) error {
	for chunk := range slices.Chunk(owners, w.store.sql.MaxKeys) {
		err := w.readLocked(chunk, db.Listed(sqlLockCounts, len(chunk)), db.Arguments(chunk), func(rows *sql.Rows) error {
			_, err := w.scanLocked(rows)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
