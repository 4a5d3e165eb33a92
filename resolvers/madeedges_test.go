package resolvers_test

import (
	"reflect"
	"strings"
	"testing"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/storage"
)

// found is what is not null under a key, however deep in an answer; nil if there is nothing.
func found(v any, key string) (at any) {
	switch v := v.(type) {
	case map[string]any:
		at = v[key]
		for _, below := range v {
			if at == nil {
				at = found(below, key)
			}
		}
	case []any:
		for _, below := range v {
			if at == nil {
				at = found(below, key)
			}
		}
	}
	return at
}

// What a mutation makes is answered as the edge that is then the first of its list. Made again, nothing changes, and there is no edge.
func TestWhatAMutationMakesIsTheFirstEdgeOfItsList(t *testing.T) {
	onShards(t, apitest.Options{Declared: declare(t, someKinds)}, func(t *testing.T, v *village) {
		lock(v.api, v.a)
		post := publish(t, v.api, v.a, "x", "1")
		for _, u := range []storage.UserID{v.b, v.c} {
			v.does(u, "follow", v.a)
		}
		v.does(v.d, "requestFriend", v.a)
		var locked []storage.UserID
		for id := v.d + 1; len(locked) < 2; id++ {
			if id != v.a && id != v.b && id != v.c {
				lock(v.api, id)
				locked = append(locked, id)
			}
		}
		list := v.createList(v.a, false, v.d)
		next := func(n storage.UserID) string { return (locked[1] + n).String() } // users who are nobody else here
		lock(v.api, locked[1]+3)
		names := strings.NewReplacer("$1", next(1), "$2", next(2), "$3", next(3), "$A", v.a.String(), "$B", v.b.String(), "$C", v.c.String(), "$D", v.d.String(), "$F", locked[0].String(), "$G", locked[1].String(), "$L", list, "$P", post)
		ask := func(text string) any { return any(v.api.As(v.a).Ask(names.Replace(text), nil).Whole().Data) }

		const followed, user = "cursor followedAt node { id handle viewerRelationship { status } }", "cursor node { id handle }"
		const requested = "cursor node { id kind state message updatedAt from { handle } to { handle } }"
		const related = "cursor endId since until attributes { rank } node { id handle }"
		const listed, posted, commented = "cursor node { id name memberCount owner { handle } }", "cursor node { id text author { handle postCount } }", "cursor node { id text author { handle } }"
		for _, one := range []struct{ mutation, payload, field, selected, list string }{
			{`follow(userId: "$C")`, "#", "followingEdge", followed, "viewer { user { followings# } }"},
			{`followMany(userIds: ["x", "$C", "$B", "$A"])`, "outcomes { # }", "followingEdge", followed, "viewer { user { followings# } }"},
			{`acceptRequest(kind: FOLLOW, userId: "$B")`, "#", "followerEdge", followed, "viewer { user { followers# } }"},
			{`follow(userId: "$F")`, "#", "requestEdge", requested, "viewer { requests(kind: FOLLOW, direction: SENT, # }"},
			{`followMany(userIds: ["$C", "$G", "$A"])`, "outcomes { # }", "requestEdge", requested, "viewer { requests(kind: FOLLOW, direction: SENT, # }"},
			{`requestFriend(userId: "$C", message: "hi")`, "#", "requestEdge", requested, "viewer { requests(kind: FRIEND, direction: SENT, # }"},
			{`acceptRequest(kind: FRIEND, userId: "$D")`, "#", "followerEdge", followed, "viewer { user { followers# } }"},
			{`addToList(listId: "$L", userIds: ["$D", "x", "$B"])`, "outcomes { # }", "memberEdge", user, `node(id: "$L") { ... on List { members# } }`},
			{`createList(name: "other")`, "#", "listEdge", listed, "viewer { user { lists# } }"},
			{`publishPost(text: "y", clientKey: "2")`, "#", "postEdge", posted, "viewer { user { posts# } }"},
			{`addComment(postId: "$P", text: "z", clientKey: "3")`, "#", "commentEdge", commented, `node(id: "$P") { ... on Post { comments# } }`},
			{`favorite(postId: "$P")`, "#", "favoriteEdge", "cursor favoritedAt node { id viewerHasFavorited }", "viewer { user { favorites# } }"},
			{`block(userId: "$B")`, "#", "blockEdge", "cursor blockedAt node { id handle }", "viewer { blockedUsers# }"},
			{`mute(userId: "$C")`, "#", "muteEdge", user, "viewer { mutedUsers# }"},
			{`mute(userId: "$D", scope: POSTS)`, "#", "muteEdge", user, "viewer { mutedUsers(scope: POSTS, # }"},
			{`dismissSuggestion(userId: "$D")`, "#", "dismissedEdge", user, "viewer { dismissedUsers# }"},
			{`relate(kind: SUBSCRIBES, ids: ["x", "7"])`, "outcomes { # }", "edge", related, "viewer { user { list: edges(kind: SUBSCRIBES, # } }"},
			{`relate(kind: WORKS_WITH, ids: ["x", "$1", "$A"])`, "outcomes { # }", "edge", related, "viewer { user { list: edges(kind: WORKS_WITH, # } }"},
		} {
			do := func() any {
				return found(ask("mutation { "+one.mutation+" { "+strings.ReplaceAll(one.payload, "#", one.field+" { "+one.selected+" }")+" } }"), one.field)
			}
			edge := do()
			first := found(ask("{ "+strings.ReplaceAll(strings.Replace(one.list, ", #", ", first: 1) { edges { "+one.selected+" } }", 1), "#", "(first: 1) { edges { "+one.selected+" } }")+" }"), "edges").([]any)
			check.That(t, edge != nil && len(first) > 0 && reflect.DeepEqual(edge, first[0]), "%s answers the edge %v, the list begins with %v", one.mutation, edge, first)
			check.Equal(t, one.mutation+" again", do(), nil)
		}
	})
}

