package loaders

import (
	"context"
	"errors"
	"slices"

	"kith/storage"
)

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
	wait()

	isOfRelations() bool
	load(context.Context, *Relations) (answered func()) // if it is
	whole() whole                                       // if not
}

// Dispatch answers questions that are asked together: from memory if it can, and the rest by a bundle, those about relations
// by the library. It returns when that is done. It reads under the context of the request, because callers other than the
// first may wait for the answers.
func (l *Loaders) Dispatch(asked ...Question) { l.send(asked, true) }

// send is Dispatch if all is set. Otherwise the batch of relations stays open for a moment, because others may ask for more.
func (l *Loaders) send(asked []Question, all bool) {
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
	var relations []task
	var beside []whole
	for _, t := range tasks {
		if t.isOfRelations() {
			relations = append(relations, t)
		} else {
			beside = append(beside, t.whole())
		}
	}
	if len(relations) == 0 {
		_ = l.read(ctx, new(storage.Bundle), beside...)
		return
	}
	l.mu.Lock()
	l.beside = append(l.beside, beside...) // the next batch takes them along
	l.mu.Unlock()
	answered := make([]func(), len(relations))
	for i, t := range relations {
		answered[i] = t.load(ctx, l.relations())
	}
	l.close(all)
	for _, wait := range answered {
		wait()
	}
	for _, t := range tasks {
		t.wait()
	}
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
