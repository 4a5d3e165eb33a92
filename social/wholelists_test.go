package social

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kith/storage"
	"kith/storage/memory"
)

// wholeStore knows counts, as a request does, and has some lists packed.
type wholeStore struct {
	Reader
	knows  bool
	packed func(storage.UserID) bool

	rowLists, packedLists int // that were asked for
}

// drawWhole draws what a store can do besides, nothing at times.
func drawWhole(t *rapid.T, store Reader) Reader {
	switch rapid.IntRange(0, 3).Draw(t, "knows") {
	case 0:
		return store
	case 1:
		return &wholeStore{Reader: store, packed: func(storage.UserID) bool { return false }}
	}
	mod := storage.UserID(rapid.IntRange(1, 3).Draw(t, "packed"))
	return &wholeStore{Reader: store, knows: rapid.Bool().Draw(t, "knows counts"), packed: func(id storage.UserID) bool { return id%mod == 0 }}
}

func (s *wholeStore) KnownCounts(ids []storage.UserID) ([]storage.Result[storage.Counts], bool) {
	if !s.knows {
		return nil, false
	}
	return s.Counts(context.Background(), ids), true
}

func (s *wholeStore) Neighbours(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	s.rowLists += len(owners)
	return s.Reader.Neighbours(ctx, side, owners)
}

func (s *wholeStore) PackedNeighbours(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	s.packedLists += len(owners)
	lists := s.Reader.Neighbours(ctx, side, owners)
	for i, id := range owners {
		if !s.packed(id) {
			lists[i] = storage.Result[[]storage.UserID]{}
		}
	}
	return lists
}

// Two lists that are longer than the budget are complete where they are kept packed, and
// read as rows as far as the budget goes where they are not.
func TestLongListsArePacked(t *testing.T) {
	store := memory.New()
	var edges []storage.Edge
	for fan := storage.UserID(10); fan < 3010; fan++ {
		for star := storage.UserID(1); star <= 3; star++ {
			if star < 3 || fan%10 == 0 {
				edges = append(edges, storage.Edge{From: fan, To: star, Type: storage.Following, UpdateTime: 1})
			}
		}
	}
	store.Apply(t.Context(), storage.Inverse, edges, storage.IfNewer)
	fans := func(id storage.UserID) List { return List{storage.Inverse, id} }
	for _, c := range []struct {
		name             string
		a, b             storage.UserID
		packed           []storage.UserID
		budget           Budget
		total            int
		complete         bool
		rowLists, others int
	}{
		{"rows within the budget", 1, 2, nil, 10_000, 3000, true, 2, 2},
		{"rows beyond the budget", 1, 2, nil, 1000, 0, false, 0, 2},
		{"both packed", 1, 2, []storage.UserID{1, 2}, 1000, 3000, true, 0, 2},
		{"one packed", 1, 2, []storage.UserID{1}, 4000, 3000, true, 1, 2},
		{"a short one is looked up in the other", 1, 3, []storage.UserID{1}, 2000, 300, true, 0, 0},
	} {
		reader := &wholeStore{Reader: store, knows: true, packed: func(id storage.UserID) bool { return slices.Contains(c.packed, id) }}
		g := New(reader, c.budget, nil)
		g.whole = wholePlan{rows: 6000, packedFrom: 1000, packedMost: 10_000}
		got, err := g.Intersect(t.Context(), fans(c.a), fans(c.b), Mark{}, 5)
		if err != nil {
			t.Fatal(err)
		}
		if got.Complete != c.complete || c.complete && got.Total != c.total || len(got.IDs) != 5 {
			t.Errorf("%s: %+v", c.name, got)
		}
		if reader.rowLists != c.rowLists || reader.packedLists != c.others {
			t.Errorf("%s: %d lists were read as rows and %d asked for packed, want %d and %d", c.name, reader.rowLists, reader.packedLists, c.rowLists, c.others)
		}
	}
}

// Pages of whole lists go on behind each other, whether the lengths were known before the
// first look or after it.
func TestPagesOfWholeLists(t *testing.T) {
	store := memory.New()
	var edges []storage.Edge
	var want []storage.UserID
	for fan := storage.UserID(10); fan < 200; fan++ {
		want = append(want, fan)
		for star := storage.UserID(1); star <= 2; star++ {
			edges = append(edges, storage.Edge{From: fan, To: star, Type: storage.Following, UpdateTime: 1})
		}
	}
	store.Apply(t.Context(), storage.Inverse, edges, storage.IfNewer)
	for _, knows := range []bool{true, false} {
		for _, packed := range []bool{true, false} {
			g := New(&wholeStore{Reader: store, knows: knows, packed: func(storage.UserID) bool { return packed }}, 1000, nil)
			g.firstLook, g.whole = 7, wholePlan{rows: 1000, packedFrom: 10, packedMost: 1000}
			var got []storage.UserID
			for from, more := (Mark{}), true; more; {
				c, err := g.Intersect(t.Context(), List{storage.Inverse, 1}, List{storage.Inverse, 2}, from, 30)
				if err != nil || !c.Complete || c.Total != len(want) {
					t.Fatalf("known: %v, packed: %v: %+v, %v", knows, packed, c, err)
				}
				got, from, more = append(got, c.IDs...), c.Next, c.More
			}
			if !slices.Equal(got, want) {
				t.Errorf("known: %v, packed: %v: got %v", knows, packed, got)
			}
		}
	}
}
