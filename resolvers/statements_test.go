package resolvers_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/generated"
	"kith/graph/limits"
	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/loaders"
	"kith/storage"
	"kith/storage/sqlstore"
)

// generous is a time limit that a busy machine does not reach.
const generous = 30 * time.Second

// costs are the SQL statements of an answer, by look-up, on one shard. If there are several shards,
// each runs at most that many.
type costs map[string]int

// ringUsers is the number of users in the graph on which statements are counted. One statement can
// name them all.
const ringUsers = 440

// ring makes every user follow the 40 users after it. The last users follow the first. Every even user
// is followed back by the first 10 of those whom it follows.
func ring(t testing.TB, store storage.Store) {
	t.Helper()
	apitest.Users(t, store, ringUsers)
	var edges []storage.Edge
	for from := range ringUsers {
		for step := 1; step <= 40; step++ {
			edges = append(edges, storage.Edge{
				From: storage.UserID(from + 1), To: storage.UserID((from+step)%ringUsers + 1),
				Type: storage.Following, UpdateTime: apitest.Epoch + storage.Micros(step),
			})
			if from%2 == 1 && step <= 10 {
				edges = append(edges, storage.Edge{
					From: storage.UserID((from+step)%ringUsers + 1), To: storage.UserID(from + 1),
					Type: storage.Following, UpdateTime: apitest.Epoch + storage.Micros(100+step),
				})
			}
		}
	}
	apitest.Apply(t, store, edges...)
}

// kindOfRing is by how many shards and authors of posts a ring has. Each author has one post.
type kindOfRing struct{ shards, authors int }

// rings are the files of rings on SQLite. Making a ring takes longer than most tests that ask it something.
var rings = struct {
	sync.Mutex
	files map[kindOfRing][][]byte
}{files: map[kindOfRing][][]byte{}}

// ringOn is where a ring on SQLite is, for one test.
func ringOn(t testing.TB, kind kindOfRing) string {
	t.Helper()
	rings.Lock()
	defer rings.Unlock()
	location := apitest.Location(t, kind.shards)
	paths := strings.Split(strings.TrimPrefix(location, "sqlite:"), ";")
	if files := rings.files[kind]; files != nil {
		for i, path := range paths {
			must.OK(t, os.WriteFile(path, files[i], 0o600))
		}
		return location
	}
	makeRing(t, location, kind.authors)
	for _, path := range paths {
		file := must.File(t, path)
		rings.files[kind] = append(rings.files[kind], file)
	}
	return location
}

// makeRing makes a ring in a store that is closed at the end, so that its files hold everything.
func makeRing(t testing.TB, location string, authors int) {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Location: location})
	must.OK(t, err)
	ring(t, store)
	apitest.Publish(t, store, authors)
	must.OK(t, store.Close())
}

// authors is how many users of a counted ring have posts.
const authors = 40

// countedAPI serves a ring on so many shards of SQLite whose statements are counted.
func countedAPI(t testing.TB, shards int, o apitest.Options) (*apitest.API, *apitest.Recorder) {
	t.Helper()
	return countedOn(t, ringOn(t, kindOfRing{shards, authors}), o)
}

func countedOn(t testing.TB, location string, o apitest.Options) (*apitest.API, *apitest.Recorder) {
	t.Helper()
	var recorder apitest.Recorder
	store := opened.Store(t, sqlstore.Config{Location: location, StatementTimeout: generous, OnStatement: recorder.Observe})
	api := apitest.New(t, store, o)
	recorder.Take()
	return api, &recorder
}

// idsUpTo lists the ids from first to last as a variable.
func idsUpTo(first, last int) []string {
	var ids []string
	for id := first; id <= last; id++ {
		ids = append(ids, strconv.Itoa(id))
	}
	return ids
}

// aliased repeats a field under the aliases f1 … fn. A %d in the field becomes the number.
func aliased(n int, field string) string {
	var text strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&text, "f%d: %s\n", i, strings.ReplaceAll(field, "%d", strconv.Itoa(i)))
	}
	return text.String()
}

