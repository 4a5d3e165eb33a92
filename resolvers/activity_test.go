package resolvers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// atNoon moves the clock to a noon, so that no day ends during a test.
func (v *village) atNoon() {
	now := time.Now().Add(time.Duration(v.later.Load()))
	v.pass(now.Truncate(24 * time.Hour).Add(36 * time.Hour).Sub(now))
}

// activity is what concerns a user, a line for each group: the kind, the actors and how many others, and the text of the post.
func (v *village) activity(user storage.UserID, arguments string) (lines []string, cursors []string, unseen int) {
	v.t.Helper()
	answer := v.api.As(user).Ask(`{ viewer { activity`+arguments+` { edges { cursor node { id kind day at actors { id } othersCount complete post { text } } } nodes { id } pageInfo { hasNextPage } unseen { count hasMore } } } }`, nil).Whole()
	type edge struct {
		Cursor string
		Node   struct {
			ID, Kind, Day, At string
			Actors            []struct{ ID string }
			OthersCount       int
			Complete          bool
			Post              *struct{ Text string }
		}
	}
	for _, e := range apitest.Into[[]edge](answer, "viewer.activity.edges") {
		line := e.Node.Kind
		for _, a := range e.Node.Actors {
			line += " " + a.ID
		}
		if e.Node.OthersCount > 0 {
			line += fmt.Sprintf(" +%d", e.Node.OthersCount)
		}
		if e.Node.Post != nil {
			line += " " + e.Node.Post.Text
		}
		check.That(v.t, e.Node.Complete && strings.HasPrefix(e.Node.At, e.Node.Day[:10]) && strings.HasPrefix(e.Node.ID, "activity_"+user.String()), "a group is %+v", e.Node)
		lines, cursors = append(lines, line), append(cursors, e.Cursor)
	}
	return lines, cursors, apitest.Into[int](answer, "viewer.activity.unseen.count")
}

func (v *village) unseen(user storage.UserID, arguments string) int {
	v.t.Helper()
	_, _, unseen := v.activity(user, arguments)
	return unseen
}

func (v *village) wantActivity(user storage.UserID, arguments string, want ...string) (cursors []string) {
	v.t.Helper()
	got, cursors, _ := v.activity(user, arguments)
	check.Equal(v.t, fmt.Sprintf("activity%s of %s", arguments, user), got, want)
	return cursors
}

