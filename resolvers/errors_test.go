package resolvers_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/logged"
	"kith/internal/must"
	"kith/internal/storagetest/double"
	"kith/storage"
)

// checkErrors checks that every error has one of the listed codes, and says correctly whether a retry is worthwhile.
func checkErrors(t *testing.T, query string, answer apitest.Answer) {
	t.Helper()
	check.That(t, len(answer.Errors) != 0, "%s: no error: %.300s", query, answer.Text)
	codes := map[string]bool{ // and whether a retry is worthwhile
		"BAD_USER_INPUT": false, "NOT_FOUND": false, "UNAUTHENTICATED": false, "FORBIDDEN": false, "LIMIT_REACHED": false,
		"RATE_LIMITED": true, "QUERY_TOO_COSTLY": false, "TIMEOUT": true, "UNAVAILABLE": true, "INTERNAL_SERVER_ERROR": false,
	}
	for _, e := range answer.Errors {
		want, known := codes[e.Code()]
		retryable, there := e.Retryable()
		check.That(t, known && there && retryable == want && e.Message != "" && len(e.Message) <= 500, "%s: %+v", query, e)
	}
}

func TestEveryErrorHasACodeAndReportsWhetherToRetry(t *testing.T) {
	store := storeOf(t, 3)
	apitest.Follow(t, store, 1, 2)
	healthy := apitest.New(t, store, apitest.Options{})
	for _, query := range []string{
		`{`, `{ nothing }`, `{ user { id } }`, `{ user(by: {id: null}) { id } }`, `{ user(by: {id: 1}) }`, `{ user(by: {id: 1}) { nope } }`, `query($x: Int) { user(by: {id: 1}) { id } }`,
		`query($id: ID!) { user(by: {id: $id}) { id } }`, `{ user(by: {id: {}}) { id } }`, `{ user(by: {id: 1.5}) { id } }`, `{ user(by: {id: true}) { id } }`, `{ users(by: {ids: [null]}) { id } }`,
		`{ user(by: {id: "x"}) { id } }`, `{ user(by: {id: 1}) { followings(first: 1000) { nodes { id } } } }`, `{ user(by: {id: 1}) { followings(after: "x") { nodes { id } } } }`,
		`{ user(by: {id: 1}) { followings(first: 1, last: 1) { nodes { id } } } }`, `{ user { id } }`, `{ user(by: {}) { id } }`, `{ user(by: {id: 1, handle: "u1"}) { id } }`, `{ user(by: {id: null}) { id } }`, `query($id: ID) { user(by: {id: $id}) { id } }`, `{ relationship(from: 1, to: "") { id } }`,
		`{ a: user(by: {id: "x"}) { id } b: user(by: {id: "y"}) { id } c: users(by: {ids: ["z"]}) { id } }`,
		`{ user(by: {id: 1}) { ` + strings.Repeat("followings { nodes { ", 20) + "id" + strings.Repeat("}}", 20) + `} }`,
		`{ user(by: {id: 1}) { ` + strings.Repeat("followings(first: 100) { nodes { ", 4) + "id" + strings.Repeat("}}", 4) + `} }`,
		``, `mutation { x }`, `query a { viewer { user { id } } } query b { viewer { user { id } } }`,
	} {
		checkErrors(t, query, healthy.Ask(query, nil))
	}
	for _, err := range []error{errors.New("boom"), storage.ErrUnavailable, context.DeadlineExceeded, storage.ErrLayout} {
		for _, lookup := range []string{"users", "profiles", "handles", "edges.following", "pages.following"} {
			api := apitest.New(t, broken(store, lookup, err), apitest.Options{})
			const query = `{ user(by: {id: 1}) { handle followerCount followings { nodes { name } } relationship(to: 2) { status } } byHandle: user(by: {handle: "u1"}) { id } }`
			checkErrors(t, lookup+": "+err.Error(), api.Ask(query, nil))
		}
	}
}