// countedQueries say what each query costs. For everything that is reached through users, each level
// takes one statement for each look-up, however many users there are.
//
// The row of an owner says whether its lists are open. So a relationship between two others costs a
// look-up of the first of them. For a viewer, queries with a list, a set answer or such a relationship
// cost one more statement, which reads blocks.
var countedQueries = []struct {
	name  string
	query string
	vars  apitest.Vars
	want  costs
}{
	{"a user", `{ user(by: {id: 1}) { handle name } }`, nil, costs{"users": 1}},
	{"a user with both counts", `{ user(by: {id: 1}) { handle followingCount followerCount } }`, nil,
		costs{"profiles": 1}},
	{"an unknown user", `{ user(by: {id: 9999}) { handle followingCount followings { nodes { handle } } } }`, nil,
		costs{"counts": 1, "pages.following": 1, "profiles": 1}},
	{"a user by handle", `{ user(by: {handle: "U7"}) { handle } }`, nil, costs{"handles": 1, "users": 1}},
	{"20 users by handle, by alias", "{" + aliased(20, `user(by: {handle: "u%d"}) { name }`) + "}", nil,
		costs{"handles": 1, "users": 1}},
	{"20 users, by alias", "{" + aliased(20, `user(by: {id: %d}) { name followerCount }`) + "}", nil,
		costs{"profiles": 1}},
	{"240 users", `query($ids: [ID!]!) { users(by: {ids: $ids}) { name followerCount } }`,
		apitest.Vars{"ids": idsUpTo(221, 460)}, costs{"profiles": 1, "counts": 1}}, // 20 of these users do not exist
	{"users by id, handle and node", `{ user(by: {id: 1}) { name } byHandle: user(by: {handle: "u2"}) { name } node(id: 3) { ... on User { name } } users(by: {ids: [4, 5]}) { name } }`, nil,
		costs{"handles": 1, "users": 1}},
	{"nothing but ids of followings", `{ user(by: {id: 1}) { followings { nodes { id } } } }`, nil,
		costs{"pages.following": 1, "users": 1}},
	{"followings with names", `{ user(by: {id: 1}) { followings { nodes { handle name } } } }`, nil,
		costs{"pages.following": 1, "users": 2}},
	{"followings with names and the total", `{ user(by: {id: 1}) { followings(first: 20) { totalCount edges { cursor followedAt node { handle name } } pageInfo { hasNextPage endCursor } } } }`, nil,
		costs{"pages.following": 1, "profiles": 1, "users": 1}},
	{"the total alone", `{ user(by: {id: 1}) { followings(first: 0) { totalCount } followers { totalCount complete } } }`, nil,
		costs{"profiles": 1}},
	{"followings and followers", `{ user(by: {id: 1}) { followings { nodes { name } } followers { nodes { name } } } }`, nil,
		costs{"users": 2, "pages.following": 1, "pages.follower": 1}},
	{"followings' followings' followings, with counts", `{ user(by: {id: 1}) { followings(first: 5) { nodes { followings(first: 5) { nodes { followings(first: 5) { nodes { name followerCount } } } } } } } }`, nil,
		costs{"pages.following": 3, "profiles": 1, "users": 3}},
	{"followings of many users, with a relationship each", `query($ids: [ID!]!) { users(by: {ids: $ids}) { followings(first: 8) { nodes { handle relationship(to: 7) { status } } } } }`,
		apitest.Vars{"ids": idsUpTo(1, 32)}, costs{"users": 2, "pages.following": 1, "edges.following": 1, "edges.follower": 1}}, // as many as one statement of SQLite may name
	{"a relationship of two others", `{ relationship(from: 1, to: 2) { status followedAt followedByAt } }`, nil,
		costs{"edges.follower": 1, "edges.following": 1, "users": 1}},
	{"one half of a relationship of two others", `{ relationship(from: 1, to: 2) { following } }`, nil, costs{"edges.following": 1, "users": 1}},
	{"the other half", `{ relationship(from: 1, to: 2) { followedByAt } }`, nil, costs{"edges.follower": 1, "users": 1}},
	{"no half", `{ relationship(from: 1, to: 2) { id } }`, nil, costs{"users": 1}},
	{"a relationship with both users", `{ relationship(from: 1, to: 2) { status from { name } to { name followerCount } } }`, nil,
		costs{"edges.follower": 1, "edges.following": 1, "profiles": 1, "users": 1}},
	{"a relationship with itself", `{ relationship(from: 1, to: 1) { status } }`, nil, costs{}},
	{"edges among 100 users", `query($ids: [ID!]!) { edgesAmong(ids: $ids) { followings } }`,
		apitest.Vars{"ids": idsUpTo(1, 100)}, costs{"profiles": 1, "neighbours.following": 1}},
	{"120 pairs", `query($from: [ID!]!, $to: [ID!]!) { relationships(from: $from, to: $to) { status } }`,
		apitest.Vars{"from": idsUpTo(1, 10), "to": idsUpTo(101, 112)}, costs{"edges.following": 1, "edges.follower": 1, "users": 1}},
	{"nodes of both types", `{ nodes(ids: [1, "rel_1_2", 3, "rel_4_3", "rel_1_2"]) { id ... on User { name } ... on Relationship { status } } }`, nil,
		costs{"edges.follower": 1, "edges.following": 1, "users": 1}},
	{"aliased relationships of aliased users", "{" + aliased(10, `user(by: {id: %d}) { `+aliased(5, `relationship(to: 10%d) { status }`)+"}") + "}", nil,
		costs{"users": 1, "edges.following": 1, "edges.follower": 1}},
	{"friends", `{ user(by: {id: 2}) { friends { totalCount nodes { name } } } }`, nil,
		costs{"users": 1, "profiles": 1, "pages.following": 1, "edges.follower": 1}},
	{"the number of friends", `{ user(by: {id: 2}) { friends(first: 0) { totalCount } } }`, nil,
		costs{"profiles": 1, "pages.following": 1, "edges.follower": 1}},
	{"common followings", `{ user(by: {id: 1}) { commonFollowings(with: 3) { totalCount nodes { name } } } }`, nil,
		costs{"neighbours.following": 1, "profiles": 1, "users": 1}},
	{"common followers", `{ user(by: {id: 41}) { commonFollowers(with: 43) { totalCount nodes { name } } } }`, nil,
		costs{"neighbours.follower": 1, "profiles": 1, "users": 1}},
	{"suggestions", `{ user(by: {id: 1}) { followSuggestions { nodes { name } } } }`, nil,
		costs{"neighbours.following": 1, "pages.following": 1, "profiles": 1, "users": 2}},
	{"suggestions with who speaks for them", `{ user(by: {id: 1}) { followSuggestions { edges { sharedCount node { name } via { name followerCount } } } } }`, nil,
		costs{"neighbours.following": 1, "pages.following": 1, "profiles": 1, "users": 2}},
	{"what is below a set answer", `{ user(by: {id: 2}) { friends { nodes { name followerCount relationship(to: 5) { status } followers(first: 3) { nodes { name } } } } } }`, nil,
		costs{"edges.follower": 2, "edges.following": 1, "pages.follower": 1, "pages.following": 1, "profiles": 2, "users": 1}},
	{"fragments, aliases and directives", `
		query($yes: Boolean = true, $no: Boolean = false) { user(by: {id: 1}) { ...A ... @include(if: $no) { friends { totalCount } } followers @skip(if: $yes) { nodes { name } } } }
		fragment A on User { b: followings(first: 3) { edges { n: node { ...C } } } ... on Node { id } }
		fragment C on User { x: relationship(to: 9) { s: status other: to { name } } followingCount }`, nil,
		costs{"edges.follower": 1, "edges.following": 1, "pages.following": 1, "profiles": 1, "users": 2}},
	{"the number of friends that is kept", `{ user(by: {id: 2}) { friendCount listVisibility { followings followers } } }`, nil,
		costs{"profiles": 1}},
	{"who does not follow back", `{ user(by: {id: 2}) { notFollowingBack { totalCount nodes { name } } } }`, nil,
		costs{"profiles": 1, "users": 1, "pages.following": 1, "edges.follower": 1}},
	{"followers not followed back", `{ user(by: {id: 2}) { notFollowedBack { totalCount nodes { name } } } }`, nil,
		costs{"profiles": 1, "users": 1, "pages.follower": 1, "edges.following": 1}},
	{"common followings, recent first", `{ user(by: {id: 1}) { commonFollowings(with: 3, orderBy: RECENT) { totalCount nodes { name } } } }`, nil,
		costs{"edges.following": 1, "pages.following": 1, "profiles": 1, "users": 1}},
	{"people of four lists", `{ people(where: {and: [{or: [{followersOf: 41}, {followedBy: 3}]}, {followedBy: 2}, {not: {followersOf: 44}}]}) { totalCount nodes { name } } }`, nil,
		costs{"profiles": 1, "users": 1, "neighbours.following": 1, "neighbours.follower": 1}},
	{"the latest posts with authors and comments", `{ latestPosts { nodes { text commentCount author { name followerCount } comments(first: 3) { nodes { text author { name } } } } } }`, nil,
		costs{"posts.latest": 1, "comments.pages": 1, "profiles": 1, "users": 1}},
	{"posts of several users", `{ users(by: {ids: [1, 2, 3, 99]}) { postCount posts(first: 3) { nodes { text comments(first: 2) { nodes { text } } } } } }`, nil,
		costs{"posts.pages": 1, "comments.pages": 1, "profiles": 1, "users": 1}},
	{"posts and comments by id", `{ nodes(ids: ["post_1_1", "post_2_2", "cmt_1_1000", "post_1_7"]) { id ... on Post { author { name } } ... on Comment { author { name } } } }`, nil,
		costs{"posts": 1, "comments": 1, "users": 1}},
	{"users by handle, in a list", `{ users(by: {handles: ["u1", "U2", "nobody", "u3", "u1"]}) { name followerCount } }`, nil,
		costs{"handles": 1, "profiles": 1}},
	{"a search", `{ searchUsers(text: "u1", first: 10) { nodes { name followerCount } } }`, nil,
		costs{"words": 1, "users": 1, "counts": 1}},
}