func TestActivity(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		v.atNoon()
		do := func(act func()) { v.pass(time.Second); act() }
		v.wantActivity(v.a, "")
		one, two := publish(t, v.api, v.a, "one", "1"), publish(t, v.api, v.a, "two", "2")
		do(func() { v.does(v.b, "follow", v.a) })
		do(func() { comment(t, v.api, v.c, one, "x") })
		do(func() { v.does(v.c, "follow", v.a) })
		do(func() { v.favorites(v.b, "favorite", one) })
		do(func() { v.favorites(v.c, "favorite", two) })
		do(func() { v.favorites(v.d, "favorite", one) })
		do(func() { v.does(v.b, "requestFriend", v.a) })
		do(func() { comment(t, v.api, v.a, one, "mine"); v.favorites(v.a, "favorite", one) })
		do(func() { comment(t, v.api, v.d, one, "y"); comment(t, v.api, v.d, one, "z") })
		B, C, D := v.b.String(), v.c.String(), v.d.String()
		comments, asked, favorites, favorites2, follows := "COMMENT "+D+" "+C+" one", "FRIEND_REQUEST "+B, "FAVORITE "+D+" "+B+" one", "FAVORITE "+C+" two", "FOLLOW "+C+" "+B
		all := []string{comments, asked, favorites, favorites2, follows}
		cursors := v.wantActivity(v.a, "", all...)
		v.wantActivity(v.a, "(first: 2)", all[:2]...)
		for i, c := range cursors {
			v.wantActivity(v.a, fmt.Sprintf("(first: 2, after: %q)", c), all[i+1:min(len(all), i+3)]...)
		}
		v.wantActivity(v.a, "(kinds: [FOLLOW, FRIEND_REQUEST])", asked, follows)
		v.wantActivity(v.a, "(kinds: [])")

		// What has been seen is seen on every device, and only forward.
		see := func(c string, changed bool, unseen int) {
			t.Helper()
			v.api.As(v.a).Ask(`mutation($c: String!) { markActivitySeen(upTo: $c) { changed viewer { activity { unseen { count hasMore } } } } }`, apitest.Vars{"c": c}).
				Is(fmt.Sprintf(`{"markActivitySeen": {"changed": %t, "viewer": {"activity": {"unseen": {"count": %d, "hasMore": false}}}}}`, changed, unseen))
		}
		check.Equal(t, "unseen", v.unseen(v.a, ""), 5)
		see(cursors[2], true, 2)
		see(cursors[4], false, 2)
		see(cursors[0], true, 0)
		check.Equal(t, "unseen", v.unseen(v.a, "(first: 0, kinds: [FOLLOW])"), 0)
		v.api.As(v.a).Ask(`{ viewer { feedSeenUpTo } }`, nil).Is(`{"viewer": {"feedSeenUpTo": null}}`)

		// On another day there are other groups; who accepts a request follows, too.
		v.pass(24 * time.Hour)
		do(func() { v.does(v.a, "requestFriend", v.c) })
		do(func() { v.does(v.c, "acceptRequest FRIEND", v.a) })
		do(func() { v.does(v.d, "follow", v.a) })
		v.wantActivity(v.a, "(first: 3)", "FOLLOW "+D, "FRIEND_ACCEPTED "+C, comments)
		check.Equal(t, "unseen", v.unseen(v.a, ""), 2)

		// Nothing is left of whom the viewer must not see or mutes, of what is taken back, and of a post that is gone.
		v.api.As(v.a).Ask(`mutation { mute(userId: `+D+`, scope: POSTS) { changed } }`, nil).Whole()
		v.wantActivity(v.a, "(first: 1)", "FOLLOW "+D)
		v.api.As(v.a).Ask(`mutation { mute(userId: `+D+`) { changed } }`, nil).Whole()
		v.wantActivity(v.a, "(first: 1)", "FRIEND_ACCEPTED "+C)
		v.api.As(v.a).Ask(`mutation { unmute(userId: `+D+`) { changed } }`, nil).Whole()
		v.does(v.d, "block", v.a)
		v.wantActivity(v.a, "", "FRIEND_ACCEPTED "+C, asked, favorites2, "FAVORITE "+B+" one", follows, "COMMENT "+C+" one")
		v.does(v.b, "unfollow", v.a)
		v.does(v.b, "withdrawRequest FRIEND", v.a)
		v.api.As(v.a).Ask(`mutation($p: ID!) { deletePost(postId: $p) { changed } }`, apitest.Vars{"p": one}).Whole()
		v.wantActivity(v.a, "", "FRIEND_ACCEPTED "+C, favorites2, "FOLLOW "+C)
		v.api.As(v.c).Ask(`mutation { deactivateAccount { changed } }`, nil).Whole()
		v.wantActivity(v.a, "")

		for _, wrong := range []string{"", "x", cursors[0][:4]} {
			v.api.As(v.a).Ask(`mutation($c: String!) { markActivitySeen(upTo: $c) { changed } }`, apitest.Vars{"c": wrong}).Refused("BAD_USER_INPUT")
			v.api.As(v.a).Ask(`query($c: String!) { viewer { activity(after: $c) { nodes { id } } } }`, apitest.Vars{"c": wrong}).Refused("BAD_USER_INPUT")
		}
		v.api.Ask(`mutation { markActivitySeen(upTo: "x") { changed } }`, nil).Refused("UNAUTHENTICATED")
	})
}

