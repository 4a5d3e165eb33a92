package loaders_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/loaders"
	"kith/storage"
)

// echoing is a store that answers each key with the kind, the side and the key itself. If forgets is set,
// it answers nothing.
type echoing struct {
	seen    []storage.Bundle
	panics  bool
	forgets bool
}

func (s *echoing) AtHand(*storage.Bundle) {}

func (s *echoing) Bundle(_ context.Context, b *storage.Bundle) {
	s.seen = append(s.seen, *b)
	if s.panics {
		panic("no")
	}
	if s.forgets {
		return
	}
	echo(storage.UserLookups.In(b), func(id storage.UserID) storage.User { return storage.User{ID: id} })
	echo(storage.CountLookups.In(b), func(id storage.UserID) storage.Counts { return storage.Counts{Following: int64(id)} })
	for i, side := range storage.Sides {
		echo(storage.EdgeLookups[side].In(b), func(p storage.Pair) storage.Edge {
			return storage.Edge{From: p.From, To: p.To, UpdateTime: storage.Micros(i)}
		})
		echo(storage.PageLookups[side].In(b), func(q storage.PageQuery) []storage.Edge {
			return []storage.Edge{{From: q.Owner, UpdateTime: storage.Micros(i)}}
		})
	}
}

func echo[K, V any](l *storage.Lookup[K, V], of func(K) V) {
	if l == nil {
		return
	}
	for _, k := range l.Keys {
		l.Results = append(l.Results, storage.Result[V]{Value: of(k), Found: true})
	}
}

// Look-ups that are sent together reach the store as one bundle, and each loader gets its own answers.
func TestWhatLeavesTogetherIsOneBundle(t *testing.T) {
	store := &echoing{}
	l := loaders.For(loaders.Attach(t.Context(), store))
	pair := storage.Pair{From: 1, To: 2}
	users, counts := l.Users.Ask([]storage.UserID{1, 3}), l.Counts.Ask([]storage.UserID{3})
	var edges []*loaders.Asked[storage.Pair, storage.Edge]
	asked := []loaders.Question{users, counts}
	for _, side := range storage.Sides {
		edges = append(edges, loaders.Of(l, storage.EdgeLookups[side]).Ask([]storage.Pair{pair}))
		asked = append(asked, edges[side])
	}
	page := loaders.Of(l, storage.PageLookups[storage.Inverse]).Ask([]storage.PageQuery{{Owner: 7, Limit: 3}})
	l.Dispatch(append(asked, page)...)

	r := users.Results()
	check.That(t, r[0].Found && r[0].Value.ID == 1 && r[1].Value.ID == 3, "users: %+v", r)
	if r := counts.Results(); r[0].Value.Following != 3 {
		t.Errorf("counts: %+v", r)
	}
	for side, asked := range edges {
		r := asked.Results()
		check.That(t, r[0].Found && r[0].Value.UpdateTime == storage.Micros(side), "edges of side %d: %+v", side, r)
	}
	if r := page.Results(); len(r[0].Value) != 1 || r[0].Value[0] != (storage.Edge{From: 7, UpdateTime: 1}) {
		t.Errorf("page: %+v", r)
	}
	check.That(t, len(store.seen) == 1, "%d bundles, want 1: %+v", len(store.seen), store.seen)
	if l.Dispatch(asked...); len(store.seen) != 1 {
		t.Error("what is known is asked for again")
	}
}

func TestBundleThatFailsHasNoAnswers(t *testing.T) {
	for want, store := range map[string]*echoing{"panicked: no": {panics: true}, "unanswered": {forgets: true}} {
		l := loaders.For(loaders.Attach(t.Context(), store))
		users, edges := l.Users.Ask([]storage.UserID{2}), loaders.Of(l, storage.EdgeLookups[storage.Forward]).Ask([]storage.Pair{{From: 2, To: 4}})
		l.Dispatch(users, edges)
		for _, err := range []error{users.Results()[0].Err, edges.Results()[0].Err} {
			check.That(t, err != nil && strings.Contains(err.Error(), want), "got %v, want an error with %q", err, want)
		}
	}
}

// A reader for answers of several steps remembers every look-up.
func TestReaderRemembers(t *testing.T) {
	store := &echoing{}
	ctx := loaders.Attach(t.Context(), store)
	r := loaders.For(ctx).Reader()
	pairs := []storage.Pair{{From: 1, To: 2}, {From: 3, To: 4}}
	first := storage.EdgeLookups[storage.Inverse].Read(ctx, r, pairs...)
	again := storage.EdgeLookups[storage.Inverse].Read(ctx, r, pairs[1:]...)
	check.That(t, reflect.DeepEqual(again, first[1:]) && len(store.seen) == 1, "asked %d times: %+v, then %+v", len(store.seen), first, again)
}
