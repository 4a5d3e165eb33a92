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

// Reader is what [Loaders.Reader] returns. Each method answers the kind of
// look-up that it is named after.
type Reader struct {
	l   *Loaders
	ask func(...Question) // has the keys read; returns when that is done
}

// Bundle implements [storage.Answerer], for callers that read users and edges from stores as well.
func (r Reader) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.UserLookups.Instead(ctx, b, r.Users)
	storage.EdgeLookups.Instead(ctx, b, r.Edges)
	r.l.store.Bundle(ctx, b)
}

func fetch[K comparable, V any](r Reader, from *Loader[K, V], keys []K) []storage.Result[V] {
	asked := from.Ask(keys)
	if !from.knows(keys) {
		r.ask(asked)
	}
	return asked.Results()
}

// Counts answers look-ups.
func (r Reader) Counts(_ context.Context, ids []storage.UserID) []storage.Result[storage.Counts] {
	return fetch(r, &r.l.Counts, ids)
}

// Profiles returns users with their counts, in the order of the ids.
// For an id without a user it is the zero profile. A user and its counts may be of two moments.
func (r Reader) Profiles(_ context.Context, ids []storage.UserID) ([]*storage.Profile, error) {
	users, counts := r.l.Users.Ask(ids), r.l.Counts.Ask(ids)
	r.ask(users, counts)
	made, profiles := make([]storage.Profile, len(ids)), make([]*storage.Profile, len(ids))
	known := counts.Results()
	for i, u := range users.Results() {
		c := known[i]
		if err := cmp.Or(u.Err, c.Err); err != nil {
			return nil, err
		}
		made[i] = storage.Profile{User: u.Value, Exists: u.Found, Counts: c.Value, Counted: c.Found}
		profiles[i] = &made[i]
	}
	return profiles, nil
}

// recall is fetch for what the store's memory need not be remembered of.
func recall[K comparable, V any](r Reader, kind *storage.LookupKind[K, V], keys []K) []storage.Result[V] {
	var b storage.Bundle
	known := kind.Ask(&b, keys...)
	if r.l.store.AtHand(&b); known.Open() {
		return fetch(r, of(r.l, kind), keys)
	}
	r.l.reads.InMemory(len(keys))
	return known.Results
}

// Sets returns lists that the store keeps as sets. Other lists are not Found: their rows have to be
// read.
func (r Reader) Sets(_ context.Context, side storage.Side, owners []storage.UserID) []storage.Result[*idset.List] {
	return recall(r, idset.ListLookups[side], owners)
}

// Recommenders returns users as suggestions need them. Users whom the store does not keep in this
// form are not Found: their profiles and lists have to be read.
func (r Reader) Recommenders(_ context.Context, ids []storage.UserID) []storage.Result[idset.Recommender] {
	return recall(r, idset.RecommenderLookups, ids)
}

// PackedNeighbours answers look-ups.
func (r Reader) PackedNeighbours(_ context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	return fetch(r, of(r.l, storage.PackedLookups[side]), owners)
}

// Users answers look-ups.
func (r Reader) Users(_ context.Context, ids []storage.UserID) []storage.Result[storage.User] {
	return fetch(r, &r.l.Users, ids)
}

// Edges answers look-ups.
func (r Reader) Edges(_ context.Context, side storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
	return fetch(r, r.l.Edges(side), pairs)
}

// Pages answers look-ups.
func (r Reader) Pages(_ context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	return fetch(r, r.l.Pages(side), queries)
}

// Details answers look-ups.
func (r Reader) Details(_ context.Context, pairs []storage.Pair) []storage.Result[storage.Detail] {
	return fetch(r, r.l.Details(), pairs)
}

// KindCounts answers look-ups.
func (r Reader) KindCounts(_ context.Context, of []storage.OwnerKind) []storage.Result[storage.KindCount] {
	return fetch(r, r.l.KindCounts(), of)
}

// AllRows answers look-ups.
func (r Reader) AllRows(_ context.Context, queries []storage.RowsQuery) []storage.Result[[]storage.Edge] {
	return fetch(r, of(r.l, storage.RowLookups), queries)
}

// Neighbours answers look-ups.
func (r Reader) Neighbours(_ context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	return fetch(r, of(r.l, storage.NeighbourLookups[side]), owners)
}
