package resolvers_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

const deactivated = "your account is deactivated: reactivate it first"

func TestDeactivatedAccounts(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		for _, other := range []storage.UserID{v.b, v.c} {
			v.does(v.a, "follow", other)
			v.does(other, "follow", v.a)
			v.does(v.d, "follow", other)
		}
		v.does(v.d, "requestFriend", v.b)
		const others = `query($b: ID!) { user(by: {id: $b}) { handle } node(id: $b) { id } byHandle: user(by: {handle: "uX"}) { id }
			viewer { user { followingCount followerCount friendCount followings { totalCount nodes { id } } followers { totalCount } friends { totalCount } } } }`
		whole := fmt.Sprintf(`{"user": {"handle": "u%[1]s"}, "node": {"id": "%[1]s"}, "byHandle": null, "viewer": {"user": {"followingCount": 2, "followerCount": 2, "friendCount": 2,
			"followings": {"totalCount": 2, "nodes": [{"id": "%[2]s"}, {"id": "%[1]s"}]}, "followers": {"totalCount": 2}, "friends": {"totalCount": 2}}}}`, v.b, v.c)
		look := func() apitest.Answer { return v.api.As(v.a).Ask(others, apitest.Vars{"b": v.b.String()}) }
		look().Is(whole)

		b := v.api.As(v.b)
		b.Ask(`mutation { deactivateAccount { changed viewer { user { handle followingCount } standing { state } } } }`, nil).
			Is(fmt.Sprintf(`{"deactivateAccount": {"changed": true, "viewer": {"user": {"handle": "u%s", "followingCount": 1}, "standing": {"state": "DEACTIVATED"}}}}`, v.b))
		b.Ask(`mutation { deactivateAccount { changed } }`, nil).Is(`{"deactivateAccount": {"changed": false}}`)

		// The user is hidden from others. The counts stay.
		look().Is(fmt.Sprintf(`{"user": null, "node": null, "byHandle": null, "viewer": {"user": {"followingCount": 2, "followerCount": 2, "friendCount": 2,
			"followings": {"totalCount": 1, "nodes": [{"id": "%s"}]}, "followers": {"totalCount": 1}, "friends": {"totalCount": 1}}}}`, v.c))
		for _, field := range []string{"follow", "block", "requestFriend", "acceptRequest FRIEND", "declineRequest FRIEND"} {
			v.do(v.a, field, v.b).Refused("NOT_FOUND")
		}
		v.api.As(v.c).Ask(`mutation($ids: [ID!]!) { followMany(userIds: $ids) { outcomes { user { id } error { code } } } }`, apitest.Vars{"ids": []string{v.b.String()}}).
			Is(`{"followMany": {"outcomes": [{"user": null, "error": {"code": "NOT_FOUND"}}]}}`)
		v.api.As(v.d).Ask(`{ viewer { requests(kind: FRIEND, direction: SENT) { totalCount nodes { id } } } }`, nil).
			Is(`{"viewer": {"requests": {"totalCount": 0, "nodes": []}}}`)
		check.Equal(t, "towards somebody hidden", v.standing(v.a, v.b), "NONE")

		// The user sees its own account, and can only reactivate it.
		b.Ask(`{ viewer { user { handle followings { totalCount } } standing { state } requests(kind: FRIEND, direction: RECEIVED) { totalCount } } }`, nil).
			Is(fmt.Sprintf(`{"viewer": {"user": {"handle": "u%s", "followings": {"totalCount": 1}}, "standing": {"state": "DEACTIVATED"}, "requests": {"totalCount": 1}}}`, v.b))
		for _, field := range []string{"follow", "unfollow", "block", "unblock", "removeFollower", "requestFriend", "acceptRequest FRIEND", "declineRequest FRIEND", "withdrawRequest FRIEND", "removeFriend", "setFollowMark"} {
			check.Equal(t, field, v.do(v.b, field, v.a).Refused("FORBIDDEN"), deactivated)
		}
		for _, mutation := range []string{
			`updateProfile(name: "X") { viewer { user { id } } }`, `changePassword(current: "a", new: "b") { changed }`, `followMany(userIds: [1]) { outcomes { userId } }`,
		} {
			check.Equal(t, mutation, b.Ask(`mutation { `+mutation+` }`, nil).Refused("FORBIDDEN"), deactivated)
		}
		b.Ask(`mutation { reactivateAccount { changed viewer { standing { state } } } }`, nil).Is(`{"reactivateAccount": {"changed": true, "viewer": {"standing": {"state": "ACTIVE"}}}}`)
		b.Ask(`mutation { reactivateAccount { changed } }`, nil).Is(`{"reactivateAccount": {"changed": false}}`)
		look().Is(whole)
		v.does(v.b, "acceptRequest FRIEND", v.d)
		v.api.Ask(`mutation { deactivateAccount { changed } }`, nil).Refused("UNAUTHENTICATED")
		v.api.As(99).Ask(`mutation { deactivateAccount { changed } }`, nil).Refused("UNAUTHENTICATED")
	})
}

