package resolvers_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// A page of favorites fails if its posts cannot be read.
func TestFavoritesFailWithTheirPosts(t *testing.T) {
	store := oracle.New()
	apitest.CreateUsers(t, store, storage.User{ID: 1, Handle: "a", CreatedAt: apitest.Epoch}, storage.User{ID: 2, Handle: "b", CreatedAt: apitest.Epoch})
	post := storage.PostID{Author: 2, Number: 3}
	_, _, err := store.Publish(t.Context(), storage.PostRow{PostID: post, Key: "k", Text: "x", At: apitest.Epoch})
	must.OK(t, err)
	favorite := []storage.EdgeChange{post.Favorite(storage.Favorited, apitest.Epoch)}
	must.OK(t, store.ChangeEdges(t.Context(), storage.Favorites, 1, favorite, storage.ChangeOptions{Inverse: true})[0].Err)
	const query = `{ user(by: {id: 1}) { favorites { edges { cursor } } } }`
	must.Equal(t, "favorites", len(apitest.New(t, store, apitest.Options{}).Ask(query, nil).Whole().At("user.favorites.edges").([]any)), 1)
	apitest.New(t, broken(store, "posts", errors.New("broken")), apitest.Options{}).Ask(query, nil).FailsAt("INTERNAL_SERVER_ERROR", "user.favorites")
}

func TestFavorites(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		id := publish(t, v.api, v.a, "x", "1")
		vars := apitest.Vars{"p": id}
		b := v.api.As(v.b)
		const favorite = `mutation($p: ID!) { favorite(postId: $p) { changed viewer { user { favoritesGivenCount } }
			post { favoritesReceivedCount viewerHasFavorited favoritedBy { nodes { handle } } author { favoritesReceivedCount } }
			favoriteEdge { cursor favoritedAt node { id viewerHasFavorited } } } }`
		var token any
		for _, changed := range []bool{true, false} {
			answer := b.Ask(favorite, vars).Whole()
			token = answer.Token()
			check.That(t, token != "", "no token: %s", answer.Text)
			part := func(path, want string) {
				t.Helper()
				check.Equal(t, path, fmt.Sprint(answer.At(path)), want)
			}
			part("favorite.changed", fmt.Sprint(changed))
			part("favorite.viewer.user.favoritesGivenCount", "1")
			part("favorite.post.favoritesReceivedCount", "1")
			part("favorite.post.viewerHasFavorited", "true")
			part("favorite.post.author.favoritesReceivedCount", "1")
			part("favorite.post.favoritedBy.nodes", fmt.Sprintf("[map[handle:u%s]]", v.b))
			if !changed {
				part("favorite.favoriteEdge", "<nil>")
				continue
			}
			part("favorite.favoriteEdge.node.id", id)
			part("favorite.favoriteEdge.node.viewerHasFavorited", "true")
			page := v.api.Ask(`query($u: ID!, $after: String) { user(by: {id: $u}) { favorites(after: $after) { nodes { id } } } }`,
				apitest.Vars{"u": v.b, "after": answer.At("favorite.favoriteEdge.cursor")}).Whole()
			page.Is(`{"user": {"favorites": {"nodes": []}}}`)
		}
		v.api.As(v.c).Ask(`query($p: ID!) { node(id: $p) { ... on Post { favoritesReceivedCount viewerHasFavorited favoritedBy { edges { node { handle } } } } } }`, vars).
			Is(fmt.Sprintf(`{"node": {"favoritesReceivedCount": 1, "viewerHasFavorited": false, "favoritedBy": {"edges": [{"node": {"handle": "u%s"}}]}}}`, v.b))

		for _, changed := range []bool{true, false} {
			b.Ask(`mutation($p: ID!) { unfavorite(postId: $p) { changed viewer { user { favoritesGivenCount favorites { nodes { id } } } } post { favoritesReceivedCount viewerHasFavorited } favoriteEdge { cursor } } }`, vars).
				Is(fmt.Sprintf(`{"unfavorite": {"changed": %t, "viewer": {"user": {"favoritesGivenCount": 0, "favorites": {"nodes": []}}}, "post": {"favoritesReceivedCount": 0, "viewerHasFavorited": false}, "favoriteEdge": null}}`, changed))
		}
		b.Ask(favorite, vars).Whole()
		v.api.As(v.a).Ask(`mutation($p: ID!) { deletePost(postId: $p) { viewer { user { favoritesReceivedCount } } } }`, vars).Is(`{"deletePost": {"viewer": {"user": {"favoritesReceivedCount": 0}}}}`)
		b.Ask(favorite, vars).Refused("NOT_FOUND")
		b.Ask(`{ viewer { user { favoritesGivenCount favorites { nodes { id } } } } }`, nil).Is(`{"viewer": {"user": {"favoritesGivenCount": 1, "favorites": {"nodes": []}}}}`)
		b.Ask(`mutation($p: ID!) { unfavorite(postId: $p) { changed post { id } viewer { user { favoritesGivenCount } } } }`, vars).
			Is(`{"unfavorite": {"changed": true, "post": null, "viewer": {"user": {"favoritesGivenCount": 0}}}}`)
	})
}

