package loaders

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/graph-gophers/dataloader/v7"

	"kith/storage"
)

// Keys that are sent to the store at the same time are one [storage.Bundle]. A caller that knows
// many keys passes them to Dispatch, and reads them itself. A single key of a resolver is a load of
// the library: a batch of the library is the keys that arrive until it is closed, and the batch
// function reads their bundle. Sending everything in this way, or each owner or key as a load of
// its own, costs too much: docs/adr/0038.
//
// The library's own cache is off: each [Loader] remembers its keys.

// line is a loader of the library, whose keys are single keys of ours.
type line = dataloader.Loader[Question, struct{}]

// The lines of a request differ in who closes a batch.
const (
	atOnce  = iota // none is needed: each key is a batch
	waiting        // the library's timer: a key that no level has fetched waits for other such keys
	lines
)

// defaultWait is how long a single Load waits for others. It is only the fallback: a resolver that
// knows the keys of the level below fetches them all at once.
const defaultWait = time.Millisecond

// waitKey is the key of a different wait in a request's context.
type waitKey struct{}

// WithWait changes how long a single Load waits for others, in the requests of a context: tests make
// it longer.
func WithWait(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, waitKey{}, d)
}

// line returns a line; most requests have one at most.
func (l *Loaders) line(which int) *line {
	if made := l.lines[which].Load(); made != nil {
		return made
	}
	l.lines[which].CompareAndSwap(nil, dataloader.NewBatchedLoader(l.send, l.options(which)...))
	return l.lines[which].Load()
}

type option = dataloader.Option[Question, struct{}]

var (
	noCache = dataloader.WithCache[Question, struct{}](&dataloader.NoCache[Question, struct{}]{})
	one     = []option{noCache, dataloader.WithBatchCapacity[Question, struct{}](1), dataloader.WithInputCapacity[Question, struct{}](1)}
	queue   = dataloader.WithInputCapacity[Question, struct{}](64) // the library's 1,000 are 8 kB
)

func (l *Loaders) options(which int) []option {
	if which == atOnce {
		return one
	}
	wait, set := l.ctx.Value(waitKey{}).(time.Duration)
	if !set {
		wait = defaultWait
	}
	return []option{noCache, queue, dataloader.WithWait[Question, struct{}](wait)}
}

// Question is keys asked of one loader.
type Question interface {
	claim()     // has the keys sent with the loader's next batch
	take() task // that batch; nil if there is none
}

// task is a batch of one loader.
type task interface {
	into(*storage.Bundle)
	answered() bool // by the bundle
	size() int      // how many keys
	end(error)      // lets the waiting callers continue; the error is for a batch that is not answered
}

// done is the library's answer to a question; the answers to its keys are in their batches.
var done dataloader.Result[struct{}]

// send is the batch function of a line.
func (l *Loaders) send(_ context.Context, asked []Question) []*dataloader.Result[struct{}] {
	l.Dispatch(asked...)
	return slices.Repeat([]*dataloader.Result[struct{}]{&done}, len(asked))
}

// Dispatch answers questions that are asked together: from memory if it can, and the rest by a
// bundle. It returns when that is done. It reads under the context of the request, because callers
// other than the first may wait for the answers. A look-up that panics has failed.
func (l *Loaders) Dispatch(asked ...Question) {
	for _, q := range asked {
		q.claim()
	}
	var b storage.Bundle
	tasks := make([]task, 0, len(asked))
	for _, q := range asked {
		if t := q.take(); t != nil {
			tasks = append(tasks, t)
			t.into(&b)
		}
	}
	if len(tasks) == 0 {
		return
	}
	ctx, reads, end := l.reads.Begin(l.ctx, &b)
	defer end()
	if tasks = l.recall(&b, tasks, reads); len(tasks) == 0 {
		return
	}
	err := errNotAnswered
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("a look-up panicked: %v\n%s", reason, debug.Stack())
		}
		for _, t := range tasks {
			t.end(err)
		}
	}()
	l.store.Bundle(ctx, &b)
}

// recall answers what is in memory, and returns the rest. If the memory panics, it counts as
// empty: the read that follows reports why.
func (l *Loaders) recall(b *storage.Bundle, tasks []task, reads *storage.Reads) (rest []task) {
	defer func() {
		if recover() != nil {
			rest = tasks
		}
	}()
	l.store.AtHand(b)
	return slices.DeleteFunc(tasks, func(t task) bool {
		if t.answered() {
			reads.InMemory(t.size())
			t.end(nil)
			return true
		}
		return false
	})
}

var errNotAnswered = errors.New("the store has left a look-up unanswered")