// Whatever the viewer had with a hidden user ends, and no answer tells whether there was anything, as of a user who has been deleted.
func TestWhatThereWasWithAHiddenUserIsNotTold(t *testing.T) {
	onShards(t, apitest.Options{Declared: declare(t, someKinds)}, func(t *testing.T, v *village) {
		me, other := v.api.As(v.a), v.b.String()
		post := publish(t, v.api, v.b, "text", "k")
		written := comment(t, v.api, v.a, post, "written")
		list := v.createList(v.a, false, v.b)
		v.does(v.a, "dismissSuggestion", v.b)
		v.does(v.a, "mute", v.b)
		ask := func(text string) apitest.Answer {
			return me.Ask(strings.NewReplacer("$list", list, "$post", post, "$comment", written, "$id", other).Replace(text), nil)
		}
		const edge = `{ viewer { edge(kind: WORKS_WITH, id: "$id") { endId } } }`
		ask(`mutation { relate(kind: WORKS_WITH, ids: ["$id"]) { outcomes { changed } } }`).Is(`{"relate": {"outcomes": [{"changed": true}]}}`)
		ask(`mutation { favorite(postId: "$post") { changed } }`).Is(`{"favorite": {"changed": true}}`)
		ask(edge).Is(fmt.Sprintf(`{"viewer": {"edge": {"endId": %q}}}`, other))
		v.api.As(v.b).Ask(`mutation { deactivateAccount { changed } }`, nil).Whole()
		ask(edge).Is(`{"viewer": {"edge": null}}`)
		for _, m := range []string{"unmute", "undismissSuggestion"} {
			v.doesNothing(v.a, m, v.b)
		}
		ask(`mutation { unrelate(kind: WORKS_WITH, ids: ["$id"]) { outcomes { changed } } }`).Is(`{"unrelate": {"outcomes": [{"changed": false}]}}`)
		ask(`mutation { removeFromList(listId: "$list", userIds: ["$id"]) { changed outcomes { changed } } }`).Is(`{"removeFromList": {"changed": false, "outcomes": [{"changed": false}]}}`)
		ask(`mutation { deleteComment(commentId: "$comment") { changed deletedCommentId post { id } } }`).Is(`{"deleteComment": {"changed": false, "deletedCommentId": null, "post": null}}`)
		ask(`mutation { unfavorite(postId: "$post") { changed viewer { user { favoritesGivenCount } } } }`).Is(`{"unfavorite": {"changed": false, "viewer": {"user": {"favoritesGivenCount": 0}}}}`)
		v.api.As(v.b).Ask(`mutation { reactivateAccount { changed } }`, nil).Whole()
		ask(edge).Is(`{"viewer": {"edge": null}}`)
		ask(`{ user(by: {id: "$id"}) { viewerRelationship { muted } } node(id: "$list") { ... on List { memberCount } } post: node(id: "$post") { ... on Post { viewerHasFavorited commentCount } } viewer { dismissedUsers { totalCount } } }`).
			Is(`{"user": {"viewerRelationship": {"muted": null}}, "node": {"memberCount": 0}, "post": {"viewerHasFavorited": false, "commentCount": 0}, "viewer": {"dismissedUsers": {"totalCount": 0}}}`)
	})
}

