package loaders

import (
	"fmt"
	"runtime/debug"

	"kith/storage"
)

// bundle is batches of several kinds that leave at the same time, for a store that may read
// them in one statement.
type bundle struct {
	all    *Loaders
	reader storage.Bundler
	parts  []task // at least two, besides those of others

	users  *batch[storage.UserID, storage.User]
	counts *batch[storage.UserID, storage.Counts]
	edges  [2]*batch[storage.Pair, storage.Edge]
	pages  [2]*batch[storage.PageQuery, []storage.Edge]
}

// bundled puts what the store may read at once, of the tasks, into one.
func (l *Loaders) bundled(tasks []task) []task {
	if len(tasks) < 2 || l.bundler == nil {
		return l.together(tasks)
	}
	b := &bundle{all: l, reader: l.bundler}
	others := make([]task, 0, len(tasks))
	for _, t := range tasks {
		if b.add(t) {
			b.parts = append(b.parts, t)
		} else {
			others = append(others, t)
		}
	}
	if len(b.parts) < 2 {
		return l.together(tasks)
	}
	return append(others, b)
}

func (b *bundle) add(t task) bool {
	switch t := t.(type) {
	case *batch[storage.UserID, storage.User]:
		b.users = t
		return true
	case *batch[storage.UserID, storage.Counts]:
		b.counts = t
		return true
	case *batch[storage.Pair, storage.Edge]:
		for side := range b.edges {
			if t.loader == b.all.edges[side].made.Load() {
				b.edges[side] = t
				return true
			}
		}
	case *batch[storage.PageQuery, []storage.Edge]:
		for side := range b.pages {
			if t.loader == b.all.pages[side].made.Load() {
				b.pages[side] = t
				return true
			}
		}
	}
	return false
}

// answer implements task: its parts have been asked for what is at hand.
func (b *bundle) answer() bool { return false }

func (b *bundle) run() {
	if !b.readAtOnce() {
		runAll(b.all.together(b.parts))
	}
}

// readAtOnce is false if nothing has been answered.
func (b *bundle) readAtOnce() (done bool) {
	defer func() {
		if reason := recover(); reason != nil {
			err := fmt.Errorf("a look-up panicked: %v\n%s", reason, debug.Stack())
			b.fail(err)
			done = true
		}
	}()
	asked := storage.Bundle{Users: keysOf(b.users), Counts: keysOf(b.counts)}
	for side := range b.edges {
		asked.Edges[side], asked.Pages[side] = keysOf(b.edges[side]), keysOf(b.pages[side])
	}
	read, ok := b.reader.Bundle(b.all.ctx, asked)
	if !ok {
		return false
	}
	finish(b.users, read.Users)
	finish(b.counts, read.Counts)
	for side := range b.edges {
		finish(b.edges[side], read.Edges[side])
		finish(b.pages[side], read.Pages[side])
	}
	return true
}

// fail implements task.
func (b *bundle) fail(err error) {
	for _, p := range b.parts {
		p.fail(err)
	}
}

func keysOf[K comparable, V any](b *batch[K, V]) []K {
	if b == nil {
		return nil
	}
	return b.keys
}

func finish[K comparable, V any](b *batch[K, V], results []storage.Result[V]) {
	if b != nil {
		b.results = results
		b.done.Done()
	}
}

// runAll runs tasks side by side. It may return before all are done.
func runAll(tasks []task) {
	for i, t := range tasks {
		if i == len(tasks)-1 {
			t.run() // whoever asks has to wait anyway
			return
		}
		go t.run()
	}
}
