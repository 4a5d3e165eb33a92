package resolvers_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// square is what users have published, and who may see whom, as the test knows it.
type square struct {
	posts     []written // newest first, like all lists
	comments  []written
	favorites []favored // newest first
	blocks    map[storage.Pair]bool
	hidden    map[storage.UserID]bool
	deleted   map[storage.UserID]bool
	locked    map[storage.UserID]bool
	follows   map[storage.Pair]bool // false: there is no follow, or it waits
	waits     map[storage.Pair]bool
}

// written is a post, or a comment on one.
type written struct {
	id   string
	by   storage.UserID
	post string         // if it is a comment
	of   storage.UserID // the author of the post
}

// favored is a favorite.
type favored struct {
	by storage.UserID
	written
}

// hides reports whether a viewer, 0 for nobody, must not see what a user has written.
func (s *square) hides(viewer, by storage.UserID) bool {
	return by != viewer && (s.hidden[by] || s.blocks[storage.Pair{From: by, To: viewer}] || s.blocks[storage.Pair{From: viewer, To: by}])
}

// closes reports whether posts and favorites of a user are closed to a viewer.
func (s *square) closes(viewer, of storage.UserID) bool {
	return s.hides(viewer, of) || of != viewer && s.locked[of] && !s.follows[storage.Pair{From: viewer, To: of}]
}

// follow changes what a user is to another, who is not hidden, or whether the user is locked.
func (s *square) follow(t *testing.T, api *apitest.API, random *rand.Rand, by, other storage.UserID) {
	t.Helper()
	pair, back := storage.Pair{From: by, To: other}, storage.Pair{From: other, To: by}
	do := func(field string) apitest.Answer {
		return api.As(by).Ask(`mutation($u: ID!) { `+apitest.Call(field, "$u")+` { changed relationship { following followRequested followRequestedBy } } }`, apitest.Vars{"u": other})
	}
	switch n := random.IntN(8); {
	case n == 0:
		s.locked[by] = !s.locked[by]
		api.As(by).Ask(`mutation($l: Boolean) { updateProfile(locked: $l) { viewer { user { locked } } } }`, apitest.Vars{"l": s.locked[by]}).
			Is(fmt.Sprintf(`{"updateProfile": {"viewer": {"user": {"locked": %v}}}}`, s.locked[by]))
	case by == other || s.hidden[other]:
	case n == 1:
		do("unfollow").Whole()
		delete(s.follows, pair)
		delete(s.waits, pair)
	case n == 2:
		do("removeFollower").Whole()
		delete(s.follows, back)
		delete(s.waits, back)
	case n == 3 && s.waits[back]:
		do("declineRequest FOLLOW").Is(fmt.Sprintf(`{"declineRequest": {"changed": true, "relationship": {"following": %v, "followRequested": %v, "followRequestedBy": false}}}`, s.follows[pair], s.waits[pair]))
		delete(s.waits, back)
	case n < 6 && s.waits[back]:
		do("acceptRequest FOLLOW").Is(fmt.Sprintf(`{"acceptRequest": {"changed": true, "relationship": {"following": %v, "followRequested": %v, "followRequestedBy": false}}}`, s.follows[pair], s.waits[pair]))
		delete(s.waits, back)
		s.follows[back] = true
	case n < 6 && !s.follows[back]:
		do("acceptRequest FOLLOW").Refused("NOT_FOUND")
	case !s.blocks[pair] && !s.blocks[back]:
		was := [2]bool{s.follows[pair], s.waits[pair]}
		s.waits[pair] = s.locked[other] && !s.follows[pair]
		s.follows[pair] = !s.waits[pair]
		do("follow").Is(fmt.Sprintf(`{"follow": {"changed": %v, "relationship": {"following": %v, "followRequested": %v, "followRequestedBy": %v}}}`,
			was != [2]bool{s.follows[pair], s.waits[pair]}, s.follows[pair], s.waits[pair], s.waits[back]))
	}
}