// Whatever the viewer had with two users, and does to them, the answers are the same if one has deactivated the account and the other deleted it:
// nobody learns which of these a user has done. Tokens of consistency count as far as there is one.
func TestAHiddenUserIsAsADeletedOne(t *testing.T) {
	const hidden, deleted storage.UserID = 38, 39
	onShards(t, apitest.Options{Declared: declare(t, someKinds)}, func(t *testing.T, v *village) {
		named := map[storage.UserID]*strings.Replacer{}
		unnamed := map[storage.UserID]*strings.Replacer{}
		ask := func(as, about storage.UserID, text string) apitest.Answer {
			return v.api.As(as).Ask(named[about].Replace(text), nil)
		}
		for _, x := range []storage.UserID{hidden, deleted} {
			for _, with := range [][2]storage.UserID{{v.a, x}, {x, v.a}} {
				v.does(with[0], "follow", with[1])
				v.does(with[0], "requestFriend", with[1])
			}
			theirs, mine := publish(t, v.api, x, "@u"+v.a.String(), "k"), publish(t, v.api, v.a, "text", x.String())
			names := []string{"$theirs", theirs, "$mine", mine, "$said", comment(t, v.api, v.a, theirs, "x"), "$heard", comment(t, v.api, x, mine, "x"), "$list", v.createList(v.a, false, x), "$id", x.String()}
			named[x] = strings.NewReplacer(names...)
			for i := 0; i < len(names); i += 2 {
				names[i], names[i+1] = names[i+1], names[i]
			}
			unnamed[x] = strings.NewReplacer(names...)
			ask(v.a, x, `mutation { mute(userId: "$id") { changed } dismissSuggestion(userId: "$id") { changed } favorite(postId: "$theirs") { changed }
				setFollowMark(userId: "$id", special: true) { changed } relate(kind: WORKS_WITH, ids: ["$id"]) { outcomes { changed } } }`).Whole()
			ask(x, x, `mutation { favorite(postId: "$mine") { changed } }`).Whole()
		}
		ask(hidden, hidden, `mutation { deactivateAccount { changed } }`).Whole()
		ask(deleted, deleted, `mutation { deleteAccount { complete } }`).Is(`{"deleteAccount": {"complete": true}}`)
		same := func(query string) {
			t.Helper()
			var got [2]string
			for i, x := range []storage.UserID{hidden, deleted} {
				got[i] = unnamed[x].Replace(givenTokens.ReplaceAllString(ask(v.a, x, query).Text, "a token"))
			}
			check.Equal(t, query, got[0], got[1])
		}
		for _, mutation := range []string{
			"unmute", "mute", "undismissSuggestion", "dismissSuggestion", "setFollowMark", "unfollow", "removeFollower", "removeFriend", "acceptRequest FRIEND", "declineRequest FRIEND",
			"withdrawRequest FRIEND", "acceptRequest FOLLOW", "declineRequest FOLLOW", "withdrawRequest FOLLOW", "requestFriend", "unblock", "block", "follow",
		} {
			same(`mutation { ` + apitest.Call(mutation, "$id") + ` { changed user { id } relationship { status } request { id } followingEdge { cursor } blockEdge { cursor } muteEdge { cursor } undismissedUserId } }`)
		}
		for _, mutation := range []string{
			`unfavorite(postId: "$theirs") { changed post { id } }`, `favorite(postId: "$theirs") { changed post { id } }`, `addComment(postId: "$theirs", text: "x", clientKey: "y") { changed }`,
			`deleteComment(commentId: "$said") { changed deletedCommentId post { id } }`, `deleteComment(commentId: "$heard") { changed deletedCommentId }`,
			`relate(kind: WORKS_WITH, ids: ["$id"]) { outcomes { changed error { reason } } }`, `unrelate(kind: WORKS_WITH, ids: ["$id"]) { outcomes { changed edge { cursor } } }`,
			`addToList(listId: "$list", userIds: ["$id"]) { changed outcomes { changed error { reason } } }`, `removeFromList(listId: "$list", userIds: ["$id"]) { changed outcomes { changed } }`,
			`followList(listId: "$list") { outcomes { changed } pageInfo { hasNextPage endCursor } }`, `followMany(userIds: ["$id"]) { outcomes { changed user { id } error { reason } } }`,
			`reportUser(userId: "$id", reason: "x") { changed }`, `reportPost(postId: "$theirs", reason: "x") { changed }`, `publishPost(text: "@u$id", clientKey: "$id") { changed }`,
			`importAccounts(kind: LISTS, file: "New$id,u$id") { accountsImport { changedCount refused { error { reason } } } viewer { user { lists { nodes { name } } } } }`,
			`importAccounts(kind: BLOCKS, file: "u$id") { accountsImport { changedCount refused { error { reason } } } }`,
		} {
			same(`mutation { ` + mutation + ` }`)
		}
		same(`{ user(by: {id: "$id"}) { id } byHandle: user(by: {handle: "u$id"}) { id } nodes(ids: ["$id", "$theirs", "$said", "$heard", "rel_$id_1"]) { id } relationship(from: "$id", to: 5) { status }
			edgesTo(kind: WORKS_WITH, id: "$id") { totalCount } people(where: {followersOf: "$id"}) { totalCount } edgesAmong(ids: ["$id", 5]) { followings } searchUsers(text: "u$id") { nodes { id } }
			viewer { edge(kind: WORKS_WITH, id: "$id") { endId } lists(with: "$id") { id } } node(id: "$list") { ... on List { memberCount has(userId: "$id") } }
			mine: node(id: "$mine") { ... on Post { comments { nodes { id } } favoritedBy { nodes { id } pageInfo { endCursor } } } } }`)
	})
}

