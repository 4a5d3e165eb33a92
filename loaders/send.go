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

// All that a request asks at the same time goes to the store as one load, whose key is the
// hand-over itself. A batch of the library is the hand-overs that have come until it is
// closed, and its function puts their keys into one bundle. The library's own memory is
// off: each [Loader] remembers its keys, and looks into the store's memory first.

// handOver is what is asked at once.
type handOver struct {
	asked []Question
	order *order // made of it already; nil: not yet
}

// line is a loader of the library.
type line = dataloader.Loader[*handOver, struct{}]

// The lines of a request differ in who closes a batch.
const (
	atOnce  = iota // each hand-over is a batch: nobody waits
	crowded        // the member of the crowd that comes last, or else the library's timer
	lone           // the library's timer: a key that no level has fetched waits for others like it
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
	case lone:
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
		l.Crowd.meet(asked)
		return
	}
	if o := l.orderOf(asked); len(o.tasks) > 0 {
		l.load(atOnce, &handOver{order: o})()
	}
}

func (l *Loaders) load(line int, h *handOver) dataloader.Thunk[struct{}] {
	return l.line(line).Load(l.ctx, h)
}

// done is the library's answer to a hand-over; the answers to its keys are in their batches.
var done dataloader.Result[struct{}]

// send is the batch function of a line.
func (l *Loaders) send(_ context.Context, handed []*handOver) []*dataloader.Result[struct{}] {
	o := handed[0].order
	if o == nil {
		var asked []Question
		for _, h := range handed {
			asked = append(asked, h.asked...)
		}
		o = l.orderOf(asked)
	}
	if len(o.tasks) > 0 {
		l.read(o)
	}
	return slices.Repeat([]*dataloader.Result[struct{}]{&done}, len(handed))
}

// order is batches that are read together.
type order struct {
	bundle storage.Bundle
	tasks  []task // those that are not answered
}

// orderOf is the batches that questions make together, but for those whose keys are in
// memory: they are answered.
func (l *Loaders) orderOf(asked []Question) *order {
	for _, q := range asked {
		q.claim()
	}
	o := &order{tasks: make([]task, 0, len(asked))}
	for _, q := range asked {
		if t := q.take(); t != nil {
			o.tasks = append(o.tasks, t)
			t.into(&o.bundle)
		}
	}
	l.recall(o)
	return o
}

// recall answers what is in memory. A memory that panics has nothing: reading tells why.
func (l *Loaders) recall(o *order) {
	defer func() { _ = recover() }()
	l.store.AtHand(&o.bundle)
	o.tasks = slices.DeleteFunc(o.tasks, func(t task) bool {
		if t.answered() {
			t.end(nil)
			return true
		}
		return false
	})
}

// read reads an order, under the context of the request: others than who asked first may
// wait for it. A look-up that panics has failed.
func (l *Loaders) read(o *order) {
	err := errNotAnswered
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("a look-up panicked: %v\n%s", reason, debug.Stack())
		}
		for _, t := range o.tasks {
			t.end(err)
		}
	}()
	l.store.Bundle(l.ctx, &o.bundle)
}

var errNotAnswered = errors.New("the store has left a look-up unanswered")
