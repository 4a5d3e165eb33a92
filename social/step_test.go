package social

import (
	"errors"
	"slices"
	"testing"

	"kith/storage"
	"kith/storage/memory"
)

// A step of a deletion has rows of several tables, and never more rows than it may end at a time.
func TestAStepOfADeletionIsBounded(t *testing.T) {
	store := memory.New()
	const each = eraseStep*3/4 + 1
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		edges := make([]storage.Edge, each)
		for i := range edges {
			edges[i] = side.Pair(1, storage.UserID(i+10)).Edge(storage.Following, 1)
		}
		store.Apply(t.Context(), side, edges, storage.IfNewer)
	}
	relations := NewRelations(RelationsConfig{Store: store})
	var queries []storage.RowsQuery
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		queries = append(queries, storage.RowsQuery{Side: side, Owner: 1, Limit: eraseStep})
	}
	var steps []int
	seen := map[storage.Row]bool{}
	for len(queries) > 0 {
		rows, further, err := relations.nextRows(t.Context(), queries)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			seen[row] = true
		}
		steps, queries = append(steps, len(rows)), further
	}
	if want := []int{eraseStep, 2*each - eraseStep}; !slices.Equal(steps, want) || len(seen) != 2*each {
		t.Errorf("steps of %v rows, want %v; %d different ones", steps, want, len(seen))
	}
}

// Ids are cut at a mark. The mark itself belongs to the ids before.
func TestIDsAreCutAtAMark(t *testing.T) {
	ids := []storage.UserID{2, 4, 6}
	for mark, n := range []int{0, 0, 1, 1, 2, 2, 3, 3} {
		mark := storage.UserID(mark)
		if a, b := before(slices.Clone(ids), mark), behind(ids, mark); !slices.Equal(a, ids[:n]) || !slices.Equal(b, ids[n:]) {
			t.Errorf("at %d: %v and %v", mark, a, b)
		}
	}
}

// A page of favorites fails if the posts of its first rows cannot be read.
func TestFavoritesFailWithTheirPosts(t *testing.T) {
	rows := []storage.Edge{{From: 1, To: 2, Post: 3, Type: storage.Favorited, UpdateTime: 4}}
	page, err := NewAudience(0, nil, nil).ShowFavorites(rows, 2, 1, func([]storage.PostID) []storage.Result[storage.Post] {
		return []storage.Result[storage.Post]{{Err: errRead}}
	}, func(storage.Place, int) ([]storage.Edge, error) { return nil, nil })
	if !errors.Is(err, errRead) {
		t.Errorf("%+v, %v", page, err)
	}
}
