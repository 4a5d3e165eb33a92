package resolvers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

const (
	suspendUser   = `mutation($id: ID!, $why: String!, $until: DateTime) { suspendUser(userId: $id, reason: $why, until: $until) { changed entry { by action userId postId commentId reason until } } }`
	reinstateUser = `mutation($id: ID!) { reinstateUser(userId: $id, reason: "a mistake") { changed entry { by action userId reason until } } }`
	removePost    = `mutation($id: ID!) { removePost(postId: $id, reason: "spam") { changed entry { action userId postId commentId until } } }`
	removeComment = `mutation($id: ID!) { removeComment(commentId: $id, reason: "insult") { changed entry { action userId postId commentId until } } }`
	moderationLog = `query($user: ID, $first: Int, $after: String) { moderationLog(userId: $user, first: $first, after: $after) {
		edges { cursor node { action } } nodes { action userId reason } pageInfo { hasNextPage endCursor } } }`
)

// Nothing that the user does ends a suspension, with whatever token.
func TestASuspendedUserCannotUndoIt(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		b, admin := v.api.As(v.b), v.api.Admin()
		v.does(v.a, "follow", v.b)
		post := publish(t, v.api, v.b, "text", "k")
		admin.Ask(suspendUser, apitest.Vars{"id": v.b.String(), "why": " spam \n"}).
			Is(fmt.Sprintf(`{"suspendUser": {"changed": true, "entry": {"by": "1", "action": "SUSPENDED", "userId": "%s", "postId": null, "commentId": null, "reason": "spam", "until": null}}}`, v.b))
		admin.Ask(suspendUser, apitest.Vars{"id": v.b.String(), "why": "other"}).Is(`{"suspendUser": {"changed": false, "entry": null}}`)
		refused := func(a apitest.Answer) {
			t.Helper()
			check.Equal(t, "why", a.Refused("FORBIDDEN"), "your account is suspended: spam")
			check.Has(t, "the error", a.Text, `"reason":"SUSPENDED"`, `"until":null`)
		}
		for _, field := range []string{"follow", "unfollow", "block", "unblock", "removeFollower", "requestFriend", "setFollowMark"} {
			refused(v.do(v.b, field, v.a))
		}
		for _, mutation := range []string{
			`reactivateAccount { changed }`, `deactivateAccount { changed }`, `updateProfile(name: "X") { changed }`, `changePassword(current: "a", new: "b") { changed }`,
			`publishPost(text: "x", clientKey: "x") { changed }`, fmt.Sprintf(`deletePost(postId: %q) { changed }`, post), `markFeedSeen(upTo: "x") { changed }`, `markActivitySeen(upTo: "x") { changed }`,
		} {
			refused(b.Ask(`mutation { `+mutation+` }`, nil))
		}
		b.Ask(`{ viewer { standing { state reason until } user { followerCount } } }`, nil).
			Is(`{"viewer": {"standing": {"state": "SUSPENDED", "reason": "spam", "until": null}, "user": {"followerCount": 1}}}`)
		v.api.As(v.a).Ask(`query($b: ID!) { user(by: {id: $b}) { id } viewer { user { followings { totalCount } } } }`, apitest.Vars{"b": v.b.String()}).
			Is(`{"user": null, "viewer": {"user": {"followings": {"totalCount": 0}}}}`)

		admin.Ask(reinstateUser, apitest.Vars{"id": v.b.String()}).
			Is(fmt.Sprintf(`{"reinstateUser": {"changed": true, "entry": {"by": "1", "action": "REINSTATED", "userId": "%s", "reason": "a mistake", "until": null}}}`, v.b))
		admin.Ask(reinstateUser, apitest.Vars{"id": v.b.String()}).Is(`{"reinstateUser": {"changed": false, "entry": null}}`)
		v.does(v.b, "follow", v.a)
		v.api.As(v.a).Ask(`{ viewer { user { followings { totalCount } } } }`, nil).Is(`{"viewer": {"user": {"followings": {"totalCount": 1}}}}`)

		// The user may go at any time, and does not come back.
		admin.Ask(suspendUser, apitest.Vars{"id": v.b.String(), "why": "spam"}).Whole()
		b.Ask(`mutation { deleteAccount { complete } }`, nil).Is(`{"deleteAccount": {"complete": true}}`)
		for _, query := range []string{suspendUser, reinstateUser} {
			admin.Ask(query, apitest.Vars{"id": v.b.String(), "why": "spam"}).Refused("NOT_FOUND")
		}
		check.Has(t, "the answer", admin.Ask(moderationLog, apitest.Vars{"user": v.b.String(), "first": 1}).Text, "SUSPENDED")
	})
}

