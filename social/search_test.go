package social

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kith/graph/declared"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/properties"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/finding"
)

// drawNamed is a graph whose users have names of a few words, and lists that may be closed.
func drawNamed(t *rapid.T) (*oracle.Store, map[storage.UserID]storage.User) {
	store, users := drawGraph(t), make(map[storage.UserID]storage.User)
	word := rapid.SampledFrom([]string{"Sōta", "sol", "Søren", "Müller", "Mu"})
	for id := storage.UserID(1); id <= people; id++ {
		u := storage.User{ID: id, Handle: "u" + id.String(), Name: word.Draw(t, "name") + " " + word.Draw(t, "surname")}
		u.FollowingsVisibility = rapid.SampledFrom([]storage.Visibility{storage.ToEveryone, storage.ToFollowers, storage.ToNobody}).Draw(t, "visibility")
		users[id] = u
	}
	for id, u := range users {
		r := store.CreateUsers(t.Context(), []storage.User{u})[0]
		must.That(t, r.Err == nil, "user %s: %v", id, r.Err)
	}
	return store, users
}

func drawWords(t *rapid.T) []string {
	return finding.SearchedWords(rapid.SampledFrom([]string{"s", "so", "SOTA", "muller", "mu s", "u1", "sol sol", "mu mu mul so"}).Draw(t, "words"))
}

func hasWords(u storage.User, words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool {
		return !slices.ContainsFunc(finding.Words(u), func(of string) bool { return strings.HasPrefix(of, word) })
	})
}

// A search finds everybody who has the words, best first. If the index has more users than it looks at, it finds fewer, and says so;
// those whom the viewer follows are always among them.
func TestASearchFindsTheNearestAndTheMostFollowed(t *testing.T) {
	properties.Check(t, 200, func(t *rapid.T) {
		store, users := drawNamed(t)
		g := drawPlanner(t, store)
		g.budget, g.sizes.maxMembers = DefaultBudget, MaxMembers
		words, a := drawWords(t), g.audience
		followings := listOf(store, List{storage.Forward, a.Viewer})
		var want []Found
		var muted []storage.UserID
		for id := storage.UserID(1); a.Viewer != 0 && id <= people; id++ {
			if id != a.Viewer && rapid.IntRange(0, 3).Draw(t, "mutes") == 0 {
				muted = append(muted, id)
			}
		}
		mutes := storage.Each(muted, func(id storage.UserID) storage.EdgeChange {
			return storage.EdgeChange{To: id, Item: declared.Mutes.Number, Type: storage.Related, At: 1}
		})
		must.All(t, store.ChangeEdges(t.Context(), storage.Relations, a.Viewer, mutes, storage.ChangeOptions{Inverse: true}))
		for id, u := range users {
			if slices.Contains(muted, id) || a.Hides(id) || !hasWords(u, words) {
				continue
			}
			f := Found{User: id, Followers: storage.CountLookups.Read(t.Context(), store, id)[0].Value.Follower}
			for _, by := range followings {
				isOpen := !a.Hides(by) && (users[by].FollowingsVisibility != storage.ToNobody || by == a.Viewer)
				if isOpen && slices.Contains(listOf(store, List{storage.Forward, by}), id) {
					f.Near = 1
				}
			}
			if slices.Contains(followings, id) {
				f.Near = 2
			}
			want = append(want, f)
		}
		slices.SortFunc(want, Found.Compare)
		got, complete, err := g.Search(t.Context(), SearchQuery{Words: words})
		must.OK(t, err)
		must.That(t, !complete || slices.Equal(got, want), "%q: got %+v, want %+v", words, got, want)
		must.That(t, complete || g.sizes.maxNamed <= 3*people, "it has looked at all")
		near := func(f Found) bool { return f.Near < 2 }
		must.Equal(t, fmt.Sprintf("%q, of those whom the viewer follows", words), slices.DeleteFunc(slices.Clone(got), near), slices.DeleteFunc(slices.Clone(want), near))
		for _, f := range got {
			must.That(t, slices.Contains(want, f), "%q: %+v is not among %+v", words, f, want)
		}
		popular := func(context.Context) (all []finding.PopularUser, _ error) {
			for id := range users {
				all = append(all, finding.PopularUser{User: id})
			}
			return all, nil
		}
		got, _, err = g.Search(t.Context(), SearchQuery{Words: words, Popular: popular})
		must.That(t, err == nil && slices.Equal(got, want), "with the most followed: got %+v, %v; want %+v", got, err, want)
	})
}

// withoutNames is the index as if some users did not exist.
type withoutNames struct {
	storage.Answerer
	hides func(storage.UserID) bool
}

func (w withoutNames) Bundle(ctx context.Context, b *storage.Bundle) {
	finding.WordLookups.Instead(ctx, b, storage.OneByOne(w.words))
	w.Answerer.Bundle(ctx, b)
}