// viewersQueries say what queries cost if somebody is signed in: user 2.
var viewersQueries = []struct {
	name  string
	query string
	want  costs
}{
	{"the viewer's identities", `{ viewer { identities { subject } } }`, costs{"users": 1, "identities.of": 1}},
	{"the viewer's standing", `{ viewer { standing { state } } }`, costs{"users": 1, "states": 1}},
	{"the viewer", `{ viewer { user { name followerCount } discoverable } }`, costs{"profiles": 1}},
	{"users", `{ users(by: {ids: [2, 3, 4]}) { name } }`, costs{"users": 1}},
	{"own relationships", `{ relationships(from: 2, to: [3, 4, 5]) { status special remark blocking } }`,
		costs{"edges.following": 1, "edges.follower": 1, "marks": 1}},
	{"own requests", `{ relationships(from: 2, to: [3, 4, 5]) { sentRequest { state message from { name } } receivedRequest { state message to { name } } } }`,
		costs{"edges.friend_request": 1, "edges.friend_request_inbox": 1}},
	{"somebody towards the viewer", `{ relationship(from: 3, to: 2) { status } }`, costs{"edges.following": 1, "edges.follower": 1}},
	{"own followings", `{ viewer { user { followings { totalCount nodes { name } } } } }`,
		costs{"blocks": 1, "pages.following": 1, "profiles": 1, "users": 1}},
	{"own special follows", `{ viewer { user { followings(filter: {special: true}) { totalCount nodes { name } } } } }`,
		costs{"users": 1, "specials": 1, "blocks": 1}},
	{"another's lists", `{ user(by: {id: 3}) { followings { nodes { name } } followers { totalCount } friends { nodes { id } } } }`,
		costs{"blocks": 1, "edges.follower": 1, "pages.following": 2, "profiles": 1, "users": 1}},
	{"the latest posts with the relation to each author", `{ latestPosts { nodes { text commentCount author { name followerCount viewerRelationship { status } } } } }`,
		costs{"blocks": 1, "edges.follower": 1, "edges.following": 1, "posts.latest": 1, "profiles": 1}},
	{"the latest posts with the viewer's favorites", `{ latestPosts(first: 20) { nodes { text commentCount favoritesReceivedCount viewerHasFavorited author { name followerCount favoritesReceivedCount viewerRelationship { status } } } } }`,
		costs{"blocks": 1, "edges.favorite": 1, "edges.follower": 1, "edges.following": 1, "posts.latest": 1, "profiles": 1}},
	{"favorites of users", `{ users(by: {ids: [3, 4, 5]}) { favoritesGivenCount favorites(first: 4) { nodes { text viewerHasFavorited author { name } } } } }`,
		costs{"blocks": 1, "favorites.pages": 1, "posts": 1, "edges.favorite": 1, "profiles": 2}},
	{"who has favorited posts", `{ latestPosts(first: 20) { nodes { favoritedBy(first: 3) { edges { favoritedAt node { name viewerRelationship { status } } } } } } }`,
		costs{"blocks": 1, "edges.follower": 1, "edges.following": 1, "pages.favorite_inbox": 1, "posts.latest": 1, "profiles": 1, "users": 1}},
	{"another's posts", `{ user(by: {id: 3}) { posts { nodes { text author { name } comments { nodes { author { name } } } } } } }`,
		costs{"blocks": 1, "posts.pages": 1, "comments.pages": 1, "users": 2}},
	{"the feed, from the store", `{ viewer { feed { nodes { text commentCount author { name followerCount viewerRelationship { status } } } complete } } }`,
		costs{"blocks": 1, "counts": 1, "edges.follower": 1, "edges.following": 1, "neighbours.following": 1, "pages.relation": 1, "posts.last": 1, "posts.pages": 1, "profiles": 1, "users": 1}},
	{"followers you know", `{ users(by: {ids: [12, 13, 14, 15]}) { followersYouKnow(first: 3) { totalCount complete nodes { handle } } } }`,
		costs{"profiles": 1, "users": 1, "specials": 1, "pages.following": 1, "edges.follower": 2, "blocks": 1}},
}

