package db

import (
	"context"
	"sync"
	"time"

	"kith/storage"
)

// An account that goes viral gets many new followers at the same time. Each of them needs the lock
// of its counts, so they go one after another whatever happens; but each that waits for the
// lock holds one of the few connections for writes, and when all are held, everybody's
// writes wait for the one account. So they wait here, before they take a connection, and
// those that have come while one is being written are written together, in one transaction
// with one lock (group commit). A lone write is not delayed.

// GroupCommit lets calls with the same key be served one after another, and those that
// wait as a group.
type GroupCommit[K comparable, J any] struct {
	mu     sync.Mutex
	queues map[K][]*waiting[J] // there is one of each key that is being served
}

const (
	// groupSize is how many writes one transaction takes at most: more are hardly faster,
	// and all of them wait for the last.
	groupSize = 100
	// groupTime is how long one may take, with all tries.
	groupTime = time.Minute
)

// waiting is a call that waits for others with its key.
type waiting[J any] struct {
	ctx   context.Context
	job   J
	taken bool
	done  chan struct{}
}

// Do runs a job, alone at once or with others later. It returns the end of the context if
// that comes before the job's group has begun; nothing has been done then. What becomes of
// the job is in the job. A group's context is not that of any of its callers.
func (t *GroupCommit[K, J]) Do(ctx context.Context, key K, job J, run func(context.Context, []J)) error {
	t.mu.Lock()
	if _, busy := t.queues[key]; busy {
		t.mu.Unlock()
		storage.Committing(ctx) // the group's context does not know of it
		t.mu.Lock()
	}
	if _, busy := t.queues[key]; !busy {
		if t.queues == nil {
			t.queues = make(map[K][]*waiting[J])
		}
		t.queues[key] = nil
		t.mu.Unlock()
		defer t.release(key, run)
		run(ctx, []J{job})
		return nil
	}
	w := &waiting[J]{ctx: ctx, job: job, done: make(chan struct{})}
	t.queues[key] = append(t.queues[key], w)
	t.mu.Unlock()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	taken := w.taken
	w.taken = true // or it is left out
	t.mu.Unlock()
	if !taken {
		return context.Cause(ctx)
	}
	<-w.done // it is being written: whoever is notified of writes has to learn of this one
	return nil
}

// release lets those go on who have come meanwhile.
func (t *GroupCommit[K, J]) release(key K, run func(context.Context, []J)) {
	if group := t.next(key); len(group) > 0 {
		go func() {
			for ; len(group) > 0; group = t.next(key) {
				t.serve(group, run)
			}
		}()
	}
}

// next takes the next group; when there is none, nobody waits for the key any more.
func (t *GroupCommit[K, J]) next(key K) (group []*waiting[J]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	queue := t.queues[key]
	for len(queue) > 0 && len(group) < groupSize {
		if w := queue[0]; !w.taken {
			w.taken = true
			group = append(group, w)
		}
		queue = queue[1:]
	}
	if len(group) == 0 {
		delete(t.queues, key)
	} else {
		t.queues[key] = queue
	}
	return group
}

func (t *GroupCommit[K, J]) serve(group []*waiting[J], run func(context.Context, []J)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(group[0].ctx), groupTime)
	defer cancel()
	jobs := make([]J, len(group))
	for i, w := range group {
		jobs[i] = w.job
	}
	run(storage.OnCounted(ctx, func(changes []storage.UserChange) {
		for _, w := range group {
			storage.Counted(w.ctx, changes)
		}
	}), jobs)
	for _, w := range group {
		close(w.done)
	}
}

// Waiting is how many calls wait for a key, and whether one with it is being served.
func (t *GroupCommit[K, J]) Waiting(key K) (n int, serving bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	queue, serving := t.queues[key]
	return len(queue), serving
}