// The longest reason is told as it is: who cannot sign in reads it nowhere else.
func TestALongReasonIsTold(t *testing.T) {
	api, _ := withUsers(t, 2, apitest.Options{})
	why := strings.Repeat("\U0001f42a", storage.MaxReasonLength)
	api.Admin().Ask(suspendUser, apitest.Vars{"id": "2", "why": why}).Whole()
	check.Equal(t, "why", api.As(2).Ask(`mutation { follow(userId: "1") { changed } }`, nil).Refused("FORBIDDEN"), "your account is suspended: "+why)
}

// A user who was deactivated is so again when the suspension ends by its time.
func TestASuspensionEnds(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		until := time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000000Z")
		v.api.As(v.c).Ask(`mutation { deactivateAccount { changed } }`, nil).Whole()
		for _, user := range []storage.UserID{v.b, v.c} {
			check.Has(t, "the answer", v.api.Admin().Ask(suspendUser, apitest.Vars{"id": user.String(), "why": "spam", "until": until}).Text, until)
			check.Has(t, "the answer", v.do(user, "follow", v.a).Text, `"until":"`+until+`"`)
			v.api.As(user).Ask(`{ viewer { standing { state reason until } } }`, nil).
				Is(`{"viewer": {"standing": {"state": "SUSPENDED", "reason": "spam", "until": "` + until + `"}}}`)
		}
		v.pass(time.Hour + time.Second)
		for user, state := range map[storage.UserID]string{v.a: "ACTIVE", v.b: "ACTIVE", v.c: "DEACTIVATED"} {
			v.api.As(user).Ask(`{ viewer { standing { state reason until } } }`, nil).Is(`{"viewer": {"standing": {"state": "` + state + `", "reason": null, "until": null}}}`)
		}
		v.does(v.b, "follow", v.a) // this gateway learns it now; the others, and without a write, within a second
		v.api.As(v.a).Ask(`query($b: ID!) { user(by: {id: $b}) { followingCount } }`, apitest.Vars{"b": v.b.String()}).Is(`{"user": {"followingCount": 1}}`)
		check.Equal(t, "why", v.do(v.c, "follow", v.a).Refused("FORBIDDEN"), deactivated)
		v.api.As(v.c).Ask(`mutation { reactivateAccount { changed } }`, nil).Is(`{"reactivateAccount": {"changed": true}}`)
	})
}

// What an operator removes is deleted as by its author, and the log has both users.
func TestOperatorsRemovePostsAndComments(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		admin := v.api.Admin()
		post, other := publish(t, v.api, v.a, "text", "k"), publish(t, v.api, v.a, "other", "l")
		remark := comment(t, v.api, v.b, post, "insult")
		admin.Ask(removeComment, apitest.Vars{"id": remark}).
			Is(fmt.Sprintf(`{"removeComment": {"changed": true, "entry": {"action": "COMMENT_REMOVED", "userId": "%s", "postId": null, "commentId": %q, "until": null}}}`, v.b, remark))
		admin.Ask(removeComment, apitest.Vars{"id": remark}).Is(`{"removeComment": {"changed": false, "entry": null}}`)
		v.api.As(v.c).Ask(`query($p: ID!) { node(id: $p) { ... on Post { commentCount comments { nodes { id } } } } }`, apitest.Vars{"p": post}).
			Is(`{"node": {"commentCount": 0, "comments": {"nodes": []}}}`)
		admin.Ask(removePost, apitest.Vars{"id": post}).
			Is(fmt.Sprintf(`{"removePost": {"changed": true, "entry": {"action": "POST_REMOVED", "userId": "%s", "postId": %q, "commentId": null, "until": null}}}`, v.a, post))
		admin.Ask(removePost, apitest.Vars{"id": post}).Is(`{"removePost": {"changed": false, "entry": null}}`)
		v.api.As(v.a).Ask(`query($p: ID!) { node(id: $p) { id } viewer { user { postCount posts { nodes { id } } } } }`, apitest.Vars{"p": post}).
			Is(fmt.Sprintf(`{"node": null, "viewer": {"user": {"postCount": 1, "posts": {"nodes": [{"id": %q}]}}}}`, other))
		for user, want := range map[storage.UserID]string{v.a: "POST_REMOVED", v.b: "COMMENT_REMOVED"} {
			check.Has(t, "the log", admin.Ask(moderationLog, apitest.Vars{"user": user.String()}).Text, want)
		}
	})
}