func TestStatementsOfEachQueryOnOneShard(t *testing.T) {
	api, recorder := countedAPI(t, 1, apitest.Options{})
	var table strings.Builder
	for _, q := range countedQueries {
		api.Ask(q.query, q.vars).Whole()
		got := recorder.Take()
		fmt.Fprintf(&table, "| %s | %d | %s |\n", q.name, len(got), cmp.Or(got.String(), "none"))
		check.Equal(t, q.name, got.ByLookup(), q.want)
	}
	t.Logf("statements on one shard:\n| query | statements | of them |\n|---|---|---|\n%s", table.String())
}

func TestStatementsOfTheViewersQueries(t *testing.T) {
	for _, shards := range []int{1, 4} {
		api, recorder := countedAPI(t, shards, apitest.Options{})
		for _, q := range viewersQueries {
			api.As(2).Ask(q.query, nil).Whole()
			got := recorder.Take().MostOnOneShard()
			check.That(t, within(got, q.want) && (shards > 1 || maps.Equal(got, q.want)), "%s, %d shards: %v, want %v", q.name, shards, got, q.want)
		}
	}
}

func TestStatementsOfEachQueryOnFourShards(t *testing.T) {
	api, recorder := countedAPI(t, 4, apitest.Options{})
	for _, q := range countedQueries {
		answer := api.CountingReads().Ask(q.query, q.vars).Whole()
		all := recorder.Take()
		check.Equal(t, q.name, fmt.Sprint(statementsOf(answer)), strconv.Itoa(len(all)))
		got, want := all.MostOnOneShard(), q.want
		check.Equal(t, q.name, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		for lookup, n := range got {
			check.Most(t, q.name+": statements "+lookup+" on one shard", n, want[lookup])
		}
	}
}

// The relation status of the viewer towards N others costs exactly two SQL statements, both on the
// viewer's shard. For another user, it must also be known whether that user's lists are open: that
// takes one more statement there.
func TestStatusTowardsManyIsTwoStatementsOnTheUsersShard(t *testing.T) {
	lax := limits.Limits{Tokens: 20_000, Overlaps: 1_000_000}
	for _, shards := range []int{1, 4} {
		api, recorder := countedAPI(t, shards, apitest.Options{Limits: lax})
		shards := storage.NewShardMap(shards)
		for _, user := range []storage.UserID{1, 2, 77} {
			home := []int{shards.Of(user)}
			for _, n := range []int{1, 50, 500} {
				others := idsUpTo(100, 99+n)
				check := func(how string, rows int) {
					t.Helper()
					got := recorder.Take()
					want := costs{"edges.following": 1, "edges.follower": 1}
					if rows > 0 {
						want["users"] = rows
					}
					if !maps.Equal(got.ByLookup(), want) || !slices.Equal(got.Shards(), home) {
						t.Errorf("%s: user %s towards %d on %d shards: %v on shards %v, want %v on %v",
							how, user, n, shards.Now().Shards(), got, got.Shards(), want, home)
					}
				}
				nodes := make([]string, n)
				for i, other := range others {
					nodes[i] = fmt.Sprintf("rel_%s_%s", user, other)
				}
				for rows, api := range []*apitest.API{api.As(user), api} {
					api.Ask(`query($from: ID!, $to: [ID!]!) { relationships(from: [$from], to: $to) { status } }`,
						apitest.Vars{"from": user, "to": others}).Whole()
					check("relationships", rows)
					api.Ask("query($id: ID!) { user(by: {id: $id}) {"+aliased(n, "relationship(to: 1%d) { status }")+"} }",
						apitest.Vars{"id": user}).Whole()
					check("user.relationship", 1)
					api.Ask(`query($ids: [ID!]!) { nodes(ids: $ids) { ... on Relationship { status } } }`, apitest.Vars{"ids": nodes}).Whole()
					check("nodes", rows)
				}
			}
		}
	}
}

// Entities of all types take one statement for each look-up, however many entities there are.
func TestEntitiesTakeAConstantNumberOfStatements(t *testing.T) {
	const query = `query($of: [_Any!]!) { _entities(representations: $of) { __typename ... on User { name followerCount viewerRelationship { status } } } }`
	want := costs{"users": 1, "counts": 1, "profiles": 1, "edges.following": 1, "edges.follower": 1}
	for _, shards := range []int{1, 4} {
		api, recorder := countedAPI(t, shards, apitest.Options{})
		for _, key := range []string{"id", "handle"} {
			for _, n := range []int{20, 100, 256, 1000} { // each user may be named more than once, and one statement of SQLite names 256
				representations := make([]map[string]string, n)
				for i := range n {
					id := strconv.Itoa(i%256 + 1)
					representations[i] = map[string]string{"__typename": "User", "id": id}
					if key == "handle" {
						representations[i] = map[string]string{"__typename": "User", "handle": "u" + id}
					}
				}
				answer := api.As(2).Ask(query, apitest.Vars{"of": representations}).Whole()
				found := apitest.Into[[]struct{ Name string }](answer, "_entities")
				check.That(t, len(found) == n && found[n-1].Name == fmt.Sprintf("User %d", (n-1)%256+1), "%d by %s, %d shards: %d users", n, key, shards, len(found))
				got, most := recorder.Take().MostOnOneShard(), maps.Clone(want)
				if key == "handle" {
					most["handles"] = 1
				}
				check.That(t, within(got, most), "%d by %s, %d shards: %v on one shard, want at most %v", n, key, shards, got, most)
			}
		}
	}
}

func within(got, most costs) bool {
	for lookup, n := range got {
		if n > most[lookup] {
			return false
		}
	}
	return true
}

// Beyond the bound of one statement, the number of statements grows with the keys.
func TestStatementsGrowWithKeysBeyondTheBatchBound(t *testing.T) {
	const (
		pairsOfMany = 128    // how many one statement of SQLite may name if the pairs have many owners
		pairsOfFew  = 20_000 // and if each owner has many of them
	)
	api, recorder := countedAPI(t, 1, apitest.Options{})
	for _, size := range []struct{ from, to, perStatement int }{
		{1, 500, pairsOfFew}, {1, 2000, pairsOfFew}, {40, 50, pairsOfFew}, {450, 1, pairsOfMany}, {500, 1, pairsOfMany}, {500, 4, pairsOfMany},
	} {
		api.Ask(`query($from: [ID!]!, $to: [ID!]!) { relationships(from: $from, to: $to) { status } }`,
			apitest.Vars{"from": idsUpTo(1, size.from), "to": idsUpTo(501, 500+size.to)}).Whole()
		statements := (size.from*size.to + size.perStatement - 1) / size.perStatement
		want := costs{"edges.following": statements, "edges.follower": statements, "users": (size.from + 255) / 256}
		check.Equal(t, fmt.Sprintf("%d × %d pairs", size.from, size.to), recorder.Take().ByLookup(), want)
	}
}

// The servers' own counters agree with the hook's counts.
func TestStatementsAreThoseThatMariaDBCounts(t *testing.T) {
	testenv.NotOn(t, "it counts no statements by their kind", "tidb")
	servers := testenv.SharedMariaDB(t, 2)
	location := "mysql:" + strings.Join(servers.FreshDatabases(t, 2), ";")
	makeRing(t, location, authors)
	api, recorder := countedOn(t, location, apitest.Options{})
	selects := func() (total int) {
		t.Helper()
		for _, server := range servers {
			var name string
			var n int
			row := server.Open(t, "").QueryRow(`SHOW GLOBAL STATUS LIKE 'Com_select'`)
			must.OK(t, row.Scan(&name, &n))
			total += n
		}
		return total
	}
	for _, q := range countedQueries {
		before := selects()
		api.Ask(q.query, q.vars).Whole()
		counted, got := selects()-before, recorder.Take()
		check.Equal(t, q.name, counted, len(got))
		check.That(t, within(got.MostOnOneShard(), q.want), "%s: %v, want at most %v on each shard", q.name, got, q.want)
	}
}

// TestEqualAliasesAreOneAnswer: fields that no level reads ahead take the statements of one, under however many aliases.
func TestEqualAliasesAreOneAnswer(t *testing.T) {
	api, recorder := countedAPI(t, 1, apitest.Options{
		Declared: declare(t, someKinds), Limits: apitest.NoLimits,
		Context: func(ctx context.Context) context.Context { return loaders.WithWait(ctx, generous) }, // a busy machine's timer would take batches apart
	})
	list := apitest.Into[string](api.As(1).Ask(`mutation { createList(name: "list", public: true, userIds: [2, 3]) { list { id } } }`, nil).Whole(), "createList.list.id")
	recorder.Take()
	const ofUser, ofPost = "user(by: {id: 2}) { %s }", "user(by: {id: 2}) { posts(first: 1) { nodes { %s } } }"
	ofList := "node(id: " + strconv.Quote(list) + ") { ... on List { %s } }"
	rows := []struct{ around, field string }{
		{"%s", `latestPosts(first: 2) { nodes { text } }`}, {"%s", `latestPosts(first: 2) { pageInfo { endCursor } }`},
		{"%s", `moderationLog(first: 1) { nodes { reason } }`},
		{"%s", `searchUsers(text: "user", first: 3) { nodes { id } }`}, {"%s", `people(where: {followedBy: 2}, first: 3) { totalCount nodes { id } }`},
		{"%s", `edgesAmong(ids: [1, 2, 3]) { followings complete }`}, {"%s", `edgesTo(kind: WORKS_WITH, id: 2) { totalCount nodes { id } }`},
		{"%s", `user(by: {id: 2}) { name }`}, {"%s", `users(by: {ids: [2, 3]}) { name }`}, {"%s", `node(id: 2) { id ... on User { name } }`},
		{"%s", `nodes(ids: [2, 3]) { id ... on User { name } }`}, {"%s", `relationship(from: 2, to: 3) { status muted remark }`},
		{"%s", `relationships(from: [1], to: [2, 3]) { status muted special }`}, {"%s", `_entities(representations: [{__typename: "User", id: 2}]) { ... on User { name } }`},
		{"viewer { %s }", `accountsFile(kind: FOLLOWS) { text }`}, {"viewer { %s }", `accountsFile(kind: LISTS) { text }`}, {"viewer { %s }", `lists(with: 3) { name }`}, {"viewer { %s }", `accountsImports { refused(afterLine: 1) { line } }`},
		{"viewer { %s }", `feedSeenUpTo`}, {"viewer { %s }", `standing { state }`}, {"viewer { %s }", `identities { subject }`}, {"viewer { %s }", `blockedUsers(first: 1) { totalCount }`},
		{"viewer { %s }", `requests(kind: FRIEND, direction: RECEIVED, state: EXPIRED) { totalCount nodes { id } }`},
		{"viewer { %s }", `feed(first: 2) { nodes { text } complete }`}, {"viewer { %s }", `feed(only: {special: true}) { unseen { count } pageInfo { endCursor } }`},
		{"viewer { %s }", `feed(only: {list: ` + strconv.Quote(list) + `}) { nodes { text } }`},
		{"viewer { %s }", `requests(kind: FOLLOW, direction: SENT) { totalCount nodes { id } }`}, {"viewer { %s }", `mutedUsers(scope: POSTS) { totalCount }`},
		{"viewer { %s }", `activity(first: 2, kinds: [FOLLOW]) { unseen { count } nodes { kind actors { id } } }`},
		{"viewer { %s }", `dismissedUsers(first: 2) { totalCount nodes { id } }`}, {"viewer { %s }", `edge(kind: WORKS_WITH, id: 2) { since }`},
		{ofUser, `followings(first: 2) { totalCount nodes { id } }`}, {ofUser, `followers(first: 2, filter: {match: "u"}) { totalCount nodes { id } }`},
		{ofUser, `followings(first: 2, orderBy: MOST_FOLLOWED) { nodes { id } }`}, {ofUser, `friends(first: 2) { totalCount nodes { id } }`},
		{ofUser, `notFollowingBack(first: 2) { totalCount nodes { id } }`}, {ofUser, `notFollowedBack(first: 2) { totalCount nodes { id } }`},
		{ofUser, `relationship(to: 3) { status muted }`}, {ofUser, `commonFollowings(with: 3, orderBy: RECENT) { totalCount nodes { id } }`},
		{ofUser, `commonFollowers(with: 3) { totalCount nodes { id } }`}, {ofUser, `followersYouKnow(first: 2) { totalCount nodes { id } }`},
		{"viewer { user { %s } }", `followSuggestions(first: 2) { nodes { id } edges { via(first: 2) { id } } }`}, {"viewer { user { %s } }", `followSuggestions(first: 2, orderBy: BEST) { nodes { id } }`},
		{ofUser, `similarUsers(first: 2) { totalCount nodes { id } }`}, {ofUser, `posts(first: 2) { nodes { text } }`}, {ofUser, `favorites(first: 2) { nodes { id } }`},
		{ofUser, `lists(first: 2) { nodes { id name } }`}, {ofUser, `edges(kind: WORKS_WITH) { totalCount nodes { id } }`},
		{ofList, `members(first: 2) { totalCount nodes { id } }`}, {ofList, `has(userId: 2)`},
		{ofPost, `comments(first: 2) { nodes { id } }`}, {ofPost, `favoritedBy(first: 2) { nodes { id } }`},
	}
	for _, of := range rows {
		ask := func(field string) string {
			api.Admin().Ask("{ "+fmt.Sprintf(of.around, field)+" }", nil).Whole()
			return recorder.Take().String()
		}
		one, many := ask(of.field), ask(aliased(20, of.field))
		check.That(t, many == one && one != "", "%s takes %s, and under 20 aliases %s", of.field, one, many)
	}
	asked := fmt.Sprint(rows)
	for of, d := range generated.NewSchema(generated.Config{}).Schema().Types {
		for _, f := range d.Fields {
			if d.Kind == ast.Object && !d.BuiltIn && of != "Mutation" && of != "Subscription" && len(f.Arguments) > 0 && !strings.HasPrefix(f.Name, "__") && !strings.Contains(asked, f.Name+"(") {
				t.Errorf("nobody asks for %s.%s", of, f.Name)
			}
		}
	}
}
