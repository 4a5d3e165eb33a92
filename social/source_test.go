package social

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/check"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// packingStore is a store with some packed lists.
type packingStore struct {
	storage.Answerer
	packed func(storage.UserID) bool

	rowLists, packedLists int // how many were asked for
}

// drawStore draws which lists a store has packed, or that it packs none.
func drawStore(t *rapid.T, store storage.Answerer) storage.Answerer {
	mod := storage.UserID(rapid.IntRange(0, 3).Draw(t, "packed"))
	if mod == 0 {
		return store
	}
	return &packingStore{Answerer: store, packed: func(id storage.UserID) bool { return id%mod == 0 }}
}

func (s *packingStore) Bundle(ctx context.Context, b *storage.Bundle) {
	for side, kind := range storage.NeighbourLookups {
		if l := kind.In(b); l.Open() {
			s.rowLists += len(l.Keys)
		}
		storage.PackedLookups[side].Instead(ctx, b, func(ctx context.Context, owners []storage.UserID) []storage.Result[[]storage.UserID] {
			s.packedLists += len(owners)
			lists := kind.Read(ctx, s.Answerer, owners...)
			for i, id := range owners {
				if !s.packed(id) {
					lists[i] = storage.Result[[]storage.UserID]{}
				}
			}
			return lists
		})
	}
	s.Answerer.Bundle(ctx, b)
}

// A list that a filter names more than once is read once.
func TestEachListOfAFilterIsReadOnce(t *testing.T) {
	store := oracle.New()
	var edges []storage.Edge
	for star := storage.UserID(1); star <= 2; star++ {
		for follower := storage.UserID(10); follower < 30; follower++ {
			edges = append(edges, storage.Edge{From: follower, To: star, Type: storage.Following, UpdateTime: 1})
		}
	}
	store.Apply(t.Context(), storage.Inverse, edges, storage.IfNewer)
	a, b := Filter{On: []List{{storage.Inverse, 1}}}, Filter{On: []List{{storage.Inverse, 2}}}
	reader := &packingStore{Answerer: store, packed: func(storage.UserID) bool { return false }}
	got := peopleOf(t, New(reader, 0, nil), PeopleQuery{Filter: Filter{All: []Filter{a, {Any: []Filter{a, b}}, b, b}}, First: 5})
	check.That(t, got.Total == 20 && reader.rowLists == 2, "%+v, from %d lists", got, reader.rowLists)
}

// Answers about two lists that are longer than the budget are complete if the lists are packed.
// Otherwise the lists are read as rows, as far as the budget goes.
func TestLongListsArePacked(t *testing.T) {
	store := oracle.New()
	var edges []storage.Edge
	for follower := storage.UserID(10); follower < 3010; follower++ {
		for star := storage.UserID(1); star <= 3; star++ {
			if star < 3 || follower%10 == 0 {
				edges = append(edges, storage.Edge{From: follower, To: star, Type: storage.Following, UpdateTime: 1})
			}
		}
	}
	store.Apply(t.Context(), storage.Inverse, edges, storage.IfNewer)
	followers := func(id storage.UserID) List { return List{storage.Inverse, id} }
	for _, c := range []struct {
		name             string
		a, b             storage.UserID
		packed           []storage.UserID
		budget           Budget
		most             int64
		total            int
		complete         bool
		rowLists, others int
	}{
		{"rows within the budget", 1, 2, nil, 10_000, 6000, 3000, true, 2, 2},
		{"as many rows as the budget", 1, 2, nil, 6000, 6000, 3000, true, 2, 2},
		{"one row more", 1, 2, nil, 5999, 6000, 0, false, 1, 2},
		{"rows beyond the budget", 1, 2, nil, 1000, 6000, 0, false, 0, 2},
		{"both packed", 1, 2, []storage.UserID{1, 2}, 1000, 6000, 3000, true, 0, 2},
		{"room for one packed", 1, 2, []storage.UserID{1, 2}, 1000, 5999, 0, false, 0, 1},
		{"one packed", 1, 2, []storage.UserID{1}, 4000, 6000, 3000, true, 1, 2},
		{"a short one is looked up in the other", 1, 3, []storage.UserID{1}, 2000, 6000, 300, true, 1, 0},
	} {
		reader := &packingStore{Answerer: store, packed: func(id storage.UserID) bool { return slices.Contains(c.packed, id) }}
		g := New(reader, c.budget, nil)
		g.sizes.packedFrom, g.sizes.packedMost = 1000, c.most
		got := peopleOf(t, g, PeopleQuery{Filter: Both(followers(c.a), followers(c.b)), First: 5})
		check.That(t, got.Complete == c.complete && (!c.complete || got.Total == c.total) && len(got.IDs) == 5, "%s: %+v", c.name, got)
		check.Equal(t, c.name+": lists that were read as rows", reader.rowLists, c.rowLists)
		check.Equal(t, c.name+": lists that were asked for packed", reader.packedLists, c.others)
	}
}
