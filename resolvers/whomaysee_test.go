package resolvers_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kith/graph/declared"
	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

var update = flag.Bool("update", false, "write the table of docs/reference/relations.md")

// The table of who may see what is between these lines of docs/reference/relations.md.
const (
	tablePage  = "../docs/reference/relations.md"
	tableBegin = "<!-- who may see what: go test ./resolvers -run WhoMaySeeWhat -update -->\n"
	tableEnd   = "<!-- end -->\n"
)

// The users of the table. The owner's lists are open as the rows say. The open user's lists are
// open to everybody.
const (
	owner storage.UserID = iota + 1
	openUser
	stranger
	follower
	blocker
	friend
)

var lookers = []struct {
	name string
	id   storage.UserID // 0 is nobody
}{{"nobody signed in", 0}, {"any user", stranger}, {"a follower", follower}, {"one in a block with the owner", blocker}, {"the owner", owner}}

// seen are the things to see, with the field that shows each.
var seen = []struct{ what, query, at string }{
	{"handle, name, bio, avatar", `user(by: {id: 1}) { handle }`, "user.handle"},
	{"`followingCount`, `followerCount`", `user(by: {id: 1}) { followingCount }`, "user.followingCount"},
	{"`listVisibility`", `user(by: {id: 1}) { listVisibility { followers } }`, "user.listVisibility"},
	{"`followings`, `followSuggestions`", `user(by: {id: 1}) { followings { nodes { id } } followSuggestions { nodes { id } } }`, "user.followings user.followSuggestions"},
	{"`followers`", `user(by: {id: 1}) { followers { nodes { id } } }`, "user.followers"},
	{"`followersYouKnow`", `user(by: {id: 1}) { followersYouKnow { nodes { id } } }`, "user.followersYouKnow"},
	{"`friends`, `friendCount`, `notFollowingBack`, `notFollowedBack`", `user(by: {id: 1}) { friends { nodes { id } } friendCount notFollowingBack { totalCount } notFollowedBack { totalCount } }`,
		"user.friends user.friendCount user.notFollowingBack user.notFollowedBack"},
	{"common lists with somebody whose lists are open", `user(by: {id: 1}) { commonFollowings(with: 2) { totalCount } commonFollowers(with: 2) { totalCount } }`, "user.commonFollowings user.commonFollowers"},
	{"`people` of its lists", `people(where: {or: [{followersOf: 1}, {followedBy: 1}]}) { totalCount }`, "people"},
	{"`posts`, `favorites`", `user(by: {id: 1}) { posts { nodes { id } } favorites { nodes { id } } }`, "user.posts user.favorites"},
	{"`relationship` from it to others", `a: relationship(from: 1, to: 2) { status } b: relationship(from: 1, to: 6) { status }`, "a b"},
	{"`relationship` to it from somebody whose lists are open", `relationship(from: 2, to: 1) { status }`, "relationship"},
	{"`viewerRelationship`, with what either has asked", `user(by: {id: 1}) { viewerRelationship { status } }`, "user.viewerRelationship"},
	{"`special`, `remark`, `firstFollowedAt` of its follows", `relationship(from: 1, to: 2) { special firstFollowedAt }`, "relationship.special relationship.firstFollowedAt"},
	{"`muted` of its relationships", `relationship(from: 1, to: 2) { muted }`, "relationship.muted"},
	{"its `edges` of a kind with `seen: everyone`, and `edgesTo` it", `user(by: {id: 1}) { edges(kind: WORKS_WITH) { totalCount } } edgesTo(kind: WORKS_WITH, id: 1) { totalCount }`, "user.edges edgesTo"},
	{"its `edges` of a kind with `seen: ends`", `user(by: {id: 1}) { edges(kind: ADMIRES) { totalCount } }`, "user.edges"},
	{"`edgesTo` it of that kind", `edgesTo(kind: ADMIRES, id: 1) { totalCount }`, "edgesTo"},
	{"its `edges` of a kind with `seen: owner`", `user(by: {id: 1}) { edges(kind: BOOKMARKS) { totalCount } }`, "user.edges"},
	{"`edgesTo` it of that kind", `edgesTo(kind: BOOKMARKS, id: 1) { totalCount }`, "edgesTo"},
}

