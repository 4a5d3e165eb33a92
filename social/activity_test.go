package social

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/reaction"
)

// activityWorld has much that concerns user 1: in days, several at one time, by users of whom some are hidden, and with posts of which one is gone.
func activityWorld(t *testing.T, rows, people int) (store *oracle.Store, all map[ActivityKind][]reaction.Reaction) {
	store, all = oracle.New(), map[ActivityKind][]reaction.Reaction{}
	random := rand.New(rand.NewPCG(3, 4))
	createUsers(t, store, people)
	for n := range int64(4) {
		_, _, err := store.Publish(t.Context(), storage.PostRow{PostID: storage.PostID{Author: 1, Number: n + 1}, Key: fmt.Sprint(n), Text: "x", At: 1})
		must.OK(t, err)
	}
	for kind := range ActivityKind(activityKinds) {
		taken := map[[2]int64]bool{}
		for n := range rows {
			by, post := storage.UserID(random.IntN(people)+1), int64(random.IntN(4)+1)
			at := day*storage.Micros(100+random.IntN(6)*random.IntN(2)) + storage.Micros(random.IntN(rows))
			r := reaction.Reaction{Place: storage.Place{CreatedAt: at}, By: by}
			var item int64
			if kind == PostFavorited {
				item = post
			}
			switch {
			case kind == PostCommented:
				c := storage.Comment{CommentID: storage.CommentID{Author: 1, Number: int64(n + 1)}, Post: post, By: by, Key: fmt.Sprint(n), Text: "x", CreatedAt: at}
				_, _, err := store.AddComment(t.Context(), c)
				must.OK(t, err)
				r.Post, r.Number = post, c.Number
			case kind == Mentions && by > 1:
				p := storage.PostRow{PostID: storage.PostID{Author: by, Number: int64(100 + n)}, Key: fmt.Sprint(n), Text: "x", At: 1}
				_, _, err := store.Publish(t.Context(), p)
				must.OK(t, err)
				store.Apply(t.Context(), storage.FavoriteInbox, []storage.Edge{{From: by, To: 1, Item: p.Number, Type: storage.Mentioned, UpdateTime: at}}, storage.IfNewer)
				r.Post, r.Number = p.Number, p.Number
			case taken[[2]int64{int64(by), item}] || by == 1 && kind != PostFavorited:
				continue
			case kind == PostFavorited:
				store.Apply(t.Context(), storage.FavoriteInbox, []storage.Edge{{From: by, To: 1, Item: post, Type: storage.Favorited, UpdateTime: at}}, storage.IfNewer)
				r.Post, r.Number = post, post
			default:
				of := activityEdges[kind]
				if kind == FollowAsked && slices.ContainsFunc(all[Followed], func(r reaction.Reaction) bool { return r.By == by }) {
					continue
				}
				edge := of.side.Pair(1, by).Edge(of.kind, at)
				edge.Item = of.item
				store.Apply(t.Context(), of.side, []storage.Edge{edge}, storage.IfNewer)
			}
			taken[[2]int64{int64(by), item}] = true
			all[kind] = append(all[kind], r)
		}
	}
	_, err := store.DeletePost(t.Context(), storage.PostID{Author: 1, Number: 4})
	must.OK(t, err)
	return store, all
}

// groupsOf works out the groups by brute force.
func groupsOf(all map[ActivityKind][]reaction.Reaction, shown func(storage.UserID) bool) (groups []ActivityGroup) {
	for kind, rows := range all {
		rows = slices.DeleteFunc(slices.Clone(rows), func(r reaction.Reaction) bool { return !shown(r.By) })
		slices.SortFunc(rows, reaction.Reaction.Compare)
		count, byGroup := map[storage.Micros]int{}, map[[2]int64][]reaction.Reaction{}
		for _, r := range rows {
			began := r.CreatedAt / day
			if count[began]++; count[began] <= MostOfDay {
				key := [2]int64{int64(began), r.Post}
				byGroup[key] = append(byGroup[key], r)
			}
		}
		for key, rows := range byGroup {
			if key[1] == 4 {
				continue
			}
			g := ActivityGroup{ActivityMark: ActivityMark{rows[0].CreatedAt, kind, key[1]}, Complete: count[storage.Micros(key[0])] <= MostOfDay}
			var actors []storage.UserID
			for _, r := range rows {
				if !slices.Contains(actors, r.By) {
					actors = append(actors, r.By)
				}
			}
			g.Actors = actors[:min(ActorsShown, len(actors))]
			g.Others = len(actors) - len(g.Actors)
			groups = append(groups, g)
		}
	}
	slices.SortFunc(groups, func(a, b ActivityGroup) int { return a.compare(b.ActivityMark) })
	return groups
}