// Favorites that are not possible are refused, and nothing is written.
func TestBadFavorites(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		id := publish(t, v.api, v.a, "x", "1")
		b := v.api.As(v.b)
		for _, mutation := range []string{"favorite", "unfavorite"} {
			v.api.Ask(`mutation($p: ID!) { `+mutation+`(postId: $p) { changed } }`, apitest.Vars{"p": id}).Refused("UNAUTHENTICATED")
		}
		b.Ask(`mutation { favorite(postId: "post_1_999") { changed } }`, nil).Refused("NOT_FOUND")
		b.Ask(`mutation { unfavorite(postId: "post_1_999") { changed } }`, nil).Is(`{"unfavorite": {"changed": false}}`)
		b.Ask(`{ viewer { user { favoritesGivenCount favorites(first: 0) { nodes { id } pageInfo { hasNextPage } } } } }`, nil).
			Is(`{"viewer": {"user": {"favoritesGivenCount": 0, "favorites": {"nodes": [], "pageInfo": {"hasNextPage": false}}}}}`)
	})
}

// Pages continue after their cursors, even if the favorite at the cursor has ended. They leave out
// posts that are gone.
func TestPagesOfFavorites(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		var all []string // newest first
		for i := range 9 {
			id := publish(t, v.api, []storage.UserID{v.a, v.c}[i%2], "x", fmt.Sprint(i))
			v.api.As(v.b).Ask(`mutation($p: ID!) { favorite(postId: $p) { changed } }`, apitest.Vars{"p": id}).Whole()
			all = append([]string{id}, all...)
		}
		remove := func(i int, by storage.UserID, mutation string) {
			v.api.As(by).Ask(`mutation($p: ID!) { `+mutation+` { changed } }`, apitest.Vars{"p": all[i]}).Whole()
		}
		remove(2, v.a, "deletePost(postId: $p)")
		want := []string{all[0], all[1], all[3], all[5], all[6], all[7], all[8]}
		var got []string
		const query = `query($u: ID!, $after: String) { user(by: {id: $u}) { favorites(first: 3, after: $after) { nodes { id } pageInfo { hasNextPage endCursor } } } }`
		for page, answer := range pagesAt(v.api, query, apitest.Vars{"u": v.b}, "user.favorites") {
			got = append(got, strings.Fields(idsAt(answer, "user.favorites.nodes"))...)
			if page == 0 {
				remove(3, v.b, "unfavorite(postId: $p)")
				remove(4, v.b, "unfavorite(postId: $p)")
			}
		}
		same(t, got, want)
	})
}

// If a user who is hidden comes back while a query is being answered, what the user does not show is null, as afterwards.
func TestListsOfWhoComesBackMeanwhile(t *testing.T) {
	store, happens, meanwhile := double.Of(oracle.New()), func() {}, sync.Once{}
	double.After(store, func(storage.Side, []storage.PlaceQuery, []storage.Result[[]storage.Comment]) { meanwhile.Do(happens) }, storage.CommentPageLookups)
	apitest.Users(t, store, 3)
	api := apitest.New(t, store, apitest.Options{})
	apitest.Apply(t, store, storage.Edge{From: 3, To: 1, Type: storage.Following, UpdateTime: apitest.Epoch}, storage.Edge{From: 1, To: 3, Type: storage.Following, UpdateTime: apitest.Epoch})
	publish(t, api, 2, "of 2", "1")
	api.As(3).Ask(`mutation { updateProfile(listVisibility: {followings: NOBODY, followers: NOBODY}) { changed } deactivateAccount { changed } }`, nil).Whole()
	happens = func() { api.As(3).Ask(`mutation { reactivateAccount { changed } }`, nil).Whole() }
	api.Ask(`{ user(by: {id: 3}) { followings { totalCount nodes { id } } followers { totalCount } friends { totalCount } friendCount } other: user(by: {id: 2}) { posts { nodes { comments { nodes { id } } } } } }`, nil).
		Is(`{"user": {"followings": null, "followers": null, "friends": null, "friendCount": null}, "other": {"posts": {"nodes": [{"comments": {"nodes": []}}]}}}`)
}

// If an author is hidden while a page is being answered, the favorites behind its posts keep their own times.
func TestFavoritesOfWhoIsHiddenMeanwhile(t *testing.T) {
	store, happens, meanwhile := double.Of(oracle.New()), func() {}, sync.Once{}
	double.After(store, func(storage.Side, []storage.PlaceQuery, []storage.Result[[]storage.Comment]) { meanwhile.Do(happens) }, storage.CommentPageLookups)
	apitest.Users(t, store, 3)
	api := apitest.New(t, store, apitest.Options{})
	for _, author := range []storage.UserID{2, 3} {
		api.As(1).Ask(`mutation($p: ID!) { favorite(postId: $p) { changed } }`, apitest.Vars{"p": publish(t, api, author, "of "+author.String(), "1")}).Whole()
	}
	const query = `{ user(by: {id: 1}) { favorites { edges { cursor favoritedAt node { text comments { nodes { id } } } } } } }`
	before := apitest.Into[any](api.Ask(query, nil).Whole(), "user.favorites.edges.1")
	happens = func() { api.As(3).Ask(`mutation { deactivateAccount { changed } }`, nil).Whole() }
	meanwhile = sync.Once{}
	edges := apitest.Into[[]any](api.Ask(query, nil).Whole(), "user.favorites.edges")
	check.Equal(t, "the favorite", edges[len(edges)-1], before)
}
