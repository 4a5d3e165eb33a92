package storagetest_test

import (
	"context"
	"sync"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

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
