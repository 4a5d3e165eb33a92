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

// What is asked of the store at the same time is one [storage.Bundle]. Who knows many keys
// hands them over with Dispatch, and reads them itself. A single key of a resolver, and
// what members of the crowd ask, are loads of the library: a batch of it is the hand-overs
// that have come until it is closed, and its function reads their bundle. To send all of
// it that way, or each owner or key as a load of its own, costs too much: docs/adr/0038.
//
// The library's own memory is off: each [Loader] remembers its keys.

// handOver is what is asked at once.
type handOver struct{ asked []Question }

// line is a loader of the library.
type line = dataloader.Loader[*handOver, struct{}]

// The lines of a request differ in who closes a batch.
const (
	atOnce  = iota // nobody: each hand-over is a batch
	waiting        // the library's timer: a key that no level has fetched waits for others like it
	crowded        // the member of the crowd that comes last, or else the library's timer
	lines
)

// wait is how long a lone Load waits for company. It is only the fallback: a
// resolver that knows the keys of the level below fetches them all at once.
var wait = time.Millisecond

// Patience is how long a crowd waits for a member that does not come. None should
// stay away; if one does, only batching suffers. A test that counts statements on a
// busy machine raises it.
var Patience = 25 * time.Millisecond

// line returns a line; most requests have one at most.
func (l *Loaders) line(which int) *line {
	if made := l.lines[which].Load(); made != nil {
		return made
	}
	batch := l.send
	if which == crowded {
		batch = l.Crowd.send
	}
	l.lines[which].CompareAndSwap(nil, dataloader.NewBatchedLoader(batch, optionsOf(which)...))
	return l.lines[which].Load()
}

type option = dataloader.Option[*handOver, struct{}]

var (
	noCache = dataloader.WithCache[*handOver, struct{}](&dataloader.NoCache[*handOver, struct{}]{})
	one     = []option{noCache, dataloader.WithBatchCapacity[*handOver, struct{}](1), dataloader.WithInputCapacity[*handOver, struct{}](1)}
	queue   = dataloader.WithInputCapacity[*handOver, struct{}](64) // the library's 1,000 are 8 kB
)

func optionsOf(which int) []option {
	switch which {
	case crowded:
		return []option{noCache, queue, dataloader.WithWait[*handOver, struct{}](Patience)}
	case waiting:
		return []option{noCache, queue, dataloader.WithWait[*handOver, struct{}](wait)}
	}
	return one
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
	end(error)      // lets those go on who wait; the error is for a batch that is not answered
}

// Dispatch has all that is asked read at once: now, or for a member of the crowd together
// with what the others ask. It returns when that has been read.
func (l *Loaders) Dispatch(ctx context.Context, asked ...Question) {
	if l.isMember(ctx) {
		l.Crowd.meet(asked...)
		return
	}
	l.read(asked)
}

func (l *Loaders) load(line int, asked ...Question) dataloader.Thunk[struct{}] {
	return l.line(line).Load(l.ctx, &handOver{asked})
}

// done is the library's answer to a hand-over; the answers to its keys are in their batches.
var done dataloader.Result[struct{}]

// send is the batch function of a line.
func (l *Loaders) send(_ context.Context, handed []*handOver) []*dataloader.Result[struct{}] {
	asked := slices.Clip(handed[0].asked)
	for _, h := range handed[1:] {
		asked = append(asked, h.asked...)
	}
	l.read(asked)
	return slices.Repeat([]*dataloader.Result[struct{}]{&done}, len(handed))
}

// read answers questions that are asked together: from memory, and the rest by a bundle, under
// the context of the request: others than who asked first may wait for it. A look-up that
// panics has failed.
func (l *Loaders) read(asked []Question) {
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
	if tasks = l.recall(&b, tasks); len(tasks) == 0 {
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
	l.store.Bundle(l.ctx, &b)
}

// recall answers what is in memory, and returns the rest. A memory that panics has nothing:
// reading tells why.
func (l *Loaders) recall(b *storage.Bundle, tasks []task) (rest []task) {
	defer func() {
		if recover() != nil {
			rest = tasks
		}
	}()
	l.store.AtHand(b)
	return slices.DeleteFunc(tasks, func(t task) bool {
		if t.answered() {
			t.end(nil)
			return true
		}
		return false
	})
}

var errNotAnswered = errors.New("the store has left a look-up unanswered")
