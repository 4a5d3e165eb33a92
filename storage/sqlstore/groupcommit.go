package sqlstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// smallWrite is a write that may share a transaction with others of its shard.
type smallWrite struct {
	kind     any // those of one kind are made at once; nil: alone
	what     string
	accounts []storage.UserID // to whose rows it writes
	job      any
	run      func(*writer, []*smallWrite) error // if it fails before it writes anything, it has been refused
	strayed  bool                               // its buckets are about to move
	err      error
}

// together makes a small write that is made at once with others of its kind.
func together[J any](kind any, what string, accounts []storage.UserID, job J, run func(*writer, []J) error) *smallWrite {
	return &smallWrite{kind: kind, what: what, accounts: accounts, job: job, run: func(w *writer, some []*smallWrite) error {
		return run(w, storage.Each(some, func(s *smallWrite) J { return s.job.(J) }))
	}}
}

// groupsAtOnce is how many transactions make small writes on a shard at a time. With as many as there are connections (4), groups are
// smaller and the mixed load slower; with two, a write to both sides in one call takes a fifth longer at the median; with one, all wait
// for any write that waits for a lock that another program holds.
const groupsAtOnce = 3

// transactJoined is [Store.transact] for what one user writes of itself, as one of the small writes of the shard.
func (s *Store) transactJoined(ctx context.Context, what string, user storage.UserID, run func(*writer) error) error {
	return s.db.Rerouted(ctx, func() error {
		return s.join(ctx, s.shards.Of(user), &smallWrite{
			what: what, accounts: []storage.UserID{user}, run: func(w *writer, _ []*smallWrite) error { return run(w) },
		})
	})
}

// join makes a small write, together with the others on the shard that wait, see [db.GroupCommit].
func (s *Store) join(ctx context.Context, shard int, job *smallWrite) error {
	err := s.smallWrites.Do(ctx, shard, job.accounts, job, func(ctx context.Context, jobs []*smallWrite) {
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

// writeTogether is the transaction of several small writes: kind by kind and, within one, in the order of their accounts. A write that
// is refused, or has to wait for its buckets, leaves the others alone.
func (w *writer) writeTogether(jobs []*smallWrite) error {
	jobs = slices.DeleteFunc(slices.Clone(jobs), w.strays)
	left := slices.SortedStableFunc(slices.Values(jobs), func(a, b *smallWrite) int { return cmp.Compare(a.accounts[0], b.accounts[0]) })
	for i, first := range left {
		if first == nil {
			continue
		}
		some := []*smallWrite{first}
		for k, other := range left[i+1:] {
			if first.kind != nil && other != nil && other.kind == first.kind {
				some, left[i+1+k] = append(some, other), nil
			}
		}
		w.Label(first.what)
		before := w.Effects()
		if err := first.run(w, some); err != nil {
			if len(jobs) == 1 || len(some) > 1 || w.Effects() != before {
				return err
			}
			first.err = err // it has been refused, and the effects are as they were before it
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