// Friends come to follow each other: the edges that there were before are not answered. Nothing but what makes an edge answers one.
func TestOnlyEdgesThatAreMadeAreAnswered(t *testing.T) {
	onShards(t, apitest.Options{Declared: declare(t, someKinds)}, func(t *testing.T, v *village) {
		const edges = "changed followingEdge { node { id } } followerEdge { node { id } } "
		is := func(by storage.UserID, mutation, following, follower string) {
			t.Helper()
			a := v.api.As(by).Ask("mutation { m: "+mutation+" }", nil).Whole()
			for field, want := range map[string]string{"followingEdge": following, "followerEdge": follower} {
				id, _ := found(a.At("m."+field), "id").(string)
				check.Equal(t, mutation+": "+field, id, want)
			}
		}
		a, b, c := v.a.String(), v.b.String(), v.c.String()
		v.does(v.a, "follow", v.b)
		v.does(v.a, "requestFriend", v.b)
		is(v.b, `acceptRequest(kind: FRIEND, userId: "`+a+`") { `+edges+`}`, a, "")
		is(v.b, `removeFriend(userId: "`+a+`") { `+edges+`}`, "", "")
		v.does(v.a, "requestFriend", v.c)
		is(v.c, `requestFriend(userId: "`+a+`") { `+edges+`}`, a, a)
		is(v.c, `mute(userId: "`+a+`") { `+edges+`}`, "", "")
		const until = `until: "2030-01-02T03:04:05Z") { `
		v.api.As(v.c).Ask(`mutation { mute(userId: "`+a+`", `+until+`changed muteEdge { cursor } } dismissSuggestion(userId: "`+a+`") { changed muteEdge { cursor } undismissedUserId } }`, nil).
			Is(`{"mute": {"changed": true, "muteEdge": null}, "dismissSuggestion": {"changed": true, "muteEdge": null, "undismissedUserId": null}}`)
		const outcome = `outcomes { changed edge { endId } error { reason } } }`
		v.api.As(v.c).Ask(`mutation { a: relate(kind: SUBSCRIBES, ids: [7]) { `+outcome+` b: relate(kind: SUBSCRIBES, ids: [7, 8], `+until+outcome+` c: unrelate(kind: SUBSCRIBES, ids: [7]) { `+outcome+` }`, nil).
			Is(`{"a": {"outcomes": [{"changed": true, "edge": {"endId": "7"}, "error": null}]},
				"b": {"outcomes": [{"changed": true, "edge": null, "error": null}, {"changed": true, "edge": {"endId": "8"}, "error": null}]}, "c": {"outcomes": [{"changed": true, "edge": null, "error": null}]}}`)
		is(v.a, `setFollowMark(userId: "`+c+`", special: true) { `+edges+`}`, "", "")
		is(v.a, `unfollow(userId: "`+c+`") { `+edges+`}`, "", "")
		is(v.c, `block(userId: "`+b+`") { `+edges+`}`, "", "")
		is(v.c, `unblock(userId: "`+b+`") { `+edges+` blockEdge { cursor } }`, "", "")
	})
}

// What is deleted is named by its id, once.
func TestWhatIsDeletedIsNamed(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		post, dismissed := publish(t, v.api, v.a, "x", "1"), v.c.String()
		v.does(v.a, "dismissSuggestion", v.c)
		for _, gone := range [][3]string{
			{`deleteComment(commentId: $id)`, "deletedCommentId", comment(t, v.api, v.b, post, "y")},
			{`deletePost(postId: $id)`, "deletedPostId", post},
			{`deleteList(listId: $id)`, "deletedListId", v.createList(v.a, false)},
			{`undismissSuggestion(userId: $id)`, "undismissedUserId", dismissed},
		} {
			do := func() any {
				return found(any(v.api.As(v.a).Ask(`mutation($id: ID!) { `+gone[0]+` { changed `+gone[1]+` } }`, apitest.Vars{"id": gone[2]}).Whole().Data), gone[1])
			}
			first, again := do(), do()
			check.That(t, first == gone[2] && again == nil, "%s: %v is gone, then %v, want %s", gone[0], first, again, gone[2])
		}
	})
}