// A client sees nothing of an internal error. The log has it once, with the id that the client got.
func TestInternalErrorsAreMasked(t *testing.T) {
	store := storeOf(t, 3)
	apitest.Follow(t, store, 1, 2, 3)
	apitest.Follow(t, store, 2, 1, 3)
	secret := errors.New(`Error 1064: You have an error near 'SELECT user_id FROM users' app:hunter2@tcp(10.0.0.7:3306)/kith`)
	for lookup, want := range map[string]struct {
		query string
		at    string
		data  string
	}{
		"users": {`{ user(by: {id: 1}) { handle } }`, "user", `{"user": null}`},
		// `to` is also the name of an argument
		"users below":          {`{ relationship(from: 1, to: 1) { id to { handle } } }`, "relationship.to", `{"relationship": {"id": "rel_1_1", "to": null}}`},
		"profiles":             {`{ user(by: {id: 1}) { followingCount } }`, "user", `{"user": null}`},
		"counts":               {`{ searchUsers(text: "u1") { nodes { followerCount } } }`, "searchUsers", `{"searchUsers": null}`},
		"handles":              {`{ user(by: {handle: "u1"}) { id } }`, "user", `{"user": null}`},
		"handles in a list":    {`{ users(by: {handles: ["", "u1"]}) { id } }`, "users.1", `{"users": [null, null]}`},
		"handles of entities":  {`{ _entities(representations: [{__typename: "User", id: 9999}, {__typename: "User", handle: "u1"}]) { __typename } }`, "_entities.1", `{"_entities": [null, null]}`},
		"pages.following":      {`{ user(by: {id: 1}) { id followings { nodes { id } } } }`, "user.followings", `{"user": {"id": "1", "followings": null}}`},
		"pages.follower":       {`{ user(by: {id: 1}) { id x: followers { nodes { id } } } }`, "user.x", `{"user": {"id": "1", "x": null}}`},
		"edges.following":      {`{ relationship(from: 1, to: 2) { following } }`, "relationship", `{"relationship": null}`},
		"edges.follower":       {`{ user(by: {id: 1}) { relationship(to: 2) { status } } }`, "user.relationship", `{"user": {"relationship": null}}`},
		"neighbours.follower":  {`{ user(by: {id: 1}) { commonFollowers(with: 2) { totalCount } } }`, "user.commonFollowers", `{"user": {"commonFollowers": null}}`},
		"neighbours.following": {`{ user(by: {id: 1}) { followSuggestions { nodes { id } } } }`, "user.followSuggestions", `{"user": {"followSuggestions": null}}`},
	} {
		lookup, _, _ = strings.Cut(lookup, " ")
		for name, store := range map[string]*faulty{
			"an error": broken(store, lookup, fmt.Errorf("read %s of user 1 on shard 0: %w", lookup, secret)),
			"a panic": {store, storage.NewShardMap(1), func(_ context.Context, l string, _ int) error {
				if l == lookup {
					panic(secret)
				}
				return nil
			}},
		} {
			t.Run(lookup+" at "+want.at+", "+name, func(t *testing.T) {
				var log logged.Text
				answer := apitest.New(t, store, apitest.Options{Log: &log}).Ask(want.query, nil)
				answer.FailsAt("INTERNAL_SERVER_ERROR", want.at)
				answer.DataIs(want.data)
				id, _ := answer.Errors[0].Extensions["requestId"].(string)
				text := strings.ReplaceAll(answer.Text, id, "") // which is drawn, and may have any digits
				check.Lacks(t, "the text", text, "SELECT", "1064", "hunter2", "10.0.0.7", "shard", "goroutine", ".go")
				check.That(t, id != "", "no id of the request")
				check.Has(t, "the log", log.String(), id, "1064")
			})
		}
	}
}

// town is a graph whose users are on a shard that answers (L1, L2, L3) and on a shard that does not (D1, D2). All
// handles are on a shard that answers. L1 follows all others, in the order D1, L2, D2, L3 from the newest. L2, D1
// and D2 follow L1 back. L2 and D1 follow L3.
type town struct{ names *strings.Replacer }

// deadShard is the one of four shards that does not answer. The shard after it, which may be on the same server, has no data.
const deadShard = 2