// Who is locked is told who waits, and that request is gone once it is accepted. Who has not asked is not told of an answer.
func TestActivityOfALockedUser(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		v.atNoon()
		v.does(38, "follow", v.a)
		v.api.As(v.a).Ask(`mutation { acceptRequest(kind: FOLLOW, userId: 38) { changed } }`, nil).Is(`{"acceptRequest": {"changed": false}}`)
		v.wantActivity(38, "")
		v.does(38, "unfollow", v.a)
		v.api.As(v.a).Ask(`mutation { updateProfile(locked: true) { changed } }`, nil).Whole()
		v.does(v.b, "follow", v.a)
		v.wantActivity(v.a, "", "FOLLOW_REQUEST "+v.b.String())
		v.does(v.a, "acceptRequest FOLLOW", v.b)
		v.wantActivity(v.a, "", "FOLLOW "+v.b.String())
		v.wantActivity(v.b, "", "FOLLOW_ACCEPTED "+v.a.String())
		v.does(v.c, "follow", v.a)
		v.does(v.d, "follow", v.a)
		v.api.As(v.a).Ask(`mutation { acceptRequests(kind: FOLLOW) { outcomes { changed } } }`, nil).Whole()
		v.wantActivity(v.c, "", "FOLLOW_ACCEPTED "+v.a.String())
		v.does(v.d, "mute", v.a)
		v.wantActivity(v.d, "")
		v.does(v.a, "block", v.b)
		v.wantActivity(v.b, "")
	})
}

// Who asks again, and is accepted again, is told again.
func TestActivityOfWhoIsAcceptedTwice(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		v.atNoon()
		v.api.As(v.a).Ask(`mutation { updateProfile(locked: true) { changed } }`, nil).Whole()
		for range 2 {
			v.does(v.b, "follow", v.a)
			v.does(v.a, "acceptRequest FOLLOW", v.b)
			lines, cursors, unseen := v.activity(v.b, "")
			must.That(t, slices.Equal(lines, []string{"FOLLOW_ACCEPTED " + v.a.String()}) && unseen == 1, "%q, of which %d are new", lines, unseen)
			v.pass(time.Minute)
			v.api.As(v.b).Ask(`mutation($c: String!) { markActivitySeen(upTo: $c) { viewer { activity { unseen { count } } } } }`, apitest.Vars{"c": cursors[0]}).
				Is(`{"markActivitySeen": {"viewer": {"activity": {"unseen": {"count": 0}}}}}`)
			v.does(v.b, "unfollow", v.a)
		}
	})
}

// Whom a post names is told once, also by an edit, and of what it may see: nothing of that counts as a favorite.
func TestMentions(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		v.atNoon()
		name := func(id storage.UserID) string { return "@U" + id.String() }
		text := "with " + name(v.a) + ", " + name(v.b) + " and @nobody"
		post := publish(t, v.api, v.b, text, "1")
		publish(t, v.api, v.b, "with "+name(v.c), "1") // the same post again
		mention := "MENTION " + v.b.String() + " "
		v.wantActivity(v.a, "", mention+text)
		v.wantActivity(v.b, "")
		v.wantActivity(v.c, "")
		v.api.As(v.c).Ask(`query($p: ID!, $b: ID!) { node(id: $p) { ... on Post { favoritesReceivedCount } } user(by: {id: $b}) { favoritesGivenCount favoritesReceivedCount favorites { edges { cursor } } } }`, apitest.Vars{"p": post, "b": v.b}).
			Is(`{"node": {"favoritesReceivedCount": 0}, "user": {"favoritesGivenCount": 0, "favoritesReceivedCount": 0, "favorites": {"edges": []}}}`)

		v.pass(time.Minute)
		edited := name(v.c) + " and " + name(v.a)
		v.api.As(v.b).Ask(`mutation($p: ID!, $t: String!) { editPost(postId: $p, text: $t) { changed } }`, apitest.Vars{"p": post, "t": edited}).Whole()
		v.wantActivity(v.c, "(kinds: [MENTION])", mention+edited)
		v.wantActivity(v.a, "", mention+edited)

		// Posts of a locked user are for its followers.
		v.api.As(v.b).Ask(`mutation { updateProfile(locked: true) { changed } }`, nil).Whole()
		v.wantActivity(v.a, "")
		v.does(v.a, "follow", v.b)
		v.does(v.b, "acceptRequest FOLLOW", v.a)
		v.wantActivity(v.a, "(kinds: [MENTION])", mention+edited)

		v.does(v.a, "mute", v.b)
		v.wantActivity(v.a, "")
		v.does(v.a, "unmute", v.b)
		v.does(v.a, "block", v.d)
		untold := publish(t, v.api, v.d, "too bad, "+name(v.a), "1")
		v.does(v.a, "unblock", v.d)
		v.api.As(v.d).Ask(`mutation($p: ID!) { editPost(postId: $p, media: [{name: "a", url: "https://example.com/a.png", kind: IMAGE}]) { changed } }`, apitest.Vars{"p": untold}).
			Is(`{"editPost": {"changed": true}}`)
		v.wantActivity(v.a, "(kinds: [MENTION])", mention+edited)
		v.api.As(v.b).Ask(`mutation($p: ID!) { deletePost(postId: $p) { changed } }`, apitest.Vars{"p": post}).Whole()
		v.wantActivity(v.a, "", "FOLLOW_ACCEPTED "+v.b.String())
		check.Equal(t, "unseen", v.unseen(v.a, "(kinds: [MENTION])"), 0)
	})
}

