// Package subscription is what a subscription's resolver reports to the transport besides its
// answers.
package subscription

import (
	"context"
	"sync"
)

type key struct{}

// Ending is why a subscription ended.
type Ending struct {
	failed func(err error, attempt int)
	turn   func(context.Context) (done func())

	mu  sync.Mutex
	err error
}

// State is a part of everything that a subscription sends: the state in which it was read, and in which what is
// selected below it is answered.
type State struct {
	enter func(context.Context) context.Context
}

// Keep sets the state: enter adds it to the context of an answer.
func (s *State) Keep(enter func(context.Context) context.Context) { s.enter = enter }

// Enter is the context of an answer, with the state if one is kept.
func (s *State) Enter(ctx context.Context) context.Context {
	if s.enter == nil {
		return ctx
	}
	return s.enter(ctx)
}

// Attach gives the context of a subscription an Ending. failed is called for [Failed], turn for
// [Turn].
func Attach(ctx context.Context, failed func(err error, attempt int), turn func(context.Context) (done func())) (context.Context, *Ending) {
	e := &Ending{failed: failed, turn: turn}
	return context.WithValue(ctx, key{}, e), e
}

// Err is the error that was passed to [Fail] first; nil if none.
func (e *Ending) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// Fail reports to the client of a subscription why it ends. The resolver calls it with its own
// context, then closes its channel. Without the call, closing means that the subscription is
// complete. Errors are shown and masked as those of fields are.
func Fail(ctx context.Context, err error) {
	e, ok := ctx.Value(key{}).(*Ending)
	if !ok {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.err = err
	}
}

// Failed reports, with the resolver's own context, that the subject of an event could not be
// read. The client does not learn of it: if it matters to the answers, the read is repeated.
func Failed(ctx context.Context, err error, attempt int) {
	if e, ok := ctx.Value(key{}).(*Ending); ok {
		e.failed(err, attempt)
	}
}

// Turn waits until the resolver of a subscription may work on an event: in one gateway, only a
// bounded number of resolvers do at once. The turn has to end before an answer is handed over,
// because that may take a while. Once the context is done, Turn does not wait.
func Turn(ctx context.Context) (done func()) {
	if e, ok := ctx.Value(key{}).(*Ending); ok {
		return e.turn(ctx)
	}
	return func() {}
}