func makeTown(t *testing.T, store storage.Store) town {
	shards := storage.NewShardMap(4)
	var live, dead []storage.UserID
	for id := storage.UserID(1); len(live) < 3 || len(dead) < 2; id++ {
		switch where := shards.Of(id); {
		case shards.OfHandle("u"+id.String()) >= deadShard:
		case where == deadShard && len(dead) < 2:
			dead = append(dead, id)
		case where < deadShard && len(live) < 3:
			live = append(live, id)
		}
	}
	names := map[string]storage.UserID{"L1": live[0], "L2": live[1], "L3": live[2], "D1": dead[0], "D2": dead[1]}
	var pairs []string
	for name, id := range names {
		apitest.CreateUsers(t, store, storage.User{ID: id, Handle: "u" + id.String(), Name: "User " + id.String(), CreatedAt: apitest.Epoch})
		pairs = append(pairs, name, id.String())
	}
	for _, owner := range []storage.UserID{live[0], dead[0]} {
		_, _, err := store.CreateList(t.Context(), storage.UserList{ListID: storage.ListID{Owner: owner, Number: 1}, Name: "list", Public: true})
		must.OK(t, err)
	}
	apitest.Follow(t, store, live[0], live[2], dead[1], live[1], dead[0])
	apitest.Follow(t, store, live[1], live[0], live[2])
	apitest.Follow(t, store, dead[0], live[0], live[2])
	apitest.Follow(t, store, dead[1], live[0])
	return town{strings.NewReplacer(pairs...)}
}

// lost is a query, and the data and errors that it gives if a shard is dead.
type lost struct {
	query string
	data  string
	at    []string
}