// TestWhoSeesPosts: after any changes, every route shows every viewer the posts, comments and favorites
// that it may see, and no others.
func TestWhoSeesPosts(t *testing.T) {
	const people = 5
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			api, _ := withUsers(t, people, apitest.Options{})
			random := rand.New(rand.NewPCG(seed, 1))
			s := &square{
				blocks: map[storage.Pair]bool{}, hidden: map[storage.UserID]bool{}, deleted: map[storage.UserID]bool{},
				locked: map[storage.UserID]bool{}, follows: map[storage.Pair]bool{}, waits: map[storage.Pair]bool{},
			}
			for step := range 120 {
				s.change(t, api, random, step, storage.UserID(1+random.IntN(people)), storage.UserID(1+random.IntN(people)))
				if step%10 == 9 {
					for viewer := range storage.UserID(people + 1) {
						if !s.deleted[viewer] {
							s.check(t, api, viewer, people)
						}
					}
				}
			}
		})
	}
}

// change makes one change, by a user who may make it.
func (s *square) change(t *testing.T, api *apitest.API, random *rand.Rand, step int, by, other storage.UserID) {
	t.Helper()
	if s.deleted[by] || s.deleted[other] {
		return
	}
	if s.hidden[by] {
		if random.IntN(2) == 0 {
			api.As(by).Ask(`mutation { reactivateAccount { changed } }`, nil).Whole()
			delete(s.hidden, by)
		}
		return
	}
	if s.follows != nil && random.IntN(2) == 0 { // otherwise the test of feeds makes follows
		s.follow(t, api, random, by, other)
		return
	}
	key := fmt.Sprint("key", step)
	if len(s.posts) > 0 && random.IntN(3) == 0 {
		s.favorite(t, api, by, s.posts[random.IntN(len(s.posts))])
		return
	}
	switch n := random.IntN(20); {
	case n < 7:
		s.posts = append([]written{{id: publish(t, api, by, "p", key), by: by}}, s.posts...)
	case n < 14 && len(s.posts) > 0:
		post := s.posts[random.IntN(len(s.posts))]
		if s.closes(by, post.by) {
			api.As(by).Ask(`mutation($p: ID!) { addComment(postId: $p, text: "x", clientKey: "x") { changed } }`, apitest.Vars{"p": post.id}).Refused("NOT_FOUND")
			return
		}
		s.comments = append([]written{{comment(t, api, by, post.id, key), by, post.id, post.by}}, s.comments...)
	case n < 17 && by != other && !s.hidden[other]:
		pair := storage.Pair{From: by, To: other}
		field := "block"
		if s.blocks[pair] {
			field = "unblock"
		}
		api.As(by).Ask(`mutation($u: ID!) { `+apitest.Call(field, "$u")+` { changed } }`, apitest.Vars{"u": other}).Whole()
		if s.blocks[pair] = !s.blocks[pair]; s.blocks[pair] {
			for _, p := range []storage.Pair{pair, {From: other, To: by}} {
				delete(s.follows, p)
				delete(s.waits, p)
			}
		}
	case n == 17:
		api.As(by).Ask(`mutation { deactivateAccount { changed } }`, nil).Whole()
		s.hidden[by] = true
	case n == 18 && len(s.deleted) < 2:
		api.As(by).Ask(`mutation { deleteAccount { complete } }`, nil).Is(`{"deleteAccount": {"complete": true}}`)
		s.hidden[by], s.deleted[by] = true, true
		ofDeleted := func(p storage.Pair, _ bool) bool { return p.From == by || p.To == by }
		maps.DeleteFunc(s.follows, ofDeleted)
		maps.DeleteFunc(s.waits, ofDeleted)
		s.favorites = slices.DeleteFunc(s.favorites, func(f favored) bool { return f.by == by || f.written.by == by })
	case n == 19 && len(s.posts) > 0:
		i := slices.IndexFunc(s.posts, func(p written) bool { return p.by == by })
		if i >= 0 {
			id := s.posts[i].id
			api.As(by).Ask(`mutation($p: ID!) { deletePost(postId: $p) { changed } }`, apitest.Vars{"p": id}).Whole()
			s.posts = slices.Delete(s.posts, i, i+1)
			s.comments = slices.DeleteFunc(s.comments, func(c written) bool { return c.post == id })
		}
	}
}