// If the shard of a post does not answer, it is not known whether the user may see who is named there: what else has happened is shown.
func TestActivityWithoutAShard(t *testing.T) {
	store := storeOf(t, 30)
	town := byShard(30)
	me, live, gone := town[0][0], town[0][1], town[deadShard][0]
	whole := apitest.New(t, store, apitest.Options{})
	whole.As(live).Ask(fmt.Sprintf(`mutation { follow(userId: "%s") { changed } }`, me), nil).Whole()
	publish(t, whole, gone, "@u"+me.String(), "1")
	without := apitest.New(t, dead(store, 4, deadShard), apitest.Options{}).As(me)
	answer := without.Ask(`{ viewer { activity { x: nodes { kind } edges { node { kind actors { id } } y: node { kind } } unseen { count } pageInfo { hasNextPage } } } }`, nil)
	answer.DataIs(fmt.Sprintf(`{"viewer": {"activity": {"x": [null, {"kind": "FOLLOW"}],
		"edges": [{"node": null, "y": null}, {"node": {"kind": "FOLLOW", "actors": [{"id": "%s"}]}, "y": {"kind": "FOLLOW"}}], "unseen": null, "pageInfo": {"hasNextPage": false}}}}`, live))
	answer.FailsAt("UNAVAILABLE", "viewer.activity.x.0", "viewer.activity.edges.0.node", "viewer.activity.edges.0.y", "viewer.activity.unseen")
	cursor := apitest.Into[string](without.Ask(`{ viewer { activity(first: 1) { pageInfo { endCursor } } } }`, nil), "viewer.activity.pageInfo.endCursor")
	check.That(t, len(cursor) > 100, "the cursor of what is not shown, %s, is not sealed", cursor)
	for _, api := range []*apitest.API{without, whole.As(me)} {
		api.Ask(`query($c: String!) { viewer { activity(after: $c) { nodes { kind } } } }`, apitest.Vars{"c": cursor}).Is(`{"viewer": {"activity": {"nodes": [{"kind": "FOLLOW"}]}}}`)
	}
}

// What cannot be read at all has one error.
func TestActivityThatCannotBeRead(t *testing.T) {
	api := apitest.New(t, broken(storeOf(t, 2), "pages.follower", storage.ErrUnavailable), apitest.Options{}).As(1)
	api.Ask(`{ viewer { activity { unseen { count } nodes { id } } } }`, nil).FailsAt("UNAVAILABLE", "viewer.activity")
	api.Ask(`{ viewer { activity { x: unseen { count } unseen { hasMore } } } }`, nil).FailsAt("UNAVAILABLE", "viewer.activity.x", "viewer.activity.unseen")
}

// A post counts with those whom it names, whether they exist or not.
func TestMentionsAreLimited(t *testing.T) {
	store := storeOf(t, 2)
	limit := &noWrites{}
	api := apitest.New(t, store, apitest.Options{MayWrite: limit.Write}).As(1)
	text := strings.Repeat("@u2 ", 30)
	for n := range 30 {
		text += fmt.Sprintf("@nobody%d ", n)
	}
	for _, text := range []string{"x", text} {
		api.Ask(`mutation($t: String!) { publishPost(text: $t, clientKey: "1") { changed } editPost(postId: "1-1", text: $t) { changed } }`, apitest.Vars{"t": text})
	}
	check.Equal(t, "asked", limit.asked, []string{"1 publishPost 1", "1 editPost 1", "1 publishPost 21", "1 editPost 21"})
}
