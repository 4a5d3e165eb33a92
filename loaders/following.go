package loaders

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/graph-gophers/dataloader/v7"

	"kith/storage"
)

// Relations is the loader of graph-gophers/dataloader through which a request reads every edge, page and list that is not in
// memory: of the table following ([storage.Forward]), of follower ([storage.Inverse]), and of those beside them. A batch is what
// fields that are resolved at the same time ask for, and its batch function makes an IN-query of each look-up, on each shard.
//
// A key is an owner, not a pair, because that is how the rows lie: fifty edges of one user are one load (docs/inside/adr/0032-bundles.md).
type Relations = dataloader.Loader[Key, Rows]

// A Key names the owner of rows, on one side, and what is asked of them.
type Key struct {
	Side  storage.Side
	Owner storage.UserID
	Asked Part
}

// Part is one owner's keys of a look-up: pairs with its peers, pages of its list, or the owner itself for the whole list.
type Part interface {
	join(*storage.Bundle) // adds them to those of the other loads of a batch
	rows(error) Rows      // their answers; the error stands for those of a bundle that was not answered
}

// Rows answers a [Key]: results of the look-up, in the order of what is asked.
type Rows any

// defaultWait is how long a single Load waits for others. It is only the fallback: a caller that knows all keys of a level
// closes the batch.
const defaultWait = time.Millisecond

// libraryWait is how long the library itself would wait. It is far longer than a batch may take to be closed: its timer begins
// with the first load of a batch, and would take a level apart on a busy machine.
const libraryWait = time.Minute

// waitKey is the key of a different wait in a request's context.
type waitKey struct{}

// WithWait changes how long a single Load waits for others, in the requests of a context: tests make
// it longer.
func WithWait(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, waitKey{}, d)
}

// relations returns the request's loader. The library's cache is off: each [Loader] remembers its own keys.
func (l *Loaders) relations() *Relations {
	if made := l.made.Load(); made != nil {
		return made
	}
	l.made.CompareAndSwap(nil, dataloader.NewBatchedLoader(l.readRelations,
		dataloader.WithCache[Key, Rows](&dataloader.NoCache[Key, Rows]{}),
		dataloader.WithInputCapacity[Key, Rows](64), // the library's 1,000 take 100 kB
		dataloader.WithWait[Key, Rows](libraryWait)))
	return l.made.Load()
}

// close closes the batch, now if all of it is known.
func (l *Loaders) close(all bool) {
	if all {
		l.relations().Flush()
		return
	}
	wait, set := l.ctx.Value(waitKey{}).(time.Duration)
	if !set {
		wait = defaultWait
	}
	time.AfterFunc(wait, l.relations().Flush)
}

// readRelations is the batch function: it reads what is asked of all owners, and the users, counts and posts that are wanted
// at the same time, as one bundle.
func (l *Loaders) readRelations(ctx context.Context, keys []Key) []*dataloader.Result[Rows] {
	l.mu.Lock()
	beside := l.beside
	l.beside = nil
	l.mu.Unlock()
	var b storage.Bundle
	for _, key := range keys {
		key.Asked.join(&b)
	}
	err := l.read(ctx, &b, beside...)
	answers, results := make([]dataloader.Result[Rows], len(keys)), make([]*dataloader.Result[Rows], len(keys))
	for i, key := range keys {
		answers[i].Data = key.Asked.rows(err)
		results[i] = &answers[i]
	}
	return results
}

// read reads a bundle together with whole batches, and ends these. The error stands for what was not answered: a look-up
// that panics has failed.
func (l *Loaders) read(ctx context.Context, b *storage.Bundle, batches ...task) (err error) {
	err = errNotAnswered
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("a look-up panicked: %v\n%s", reason, debug.Stack())
		}
		for _, w := range batches {
			w.settle(err)
		}
	}()
	for _, w := range batches {
		w.join(b)
	}
	l.store.Bundle(ctx, b)
	return err
}

// ownedKeys is keys of a batch that are one owner's, or all of them.
type ownedKeys[K comparable, V any] struct {
	of       *batch[K, V]
	from, to int // the places of its keys there

	in *storage.Lookup[K, V] // of a bundle
	at int                   // where its keys begin in that
}

func (p *ownedKeys[K, V]) join(b *storage.Bundle) {
	kind, keys := p.of.loader.kind, p.of.Keys[p.from:p.to:p.to]
	if p.in = kind.In(b); p.in == nil {
		p.in = kind.Ask(b, keys...)
	} else {
		p.at = len(p.in.Keys)
		p.in.Keys = append(p.in.Keys, keys...)
	}
}

func (p *ownedKeys[K, V]) results(err error) []storage.Result[V] {
	if p.in.Results == nil {
		p.in.Fail(err)
	}
	return p.in.Results[p.at : p.at+p.to-p.from]
}

func (p *ownedKeys[K, V]) rows(err error) Rows { return p.results(err) }

// load asks the library for a batch of relations, by owner, and returns the function that waits for the answers.
func (b *batch[K, V]) load(ctx context.Context, relations *Relations) (wait func()) {
	type loading struct {
		*ownedKeys[K, V]
		answer dataloader.Thunk[Rows]
	}
	var loads []loading
	key := func(at int) (k Key) {
		k.Side, k.Owner = b.loader.kind.Owner(b.Keys[at])
		return k
	}
	for from, to := 0, 0; from < len(b.Keys); from = to {
		owner := key(from)
		for to = from + 1; to < len(b.Keys) && key(to) == owner; {
			to++
		}
		p := &ownedKeys[K, V]{of: b, from: from, to: to}
		owner.Asked = p
		loads = append(loads, loading{p, relations.Load(ctx, owner)})
	}
	return func() {
		results := make([]storage.Result[V], len(b.Keys))
		for _, p := range loads {
			rows, err := p.answer()
			if err != nil {
				b.end(err)
				return
			}
			copy(results[p.from:p.to], rows.([]storage.Result[V]))
		}
		b.Results = results
		b.end(nil)
	}
}
