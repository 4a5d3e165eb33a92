package loaders_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/loaders"
	"kith/storage"
	"kith/storage/cache/idset"
)

// watched is a store that notes who reads relations: the batch function of the library, or somebody past it.
type watched struct {
	storage.Store

	mu      sync.Mutex
	past    map[string]bool  // look-ups
	batches []storage.Bundle // with relations
}

func (w *watched) Bundle(ctx context.Context, b *storage.Bundle) {
	if asked := relationsIn(b); len(asked) > 0 {
		w.mu.Lock()
		if w.batches = append(w.batches, *b); !isUnder("dataloader/v7.(*batcher[") {
			w.past[strings.Join(asked, ", ")] = true
		}
		w.mu.Unlock()
	}
	w.Store.Bundle(ctx, b)
}

// relationsIn are the relations that a bundle asks for.
func relationsIn(b *storage.Bundle) (asked []string) {
	note := func(lookup string, side any, isAsked bool) {
		if isAsked {
			asked = append(asked, fmt.Sprint(lookup, side))
		}
	}
	for _, side := range storage.AllSides {
		note("edges of ", side, storage.EdgeLookups[side].In(b) != nil)
	}
	for _, side := range storage.AllSides {
		note("pages of ", side, storage.PageLookups[side].In(b) != nil)
	}
	for _, side := range storage.Sides {
		note("lists of ", side, storage.NeighbourLookups[side].In(b) != nil || storage.PackedLookups[side].In(b) != nil)
	}
	for _, sets := range idset.ListLookups {
		note("sets", "", sets.In(b) != nil)
	}
	note("rows", "", storage.RowLookups.In(b) != nil || idset.RecommenderLookups.In(b) != nil)
	note("blocks", "", storage.BlockLookups.In(b) != nil || storage.SpecialLookups.In(b) != nil)
	note("beside edges", "", storage.MarkLookups.In(b) != nil || storage.MessageLookups.In(b) != nil)
	note("favorites", "", storage.FavoritePageLookups.In(b) != nil)
	return asked
}

// isUnder reports whether a function is among the callers.
func isUnder(function string) bool {
	callers := make([]uintptr, 32)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	for frame, more := frames.Next(); ; frame, more = frames.Next() {
		if strings.Contains(frame.Function, function) {
			return true
		}
		if !more {
			return false
		}
	}
}

// Whatever is asked: edges, pages and lists are read by loads of the library, and in no other way.
func TestRelationsAreReadByTheLibrary(t *testing.T) {
	store := &watched{Store: tangledStore(t), past: map[string]bool{}}
	api := apitest.New(t, store, apitest.Options{Limits: apitest.NoLimits})
	clear(store.past) // the API reads who is hidden at its start
	rapid.Check(t, func(t *rapid.T) {
		query, vars := apitest.Query(t, users)
		api := api.For(t)
		if viewer := rapid.IntRange(0, users).Draw(t, "viewer"); viewer > 0 {
			api = api.As(storage.UserID(viewer))
		}
		api.Ask(query, vars).Whole()
		must.That(t, len(store.past) == 0, "past the library: %v", store.past)
	})
	check.That(t, len(store.batches) > 0, "no relation was read")
}

// Fields beside one another ask for different users: what they read is one batch, of as many keys.
func TestSiblingsAreOneBatch(t *testing.T) {
	store := &watched{Store: tangledStore(t), past: map[string]bool{}}
	api := apitest.New(t, store, apitest.Options{Limits: apitest.NoLimits})
	var query strings.Builder
	const siblings = 8
	for i := range siblings {
		fmt.Fprintf(&query, "u%d: user(by: {id: %d}) { relationship(to: %d) { status } }\n", i, i+1, i+2)
	}
	api.As(9).Ask("{ "+query.String()+" }", nil).Whole()
	for _, b := range store.batches {
		for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
			if l := storage.EdgeLookups[side].In(&b); l != nil && len(l.Keys) == siblings && storage.UserLookups.In(&b) != nil {
				return
			}
		}
	}
	t.Errorf("no batch has the edges of %d users, and these: %v", siblings, store.batches)
}

// A level whose loads take longer to make than a single one would wait is one batch, all the same.
func TestALargeLevelIsOneBatch(t *testing.T) {
	store := &echoing{}
	pairs := make([]storage.Pair, 50_000)
	for i := range pairs {
		pairs[i] = storage.Pair{From: storage.UserID(i + 1), To: 7}
	}
	r := loaders.Of(loaders.For(loaders.Attach(t.Context(), store)), storage.EdgeLookups[storage.Forward]).Fetch(pairs)
	check.Equal(t, "batches", len(store.seen), 1)
	for i, p := range pairs {
		must.That(t, r[i].Value.From == p.From, "%d: %+v", i, r[i])
	}
}