var losses = map[string]lost{
	"users": {`{ users(by: {ids: [L1, D1, L2, D1]}) { handle } }`,
		`{"users": [{"handle": "uL1"}, null, {"handle": "uL2"}, null]}`, []string{"users.1", "users.3"}},
	"one user": {`{ a: user(by: {id: D1}) { handle } b: user(by: {id: L1}) { handle } c: node(id: D1) { id } }`,
		`{"a": null, "b": {"handle": "uL1"}, "c": null}`, []string{"a", "c"}},
	"by handle": {`{ a: user(by: {handle: "uD1"}) { id name } b: user(by: {handle: "UL1"}) { name } }`,
		`{"a": null, "b": {"name": "User L1"}}`, []string{"a"}},
	"ids alone need no shard": {`{ user(by: {id: L1}) { followings { nodes { id } } } }`,
		`{"user": {"followings": {"nodes": [{"id": "D1"}, {"id": "L2"}, {"id": "D2"}, {"id": "L3"}]}}}`, nil},
	"nodes and edges, by alias": {`{ user(by: {id: L1}) { f: followings { totalCount nodes { name } n: nodes { handle } edges { followedAt node { handle } } e: edges { x: node { id } } pageInfo { hasNextPage } } } }`,
		`{"user": {"f": {"totalCount": 4,
			"nodes": [null, {"name": "User L2"}, null, {"name": "User L3"}], "n": [null, {"handle": "uL2"}, null, {"handle": "uL3"}],
			"edges": [{"followedAt": "2026-01-02T03:04:08.000006Z", "node": null}, {"followedAt": "2026-01-02T03:04:07.000006Z", "node": {"handle": "uL2"}},
				{"followedAt": "2026-01-02T03:04:06.000006Z", "node": null}, {"followedAt": "2026-01-02T03:04:05.000006Z", "node": {"handle": "uL3"}}],
			"e": [{"x": null}, {"x": {"id": "L2"}}, {"x": null}, {"x": {"id": "L3"}}], "pageInfo": {"hasNextPage": false}}}}`,
		[]string{"user.f.nodes.0", "user.f.nodes.2", "user.f.n.0", "user.f.n.2", "user.f.edges.0.node", "user.f.edges.2.node", "user.f.e.0.x", "user.f.e.2.x"}},
	"a relationship towards it": {`{ relationship(from: L1, to: D1) { status followedAt from { handle } to { handle } } }`,
		`{"relationship": {"status": "MUTUAL", "followedAt": "2026-01-02T03:04:08.000006Z", "from": {"handle": "uL1"}, "to": null}}`, []string{"relationship.to"}},
	"a relationship from it": {`{ relationship(from: D1, to: L1) { status from { handle } to { handle } } }`,
		`{"relationship": null}`, []string{"relationship"}},
	"a relationship from it, users alone": {`{ relationship(from: D1, to: L1) { id from { handle } to { handle } } }`,
		`{"relationship": null}`, []string{"relationship"}}, // the row of D1 says whether it may be seen
	"relationships": {`{ r: relationships(from: [L1, D1], to: [L2, D1]) { status to { name } } }`,
		`{"r": [{"status": "MUTUAL", "to": {"name": "User L2"}}, {"status": "MUTUAL", "to": null}, null, {"status": "NONE", "to": null}]}`,
		[]string{"r.1.to", "r.2", "r.3.to"}},
	"nodes of both types": {`{ nodes(ids: [L1, "rel_D1_L1", D1, "rel_L1_D1"]) { id ... on User { name } ... on Relationship { status t: to { name } } } }`,
		`{"nodes": [{"id": "L1", "name": "User L1"}, null, null, {"id": "rel_L1_D1", "status": "MUTUAL", "t": null}]}`,
		[]string{"nodes.1", "nodes.2", "nodes.3.t"}},
	"nodes that are lists": {`{ nodes(ids: ["list_D1_1", L1, "list_L1_1"]) { ... on User { handle } ... on List { name memberCount } } }`,
		`{"nodes": [null, {"handle": "uL1"}, {"name": "list", "memberCount": 0}]}`, []string{"nodes.0"}},
	"levels below": {`{ user(by: {id: L1}) { followings(first: 2) { nodes { handle followings { nodes { handle } } } } l2: relationship(to: L2) { to { followers { nodes { name } } } } } }`,
		`{"user": {"followings": {"nodes": [null, {"handle": "uL2", "followings": {"nodes": [{"handle": "uL3"}, {"handle": "uL1"}]}}]},
			"l2": {"to": {"followers": {"nodes": [{"name": "User L1"}]}}}}}`,
		[]string{"user.followings.nodes.0"}},
	"lists of users whose row is not read": {`{ user(by: {id: L1}) { followings(first: 2) { nodes { id followings { nodes { id } } followers { totalCount } } } } }`,
		`{"user": {"followings": {"nodes": [{"id": "D1", "followings": null, "followers": null}, {"id": "L2", "followings": {"nodes": [{"id": "L3"}, {"id": "L1"}]}, "followers": {"totalCount": 1}}]}}}`,
		[]string{"user.followings.nodes.0.followings", "user.followings.nodes.0.followers"}},
	"friends": {`{ user(by: {id: L1}) { friends { totalCount complete nodes { handle } } } }`,
		`{"user": {"friends": {"totalCount": 3, "complete": true, "nodes": [null, {"handle": "uL2"}, null]}}}`,
		[]string{"user.friends.nodes.0", "user.friends.nodes.2"}},
	"common lists": {`{ user(by: {id: L1}) { handle dead: commonFollowings(with: D1) { totalCount } live: commonFollowings(with: L2) { nodes { handle } } commonFollowers(with: D2) { totalCount } } }`,
		`{"user": {"handle": "uL1", "dead": null, "live": {"nodes": [{"handle": "uL3"}]}, "commonFollowers": null}}`,
		[]string{"user.dead", "user.commonFollowers"}},
	"suggestions": {`{ user(by: {id: L1}) { handle followSuggestions { nodes { handle } } } l2: user(by: {id: L2}) { followSuggestions(first: 4) { complete edges { sharedCount node { handle } via { handle } } } } }`,
		`{"user": {"handle": "uL1", "followSuggestions": null}, "l2": {"followSuggestions": {"complete": true, "edges": [
			{"sharedCount": 1, "node": null, "via": [{"handle": "uL1"}]}, {"sharedCount": 1, "node": null, "via": [{"handle": "uL1"}]}]}}}`,
		[]string{"user.followSuggestions", "l2.followSuggestions.edges.0.node", "l2.followSuggestions.edges.1.node"}},
}

// A dead shard costs only the fields that needed it: they are null, with an error at exactly their paths.
func TestADeadShardCostsOnlyTheFieldsThatNeedIt(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		town := makeTown(t, store)
		api := apitest.New(t, dead(store, 4, deadShard), apitest.Options{Limits: apitest.NoLimits})
		for name, l := range losses {
			t.Run(name, func(t *testing.T) { town.check(t, api, l) })
		}
	})
}