func (w withoutNames) words(ctx context.Context, q finding.WordQuery) ([]storage.UserID, error) {
	rows, err := finding.WordLookups.Get(ctx, w.Answerer, finding.WordQuery{Prefix: q.Prefix, Limit: 1 << 30})
	rows = slices.DeleteFunc(rows, w.hides)
	return rows[:min(q.Limit, len(rows))], err
}

// What the audience must not see has no influence on what it sees, nor on whether that is complete.
func TestHiddenUsersTakeNoPlacesInASearch(t *testing.T) {
	properties.Check(t, 200, func(t *rapid.T) {
		store, _ := drawNamed(t)
		g := drawPlanner(t, store)
		g.sizes.maxNamed = rapid.IntRange(len(g.audience.Hidden())+1, 3*people).Draw(t, "rows") // a user has up to three rows
		words := drawWords(t)
		got, gotComplete, err := g.Search(t.Context(), SearchQuery{Words: words})
		without := *g
		without.store = withoutNames{g.store, g.audience.Hides}
		want, wantComplete, wantErr := without.Search(t.Context(), SearchQuery{Words: words})
		must.That(t, err == nil && wantErr == nil && slices.Equal(got, want) && gotComplete == wantComplete, "%v %t %v, and without them %v %t %v", got, gotComplete, err, want, wantComplete, wantErr)
	})
}

// The users of a list are selected, and ordered, as by brute force. If a bound ends that first, the answer says so.
func TestMembersAreSelectedAndOrdered(t *testing.T) {
	properties.Check(t, 300, func(t *rapid.T) {
		store, users := drawNamed(t)
		g := drawPlanner(t, store)
		g.budget = DefaultBudget
		a, base := g.audience, drawList(t, "base")
		q := MemberQuery{List: base, Order: rapid.SampledFrom([]Order{Recent, Closest, MostFollowed}).Draw(t, "order")}
		if rapid.Bool().Draw(t, "with words") {
			q.Words = drawWords(t)
		}
		if rapid.Bool().Draw(t, "with another list") {
			other := List{base.Side.Other(), base.Owner}
			q.Other, q.Absent = &other, rapid.Bool().Draw(t, "absent")
		}
		followings, followers := listOf(store, List{storage.Forward, a.Viewer}), listOf(store, List{storage.Inverse, a.Viewer})
		for _, id := range followings {
			if rapid.Bool().Draw(t, "special") {
				q.Specials = append(q.Specials, id)
			}
		}
		if special := rapid.Bool().Draw(t, "which"); rapid.Bool().Draw(t, "special only") {
			q.Special = &special
		}
		var want []Member
		for _, e := range edgesOf(store, a, base) {
			id := base.Side.Peer(e.Pair())
			if !hasWords(users[id], q.Words) || q.Other != nil && slices.Contains(listOf(store, *q.Other), id) == q.Absent ||
				q.Special != nil && slices.Contains(q.Specials, id) != *q.Special {
				continue
			}
			m := Member{Match: Match{ID: id, At: base.Side.Position(e)}}
			switch {
			case q.Order == MostFollowed:
				m.Rank = storage.CountLookups.Read(t.Context(), store, id)[0].Value.Follower
			case q.Order == Recent || a.Viewer == 0 || !slices.Contains(followings, id):
			case slices.Contains(q.Specials, id):
				m.Rank = 3
			case slices.Contains(followers, id):
				m.Rank = 2
			default:
				m.Rank = 1
			}
			want = append(want, m)
		}
		slices.SortStableFunc(want, func(a, b Member) int { return cmp.Compare(b.Rank, a.Rank) })
		got, complete, err := g.Members(t.Context(), q)
		must.OK(t, err)
		for i := range got {
			got[i].Other = 0
		}
		must.That(t, !complete || slices.Equal(got, want), "got %+v, want %+v", got, want)
		must.That(t, complete || g.sizes.maxMembers <= people, "it has looked at all: %+v", got)
		for _, m := range got {
			must.That(t, slices.Contains(want, m), "%+v is not among %+v", m, want)
		}
	})
}

func TestAnIndexThatCannotBeReadFailsTheSearch(t *testing.T) {
	store := double.Of(oracle.New())
	double.Before(store, func(context.Context, []finding.WordQuery) error { return errRead }, finding.WordLookups)
	double.Before(store, func(context.Context, []finding.UserWord) error { return errRead }, finding.UserWordLookups)
	g := New(store, 0, NewAudience(1, nil, nil))
	_, _, err := g.Search(t.Context(), SearchQuery{Words: []string{"a"}})
	check.Is(t, "a search", err, errRead)
	_, _, err = g.Members(t.Context(), MemberQuery{List: List{storage.Forward, 1}, Words: []string{"a"}})
	check.Is(t, "a choice of members", err, errRead)
	_, err = g.haveWords(t.Context(), []storage.UserID{1}, []string{"a"})
	check.Is(t, "the words of users", err, errRead)
}
