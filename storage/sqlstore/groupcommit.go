package sqlstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"kith/storage"
)

// smallWrite is a write that may share a transaction with others of its shard.
type smallWrite struct {
	kind     any  // those of one kind are made at once
	apart    bool // but no two of one account, and before edges
	what     string
	accounts []storage.UserID // to whose rows it writes
	job      any
	run      func(*writer, []*smallWrite) error
	strayed  error // its buckets are about to move
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
// for any write that waits for a lock that another program holds. SQLite has one connection: groups that wait for it are smaller than one
// that is made when it is free.
const groupsAtOnce = 3

// joinOwn makes what a user writes of itself together with the same of others.
func joinOwn[J any](ctx context.Context, s *Store, what string, user storage.UserID, job J, run func(*writer, []J) error) error {
	write := together(what, what, []storage.UserID{user}, job, run)
	write.apart = true
	return s.db.Rerouted(ctx, func() error { return s.join(ctx, s.shards.Of(user), write) })
}

// join makes a small write, together with the others on the shard that wait, see [db.GroupCommit].
func (s *Store) join(ctx context.Context, shard int, job *smallWrite) error {
	err := s.smallWrites.Do(ctx, shard, job.accounts, job, func(ctx context.Context, jobs []*smallWrite) {
		err := s.transactOn(ctx, jobs[0].what, shard, func(w *writer) error { return w.writeTogether(jobs) })
		for _, j := range jobs {
			j.err = cmp.Or(j.strayed, err)
		}
	})
	if err != nil {
		return fmt.Errorf("write %s on shard %d (%s): %w", job.what, shard, s.db.Shard(shard).Name, s.sql.StorageError(ctx, err))
	}
	return job.err
}

// writeTogether is the transaction of several small writes: kind by kind and, within one, in the order of their accounts. A write that has to
// wait for its buckets leaves the others alone. Edges come last: their counts are written with those of the others, see [writer.owe].
func (w *writer) writeTogether(jobs []*smallWrite) error {
	left := slices.SortedStableFunc(slices.Values(jobs), func(a, b *smallWrite) int {
		switch {
		case a.apart == b.apart:
			return cmp.Compare(a.accounts[0], b.accounts[0])
		case a.apart:
			return -1
		}
		return 1
	})
	left = slices.DeleteFunc(left, w.strays)
	for len(left) > 0 {
		first := left[0]
		var some, others []*smallWrite
		for _, j := range left {
			if j.kind == first.kind && !(j.apart && len(some) > 0 && some[len(some)-1].accounts[0] == j.accounts[0]) {
				some = append(some, j)
			} else {
				others = append(others, j)
			}
		}
		w.Label(first.what)
		if err := first.run(w, some); err != nil {
			return err
		}
		left = others
	}
	return nil
}

// strays reports whether a write has to wait until its buckets have moved, or goes to another shard.
func (w *writer) strays(j *smallWrite) bool {
	j.strayed = nil
	for _, id := range j.accounts {
		j.strayed = cmp.Or(j.strayed, w.hasUser(id))
	}
	return j.strayed != nil
}