func TestTheModerationLogIsPaged(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		admin := v.api.Admin()
		var want []string
		for i, user := range []storage.UserID{v.a, v.b, v.c, v.a, v.b} {
			why := fmt.Sprint("reason ", i)
			admin.Ask(suspendUser, apitest.Vars{"id": user.String(), "why": why, "until": time.Now().Add(time.Duration(i+1) * time.Hour)}).Whole()
			want = append([]string{user.String() + " " + why}, want...)
		}
		for _, first := range []int{1, 2, 5, 100} {
			var got []string
			for _, a := range pagesAt(admin, moderationLog, apitest.Vars{"first": first}, "moderationLog") {
				for _, n := range a.At("moderationLog.nodes").([]any) {
					entry := n.(map[string]any)
					got = append(got, fmt.Sprint(entry["userId"], " ", entry["reason"]))
				}
			}
			check.Equal(t, fmt.Sprintf("first %d", first), fmt.Sprint(got), fmt.Sprint(want))
		}
		admin.Ask(moderationLog, apitest.Vars{"user": "4711"}).Is(`{"moderationLog": {"edges": [], "nodes": [], "pageInfo": {"hasNextPage": false, "endCursor": null}}}`)
	})
}

func TestOnlyOperatorsModerate(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		admin, post := v.api.Admin(), publish(t, v.api, v.a, "text", "k")
		calls := map[string]apitest.Vars{
			suspendUser: {"id": v.b.String(), "why": "spam"}, reinstateUser: {"id": v.b.String()}, removePost: {"id": post}, removeComment: {"id": strings.Replace(post, "post", "cmt", 1)}, moderationLog: {},
		}
		for query, vars := range calls {
			for _, api := range []*apitest.API{v.api, v.api.As(v.a), v.api.As(v.a).With("X-Test-Scope", "act-as")} {
				api.Ask(query, vars).Refused("BAD_USER_INPUT") // the field does not exist for others
			}
		}
		for query, vars := range calls {
			if query != moderationLog {
				v.api.With("X-Test-Scope", "admin").Ask(query, vars).Refused("UNAUTHENTICATED") // nobody could say who it was
			}
			for _, id := range []string{"", "0", "rel_1_2", "post_1", strings.Repeat("9", 65)} {
				admin.Ask(query, apitest.Vars{"id": id, "user": id, "why": "spam"}).Refused("BAD_USER_INPUT")
			}
		}
		admin.Ask(removePost, apitest.Vars{"id": v.a.String()}).Refused("BAD_USER_INPUT")
		admin.Ask(suspendUser, apitest.Vars{"id": "4711", "why": "spam"}).RefusedFor("USER_NOT_FOUND", "userId")
		for _, c := range []struct {
			why   string
			until any
			ok    bool
		}{
			{"", nil, false}, {" ", nil, false}, {strings.Repeat("👩", 501), nil, false}, {strings.Repeat("👩", 500), nil, true},
			{"x", time.Now().Add(-time.Second), false}, {"x", "1900-01-01T00:00:00Z", false}, {"x", "soon", false}, {"x", time.Now().AddDate(10, 0, 0), true}, {"x", time.Now().AddDate(10, 1, 0), false},
		} {
			a := admin.Ask(suspendUser, apitest.Vars{"id": v.c.String(), "why": c.why, "until": c.until})
			if c.ok {
				check.Has(t, "the answer", a.Text, `"changed":true`)
			} else {
				a.Refused("BAD_USER_INPUT")
			}
		}
	})
}