// Pages of any size are those of what was worked out by brute force, and what is new is counted, however little each request may read.
func TestActivityIsThatOfBruteForce(t *testing.T) {
	var everything []ActivityKind
	for kind := range ActivityKind(activityKinds) {
		everything = append(everything, kind)
	}
	for _, rows := range []int{30, 400} {
		store, all := activityWorld(t, rows, rows)
		blocked := []storage.UserID{2, 3, 7, 20}
		g := New(store, 0, NewAudience(1, nil, blocked))
		want := groupsOf(all, func(id storage.UserID) bool { return id != 1 && !slices.Contains(blocked, id) })
		must.Least(t, "groups", len(want), 20)
		must.That(t, rows <= 100 || slices.ContainsFunc(want, func(g ActivityGroup) bool { return !g.Complete }), "all groups are complete")
		of := ActivityOf{User: 1, Kinds: everything}
		for _, size := range []int{1, 7, 1000} {
			var got []ActivityGroup
			of.After = ActivityMark{}
			for requests := 0; ; requests++ {
				of.Left = new(Allowance)
				if requests%2 == 1 {
					of.Left.take(allowance - 200) // it is spent after a day or two
				}
				a, err := g.Activity(t.Context(), of)
				must.OK(t, err)
				page, more, end, err := a.Page(t.Context(), size)
				must.OK(t, err)
				for _, group := range page {
					check.That(t, (group.On != nil) == (group.Post != 0) && (group.On == nil || group.On.Number == group.Post), "%+v is on %+v", group.ActivityMark, group.On)
					group.On, group.State = nil, 0
					got = append(got, group)
				}
				if !more {
					break
				}
				if of.After = end; end == (ActivityMark{}) {
					of.After = page[len(page)-1].ActivityMark
				}
				must.Most(t, fmt.Sprintf("pages of %d", size), requests, 5*len(want))
			}
			for i := range min(len(got), len(want)) {
				must.Equal(t, fmt.Sprintf("pages of %d: group %d", size, i), got[i], want[i])
			}
			must.Equal(t, fmt.Sprintf("pages of %d: groups", size), len(got), len(want))
		}
		of.After = ActivityMark{}
		for i, seen := range append([]ActivityGroup{{}}, want...) {
			of.Left = nil
			a, err := g.Activity(t.Context(), of)
			must.OK(t, err)
			newer, more, err := a.Newer(t.Context(), seen.At)
			wanted := len(want)
			if i > 0 {
				wanted = slices.IndexFunc(want, func(g ActivityGroup) bool { return g.At <= seen.At })
			}
			check.That(t, len(newer) == min(wanted, MostUnseen) && more == (wanted > MostUnseen) && err == nil, "%d groups are newer than %d, more %t, want %d: %v", len(newer), seen.At, more, wanted, err)
		}
	}
}

// However many rows a day has, hidden ones among them, each page reads a bounded number of them, and later days do not hide earlier ones.
func TestActivityOfACelebrityIsBounded(t *testing.T) {
	const fans = 5000
	store := oracle.New()
	var edges []storage.Edge
	var hidden []storage.UserID
	for n := range fans {
		edges = append(edges, storage.Edge{From: storage.UserID(n + 2), To: 1, Type: storage.Following, UpdateTime: 200*day + storage.Micros(n)})
		if n%2 == 0 || n > 1000 {
			hidden = append(hidden, storage.UserID(n+2))
		}
	}
	edges = append(edges, storage.Edge{From: fans + 2, To: 1, Type: storage.Following, UpdateTime: 3 * day})
	store.Apply(t.Context(), storage.Inverse, edges, storage.IfNewer)
	for _, test := range []struct {
		hidden []storage.UserID
		first  int // how many of the day are counted
	}{{nil, MostOfDay}, {hidden[:500], MostOfDay}, {hidden, 0}} {
		counted := &countedRows{Answerer: store}
		a, err := New(counted, 0, NewAudience(1, nil, test.hidden)).Activity(t.Context(), ActivityOf{User: 1, Kinds: []ActivityKind{Followed}})
		must.OK(t, err)
		page, more, _, err := a.Page(t.Context(), 10)
		must.That(t, err == nil && !more && len(page) > 0, "%+v, %t, %v", page, more, err)
		last := page[len(page)-1]
		check.That(t, last.At == 3*day && last.Complete, "the last is %+v", last)
		if n := len(page[0].Actors) + page[0].Others; test.first > 0 && (n != test.first || page[0].Complete) || test.first == 0 && len(page) != 1 {
			t.Errorf("%d of the day, %+v", n, page)
		}
		check.Most(t, "rows that were read", counted.read, latestBudget+3*activityRows)
	}
}

// A friend request that has expired does not wait.
func TestActivityLeavesOutExpiredRequests(t *testing.T) {
	store := oracle.New()
	store.Apply(t.Context(), storage.Inbox, []storage.Edge{
		{From: 2, To: 1, Type: storage.Pending, UpdateTime: 10}, {From: 3, To: 1, Type: storage.Pending, UpdateTime: 11}, {From: 4, To: 1, Type: storage.Pending, UpdateTime: 12},
	}, storage.IfNewer)
	a, err := New(store, 0, nil).Activity(t.Context(), ActivityOf{User: 1, Kinds: []ActivityKind{FriendAsked}, Asked: 11})
	must.OK(t, err)
	page, _, _, err := a.Page(t.Context(), 10)
	check.That(t, err == nil && len(page) == 1 && slices.Equal(page[0].Actors, []storage.UserID{4}), "%+v, %v", page, err)
}