func (town town) check(t *testing.T, api *apitest.API, l lost) {
	t.Helper()
	answer := api.For(t).Ask(town.names.Replace(l.query), nil)
	answer.FailsAt("UNAVAILABLE", slices.Clone(l.at)...)
	answer.DataIs(town.names.Replace(l.data))
	check.Lacks(t, "the answer", answer.Text, "db.internal")
}

// A text that cannot be a handle is nobody's handle. It costs no look-up, and the rest of its query is answered.
func TestWhatIsNoHandleIsNobody(t *testing.T) {
	api := apitest.New(t, broken(storeOf(t, 2), "handles", errors.New("asked")), apitest.Options{})
	for _, text := range []string{"é", "\u212aelvin", "名前", "a b", "", "a\x00", strings.Repeat("x", 31), strings.Repeat("é", 30)} {
		api.Ask(`query($h: String!) { byHandle: user(by: {handle: $h}) { id } user(by: {id: 1}) { handle } }`, apitest.Vars{"h": text}).
			Is(`{"byHandle": null, "user": {"handle": "u1"}}`)
	}
}

// Drivers quote their input in errors, and the log must not grow with it.
func TestCausesInTheLogAreCut(t *testing.T) {
	store := storeOf(t, 2)
	var log bytes.Buffer
	cause := errors.New("Incorrect string value: " + strings.Repeat("é", 400_000))
	api := apitest.New(t, broken(store, "users", cause), apitest.Options{Log: &log})
	api.Ask(`{ user(by: {id: 1}) { handle } }`, nil).Refused("INTERNAL_SERVER_ERROR")
	check.Most(t, "bytes of log", len(log.String()), 10_000)
	check.Has(t, "the log", log.String(), "Incorrect string value")
}

// TestRefusalsNameTheirReasonAndArgument: a form can show a refusal beside the field that it is about.
func TestRefusalsNameTheirReasonAndArgument(t *testing.T) {
	api, store := withUsers(t, 4, apitest.Options{})
	apitest.Follow(t, store, 1, 2)
	viewer := api.As(1)
	viewer.Ask(`mutation { block(userId: 3) { changed } }`, nil).Whole()
	end := viewer.Ask(`{ viewer { user { followings(first: 1) { pageInfo { endCursor } } } } }`, nil).Whole().At("viewer.user.followings.pageInfo.endCursor")
	for query, want := range map[string][2]string{
		`{ user(by: {id: "x"}) { id } }`:                                                                                                {"ID_MALFORMED", "id"},
		`{ users(by: {ids: ["x"]}) { id } }`:                                                                                            {"ID_MALFORMED", "ids"},
		`{ edgesAmong(ids: ["x"]) { complete } }`:                                                                                       {"ID_MALFORMED", "ids"},
		`{ user(by: {id: 1}) { followings(first: 1, last: 1) { totalCount } } }`:                                                        {"INVALID_VALUE", "last"},
		`{ user(by: {id: 1}) { friends(after: "") { totalCount } } }`:                                                                   {"CURSOR_MALFORMED", "after"},
		fmt.Sprintf(`{ user(by: {id: 1}) { followers(after: %q) { totalCount } } }`, end):                                               {"CURSOR_FOREIGN", "after"},
		fmt.Sprintf(`{ user(by: {id: 1}) { friends(after: %q) { totalCount } } }`, end):                                                 {"CURSOR_FOREIGN", "after"},
		`mutation { follow(userId: 1) { changed } }`:                                                                                    {"SELF", "userId"},
		`mutation { follow(userId: 3) { changed } }`:                                                                                    {"BLOCKING", "userId"},
		`mutation { follow(userId: 9) { changed } }`:                                                                                    {"USER_NOT_FOUND", "userId"},
		`mutation { setFollowMark(userId: 4, special: true) { relationship { id } } }`:                                                  {"NOT_FOLLOWING", "userId"},
		`mutation { withdrawRequest(kind: FRIEND, userId: 4) { changed } }`:                                                             {"REQUEST_NOT_FOUND", "userId"},
		`mutation { updateProfile(website: "ftp://x") { viewer { user { id } } } }`:                                                     {"URL_MALFORMED", "website"},
		`mutation { updateProfile(avatarUrl: "https://a:b@example.org/") { viewer { user { id } } } }`:                                  {"URL_MALFORMED", "avatarUrl"},
		`mutation { publishPost(text: "x", clientKey: "k", media: [{url: "https://", kind: IMAGE}]) { post { id } } }`:                  {"URL_MALFORMED", "media"},
		`mutation { publishPost(text: "x", clientKey: "k", media: [{name: "\u200b", url: "https://x", kind: IMAGE}]) { post { id } } }`: {"TEXT_INVISIBLE", "media"},
		`mutation { favorite(postId: "post_1_9") { changed } }`:                                                                         {"POST_NOT_FOUND", "postId"},
		`{ nothing }`: {"INVALID_QUERY", ""},
	} {
		viewer.Ask(query, nil).RefusedFor(want[0], want[1])
	}
	api.Ask(`mutation { follow(userId: 2) { changed } }`, nil).RefusedFor("NOT_SIGNED_IN", "")
	viewer.Ask(`mutation { followMany(userIds: [1, 2, 3]) { outcomes { error { code reason } } } }`, nil).Is(`{"followMany": {"outcomes": [
		{"error": {"code": "BAD_USER_INPUT", "reason": "SELF"}}, {"error": null}, {"error": {"code": "FORBIDDEN", "reason": "BLOCKING"}}]}}`)
}