func suspend(t testing.TB, store storage.Store, id storage.UserID) {
	t.Helper()
	e := storage.ModerationEntry{Owner: id, User: id, Action: storage.Suspended, At: apitest.Epoch, Until: storage.Forever, By: "op", Reason: "spam"}
	_, changed, err := store.Moderate(t.Context(), e)
	must.That(t, err == nil && changed, "changed: %t, %v", changed, err)
}

// Users report what they see, once in 30 days; whoever is reported sees nothing of it.
func TestUsersReport(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		a, admin := v.api.As(v.a), v.api.Admin()
		post := publish(t, v.api, v.b, "text", "k")
		user := func(id storage.UserID, reason string) apitest.Answer {
			return a.Ask(`mutation($id: ID!, $why: String!) { reportUser(userId: $id, reason: $why) { changed } }`, apitest.Vars{"id": id.String(), "why": reason})
		}
		ofPost := func(id string) apitest.Answer {
			return a.Ask(`mutation($id: ID!) { reportPost(postId: $id, reason: "rude") { changed } }`, apitest.Vars{"id": id})
		}
		for _, changed := range []string{"true", "false"} {
			user(v.b, " rude ").Is(`{"reportUser": {"changed": ` + changed + `}}`)
			ofPost(post).Is(`{"reportPost": {"changed": ` + changed + `}}`)
		}
		admin.Ask(`query($user: ID) { moderationLog(userId: $user) { nodes { by action userId postId commentId reason until } } }`, apitest.Vars{"user": v.b.String()}).
			Is(fmt.Sprintf(`{"moderationLog": {"nodes": [
				{"by": "%[1]s", "action": "POST_REPORTED", "userId": "%[2]s", "postId": %[3]q, "commentId": null, "reason": "rude", "until": null},
				{"by": "%[1]s", "action": "USER_REPORTED", "userId": "%[2]s", "postId": null, "commentId": null, "reason": "rude", "until": null}]}}`, v.a, v.b, post))
		v.api.As(v.b).Ask(`{ viewer { standing { state reason } user { handle } } }`, nil).
			Is(fmt.Sprintf(`{"viewer": {"standing": {"state": "ACTIVE", "reason": null}, "user": {"handle": "u%s"}}}`, v.b))
		user(v.a, "x").RefusedFor("SELF", "userId")
		ofPost(publish(t, v.api, v.a, "mine", "m")).RefusedFor("SELF", "postId")
		for _, reason := range []string{"", " ", strings.Repeat("x", storage.MaxReasonLength+1)} {
			user(v.c, reason).Refused("BAD_USER_INPUT")
		}
		for _, nobody := range []*apitest.API{v.api, v.api.As(999_999)} {
			nobody.Ask(`mutation { reportUser(userId: 1, reason: "x") { changed } }`, nil).Refused("UNAUTHENTICATED")
			nobody.Ask(fmt.Sprintf(`mutation { reportPost(postId: %q, reason: "x") { changed } }`, post), nil).Refused("UNAUTHENTICATED")
		}

		// What is not seen is as what does not exist.
		ofPost(unused(post)).Refused("NOT_FOUND")
		v.api.As(v.b).Ask(`mutation { deactivateAccount { changed } }`, nil).Whole()
		user(v.b, "x").Refused("NOT_FOUND")
		ofPost(post).Refused("NOT_FOUND")
		user(999_999, "x").Refused("NOT_FOUND")
		admin.Ask(suspendUser, apitest.Vars{"id": v.a.String(), "why": "spam"}).Whole()
		user(v.c, "x").Refused("FORBIDDEN")
	})
}
