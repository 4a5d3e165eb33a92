package sqlstore

import (
	"context"
	"fmt"

	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sqlstore/internal/db"
)

// groupKey is an account to whose row many edges are applied, and how.
type groupKey struct {
	owner storage.UserID
	side  storage.Side
	rule  storage.Rule
}

// oneEdge is one edge of an [Store.Apply].
type oneEdge struct {
	edge    storage.Edge
	applied storage.Applied
	err     error
}

// applyOne applies an edge, together with others of its owner that come at the same time.
func (s *Store) applyOne(ctx context.Context, shard int, side storage.Side, e storage.Edge, rule storage.Rule) (storage.Applied, error) {
	job := &oneEdge{edge: e}
	err := s.applies.Do(ctx, db.Slots[groupKey]{Key: groupKey{side.Owner(e.Pair()), side, rule}}, job, func(ctx context.Context, jobs []*oneEdge) {
		edges := make([]storage.Edge, len(jobs))
		for i, j := range jobs {
			edges[i] = j.edge
		}
		var applied []storage.Applied
		err := s.transactOn(ctx, "apply."+side.String(), shard, func(w *writer) (err error) {
			applied, err = w.apply(side, edges, rule)
			return err
		})
		for i, j := range jobs {
			if j.err = err; err == nil {
				j.applied = applied[i]
			}
		}
	})
	if err != nil {
		return storage.Applied{}, fmt.Errorf("write apply.%s on shard %d (%s): %w", side, shard, s.db.Shard(shard).Name, s.sql.StorageError(ctx, err))
	}
	return job.applied, job.err
}

// edgeTowards is one user's change of its edge towards an account.
type edgeTowards struct {
	from    storage.UserID
	change  storage.EdgeChange
	options storage.ChangeOptions
	result  storage.Result[storage.Changed]
}

// changeKey is where changes may share a transaction.
type changeKey struct {
	shard   int
	inverse bool // they also write the rows of other users on the shard
}

// joins reports whether a change may share a transaction with others'.
func joins(from storage.UserID, changes []storage.EdgeChange) bool {
	return len(changes) == 1 && changes[0].To != from
}

// changesAtOnce is how many transactions write single changes on a shard at a time. With as many as there
// are connections (4), groups are smaller and the mixed load slower; with one, all wait for any change
// that waits for a lock that another program holds.
const changesAtOnce = 2

// changeOne changes an edge, together with the changes of others on the shard that come while
// changesAtOnce transactions are under way, or while one of the two users is being written to.
func (s *Store) changeOne(ctx context.Context, from storage.UserID, change storage.EdgeChange, o storage.ChangeOptions) storage.Result[storage.Changed] {
	job := &edgeTowards{from: from, change: change, options: o}
	shard := s.shards.Of(from)
	at := db.Slots[changeKey]{
		Key: changeKey{shard, o.Inverse}, AtOnce: changesAtOnce, Accounts: []storage.UserID{from},
	}
	if o.Inverse && s.shards.Of(change.To) == shard {
		at.Accounts = append(at.Accounts, change.To)
	}
	err := s.changes.Do(ctx, at, job, func(ctx context.Context, jobs []*edgeTowards) {
		err := s.transactOn(ctx, "change", shard, func(w *writer) error { return w.changeTogether(jobs) })
		if err == nil {
			return
		}
		for _, j := range jobs {
			j.result = storage.Result[storage.Changed]{Err: err}
		}
	})
	if err != nil {
		job.result.Err = fmt.Errorf("write change on shard %d (%s): %w", shard, s.db.Shard(shard).Name, s.sql.StorageError(ctx, err))
	}
	return job.result
}

// changeTogether is the transaction of several users' changes, in the lock order of
// [Store.Apply]. They are decided one after another, as if each had a transaction of its own.
func (w *writer) changeTogether(jobs []*edgeTowards) error {
	if len(jobs) == 1 {
		j := jobs[0]
		c := newEdgeChange(w, j.from, j.options)
		results := make([]storage.Result[storage.Changed], 1)
		err := c.run([]storage.EdgeChange{j.change}, results)
		j.result = results[0]
		return err
	}
	c := &edgeChange{change: change{writer: w}, options: jobs[0].options}
	changes := make([]storage.EdgeChange, len(jobs))
	owners := make([]storage.UserID, 0, 2*len(jobs))
	var keys []storage.Pair
	for i, j := range jobs {
		changes[i] = j.change
		owners = append(owners, j.from)
		keys = append(keys, storage.Pair{From: j.from, To: j.change.To})
		if c.writesOther(j.change.To) {
			owners = append(owners, j.change.To)
			keys = append(keys, storage.Pair{From: j.change.To, To: j.from})
		}
	}
	counts, err := c.lockAll(owners)
	if err != nil {
		return err
	}
	for {
		c.begin(changes)
		if err := c.look(c.Judge, keys, c.rows.sides...); err != nil {
			return err
		}
		acted := c.decideAll(jobs, counts)
		again, err := c.lockMissing()
		if err != nil {
			return err
		}
		if !again {
			return c.saveOf(acted)
		}
	}
}

// decideAll judges all changes, and returns who has done something on which day.
func (c *edgeChange) decideAll(jobs []*edgeTowards, counts map[storage.UserID]storage.Counts) map[storage.UserID]storage.Day {
	acted := make(map[storage.UserID]storage.Day)
	follows := make(map[storage.UserID]int64, len(counts))
	for id, n := range counts {
		follows[id] = n.Following
	}
	for _, j := range jobs {
		if _, known := counts[j.from]; !known {
			j.result = storage.Result[storage.Changed]{Err: fmt.Errorf("%w: %s", storage.ErrUserUnknown, j.from)}
			continue
		}
		by := judge.Actor{User: j.from, Follows: follows[j.from], MaxFollowing: j.options.MaxFollowing}
		j.result = c.Change(&by, j.change)
		follows[j.from] = by.Follows
		if j.result.Value.Changed {
			acted[j.from] = max(acted[j.from], storage.DayOf(j.change.At))
		}
	}
	return acted
}