var givenTokens = regexp.MustCompile(`"consistencyToken":"[^"]*"`)

func TestDeletedAccounts(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		for _, other := range []storage.UserID{v.b, v.c} {
			v.does(v.a, "follow", other)
			v.does(other, "follow", v.a)
			v.does(v.d, "follow", other)
		}
		v.does(v.a, "requestFriend", v.d)
		v.does(5, "requestFriend", v.a)
		v.does(6, "block", v.a)
		v.does(v.a, "block", 7)
		v.api.As(v.c).Ask(`mutation($id: ID!) { setFollowMark(userId: $id, special: true) { changed } }`, apitest.Vars{"id": v.a.String()}).Whole()

		a := v.api.As(v.a)
		a.Ask(`mutation { deleteAccount { complete } }`, nil).Is(`{"deleteAccount": {"complete": true}}`)
		v.gone(t, v.a)
		for _, id := range []storage.UserID{v.b, v.c, v.d, 5, 6, 7} {
			v.counts(id)
		}
		a.Ask(`mutation { deleteAccount { complete } }`, nil).Refused("UNAUTHENTICATED")
		a.Ask(`mutation { reactivateAccount { changed } }`, nil).Refused("UNAUTHENTICATED")
		v.do(v.a, "follow", v.b).Refused("UNAUTHENTICATED")
		v.do(v.b, "follow", v.a).Refused("NOT_FOUND")
		v.api.As(v.b).Ask(`{ viewer { user { followingCount followings { totalCount } followersYouKnow { totalCount } } } }`, nil).
			Is(`{"viewer": {"user": {"followingCount": 0, "followings": {"totalCount": 0}, "followersYouKnow": {"totalCount": 0}}}}`)
		v.api.Admin().Ask(`mutation($h: String!) { createUser(id: 4711, handle: $h, name: "New") { user { handle } } }`, apitest.Vars{"h": "another"})
		v.api.Admin().Ask(fmt.Sprintf(`mutation { createUser(id: %q, handle: "again", name: "Again") { user { handle } } }`, v.a), nil).Refused("FORBIDDEN")
		v.api.Admin().Ask(`mutation { createUser(id: "4711", handle: "again", name: "Again") { changed } createUser2: createUser(id: "4712", handle: "again", name: "Again") { user { handle } } }`, nil).
			Is(`{"createUser": {"changed": false}, "createUser2": {"user": {"handle": "again"}}}`)
	})
}

// gone checks that nothing of a user is left except tombstones, on either side.
func (v *village) gone(t *testing.T, user storage.UserID) {
	t.Helper()
	for _, side := range storage.Sides {
		rows := storage.RowLookups.Read(t.Context(), v.store, storage.RowsQuery{Side: side, Owner: user, Limit: 10})[0]
		check.That(t, rows.Err == nil && len(rows.Value) == 0, "%s has %+v", side, rows)
		for other := storage.UserID(1); other <= 40; other++ {
			pair := side.Pair(other, user)
			e := must.Value(t, storage.EdgeLookups[side].Read(t.Context(), v.store, pair)[0])
			check.Equal(t, side, e.Type, storage.None)
		}
	}
	gone, counts := storage.UserLookups.Read(t.Context(), v.store, user)[0], storage.CountLookups.Read(t.Context(), v.store, user)[0]
	check.That(t, !gone.Found && gone.Err == nil, "there is still %+v: %v", gone.Value, gone.Err)
	check.That(t, !counts.Found && counts.Err == nil, "there are still counts %+v: %v", counts.Value, counts.Err)
}
