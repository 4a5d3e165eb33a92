package social

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/properties"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// longAndShort is a store in which a list of user 1 is long, and its other list is short, with users who may be on the long one.
func longAndShort(t *rapid.T, long storage.Side) *oracle.Store {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	n := rapid.IntRange(100, 200).Draw(t, "the long list")
	var edges []storage.Edge
	for id := 2; id <= n+1; id++ {
		edges = append(edges, long.Pair(1, storage.UserID(id)).Edge(storage.Following, storage.Micros(1+r.IntN(40))))
	}
	for range rapid.IntRange(0, 8).Draw(t, "the short list") {
		edges = append(edges, long.Other().Pair(1, storage.UserID(2+r.IntN(2*n))).Edge(storage.Following, 5))
	}
	return withEdges(t, edges...)
}

// complete checks that all pages of matches say how many there are, and give them in order.
func complete(t *rapid.T, store *oracle.Store, q MatchQuery, least, most int) {
	g := readBy(drawPlanner(t, store), store)
	g.budget = 1000
	want := matchesOf(store, g.audience, q)
	var got []Match
	var from MatchMark
	for pages := 0; ; pages++ {
		p, err := g.Matches(t.Context(), q, from, rapid.IntRange(least, most).Draw(t, "first"))
		must.That(t, err == nil && (least == 0 || pages <= 20), "page %d: %+v, %v", pages, p, err)
		must.That(t, p.Total == len(want) && p.Complete, "a total of %d, complete: %t; want %d", p.Total, p.Complete, len(want))
		if got = append(got, p.Matches...); !p.More {
			break
		}
		from = p.Next
	}
	must.Equal(t, "the list", got, want)
}

// Followers who are not followed back come in the order of time, with their number. That also holds
// if they are counted by subtracting few from a long list, whichever followers are followed back or
// hidden, and for pages of every size.
func TestFollowersNotFollowedBackOfTheFamous(t *testing.T) {
	properties.Check(t, 100, func(t *rapid.T) { complete(t, longAndShort(t, storage.Inverse), NotFollowedBack(1), 0, 60) })
}

// Of the long list, one row more than the page is read. That row shows that there are more.
func TestFollowersNotFollowedBackAreReadForThePage(t *testing.T) {
	store := oracle.New()
	var edges []storage.Edge
	for id := storage.UserID(2); id < 2000; id++ {
		edges = append(edges, storage.Edge{From: id, To: 1, Type: storage.Following, UpdateTime: storage.Micros(id)})
	}
	store.Apply(t.Context(), storage.Inverse, edges, storage.IfNewer)
	reader := &limitedReader{Answerer: store}
	p, err := New(reader, 0, nil).Matches(t.Context(), NotFollowedBack(1), MatchMark{}, 100)
	check.That(t, err == nil && len(p.Matches) == 100 && slices.Equal(reader.limits, []int{101}), "%d matches from pages of %v rows: %v", len(p.Matches), reader.limits, err)
}

// limitedReader notes the limits of the pages that are read.
type limitedReader struct {
	storage.Answerer
	limits []int
}

func (r *limitedReader) Bundle(ctx context.Context, b *storage.Bundle) {
	for _, kind := range storage.PageLookups {
		if l := kind.In(b); l.Open() {
			for _, q := range l.Keys {
				r.limits = append(r.limits, q.Limit)
			}
		}
	}
	r.Answerer.Bundle(ctx, b)
}

// For a user who follows many and is followed by few, friends are found among the few, and come in
// the order of the many.
func TestFriendsOfWhoFollowsMany(t *testing.T) {
	properties.Check(t, 100, func(t *rapid.T) { complete(t, longAndShort(t, storage.Forward), Friends(1), 1, 3) })
}

// A count that is wrong for a while neither ends the pages early nor lets them go on after the end.
func TestFollowersNotFollowedBackWhenTheCountIsWrong(t *testing.T) {
	t.Parallel()
	const followers = 5000
	store := oracle.New()
	var edges []storage.Edge
	for id := storage.UserID(2); id < followers+2; id++ {
		edges = append(edges, storage.Edge{From: id, To: 1, Type: storage.Following, UpdateTime: storage.Micros(id)})
	}
	store.Apply(t.Context(), storage.Inverse, edges, storage.IfNewer)
	for _, wrong := range []int64{-3000, 3000} {
		miscounted := double.Of(store)
		double.After(miscounted, func(_ storage.Side, _ []storage.UserID, counts []storage.Result[storage.Counts]) {
			for i := range counts {
				counts[i].Value.Follower += wrong
			}
		}, storage.CountLookups)
		g := New(miscounted, 500_000, nil)
		n := 0
		for from, pages := (MatchMark{}), 0; ; pages++ {
			p, err := g.Matches(t.Context(), NotFollowedBack(1), from, 100)
			must.That(t, err == nil && pages <= followers, "page %d: %+v, %v", pages, p, err)
			n += len(p.Matches)
			must.That(t, p.Total > n || p.Total == n && !p.More, "counted as %d more, page %d: a total of %d after %d, more: %t", wrong, pages, p.Total, n, p.More)
			if from = p.Next; !p.More {
				break
			}
		}
		check.Equal(t, fmt.Sprintf("followers that come, counted as %d more", wrong), n, followers)
	}
}
