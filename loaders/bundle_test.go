package loaders_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"kith/loaders"
	"kith/storage"
)

// bundling is a store that reads bundles, unless it does not want to.
type bundling struct {
	*counting
	refuses, panics bool

	mu   sync.Mutex
	seen []storage.Bundle
}

func (s *bundling) Bundle(_ context.Context, b storage.Bundle) (storage.BundleAnswers, bool) {
	s.mu.Lock()
	s.seen = append(s.seen, b)
	s.mu.Unlock()
	if s.panics {
		panic("no")
	}
	if s.refuses {
		return storage.BundleAnswers{}, false
	}
	a := storage.BundleAnswers{Users: make([]storage.Result[storage.User], len(b.Users)), Counts: make([]storage.Result[storage.Counts], len(b.Counts))}
	for i, id := range b.Users {
		a.Users[i] = storage.Result[storage.User]{Value: storage.User{ID: id}, Found: true}
	}
	for i, id := range b.Counts {
		a.Counts[i] = storage.Result[storage.Counts]{Value: storage.Counts{Following: int64(id)}, Found: true}
	}
	for side := range b.Edges {
		a.Edges[side] = make([]storage.Result[storage.Edge], len(b.Edges[side]))
		for i, p := range b.Edges[side] {
			a.Edges[side][i] = storage.Result[storage.Edge]{Value: storage.Edge{From: p.From, To: p.To, UpdateTime: storage.Micros(side)}, Found: true}
		}
		a.Pages[side] = make([]storage.Result[[]storage.Edge], len(b.Pages[side]))
		for i, q := range b.Pages[side] {
			a.Pages[side][i] = storage.Result[[]storage.Edge]{Value: []storage.Edge{{From: q.Owner}}, Found: true}
		}
	}
	return a, true
}

func (s *bundling) Edges(_ context.Context, _ storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
	s.note(s.users, nil)
	return make([]storage.Result[storage.Edge], len(pairs))
}

// What leaves together goes to the store as one, and each loader gets its own answers.
func TestWhatLeavesTogetherIsOneBundle(t *testing.T) {
	store := &bundling{counting: newCounting()}
	l := loaders.For(loaders.Attach(t.Context(), store))
	pair := storage.Pair{From: 1, To: 2}
	users, counts := l.Users.Ask([]storage.UserID{1, 3}), l.Counts.Ask([]storage.UserID{3})
	out, back := l.Edges(storage.Forward).Ask([]storage.Pair{pair}), l.Edges(storage.Inverse).Ask([]storage.Pair{pair})
	page := l.Pages(storage.Inverse).Ask([]storage.PageQuery{{Owner: 7, Limit: 3}})
	requests := l.Edges(storage.Requests).Ask([]storage.Pair{pair})
	l.Dispatch(t.Context(), users, counts, out, back, page, requests)

	if r := users.Results(); !r[0].Found || r[0].Value.ID != 1 || r[1].Value.ID != 3 {
		t.Errorf("users: %+v", r)
	}
	if r := counts.Results(); r[0].Value.Following != 3 {
		t.Errorf("counts: %+v", r)
	}
	for side, r := range [][]storage.Result[storage.Edge]{out.Results(), back.Results()} {
		if !r[0].Found || r[0].Value.UpdateTime != storage.Micros(side) {
			t.Errorf("edges of side %d: %+v", side, r)
		}
	}
	if r := page.Results(); len(r[0].Value) != 1 || r[0].Value[0].From != 7 {
		t.Errorf("page: %+v", r)
	}
	requests.Results()
	if len(store.seen) != 1 || store.batches != 1 {
		t.Errorf("%d bundles and %d batches, want one each: %+v", len(store.seen), store.batches, store.seen)
	}
	l.Users.Fetch(t.Context(), []storage.UserID{5})
	if len(store.seen) != 1 {
		t.Error("one look-up alone is a bundle")
	}
}

func TestWhatTheStoreDoesNotReadAsOneIsReadApart(t *testing.T) {
	store := &bundling{counting: newCounting(), refuses: true}
	l := loaders.For(loaders.Attach(t.Context(), store))
	users, edges := l.Users.Ask([]storage.UserID{2}), l.Edges(storage.Forward).Ask([]storage.Pair{{From: 2, To: 4}})
	l.Dispatch(t.Context(), users, edges)
	users.Results()
	edges.Results()
	if len(store.seen) != 1 || store.batches != 2 {
		t.Errorf("%d bundles asked for and %d batches, want 1 and 2", len(store.seen), store.batches)
	}
}

func TestBundleThatPanicsHasFailed(t *testing.T) {
	store := &bundling{counting: newCounting(), panics: true}
	l := loaders.For(loaders.Attach(t.Context(), store))
	users, edges := l.Users.Ask([]storage.UserID{2}), l.Edges(storage.Forward).Ask([]storage.Pair{{From: 2, To: 4}})
	l.Dispatch(t.Context(), users, edges)
	for _, err := range []error{users.Results()[0].Err, edges.Results()[0].Err} {
		if err == nil || !strings.Contains(err.Error(), "panicked: no") {
			t.Errorf("got %v, want the panic", err)
		}
	}
}