// A field that is null because of an error has one under each of its names, and there is none at a path that the answer does not have: below
// another name of the same object, other fields may be selected.

func TestErrorsOfPayloadsAreAtEveryName(t *testing.T) {
	api := apitest.New(t, broken(storeOf(t, 3), "edges.follower", storage.ErrUnavailable), apitest.Options{}).As(1)
	for mutation, at := range map[string][]string{
		`x: follow(userId: 2) { a: relationship { status } b: relationship { status } c: relationship { id } }`: {"x.a", "x.b", "x.c"},
		`followMany(userIds: ["x", 2]) { x: outcomes { a: relationship { status } } y: outcomes { b: relationship { status } changed } }`: {
			"followMany.x.1.a", "followMany.y.1.b"},
		`follow(userId: 3) { a: followingEdge { node { b: viewerRelationship { status } } } c: followingEdge { d: node { e: viewerRelationship { status } } } }`: {
			"follow.a.node.b", "follow.c.d.e"},
	} {
		api.Ask(`mutation { `+mutation+` }`, nil).FailsAt("UNAVAILABLE", at...)
	}
}

func TestErrorsBelowPagesAreWhereTheirFieldsAre(t *testing.T) {
	store := storeOf(t, 30)
	town := byShard(30)
	me, gone := town[0][0], town[deadShard][0]
	whole := apitest.New(t, store, apitest.Options{})
	post := publish(t, whole, me, "x", "1")
	comment(t, whole, gone, post, "y")
	apitest.New(t, dead(store, 4, deadShard), apitest.Options{}).Ask(`query($p: ID!) { node(id: $p) { ... on Post {
		comments { nodes { author { name } } edges { node { a: author { name } } b: node { c: author { name } } } } x: comments { nodes { y: author { name } id } } } } }`, apitest.Vars{"p": post}).
		FailsAt("UNAVAILABLE", "node.comments.nodes.0.author", "node.comments.edges.0.node.a", "node.comments.edges.0.b.c", "node.x.nodes.0.y")
}

// A set answer that panics fails alone, even if others are worked out together with it.
func TestASetAnswerThatPanicsFailsAlone(t *testing.T) {
	store := storeOf(t, 5)
	apitest.Tangle(t, store, 5)
	inactive := double.Of(store) // which panics when it is asked when users have posted last
	inactive.Instead.Bundle = func(ctx context.Context, b *storage.Bundle) {
		if storage.LastPostLookups.In(b) != nil {
			panic("no last posts")
		}
		store.Bundle(ctx, b)
	}
	api := apitest.New(t, inactive, apitest.Options{}).As(1)
	answer := api.Ask(`{ viewer { user { handle friends { totalCount } followSuggestions(orderBy: BEST) { nodes { id } } commonFollowings(with: 2) { totalCount } } } }`, nil)
	text := answer.Text
	check.Has(t, "the text", text,
		`"followSuggestions":null`, `"friends":{"totalCount":`, `"commonFollowings":{"totalCount":`, `"path":["viewer","user","followSuggestions"]`, `INTERNAL`)
	check.Lacks(t, "the text", text, "no last posts")
}