// favorite makes a favorite, or ends one.
func (s *square) favorite(t *testing.T, api *apitest.API, by storage.UserID, post written) {
	t.Helper()
	at := slices.IndexFunc(s.favorites, func(f favored) bool { return f.by == by && f.id == post.id })
	vars := apitest.Vars{"p": post.id}
	switch {
	case s.closes(by, post.by):
		api.As(by).Ask(`mutation($p: ID!) { favorite(postId: $p) { changed } }`, vars).Refused("NOT_FOUND")
		api.As(by).Ask(`mutation($p: ID!) { unfavorite(postId: $p) { post { id } favoriteEdge { favoritedAt } } }`, vars).Is(`{"unfavorite": {"post": null, "favoriteEdge": null}}`)
		if at >= 0 {
			s.favorites = slices.Delete(s.favorites, at, at+1)
		}
	case at < 0:
		api.As(by).Ask(`mutation($p: ID!) { favorite(postId: $p) { changed } }`, vars).Is(`{"favorite": {"changed": true}}`)
		s.favorites = append([]favored{{by, post}}, s.favorites...)
	default:
		api.As(by).Ask(`mutation($p: ID!) { unfavorite(postId: $p) { changed } }`, vars).Is(`{"unfavorite": {"changed": true}}`)
		s.favorites = slices.Delete(s.favorites, at, at+1)
	}
}

// checkFavorites compares all fields that show favorites.
func (s *square) checkFavorites(t *testing.T, api *apitest.API, viewer storage.UserID, people int) {
	t.Helper()
	there := func(post string) bool {
		return slices.ContainsFunc(s.posts, func(p written) bool { return p.id == post })
	}
	for id := range storage.UserID(people) {
		id++
		var want, got []string
		given, total := 0, 0
		for _, f := range s.favorites {
			if f.by == id {
				given++
				if there(f.id) && !s.closes(viewer, f.written.by) {
					want = append(want, f.id)
				}
			}
			if f.written.by == id && there(f.id) {
				total++
			}
		}
		answer := api.Ask(`query($u: ID!) { user(by: {id: $u}) { favoritesGivenCount favoritesReceivedCount favorites(first: 100) { nodes { id author { id } } edges { node { id } } } } }`, apitest.Vars{"u": id}).Whole()
		if answer.At("user") == nil {
			continue
		}
		if answer.At("user.favorites") != nil {
			got = strings.Fields(idsAt(answer, "user.favorites.nodes"))
		}
		if s.closes(viewer, id) {
			want = nil
		}
		same(t, got, want)
		same(t, []string{fmt.Sprint(answer.At("user.favoritesGivenCount")), fmt.Sprint(answer.At("user.favoritesReceivedCount"))}, []string{fmt.Sprint(given), fmt.Sprint(total)})
	}
	for _, p := range s.posts {
		var want []string
		count, own := 0, false
		for _, f := range s.favorites {
			if f.id != p.id {
				continue
			}
			count++
			own = own || f.by == viewer
			if !s.hides(viewer, f.by) {
				want = append(want, f.by.String())
			}
		}
		answer := api.Ask(`query($p: ID!) { node(id: $p) { ... on Post { favoritesReceivedCount viewerHasFavorited favoritedBy(first: 100) { nodes { id } } } } }`, apitest.Vars{"p": p.id}).Whole()
		if s.closes(viewer, p.by) {
			answer.Is(`{"node": null}`)
			continue
		}
		same(t, strings.Fields(idsAt(answer, "node.favoritedBy.nodes")), want)
		has := fmt.Sprint(own)
		if viewer == 0 {
			has = fmt.Sprint(nil)
		}
		same(t, []string{fmt.Sprint(answer.At("node.favoritesReceivedCount")), fmt.Sprint(answer.At("node.viewerHasFavorited"))}, []string{fmt.Sprint(count), has})
	}
}

