package resolvers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"kith/graph/apierr"
	"kith/graph/subscription"
	"kith/loaders"
	"kith/storage"
	"kith/storage/events"
)

// How long a subscription tries to read the subject of an event at a time, and how long it waits before it tries again.
const (
	perEvent     = 10 * time.Second
	firstPause   = 50 * time.Millisecond
	longestPause = 5 * time.Second
)

// A subscriber is the state of one subscription: what its client knows.
type subscriber[T any] interface {
	// begin reads the state in which the subscription starts.
	begin(ctx context.Context) error
	// answers reads what an event has changed for the client. If more is true, it has to be called again with the same event, for the rest.
	// After an error, it has to be called again, too: then the client knows no more than before.
	answers(ctx context.Context, e events.Event) (list []T, more bool, err error)
}

// sent is what a subscription sends, see [subscription.State].
type sent interface {
	Keep(enter func(context.Context) context.Context)
}

// subscribe runs a subscription to the events of a source.
func subscribe[T sent](ctx context.Context, r *Resolver, source *events.Subscription, s subscriber[T]) (<-chan T, error) {
	begin, cancel := r.attempt(ctx)
	defer cancel()
	if err := s.begin(begin); err != nil {
		source.Close()
		return nil, err
	}
	answers := make(chan T)
	go func() {
		defer close(answers)
		defer ended(ctx, source)
		defer survive(ctx)
		for e := range source.Events() {
			e = inTurn(ctx, source, e)
			for more := true; more; {
				var list []T
				var ok bool
				if list, more, ok = patiently(ctx, r, source, s, e); !ok {
					return
				}
				for _, one := range list {
					select {
					case answers <- one:
					case <-ctx.Done():
						return
					}
				}
			}
		}
	}()
	return answers, nil
}

// attempt is the context of one read of an event's subject, in its present state.
func (r *Resolver) attempt(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(loaders.Attach(ctx, r.Store), perEvent)
}

// patiently retries until it can read, because the event does not come again. ok is false
// if the subscription has ended meanwhile, for instance because too many events were waiting.
func patiently[T sent](ctx context.Context, r *Resolver, source *events.Subscription, s subscriber[T], e events.Event) (list []T, more, ok bool) {
	pause := firstPause
	for attempt := 1; ; attempt++ {
		list, more, err := readOnce(ctx, r, s, e)
		switch {
		case err == nil:
			return list, more, true
		case ctx.Err() != nil:
			return nil, false, false
		}
		subscription.Failed(ctx, err, attempt)
		select {
		case <-ctx.Done():
			return nil, false, false
		case <-time.After(pause):
		}
		if source.Err() != nil {
			return nil, false, false
		}
		pause = min(2*pause, longestPause)
	}
}

// inTurn waits until an event may be worked on, and returns the newest event about the same subject: events
// that arrived meanwhile are merged into it. The turn itself is taken for each attempt.
func inTurn(ctx context.Context, source *events.Subscription, e events.Event) events.Event {
	defer subscription.Turn(ctx)()
	return source.Newest(e)
}

// readOnce reads once. If a part of an answer could not be read, it is null, as below other fields.
func readOnce[T sent](ctx context.Context, r *Resolver, s subscriber[T], e events.Event) (list []T, more bool, err error) {
	defer subscription.Turn(ctx)()
	ctx, cancel := r.attempt(ctx)
	defer cancel()
	keep := func(_ context.Context, err error) *gqlerror.Error {
		return &gqlerror.Error{Err: err, Message: err.Error()}
	}
	ctx = graphql.WithResponseContext(ctx, keep, graphql.DefaultRecover)
	list, more, err = s.answers(ctx, e)
	if below := graphql.GetErrors(ctx); err == nil && len(below) > 0 {
		subscription.Failed(ctx, below, 1)
	}
	for _, one := range list {
		one.Keep(loaders.For(ctx).Continue)
	}
	return list, more, err
}

// ended gives a dropped client the reason.
func ended(ctx context.Context, source *events.Subscription) {
	if errors.Is(source.Err(), events.ErrSlow) {
		subscription.Fail(ctx, apierr.FellBehind.Error("more has changed than could be reported in time: subscribe again, and read what you missed"))
	}
}

// survive ends only the subscription that panics.
func survive(ctx context.Context) {
	if reason := recover(); reason != nil {
		subscription.Fail(ctx, fmt.Errorf("panic in a subscription: %v\n%s", reason, debug.Stack()))
	}
}

// newsReader reads rows, which have keys and versions, and are sent in some form.
type newsReader[K comparable, R, A any] interface {
	// begin reads the state in which the subscription starts.
	begin(ctx context.Context) error
	// read reads what an event has added, or what may have been missed, oldest first. more and err are those of subscriber.answers.
	read(ctx context.Context, e events.Event) (rows []R, more bool, err error)
	about(row R) (key K, version storage.Micros)
	// send makes the answers.
	send(ctx context.Context, rows []R) []A
}

// newsWatch is the state of a subscription that sends each version of a row once. So events that
// arrive twice or late, or are reported lost, do no harm.
type newsWatch[K comparable, R, A any] struct {
	newsReader[K, R, A]
	sent map[K]storage.Micros // the versions of the rows sent last
}

func watchNews[K comparable, R, A any](r newsReader[K, R, A]) *newsWatch[K, R, A] {
	return &newsWatch[K, R, A]{r, map[K]storage.Micros{}}
}

func (w *newsWatch[K, R, A]) answers(ctx context.Context, e events.Event) (list []A, more bool, err error) {
	rows, more, err := w.read(ctx, e)
	if err != nil {
		return nil, false, err
	}
	rows = slices.DeleteFunc(rows, func(row R) bool {
		key, version := w.about(row)
		isOld := version <= w.sent[key]
		if !isOld {
			noteSent(w.sent, key, version)
		}
		return isOld
	})
	if len(rows) == 0 {
		return nil, more, nil
	}
	return w.send(ctx, rows), more, nil
}

// maxSeen bounds the memory for recognising repeated events.
const maxSeen = 1000

// inFlight is how much older the rows that a gap hides may be than what a subscription has sent already: writers at several gateways commit
// in an order other than that of their times. Events that were sent are remembered, and not sent twice.
const inFlight = storage.Micros(10 * time.Second / time.Microsecond)

// reached is up to when a subscription has read once it has read a row of a time. A row that is ahead of the clock must not make
// all that comes until then look old.
func reached(newest, at storage.Micros) storage.Micros {
	return max(newest, min(at, storage.MicrosOf(time.Now())))
}

// noteSent notes the version of what has been sent. If that becomes too much, it forgets what is
// too old to be read again, or else everything.
func noteSent[K comparable](sent map[K]storage.Micros, what K, at storage.Micros) {
	if len(sent) >= maxSeen {
		maps.DeleteFunc(sent, func(_ K, old storage.Micros) bool { return old < at-inFlight })
	}
	if len(sent) >= maxSeen {
		clear(sent)
	}
	sent[what] = at
}