// acts are what somebody may do to the owner, or with what the owner has published: the mutation, and what says that it is done.
var acts = []struct{ what, mutation, done string }{
	{"`follow`", `follow(userId: 1) { changed relationship { following } }`, "m.relationship.following"},
	{"`unfollow`", `unfollow(userId: 1) { changed relationship { following } }`, "m"},
	{"`requestFriend`", `requestFriend(userId: 1) { changed }`, "m.changed"},
	{"`block`", `block(userId: 1) { relationship { blocking } }`, "m.relationship.blocking"},
	{"`mute`", `mute(userId: 1) { relationship { muted } }`, "m.relationship.muted"},
	{"`setFollowMark`", `setFollowMark(userId: 1, special: true) { changed }`, "m.changed"},
	{"`favorite` of its post", `favorite(postId: "post_1_1") { changed }`, "m.changed"},
	{"`addComment` on its post", `addComment(postId: "post_1_1", text: "x", clientKey: "x") { changed }`, "m.changed"},
	{"`relate`, of a kind with `peace`", `relate(kind: WORKS_WITH, ids: ["1"]) { outcomes { changed error { reason } } }`, "m.outcomes"},
	{"`relate`, of a kind without", `relate(kind: BOOKMARKS, ids: ["1"]) { outcomes { changed error { reason } } }`, "m.outcomes"},
}

func TestWhoMaySeeWhat(t *testing.T) {
	table := whoMaySeeWhat(t)
	page := must.File(t, tablePage)
	before, rest, begins := strings.Cut(string(page), tableBegin)
	old, after, ends := strings.Cut(rest, tableEnd)
	must.That(t, begins && ends, "%s has no path for the table", tablePage)
	if *update {
		must.OK(t, os.WriteFile(tablePage, []byte(before+tableBegin+table+tableEnd+after), 0o644))
		return
	}
	check.That(t, old == table, "%s says\n%s\nbut this is so:\n%s\nwrite it with: go test ./resolvers -run WhoMaySeeWhat -update", tablePage, old, table)
}

