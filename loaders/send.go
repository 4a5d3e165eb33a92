package loaders

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"kith/storage"
	"kith/storage/cache/idset"
)

// Question is keys asked of one loader.
type Question interface {
	claim()     // has the keys sent with the loader's next batch
	take() task // that batch; nil if there is none
}

// task is a batch of one loader.
type task interface {
	into(*storage.Bundle)
	recalled(*storage.ReadStats) bool // whether memory has answered; then it ends
	wait()

	isOfRelations() bool
	load(context.Context, *Relations) (answered func()) // if it is

	join(*storage.Bundle) // if not: beside others
	settle(error)         // and ends with the answers
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
	var relations, beside []task
	for _, t := range tasks {
		if t.isOfRelations() {
			relations = append(relations, t)
		} else {
			beside = append(beside, t)
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
func (l *Loaders) recall(b *storage.Bundle, tasks []task, reads *storage.ReadStats) (rest []task) {
	defer func() {
		if recover() != nil {
			rest = tasks
		}
	}()
	l.store.AtHand(b)
	return slices.DeleteFunc(tasks, func(t task) bool { return t.recalled(reads) })
}

var errNotAnswered = errors.New("the store has left a look-up unanswered")

// Together computes n answers that each take several look-ups, one after another, such as the friends of
// every user of a page. Each answer has its own reader, and each of their steps is one
// bundle: an answer that reads pauses until every other one reads or is done. So the
// number of statements does not grow with the number of answers. The answers run in turn, on the
// caller's goroutine.
func (l *Loaders) Together(n int, answer func(i int, r Reader)) {
	if n == 1 {
		answer(0, l.Reader())
		return
	}
	going := make([]func() ([]Question, bool), n)
	for i := range going {
		next, stop := iter.Pull(func(yield func([]Question) bool) {
			answer(i, Reader{l, func(asked ...Question) { yield(asked) }})
		})
		defer stop()
		going[i] = next
	}
	for len(going) > 0 {
		var asked []Question
		asking := going[:0]
		for _, next := range going {
			if more, isAsking := next(); isAsking {
				asked, asking = append(asked, more...), append(asking, next)
			}
		}
		l.Dispatch(asked...)
		going = asking
	}
}

// Reader reads for answers of many steps, through the loaders: keys that the request has read are
// not read again.
func (l *Loaders) Reader() Reader { return Reader{l, l.Dispatch} }

// Reader is what [Loaders.Reader] returns.
type Reader struct {
	l   *Loaders
	ask func(...Question) // has the keys read; returns when that is done
}

// Bundle implements [storage.Answerer]. A user and its counts may be of two moments. Of lists and recommenders, what the store's memory
// has is not remembered.
func (r Reader) Bundle(ctx context.Context, b *storage.Bundle) {
	recall(r, b, idset.ListLookups...)
	recall(r, b, idset.RecommenderLookups)
	through(r, b, storage.CountLookups)
	through(r, b, storage.EdgeLookups...)
	through(r, b, storage.PageLookups...)
	through(r, b, storage.UserLookups)
	through(r, b, storage.RowLookups)
	through(r, b, storage.KindLookups)
	through(r, b, storage.DetailLookups)
	through(r, b, storage.PackedLookups...)
	through(r, b, storage.NeighbourLookups...)
	if both := storage.ProfileLookups.In(b); both.Open() {
		both.Results = r.profiles(both.Keys)
	}
	if b.Open() {
		r.l.store.Bundle(ctx, b)
	}
}

// through answers what a bundle asks of kinds by their loaders.
func through[K comparable, V any](r Reader, b *storage.Bundle, kinds ...*storage.LookupKind[K, V]) {
	for _, kind := range kinds {
		if l := kind.In(b); l.Open() {
			l.Results = fetch(r, Of(r.l, kind), l.Keys)
		}
	}
}

func fetch[K comparable, V any](r Reader, from *Loader[K, V], keys []K) []storage.Result[V] {
	asked := from.Ask(keys)
	if !from.knows(keys) {
		r.ask(asked)
	}
	return asked.Results()
}

// recall is through for what the store's memory need not be remembered of.
func recall[K comparable, V any](r Reader, b *storage.Bundle, kinds ...*storage.LookupKind[K, V]) {
	for _, kind := range kinds {
		l := kind.In(b)
		if !l.Open() {
			continue
		}
		if r.l.store.AtHand(b); !l.Open() {
			r.l.reads.InMemory(len(l.Keys))
		}
	}
	through(r, b, kinds...)
}

func (r Reader) profiles(ids []storage.UserID) []storage.Result[storage.Profile] {
	users, counts := r.l.Users.Ask(ids), r.l.Counts.Ask(ids)
	r.ask(users, counts)
	profiles, known := make([]storage.Result[storage.Profile], len(ids)), counts.Results()
	for i, u := range users.Results() {
		c := known[i]
		profiles[i] = storage.Result[storage.Profile]{
			Value: storage.Profile{User: u.Value, Exists: u.Found, Counts: c.Value, Counted: c.Found}, Found: u.Found || c.Found, Err: cmp.Or(u.Err, c.Err),
		}
	}
	return profiles
}
