package resolvers_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"kith/graph/declared"
	"kith/internal/apitest"
	"kith/internal/check"
	"kith/storage"
)

// What subscriptions send has the viewer beside it, as it is then, with the pages below it.
func TestSubscriptionsSendTheViewer(t *testing.T) {
	onShards(t, apitest.Options{Limits: apitest.NoLimits}, func(t *testing.T, v *village) {
		post := publish(t, v.api, v.a, "x", "1")
		v.does(v.a, "follow", v.d)
		turns := func(by storage.UserID, field, back string, whom storage.UserID) func(int) {
			return func(i int) { v.does(by, []string{field, back}[i%2], whom) }
		}
		pages := fmt.Sprintf(`posts { nodes { id } } friends { totalCount } followings(filter: {match: "u%[1]s"}) { nodes { id } } relationship(to: %[1]s) { status }`, v.d)
		for selection, change := range map[string]func(i int){
			"followerAdded": turns(v.b, "follow", "unfollow", v.a),
			fmt.Sprintf(`relationshipChanged(userIds: ["%s"])`, v.c): turns(v.a, "follow", "unfollow", v.c),
			"requestChanged": turns(v.c, "requestFriend", "withdrawRequest FRIEND", v.a),
			"postAdded":      func(i int) { publish(t, v.api, v.d, "hello", fmt.Sprint("k", i)) },
			"favoriteAdded":  func(i int) { v.favorites(v.b, []string{"favorite", "unfavorite"}[i%2], post) },
			"commentAdded":   func(i int) { comment(t, v.api, v.b, post, fmt.Sprint("t", i)) },
			"activityAdded":  func(i int) { comment(t, v.api, v.b, post, fmt.Sprint("u", i)) },
		} {
			answers := subscribe(t, v.api, v.hub, v.a, `subscription { `+selection+` { viewer { id user { id handle `+pages+` } discoverable mutedUsers { totalCount } } } }`)
			name, _, _ := strings.Cut(selection, "(")
			want := fmt.Sprintf(`{"data":{%q:{"viewer":{"id":"viewer_%[2]s","user":{"id":"%[2]s","handle":"u%[2]s","posts":{"nodes":[{"id":%[3]q}]},"friends":{"totalCount":0},"followings":{"nodes":[{"id":"%[4]s"}]},"relationship":{"status":"FOLLOWING"}},"discoverable":true,"mutedUsers":{"totalCount":0}}}}}`, name, v.a, post, v.d)
			check.Equal(t, selection, until(t, answers, change), want)
		}
	})
}

func TestDismissedUsers(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		apitest.Users(t, store, 9)
		api := apitest.New(t, store, apitest.Options{})
		me := api.As(1)
		for _, id := range []storage.UserID{7, 3, 9, 5} {
			for _, changed := range []bool{true, false} {
				me.Ask(`mutation($id: ID!) { dismissSuggestion(userId: $id) { changed user { id } relationship { status } } }`, apitest.Vars{"id": id.String()}).
					Is(fmt.Sprintf(`{"dismissSuggestion": {"changed": %t, "user": {"id": "%s"}, "relationship": {"status": "NONE"}}}`, changed, id))
			}
		}
		deactivate(t, store, 5)
		api = apitest.New(t, store, apitest.Options{})
		me = api.As(1)
		const list = `query($after: String) { viewer { dismissedUsers(first: 2, after: $after) { totalCount complete nodes { handle } edges { cursor node { id } } pageInfo { hasNextPage endCursor } } } }`
		first := me.Ask(list, nil).Whole()
		cursors := apitest.Into[[]struct{ Cursor string }](first, "viewer.dismissedUsers.edges")
		first.Is(fmt.Sprintf(`{"viewer": {"dismissedUsers": {"totalCount": 3, "complete": true, "nodes": [{"handle": "u3"}, {"handle": "u7"}],
			"edges": [{"cursor": %[1]q, "node": {"id": "3"}}, {"cursor": %[2]q, "node": {"id": "7"}}], "pageInfo": {"hasNextPage": true, "endCursor": %[2]q}}}}`, cursors[0].Cursor, cursors[1].Cursor))
		second := me.Ask(list, apitest.Vars{"after": cursors[1].Cursor}).Whole()
		check.Equal[any](t, "a third page", second.At("viewer.dismissedUsers.pageInfo.hasNextPage"), false)
		check.Equal(t, "edges", idsAt(second, "viewer.dismissedUsers.edges"), "")
		check.Equal(t, "the second page", fmt.Sprint(second.At("viewer.dismissedUsers.nodes")), "[map[handle:u9]]")
		api.As(2).Ask(list, nil).Is(`{"viewer": {"dismissedUsers": {"totalCount": 0, "complete": true, "nodes": [], "edges": [], "pageInfo": {"hasNextPage": false, "endCursor": null}}}}`)
		api.As(2).Ask(list, apitest.Vars{"after": cursors[1].Cursor}).FailsAt("BAD_USER_INPUT", "viewer.dismissedUsers")
	})
}

// Many pages of the list take little more than one: it is sorted, and searched for hidden users, once.
func TestPagesOfDismissedUsersShareTheList(t *testing.T) {
	store := storeOf(t, 2)
	dismissed := make([]storage.Edge, declared.Dismissals.Max)
	for i := range dismissed {
		dismissed[i] = storage.Edge{From: 1, To: storage.UserID(100_000 - i), Item: declared.Dismissals.Number, Type: storage.Related, UpdateTime: apitest.Epoch}
	}
	store.Apply(t.Context(), storage.Relations, dismissed, storage.IfNewer)
	api := apitest.New(t, store, apitest.Options{}).As(1)
	bytes := func(pages int) uint64 {
		var query strings.Builder
		for i := range pages {
			fmt.Fprintf(&query, "a%[1]d: dismissedUsers(first: %[1]d) { totalCount } ", i)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		check.Equal(t, "who are dismissed", fmt.Sprint(api.Ask("{ viewer { "+query.String()+" } }", nil).Whole().At("viewer.a0.totalCount")), "5000")
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	one, many := bytes(1), bytes(100)
	check.That(t, many <= 4*one, "a page takes %d bytes, and 100 take %d", one, many)
}

// Who may not see a post any more still deletes the comments that it has written there, and is not shown the post by that. That there was one
// on a post of a hidden user is not told: there would be none if the user had been deleted.
func TestDeletingACommentShowsNoHiddenPost(t *testing.T) {
	for name, hide := range map[string]func(v *village){
		"the author blocks the writer":          func(v *village) { v.does(v.a, "block", v.b) },
		"the writer blocks the author":          func(v *village) { v.does(v.b, "block", v.a) },
		"the author deactivates its account":    func(v *village) { v.api.As(v.a).Ask(`mutation { deactivateAccount { changed } }`, nil).Whole() },
		"nothing hides the post, which is seen": nil,
	} {
		t.Run(name, func(t *testing.T) {
			onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
				post := publish(t, v.api, v.a, "a secret", "1")
				said := comment(t, v.api, v.b, post, "nice")
				want := `{"deleteComment": {"changed": true, "post": {"text": "a secret", "commentCount": 0}}}`
				if hide != nil {
					hide(v)
					want = fmt.Sprintf(`{"deleteComment": {"changed": %t, "post": null}}`, !strings.Contains(name, "deactivates"))
				}
				v.api.As(v.b).Ask(`mutation($c: ID!) { deleteComment(commentId: $c) { changed post { text commentCount } } }`, apitest.Vars{"c": said}).Is(want)
			})
		})
	}
}