// check compares every way of seeing posts, comments and favorites.
func (s *square) check(t *testing.T, api *apitest.API, viewer storage.UserID, people int) {
	t.Helper()
	if viewer > 0 {
		api = api.As(viewer)
	}
	seen := func(all []written, more func(written) bool) string {
		var ids []string
		for _, w := range all {
			if more(w) {
				ids = append(ids, w.id)
			}
		}
		return strings.Join(ids, " ")
	}
	want := func(what, got, want string) {
		t.Helper()
		check.Equal(t, fmt.Sprintf("viewer %s, %s", viewer, what), got, want)
	}
	any := func(p written) bool { return !s.closes(viewer, p.by) }
	want("latest", idsAt(api.Ask(`{ latestPosts(first: 100) { nodes { id author { id } } } }`, nil).Whole(), "latestPosts.nodes"), seen(s.posts, any))
	if viewer > 0 {
		feed := api.Ask(`{ viewer { feed(first: 100) { nodes { id author { id } } } } }`, nil).Whole()
		want("feed", idsAt(feed, "viewer.feed.nodes"), seen(s.posts, func(p written) bool { return any(p) && s.follows[storage.Pair{From: viewer, To: p.by}] }))
	}
	for id := range storage.UserID(people) {
		id++
		answer := api.Ask(`query($u: ID!) { user(by: {id: $u}) { posts(first: 100) { nodes { id } } } }`, apitest.Vars{"u": id}).Whole()
		got := ""
		if answer.At("user") != nil && answer.At("user.posts") != nil {
			got = idsAt(answer, "user.posts.nodes")
		}
		want("posts of "+id.String(), got, seen(s.posts, func(w written) bool { return w.by == id && any(w) }))
	}
	below := func(post string) func(written) bool {
		return func(c written) bool { return c.post == post && !s.hides(viewer, c.by) }
	}
	for _, p := range s.posts {
		answer := api.Ask(`query($p: ID!) { node(id: $p) { id ... on Post { comments(first: 100) { nodes { id author { id } } } } } }`, apitest.Vars{"p": p.id}).Whole()
		if s.closes(viewer, p.by) {
			answer.Is(`{"node": null}`)
			continue
		}
		want("comments on "+p.id, idsAt(answer, "node.comments.nodes"), seen(s.comments, below(p.id)))
	}
	s.checkFavorites(t, api, viewer, people)
	for _, c := range s.comments {
		shown := api.Ask(`query($c: ID!) { node(id: $c) { id } }`, apitest.Vars{"c": c.id}).Whole().At("node") != nil
		check.That(t, shown != (s.hides(viewer, c.by) || s.closes(viewer, c.of)), "viewer %s, %s: shown: %v", viewer, c.id, shown)
	}
}

// idsAt joins the ids of nodes.
func idsAt(a apitest.Answer, path string) string {
	var ids []string
	for _, node := range apitest.Into[[]struct{ ID string }](a, path) {
		ids = append(ids, node.ID)
	}
	return strings.Join(ids, " ")
}

// A page leaves hidden posts out and takes later ones in their place, even if long stretches are hidden. A stretch that is
// too long ends the page, and the next page continues after it.
func TestPagesWithoutHiddenPosts(t *testing.T) {
	store := storeOf(t, 3)
	publishAs := func(by storage.UserID, number int64) {
		_, _, err := store.Publish(t.Context(), storage.PostRow{PostID: storage.PostID{Author: by, Number: number}, Key: fmt.Sprint(number), Text: "x", At: apitest.Epoch + storage.Micros(number)})
		must.OK(t, err)
	}
	for n := range int64(2500) {
		by := storage.UserID(2)
		if n == 0 || n == 1400 {
			by = 3
		}
		publishAs(by, n+1)
	}
	apitest.Block(t, store, 1, 2)
	api := apitest.New(t, store, apitest.Options{}).As(1)
	const query = `query($after: String) { latestPosts(first: 5, after: $after) { nodes { id } pageInfo { hasNextPage endCursor } } }`
	var got []string
	pages := 0
	for _, answer := range pagesAt(api, query, nil, "latestPosts") {
		pages++
		if ids := idsAt(answer, "latestPosts.nodes"); ids != "" {
			got = append(got, ids)
		}
	}
	same(t, got, []string{"post_3_1401", "post_3_1"})
	check.Equal(t, "pages", pages, 3)
}
