package storagetest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"kith/internal/storagetest"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// byRequest is ChangeEdges of a store that changes one request otherwise.
func byRequest(
	ctx context.Context, s *oracle.Store, side storage.Side, user storage.UserID, changes edgeChanges, o options,
	change func(context.Context, storage.Pair, storage.EdgeChange, options) (storage.Changed, error),
) changeds {
	if side != storage.Requests {
		return s.ChangeEdges(ctx, side, user, changes, o)
	}
	got, err := change(ctx, storage.Pair{From: user, To: changes[0].To}, changes[0], o)
	return changeds{{Value: got, Found: err == nil, Err: err}}
}

// changedOptions changes the options of every act.
type changedOptions struct {
	*oracle.Store
	change func(*options)
}

func (s changedOptions) ChangeEdges(ctx context.Context, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
	return byRequest(ctx, s.Store, side, user, changes, o, s.changeRequest)
}

func (s changedOptions) changeRequest(ctx context.Context, request storage.Pair, change storage.EdgeChange, o options) (storage.Changed, error) {
	s.change(&o)
	return storagetest.Request(ctx, s.Store, request, change, o)
}

// asksAgain replaces a pending request with a new one.
type asksAgain struct{ *oracle.Store }

func (s asksAgain) ChangeEdges(ctx context.Context, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
	return byRequest(ctx, s.Store, side, user, changes, o, s.changeRequest)
}

func (s asksAgain) changeRequest(ctx context.Context, request storage.Pair, change storage.EdgeChange, o options) (storage.Changed, error) {
	got, err := storagetest.Request(ctx, s.Store, request, change, o)
	if change.Type == storage.Pending && err == nil && !got.Changed && got.Row.Type == storage.Pending {
		got.Row, got.Changed = overwrite(ctx, s.Store, storage.Requests, request, storage.Pending), true
	}
	return got, err
}

// friendsAsk makes a request between friends who never had one.
type friendsAsk struct{ *oracle.Store }

func (s friendsAsk) ChangeEdges(ctx context.Context, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
	return byRequest(ctx, s.Store, side, user, changes, o, s.changeRequest)
}

func (s friendsAsk) changeRequest(ctx context.Context, request storage.Pair, change storage.EdgeChange, o options) (storage.Changed, error) {
	got, err := storagetest.Request(ctx, s.Store, request, change, o)
	if change.Type == storage.Pending && err == nil && !got.Changed && got.Row.Type == storage.None {
		got.Row, got.Changed = overwrite(ctx, s.Store, storage.Requests, request, storage.Pending), true
	}
	return got, err
}

// acceptsOnce treats a second click as a mistake.
type acceptsOnce struct{ *oracle.Store }

func (s acceptsOnce) ChangeEdges(ctx context.Context, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
	return byRequest(ctx, s.Store, side, user, changes, o, s.changeRequest)
}

func (s acceptsOnce) changeRequest(ctx context.Context, request storage.Pair, change storage.EdgeChange, o options) (storage.Changed, error) {
	got, err := storagetest.Request(ctx, s.Store, request, change, o)
	if change.Type == storage.Accepted && err == nil && !got.Changed {
		return storage.Changed{}, storage.ErrNoRequest
	}
	return got, err
}

// removesHalf leaves the follow of the user who removes.
type removesHalf struct{ *oracle.Store }

func (s removesHalf) ChangeEdges(ctx context.Context, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
	return byRequest(ctx, s.Store, side, user, changes, o, s.changeRequest)
}

func (s removesHalf) changeRequest(ctx context.Context, request storage.Pair, change storage.EdgeChange, o options) (storage.Changed, error) {
	got, err := storagetest.Request(ctx, s.Store, request, change, o)
	if change.Type == storage.Removed && got.Changed {
		overwrite(ctx, s.Store, storage.Forward, request, storage.Following)
		got.Also = nil
	}
	return got, err
}

// longMessages keeps the messages of requests.
type longMessages struct {
	*oracle.Store
	mu   *sync.Mutex
	kept map[storage.Pair]string
}

func (s longMessages) messages(ctx context.Context, requests []storage.Pair) []storage.Result[string] {
	s.mu.Lock()
	defer s.mu.Unlock()
	results := storage.MessageLookups.Read(ctx, s.Store, requests...)
	for i, request := range requests {
		if results[i].Found {
			s.kept[request] = results[i].Value
		} else if text, ok := s.kept[request]; ok {
			results[i] = storage.Result[string]{Value: text, Found: true}
		}
	}
	return results
}

func (s longMessages) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.MessageLookups.Instead(ctx, b, s.messages)
	s.Store.Bundle(ctx, b)
}

// unlockedRequests judges by a row that it read before the lock.
type unlockedRequests struct{ *oracle.Store }

func (s unlockedRequests) ChangeEdges(ctx context.Context, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
	return byRequest(ctx, s.Store, side, user, changes, o, s.changeRequest)
}

func (s unlockedRequests) changeRequest(ctx context.Context, request storage.Pair, change storage.EdgeChange, o options) (storage.Changed, error) {
	before := rowOf(ctx, s.Store, storage.Requests, request)
	time.Sleep(300 * time.Microsecond)
	got, err := storagetest.Request(ctx, s.Store, request, change, o)
	if before.Type == storage.Pending && errors.Is(err, storage.ErrNoRequest) {
		return storage.Changed{Row: before, Changed: true}, nil
	}
	return got, err
}

// acceptedInVain leaves out the follow that an acceptance makes.
type acceptedInVain struct{ *oracle.Store }

func (s acceptedInVain) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
	results := s.Store.Apply(ctx, side, edges, rule)
	for i := range results {
		if also := results[i].Value.Also; side == storage.Inbox && results[i].Value.Changed {
			for _, row := range also {
				if row.Edge.Type == storage.Following && row.Side == storage.Forward {
					overwrite(ctx, s.Store, storage.Forward, row.Edge.Pair(), storage.None)
				}
			}
			results[i].Value.Also = nil
		}
	}
	return results
}

// eventsInsist applies an event even if its owner has changed the row since then.
type eventsInsist struct {
	*oracle.Store
	state storage.EdgeType // that of the requests
	again bool             // also if the event comes again
}

func (s eventsInsist) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
	results := s.Store.Apply(ctx, side, edges, rule)
	for i, e := range edges {
		if side != storage.Inbox || e.Type != s.state || (!s.again && !results[i].Value.Changed) {
			continue
		}
		back, wanted := backOf(side, e), storage.Following
		if e.Type == storage.Removed {
			wanted = storage.None
		}
		if now := rowOf(ctx, s.Store, storage.Forward, back); now.UpdateTime != 0 && now.Type != wanted {
			overwrite(ctx, s.Store, storage.Forward, back, wanted)
		}
	}
	return results
}

// endlessTalk lets each of two accepted requests report the other, without end.
type endlessTalk struct{ *oracle.Store }

func (s endlessTalk) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
	results := s.Store.Apply(ctx, side, edges, rule)
	for i, e := range edges {
		own := rowOf(ctx, s.Store, storage.Requests, backOf(side, e))
		if side == storage.Inbox && e.Type == storage.Accepted && !results[i].Value.Changed && own.Type == storage.Accepted {
			results[i].Value.Also = append(slices.Clone(results[i].Value.Also), storage.Written{Row: storage.Row{Side: storage.Requests, Edge: own}})
		}
	}
	return results
}
