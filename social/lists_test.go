package social

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/properties"
	"kith/storage"
)

// A page of a plain list is full as long as there are enough users who may be shown. All pages
// together are the list, in either direction.
func TestPagesLeaveHiddenUsersOutAndAreFull(t *testing.T) {
	properties.Check(t, 100, func(t *rapid.T) {
		store := drawGraph(t)
		g := drawPlanner(t, store)
		l := drawList(t, "list")
		backward := rapid.Bool().Draw(t, "backward")
		want := edgesOf(store, g.audience, l)

		var got []storage.Edge
		query := storage.PageQuery{Owner: l.Owner, Backward: backward}
		for pages := 0; ; pages++ {
			query.Limit = rapid.IntRange(0, 5).Draw(t, "size")
			if pages > 500 {
				query.Limit = 5 // pages of 0 would never end
			}
			ahead := g.audience.Ahead(query)
			read := storage.PageLookups[l.Side].Read(t.Context(), store, ahead)
			r := g.Show(t.Context(), l.Side, []storage.PageQuery{query}, []storage.PageQuery{ahead}, read)[0]
			must.OK(t, r.Err)
			s, complete := r.Value, r.Value.End == storage.Place{}
			must.That(t, len(s.Rows) <= query.Limit && (!complete || !s.More || len(s.Rows) == query.Limit) && (complete || s.More), "a page of %d: %+v", query.Limit, s)
			if complete && g.budget > 10*people && s.More != (len(got)+len(s.Rows) < len(want)) {
				t.Fatalf("after %d of %d: more %t", len(got)+len(s.Rows), len(want), s.More)
			}
			if backward {
				got = append(slices.Clone(s.Rows), got...)
			} else {
				got = append(got, s.Rows...)
			}
			if !s.More {
				break
			}
			next := storage.Position{UpdateTime: s.End.CreatedAt, Peer: storage.UserID(s.End.Number)}
			if n := len(s.Rows); complete && n > 0 {
				next = l.Side.Position(s.Rows[n-1])
				if backward {
					next = l.Side.Position(s.Rows[0])
				}
			}
			switch {
			case next == (storage.Position{}): // a page of 0 edges
			case backward:
				query.Before = next
			default:
				query.After = next
			}
			must.Most(t, "pages", pages, 5000)
		}
		must.Equal(t, "the list", got, want)
	})
}

// Sizes are exact, in whatever way hidden users are counted, unless the budget ends.
func TestSizesCountWhoMayBeShown(t *testing.T) {
	properties.Check(t, 100, func(t *rapid.T) {
		store := drawGraph(t)
		g := drawPlanner(t, store)
		side := drawList(t, "list").Side
		owners := []storage.UserID{1, 2, 3, people, 99}
		for i, r := range g.Sizes(t.Context(), side, owners) {
			want := int64(len(edgesOf(store, g.audience, List{side, owners[i]})))
			if r.Err != nil || r.Value.Total > want || r.Value.Complete && r.Value.Total != want || !r.Value.Complete && g.budget > 10*people {
				t.Fatalf("%s of %d: %+v, want %d", side, owners[i], r, want)
			}
		}
	})
}

// The lists of one request are counted as far as its budget goes; the totals of the others are lower bounds.
func TestSizesFitTheBudgetOfTheRequest(t *testing.T) {
	const hidden, length, budget = 60, 100, 250
	var edges []storage.Edge
	owners := []storage.UserID{1, 2, 3}
	for _, owner := range owners {
		for to := storage.UserID(10); to < 10+length; to++ {
			edges = append(edges, storage.Edge{From: owner, To: to, Type: storage.Following, UpdateTime: 1})
		}
	}
	var absent hiddenUsers
	for id := storage.UserID(10); id < 10+hidden; id++ {
		absent = append(absent, id)
	}
	var request Allowance
	g := New(withEdges(t, edges...), budget, NewAudience(0, absent, nil)).Within(&request)
	for i, r := range g.Sizes(t.Context(), storage.Forward, owners) {
		check.Equal(t, fmt.Sprintf("list %d", i), r, storage.Result[Size]{Value: Size{length - hidden, i < budget/length}, Found: true})
	}
	check.Equal(t, "rows", request.rows.Load(), 2*length)
	check.Equal(t, "another list", g.Sizes(t.Context(), storage.Forward, owners[:1])[0].Value, Size{length - hidden, false})
}
