package db

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"kith/storage"
)

// Most of a small write's transaction is beginning, locking and committing. So a shard has few such
// transactions at a time. A write that comes while they are under way waits here, and the writes that wait are
// made together, in one transaction with one statement of each kind (group commit). A write that finds room is
// not delayed.
//
// An account that goes viral gets many new followers at the same time. Each follow needs the lock of
// the account's counts, so they are written one after another in any case. But each transaction that
// waits for the lock would hold one of the few connections for writes, and when all are held, the
// writes of all users wait for the one account. So only one transaction that writes to the same
// account is under way, and the other writes wait here, too. A write of two such accounts would hardly ever
// find both free at once: those of the write that has waited longest are kept for it.

// GroupCommit makes the small writes of each shard, those that wait as groups.
type GroupCommit[J any] struct {
	AtOnce int // how many groups are written on a shard at a time

	mu     sync.Mutex
	queues map[int]*queue[J] // there is one for each shard that is being written to
}

const (
	// groupSize is how many writes one transaction takes at most: more are hardly faster,
	// and all of them wait for the last.
	groupSize = 100
	// groupTime is how long one may take, with all tries.
	groupTime = time.Minute
	// groupStalls is for how long no group may end before only groupSize writes of a shard may wait: its disk is full, it is locked for a
	// backup, or its replicas do not answer. If all writes waited, they would soon be all requests that a gateway works on.
	groupStalls = 2 * time.Second
)

// errStalled is the error of a write that does not wait.
var errStalled = fmt.Errorf("%w: no write has ended for %s, and %d wait", storage.ErrUnavailable, groupStalls, groupSize)

// queue is the calls that wait for a shard.
type queue[J any] struct {
	serving int
	ended   time.Time               // when a group ended last; at first, when the queue was made
	busy    map[storage.UserID]bool // the accounts that are being written to
	waiting []*waiting[J]
}

// isFree reports whether accounts are neither being written to nor kept for another write.
func (q *queue[J]) isFree(accounts, kept []storage.UserID) bool {
	return !slices.ContainsFunc(accounts, func(id storage.UserID) bool { return q.busy[id] || slices.Contains(kept, id) })
}

// kept is the accounts of the write that has waited longest.
func (q *queue[J]) kept() []storage.UserID {
	if i := slices.IndexFunc(q.waiting, func(w *waiting[J]) bool { return !w.taken }); i >= 0 {
		return q.waiting[i].accounts
	}
	return nil
}

func (q *queue[J]) begin(accounts []storage.UserID) {
	for _, id := range accounts {
		q.busy[id] = true
	}
}

// waiting is a call that waits for others.
type waiting[J any] struct {
	ctx      context.Context
	job      J
	accounts []storage.UserID
	taken    bool
	done     chan struct{}
}

// Do runs a job that writes to accounts of a shard, alone at once or with others later. No two groups that are served at a time
// write to the same account. If the context ends before the job's group has
// begun, Do returns its error, or [storage.ErrUnavailable] if too many wait, and nothing has been done. The outcome of the job is in the job. A
// group's context is not that of any of its callers.
func (t *GroupCommit[J]) Do(ctx context.Context, shard int, accounts []storage.UserID, job J, run func(context.Context, []J)) error {
	defer storage.Wait(ctx)()
	t.mu.Lock()
	q := t.queues[shard]
	if q == nil {
		q = &queue[J]{busy: map[storage.UserID]bool{}, ended: time.Now()}
		if t.queues == nil {
			t.queues = make(map[int]*queue[J])
		}
		t.queues[shard] = q
	}
	if q.serving < t.AtOnce && q.isFree(accounts, q.kept()) {
		q.serving++
		q.begin(accounts)
		t.mu.Unlock()
		defer t.release(shard, accounts, run)
		run(ctx, []J{job})
		return nil
	}
	if len(q.waiting) >= groupSize && time.Since(q.ended) > groupStalls {
		t.mu.Unlock()
		return errStalled
	}
	w := &waiting[J]{ctx: ctx, job: job, accounts: accounts, done: make(chan struct{})}
	q.waiting = append(q.waiting, w)
	t.mu.Unlock()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	taken := w.taken
	if w.taken = true; !taken { // its group leaves it out
		t.goOn(shard, run) // with those for whom its accounts were not free
	}
	t.mu.Unlock()
	if !taken {
		return context.Cause(ctx)
	}
	<-w.done // it is being written, and those who are notified of writes have to learn of it
	return nil
}

// release lets calls go on that came while accounts were being written to.
func (t *GroupCommit[J]) release(shard int, accounts []storage.UserID, run func(context.Context, []J)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.queues[shard]
	q.serving--
	q.ended = time.Now()
	for _, id := range accounts {
		delete(q.busy, id)
	}
	t.goOn(shard, run)
}

// goOn lets calls go on for which there is room. Its caller holds the lock.
func (t *GroupCommit[J]) goOn(shard int, run func(context.Context, []J)) {
	q := t.queues[shard]
	for q.serving < t.AtOnce {
		group := q.next()
		if len(group) == 0 {
			break
		}
		q.serving++
		var accounts []storage.UserID
		for _, w := range group {
			accounts = append(accounts, w.accounts...)
		}
		q.begin(accounts)
		go func() {
			defer t.release(shard, accounts, run)
			t.serve(group, run)
		}()
	}
	if q.serving == 0 { // then nobody waits either
		delete(t.queues, shard)
	}
}

// next takes the next group. It leaves out writes that wait for an account, and all others once the group is
// full.
func (q *queue[J]) next() (group []*waiting[J]) {
	var left []*waiting[J]
	var kept []storage.UserID // for the first that is left
	for _, w := range q.waiting {
		switch {
		case w.taken: // its caller has given up
		case len(group) < groupSize && q.isFree(w.accounts, kept):
			group = append(group, w)
		default:
			left = append(left, w)
			kept = left[0].accounts
		}
	}
	for _, w := range group {
		w.taken = true
	}
	q.waiting = left
	return group
}

func (t *GroupCommit[J]) serve(group []*waiting[J], run func(context.Context, []J)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(group[0].ctx), groupTime)
	defer cancel()
	jobs := storage.Each(group, func(w *waiting[J]) J { return w.job })
	run(ctx, jobs)
	for _, w := range group {
		close(w.done)
	}
}

// Waiting is how many calls wait for a shard, and how many of its groups are being served.
func (t *GroupCommit[J]) Waiting(shard int) (waiting, serving int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q := t.queues[shard]; q != nil {
		return len(q.waiting), q.serving
	}
	return 0, 0
}