func whoMaySeeWhat(t *testing.T) string {
	var b strings.Builder
	row := func(cells ...string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	head, rule := []string{"of the owner"}, []string{"---"}
	for _, l := range lookers {
		head, rule = append(head, l.name), append(rule, "---")
	}
	row(head...)
	row(rule...)
	apis := map[storage.Visibility]*apitest.API{locked: sixUsers(t, storage.ToEveryone, true)}
	for _, v := range visibilities {
		apis[v] = sixUsers(t, v, false)
	}
	for _, s := range seen {
		cells := []string{s.what}
		for _, l := range lookers {
			cells = append(cells, whenSeen(apis, l.id, s.query, strings.Fields(s.at)))
		}
		row(cells...)
	}
	b.WriteString("\n")
	head[0] = "with the owner"
	row(head...)
	row(rule...)
	for _, a := range acts {
		cells := []string{a.what}
		for _, l := range lookers {
			open, closed := whatBecomes(t, l.id, a.mutation, a.done, false), whatBecomes(t, l.id, a.mutation, a.done, true)
			if closed != open {
				open += "; if locked: " + closed
			}
			cells = append(cells, open)
		}
		row(cells...)
	}
	return b.String()
}

// whatBecomes is what a mutation does with an owner whose lists are open, or who is locked.
func whatBecomes(t *testing.T, viewer storage.UserID, mutation, done string, isLocked bool) string {
	api := sixUsers(t, storage.ToEveryone, isLocked)
	if viewer != 0 {
		api = api.As(viewer)
	}
	answer := api.Ask("mutation { m: "+mutation+" }", nil)
	if reason := regexp.MustCompile(`"reason":"(\w+)"`).FindStringSubmatch(answer.Text); reason != nil {
		return "`" + reason[1] + "`"
	}
	var value any = answer.Data
	for _, name := range strings.Split(done, ".") {
		value = value.(map[string]any)[name]
	}
	if value == false {
		return "waits"
	}
	return "yes"
}

// locked is an owner who is locked, and whose lists are else open to everybody.
const locked storage.Visibility = 100

var visibilities = []storage.Visibility{storage.ToEveryone, storage.ToFollowers, storage.ToNobody}

var visibilityNames = map[storage.Visibility]string{storage.ToEveryone: "`EVERYONE`", storage.ToFollowers: "`FOLLOWERS`", storage.ToNobody: "`NOBODY`"}

// whenSeen says under which visibility of both lists something is shown.
func whenSeen(apis map[storage.Visibility]*apitest.API, viewer storage.UserID, query string, paths []string) string {
	var shown []string
	isShown := func(v storage.Visibility) bool {
		api := apis[v]
		if viewer != 0 {
			api = api.As(viewer)
		}
		answer := api.Ask("{ "+query+" }", nil).Whole()
		return !slices.ContainsFunc(paths, func(path string) bool { return isNull(answer.Data, strings.Split(path, ".")) })
	}
	for _, v := range visibilities {
		if isShown(v) {
			shown = append(shown, visibilityNames[v])
		}
	}
	ofLocked := ""
	if len(shown) > 0 && !isShown(locked) {
		ofLocked = ", not if locked"
	}
	switch len(shown) {
	case 0:
		return "—"
	case len(visibilities):
		return "yes" + ofLocked
	}
	return "if " + strings.Join(shown, ", ") + ofLocked
}

// isNull reports whether the value at a path, or one above it, is null.
func isNull(data any, path []string) bool {
	object, ok := data.(map[string]any)
	return !ok || len(path) > 0 && (object[path[0]] == nil || len(path) > 1 && isNull(object[path[0]], path[1:]))
}

// sixUsers creates the six users. Both lists of the owner are open as given, and those of its
// friend are closed.
func sixUsers(t *testing.T, lists storage.Visibility, isLocked bool) *apitest.API {
	store := storeOf(t, int(friend))
	var edges []storage.Edge
	for _, p := range []storage.Pair{{From: owner, To: openUser}, {From: openUser, To: owner}, {From: owner, To: friend}, {From: friend, To: owner}, {From: follower, To: owner}, {From: stranger, To: openUser}} {
		edges = append(edges, storage.Edge{From: p.From, To: p.To, Type: storage.Following, UpdateTime: apitest.Epoch})
	}
	edges = append(edges, storage.Edge{From: blocker, To: owner, Type: storage.Blocking, UpdateTime: apitest.Epoch})
	apitest.ApplyTo(t, store, storage.Forward, edges...)
	closed := storage.ToNobody
	for id, v := range map[storage.UserID]*storage.Visibility{owner: &lists, friend: &closed} {
		_, _, err := store.UpdateProfile(t.Context(), id, storage.ProfileChange{FollowingsVisibility: v, FollowersVisibility: v}, apitest.Epoch+1)
		must.OK(t, err)
	}
	_, _, err := store.UpdateProfile(t.Context(), owner, storage.ProfileChange{Locked: &isLocked}, apitest.Epoch+1)
	must.OK(t, err)
	mute := []storage.EdgeChange{{To: openUser, Item: declared.Mutes.Number, Type: storage.Related, At: apitest.Epoch}}
	must.All(t, store.ChangeEdges(t.Context(), storage.Relations, owner, mute, storage.ChangeOptions{}))
	_, _, err = store.Publish(t.Context(), storage.PostRow{PostID: storage.PostID{Author: owner, Number: 1}, Key: "k", Text: "x", At: apitest.Epoch})
	must.OK(t, err)
	return apitest.New(t, store, apitest.Options{Declared: declare(t, someKinds)})
}
