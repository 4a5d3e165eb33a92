package sqlstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"kith/storage"
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
		edges := storage.Each(jobs, func(j *oneEdge) storage.Edge { return j.edge })
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

// smallWrite is a write of one user that may share a transaction with others of its shard: a change of an
// edge, or what run does.
type smallWrite struct {
	edge     *edgeTowards
	what     string
	user     storage.UserID
	accounts []storage.UserID    // to whose rows it writes
	run      func(*writer) error // if it fails before it writes anything, it has been refused
	strayed  bool                // its buckets are about to move
	err      error
}

// joins reports whether a change may share a transaction with others'.
func joins(from storage.UserID, changes []storage.EdgeChange) bool {
	return len(changes) == 1 && changes[0].To != from
}

// groupsAtOnce is how many transactions make small writes on a shard at a time. With as many as there
// are connections (4), groups are smaller and the mixed load slower; with one, all wait for any write
// that waits for a lock that another program holds.
const groupsAtOnce = 2

// changeOne changes an edge, as one of the small writes of the shard.
func (s *Store) changeOne(ctx context.Context, from storage.UserID, change storage.EdgeChange, o storage.ChangeOptions) storage.Result[storage.Changed] {
	job := &edgeTowards{from: from, change: change, options: o}
	shard := s.shards.Of(from)
	accounts := []storage.UserID{from}
	if o.Inverse && s.shards.Of(change.To) == shard {
		accounts = append(accounts, change.To)
	}
	if err := s.join(ctx, shard, &smallWrite{edge: job, what: "change", accounts: accounts}); err != nil {
		job.result = storage.Result[storage.Changed]{Err: err}
	}
	return job.result
}

// transactJoined is [Store.transact] for what one user writes of itself, as one of the small writes of the shard.
func (s *Store) transactJoined(ctx context.Context, what string, user storage.UserID, run func(*writer) error) error {
	return s.db.Rerouted(ctx, func() error {
		return s.join(ctx, s.shards.Of(user), &smallWrite{what: what, user: user, accounts: []storage.UserID{user}, run: run})
	})
}

// join makes a small write, together with the others on the shard that come while groupsAtOnce
// transactions are under way, or while one of the accounts is being written to.
func (s *Store) join(ctx context.Context, shard int, job *smallWrite) error {
	err := s.smallWrites.Do(ctx, db.Slots[int]{Key: shard, AtOnce: groupsAtOnce, Accounts: job.accounts}, job, func(ctx context.Context, jobs []*smallWrite) {
		err := s.transactOn(ctx, jobs[0].what, shard, func(w *writer) error { return w.writeTogether(jobs) })
		if err == nil {
			return
		}
		for _, j := range jobs {
			if !j.strayed {
				j.err = err
			}
		}
	})
	if err != nil {
		return fmt.Errorf("write %s on shard %d (%s): %w", job.what, shard, s.db.Shard(shard).Name, s.sql.StorageError(ctx, err))
	}
	return job.err
}

// writeTogether is the transaction of several small writes. The changes of edges come first, and then the
// others in the order of their users. A write that is refused, or has to wait for its buckets, leaves the others alone.
func (w *writer) writeTogether(jobs []*smallWrite) error {
	var edges [2][]*edgeTowards // without and with their other sides
	var others []*smallWrite
	jobs = slices.DeleteFunc(slices.Clone(jobs), w.strays)
	for _, j := range jobs {
		switch {
		case j.edge == nil:
			others = append(others, j)
		case j.edge.options.Inverse:
			edges[1] = append(edges[1], j.edge)
		default:
			edges[0] = append(edges[0], j.edge)
		}
	}
	for _, some := range edges {
		if len(some) == 0 {
			continue
		}
		w.Label("change")
		before := w.Effects()
		if err := w.changeEdges(some); err != nil {
			if len(some) > 1 || w.endsAll(jobs, before) { // of several, those that are refused have results
				return err
			}
			some[0].result = storage.Result[storage.Changed]{Err: err}
		}
	}
	slices.SortStableFunc(others, func(a, b *smallWrite) int { return cmp.Compare(a.user, b.user) })
	for _, j := range others {
		w.Label(j.what)
		before := w.Effects()
		if err := j.run(w); err != nil {
			if w.endsAll(jobs, before) {
				return err
			}
			j.err = err
		}
	}
	return nil
}

// strays reports whether a write has to wait until its buckets have moved, or goes to another shard.
func (w *writer) strays(j *smallWrite) bool {
	j.err = nil
	for _, id := range j.accounts {
		j.err = cmp.Or(j.err, w.Strayed(db.MovedRow{Kind: db.UserRows, Owner: id}))
	}
	j.strayed = j.err != nil
	return j.strayed
}

// endsAll reports whether an error of one of the writes ends the transaction of all: it does unless the write has been refused,
// so that the effects are as they were before it.
func (w *writer) endsAll(jobs []*smallWrite, before int) bool {
	return len(jobs) == 1 || w.Effects() != before
}
