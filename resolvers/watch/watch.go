// Package watch runs subscriptions: after an event it reads what a client is sent, as often as it takes, and remembers what it has sent. It
// knows no field; what is read is prefetched as for a query.
package watch

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
	"kith/graph/limits"
	"kith/graph/subscription"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/storage"
	"kith/storage/events"
	"kith/storage/sleep"
)

// How long a subscription tries to read the subject of an event at a time, and how long it waits before it tries again.
const (
	perEvent     = 10 * time.Second
	firstPause   = 50 * time.Millisecond
	longestPause = 5 * time.Second
)

// Watcher is the state of one subscription: what its client knows.
type Watcher[T any] interface {
	// Begin reads the state in which the subscription starts.
	Begin(ctx context.Context) error
	// Answers reads what an event has changed for the client. If more is true, it has to be called again with the same event, for the rest.
	// After an error, it has to be called again, too: then the client knows no more than before.
	Answers(ctx context.Context, e events.Event) (list []T, more bool, err error)
}

// Sent is what a subscription sends, see [subscription.State].
type Sent interface {
	Keep(enter func(context.Context) context.Context)
}

// Run runs a subscription to the events of a source.
func Run[T Sent](ctx context.Context, store storage.Bundler, source *events.Subscription, s Watcher[T]) (<-chan T, error) {
	begin, cancel := attemptIn(ctx, store)
	defer cancel()
	if err := s.Begin(begin); err != nil {
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
				if list, more, ok = patiently(ctx, store, source, s, e); !ok {
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

// Stream runs a subscription to what run gives. The source waits for the client: give returns when the client has taken the answer
// before.
func Stream[T any](ctx context.Context, run func(give func(T) error) error) <-chan T {
	answers := make(chan T)
	go func() {
		defer close(answers)
		defer survive(ctx)
		err := run(func(one T) error {
			select {
			case answers <- one:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		if ctx.Err() == nil {
			subscription.Fail(ctx, err)
		}
	}()
	return answers
}

// attemptIn is the context of one read of an event's subject, in its present state.
func attemptIn(ctx context.Context, store storage.Bundler) (context.Context, context.CancelFunc) {
	return context.WithTimeout(loaders.Attach(ctx, store), perEvent)
}

// patiently retries until it can read, because the event does not come again. ok is false if the subscription has ended meanwhile, for
// instance because too many events were waiting.
func patiently[T Sent](ctx context.Context, store storage.Bundler, source *events.Subscription, s Watcher[T], e events.Event) (list []T, more, ok bool) {
	pause := firstPause
	for attempt := 1; ; attempt++ {
		list, more, err := readOnce(ctx, store, s, e)
		switch {
		case err == nil:
			return list, more, true
		case ctx.Err() != nil:
			return nil, false, false
		}
		subscription.Failed(ctx, err, attempt)
		if sleep.For(ctx, pause) != nil || source.Err() != nil {
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

// readOnce reads once. If a part of an answer could not be read, it is null and has an error, as below other fields. Parts that are read together
// have the errors of all.
func readOnce[T Sent](ctx context.Context, store storage.Bundler, s Watcher[T], e events.Event) (list []T, more bool, err error) {
	defer subscription.Turn(ctx)()
	ctx, cancel := attemptIn(ctx, store)
	defer cancel()
	keep := func(_ context.Context, err error) *gqlerror.Error {
		return &gqlerror.Error{Err: err, Message: err.Error()}
	}
	ctx = graphql.WithResponseContext(ctx, keep, graphql.DefaultRecover)
	told := prefetch.NoticeEach(ctx)
	list, more, err = s.Answers(ctx, e)
	below := graphql.GetErrors(ctx)
	for _, one := range list {
		one.Keep(func(answer context.Context) context.Context {
			for _, e := range below {
				graphql.AddError(answer, e.Err)
			}
			told(answer)
			return loaders.For(ctx).Continue(answer)
		})
	}
	return list, more, err
}

// ended gives a dropped client the reason.
func ended(ctx context.Context, source *events.Subscription) {
	switch err := source.Err(); {
	case errors.Is(err, events.ErrSlow):
		subscription.Fail(ctx, apierr.FellBehind.Error("more has changed than could be reported in time: subscribe again, and read what you missed"))
	case errors.Is(err, events.ErrClosed): // the gateway closes before the connection
		subscription.Fail(ctx, apierr.Unreachable.Error("the server is going away: subscribe again, and read what you missed"))
	}
}

// survive ends only the subscription that panics.
func survive(ctx context.Context) {
	if reason := recover(); reason != nil {
		subscription.Fail(ctx, fmt.Errorf("panic in a subscription: %v\n%s", reason, debug.Stack()))
	}
}

// News is what a subscription sends of some kind: rows R, which have keys K and versions, each sent as an A.
type News[K comparable, R, A any] interface {
	// Read reads what an event has added or, after a gap, what is newer than a time: oldest first, the newest of them if there are very many. After
	// an error it is called again.
	Read(ctx context.Context, e events.Event, since storage.Micros) ([]R, error)
	// About is what row this is, and its version, which is a time.
	About(row R) (key K, version storage.Micros)
	// Send makes the answers of those rows that the viewer may see, at most [limits.MaxPage] at a time, and says which these are: others may be
	// seen when they come again. After an error both are called again.
	Send(ctx context.Context, rows []R) (seen []R, list []A, err error)
}

// newsWatch is what ForNews returns.
type newsWatch[K comparable, R, A any] struct {
	News[K, R, A]
	began  storage.Micros       // rows that are not newer are no news
	newest storage.Micros       // the newest that has been read, see unheard
	rest   []R                  // rows of the present event that have not been sent yet
	known  map[K]storage.Micros // the versions of the rows that were there when it began: a gap has not hidden them
	sent   map[K]storage.Micros // and of those sent last
}

// ForNews is the state of a subscription that sends each version of a row once. So events that arrive twice or late, or are reported lost,
// do no harm.
func ForNews[K comparable, R, A any](r News[K, R, A]) Watcher[A] {
	return &newsWatch[K, R, A]{News: r, known: map[K]storage.Micros{}, sent: map[K]storage.Micros{}}
}

// Begin reads the rows of the last minute, as after a gap.
func (w *newsWatch[K, R, A]) Begin(ctx context.Context) error {
	w.began = storage.MicrosOf(time.Now()) - InFlight
	known, err := w.Read(ctx, events.Event{Kind: events.Gap}, w.began)
	for _, row := range known {
		key, version := w.About(row)
		w.known[key] = version
	}
	return err
}

func (w *newsWatch[K, R, A]) Answers(ctx context.Context, e events.Event) (list []A, more bool, err error) {
	rows := w.rest
	if len(rows) == 0 {
		if rows, err = w.Read(ctx, e, max(w.began, w.newest-unheard)); err != nil {
			return nil, false, err
		}
		rows = slices.DeleteFunc(rows, func(row R) bool {
			key, version := w.About(row)
			return version <= w.sent[key] || e.Kind == events.Gap && version <= w.known[key]
		})
	}
	next := rows[:min(len(rows), limits.MaxPage)]
	if len(next) == 0 {
		return nil, false, nil
	}
	seen, list, err := w.Send(ctx, next)
	if err != nil {
		return nil, false, err
	}
	for _, row := range seen {
		key, version := w.About(row)
		w.note(key, version)
	}
	w.rest = rows[len(next):]
	return list, len(w.rest) > 0, nil
}

// MaxSeen is how many rows a subscription remembers, to recognise them if they are read again.
const MaxSeen = 1 << 13

const (
	// InFlight is how much older than a subscription its news may be: the clocks of gateways differ by a minute at most.
	InFlight = storage.Micros(time.Minute / time.Microsecond)
	// unheard is how much older the rows that a gap hides may be than what a subscription has sent already: of a gateway that was killed,
	// others hear 75 s later at most, and clocks differ by a minute. Events that were sent are remembered, and not sent twice.
	unheard = storage.Micros(135 * time.Second / time.Microsecond)
)

// note notes the version of what has been sent. If that becomes too much, it forgets what is
// too old to be read again, or else everything.
func (w *newsWatch[K, R, A]) note(key K, version storage.Micros) {
	// A row that is ahead of the clock must not make all that comes until then look old.
	w.newest = max(w.newest, min(version, storage.MicrosOf(time.Now())))
	if len(w.sent) >= MaxSeen {
		maps.DeleteFunc(w.sent, func(_ K, old storage.Micros) bool { return old < version-unheard })
	}
	if len(w.sent) >= MaxSeen {
		clear(w.sent)
	}
	w.sent[key] = version
}
