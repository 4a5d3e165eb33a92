package resolvers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"kith/graph/consistency"
	"kith/graph/limits"
	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// payload is everything that a client's cache replaces after a follow.
const payload = `changed
	viewer { user { id followingCount } }
	user { id followerCount viewerRelationship { status } }
	relationship { id status following followedBy }
	followingEdge { node { handle } }`

func TestFollowAndUnfollow(t *testing.T) {
	api, store := withUsers(t, 3, apitest.Options{})
	one := api.As(1)

	a := one.Ask(`mutation { follow(userId: 2) {`+payload+`} }`, nil).Whole()
	token := a.Token()
	check.That(t, token != "", "no token")
	a.Is(`{"follow": {"changed": true,
		"viewer": {"user": {"id": "1", "followingCount": 1}},
		"user": {"id": "2", "followerCount": 1, "viewerRelationship": {"status": "FOLLOWING"}},
		"relationship": {"id": "rel_1_2", "status": "FOLLOWING", "following": true, "followedBy": false},
		"followingEdge": {"node": {"handle": "u2"}}}}`)

	// The same follow again changes nothing and moves nothing.
	before := storage.EdgeLookups[storage.Forward].Read(t.Context(), store, storage.Pair{From: 1, To: 2})[0].Value
	again := one.Ask(`mutation { follow(userId: 2) { changed followingEdge { cursor } } }`, nil)
	again.Is(`{"follow": {"changed": false, "followingEdge": null}}`)
	check.Equal(t, "the token of the same follow", again.Token(), token)
	check.Equal(t, "following again", storage.EdgeLookups[storage.Forward].Read(t.Context(), store, storage.Pair{From: 1, To: 2})[0].Value, before)

	api.As(2).Ask(`mutation { follow(userId: 1) { relationship { status } } }`, nil).
		Is(`{"follow": {"relationship": {"status": "MUTUAL"}}}`)

	one.Ask(`mutation { unfollow(userId: 2) { changed viewer { user { followingCount } } user { followerCount } relationship { status } followingEdge { cursor } } }`, nil).
		Is(`{"unfollow": {"changed": true, "viewer": {"user": {"followingCount": 0}}, "user": {"followerCount": 0}, "relationship": {"status": "FOLLOWED_BY"}, "followingEdge": null}}`)
	one.Ask(`mutation { unfollow(userId: 2) { changed } }`, nil).Is(`{"unfollow": {"changed": false}}`)
	one.Ask(`mutation { unfollow(userId: 3) { changed } }`, nil).Is(`{"unfollow": {"changed": false}}`)
}

func TestMutationsOfOneRequestSeeEachOther(t *testing.T) {
	api, _ := withUsers(t, 3, apitest.Options{})
	api.As(1).Ask(`mutation {
		a: follow(userId: 2) { viewer { user { followingCount } } relationship { status } }
		b: follow(userId: 3) { viewer { user { followingCount } } }
		c: unfollow(userId: 2) { viewer { user { followingCount } } relationship { status } }
	}`, nil).Is(`{
		"a": {"viewer": {"user": {"followingCount": 1}}, "relationship": {"status": "FOLLOWING"}},
		"b": {"viewer": {"user": {"followingCount": 2}}},
		"c": {"viewer": {"user": {"followingCount": 1}}, "relationship": {"status": "NONE"}}}`)
}

func TestFollowIsRefused(t *testing.T) {
	api, _ := withUsers(t, 3, apitest.Options{MaxFollowing: 1})
	api.As(1).Ask(`mutation { follow(userId: 2) { changed } }`, nil).Whole()
	for _, c := range []struct {
		viewer storage.UserID
		id     string
		code   string
	}{
		{0, "2", "UNAUTHENTICATED"},
		{99, "2", "UNAUTHENTICATED"}, // signed in, but deleted
		{1, "1", "BAD_USER_INPUT"},
		{1, "x", "BAD_USER_INPUT"},
		{1, "77", "NOT_FOUND"},
		{1, "3", "LIMIT_REACHED"},
	} {
		a := api.As(c.viewer).Ask(`mutation($id: ID!) { follow(userId: $id) { changed } }`, apitest.Vars{"id": c.id})
		if len(a.Errors) != 1 || a.Errors[0].Code() != c.code || a.Errors[0].At() != "follow" || a.Data["follow"] != nil {
			t.Errorf("viewer %d follows %s: %s, want %s", c.viewer, c.id, a.Text, c.code)
		}
	}
}

func TestFollowManyReportsEachOutcome(t *testing.T) {
	six, _ := withUsers(t, 6, apitest.Options{MaxFollowing: 3})
	api := six.As(1)
	api.Ask(`mutation { follow(userId: 2) { changed } }`, nil).Whole()
	api.Ask(`mutation { followMany(userIds: [2, 3, 1, 77, 3, 4, 5]) {
		viewer { user { followingCount } }
		outcomes { userId changed error { code } user { handle followerCount } relationship { status } } } }`, nil).
		Is(`{"followMany": {"viewer": {"user": {"followingCount": 3}}, "outcomes": [
			{"userId": "2", "changed": false, "error": null, "user": {"handle": "u2", "followerCount": 1}, "relationship": {"status": "FOLLOWING"}},
			{"userId": "3", "changed": true, "error": null, "user": {"handle": "u3", "followerCount": 1}, "relationship": {"status": "FOLLOWING"}},
			{"userId": "1", "changed": false, "error": {"code": "BAD_USER_INPUT"}, "user": {"handle": "u1", "followerCount": 0}, "relationship": {"status": "NONE"}},
			{"userId": "77", "changed": false, "error": {"code": "NOT_FOUND"}, "user": null, "relationship": {"status": "NONE"}},
			{"userId": "3", "changed": false, "error": null, "user": {"handle": "u3", "followerCount": 1}, "relationship": {"status": "FOLLOWING"}},
			{"userId": "4", "changed": true, "error": null, "user": {"handle": "u4", "followerCount": 1}, "relationship": {"status": "FOLLOWING"}},
			{"userId": "5", "changed": false, "error": {"code": "LIMIT_REACHED"}, "user": {"handle": "u5", "followerCount": 0}, "relationship": {"status": "NONE"}}]}}`)

	wrong := strings.Repeat("9", 64)
	api.Ask(`mutation($ids: [ID!]!) { followMany(userIds: $ids) { outcomes { userId error { reason } } } }`, apitest.Vars{"ids": []string{wrong}}).
		Is(`{"followMany": {"outcomes": [{"userId": "` + wrong + `", "error": {"reason": "ID_MALFORMED"}}]}}`)

	many := make([]string, 501)
	for i := range many {
		many[i] = fmt.Sprint(i + 1)
	}
	a := api.Ask(`mutation($ids: [ID!]!) { followMany(userIds: $ids) { outcomes { userId } } }`, apitest.Vars{"ids": many})
	check.That(t, len(a.Errors) == 1 && a.Errors[0].Code() == "BAD_USER_INPUT", "501 users: %s", a.Text)
}

// Users are looked up, and the transaction looks at the epoch, locks, reads, writes rows, counts and the log, on the viewer's shard and then on
// each other one. No user is read again for the answer: the writes return the counts that they have left.
func TestFollowingManyTakesAsManyStatementsAsFollowingFew(t *testing.T) {
	api, recorder := countedAPI(t, 4, apitest.Options{})
	const changes = 8 // and one more for more rows than SQLite inserts at once
	for viewer, n := range map[storage.UserID]int{1: 50, 2: 200} {
		a := api.As(viewer).Ask(followAll, apitest.Vars{"ids": idsUpTo(201, 200+n)}).Whole()
		check.Equal(t, "followed", strings.Count(a.Text, `"changed":true`), n)
		check.Equal(t, fmt.Sprintf("statements for %d", n), recorder.Take().String(), fmt.Sprintf("apply.follower 18, change %d, users 4", changes+n/200))
	}
}

const followAll = `mutation($ids: [ID!]!) { followMany(userIds: $ids) { outcomes { changed relationship { followedAt } error { code } } } }`

// never is a redundancy mode in which no row arrives on the inverse side.
type never struct{ err error }

func (never) Inline() bool                                         { return false }
func (n never) Propagate(context.Context, []storage.Written) error { return n.err }

// A read waits a limited time for the inverse side. After that time the old value is answered, and
// marked as stale.
func TestPayloadIsStaleWhereTheInverseSideLags(t *testing.T) {
	for name, mode := range map[string]never{"late": {}, "failed": {errors.New("no connection")}} {
		t.Run(name, func(t *testing.T) {
			api, _ := withUsers(t, 3, apitest.Options{Redundancy: mode})
			a := api.As(1).Ask(`mutation { follow(userId: 2) { changed viewer { user { followingCount } } user { followerCount } } }`, nil)
			a.Is(`{"follow": {"changed": true, "viewer": {"user": {"followingCount": 1}}, "user": {"followerCount": 0}}}`)
			check.That(t, a.Stale(), "not said to be stale: %s", a.Text)
			forward := api.As(1).Ask(`mutation { follow(userId: 3) { changed relationship { following } } }`, nil)
			check.Equal(t, "stale, of the forward side alone", forward.Stale(), mode.err != nil)
		})
	}
}

// A read with the token of a write waits until the write can be read.
func TestTokenMakesAReadWait(t *testing.T) {
	api, store := withUsers(t, 3, apitest.Options{Redundancy: never{}})
	a := api.As(1).Ask(`mutation { follow(userId: 2) { changed } }`, nil).Whole()
	token := a.Token()
	check.That(t, token != "" && a.Header.Get("Kith-Consistency") == token, "the token is %q in the extensions, %q in the header", token, a.Header.Get("Kith-Consistency"))
	const followers = `{ user(by: {id: 2}) { followerCount } }`
	check.That(t, api.With("Kith-Consistency", token).Ask(followers, nil).Stale(), "the write has not arrived")
	check.That(t, !api.Ask(followers, nil).Stale(), "stale without a token")
	arrives := make(chan struct{})
	go func() {
		defer close(arrives)
		row := storage.EdgeLookups[storage.Forward].Read(context.Background(), store, storage.Pair{From: 1, To: 2})[0].Value
		store.Apply(context.Background(), storage.Inverse, []storage.Edge{row}, storage.IfNewer)
	}()
	api.With("Kith-Consistency", token).Ask(followers, nil).Is(`{"user": {"followerCount": 1}}`)
	<-arrives
	// AQECAw is a token in the form from before tokens were signed: pair of tables 1, from 1, to 2, version 3.
	for _, forged := range []string{"nonsense", "AQECAw", token[:len(token)-2] + "AA"} {
		b := api.With("Kith-Consistency", forged).Ask(followers, nil)
		b.Refused("BAD_USER_INPUT")
		check.Equal(t, forged, b.Data, nil)
	}
}

// However many writes a request has, its answer's headers fit into the 4 kB that proxies take.
func TestTokensAreInHeadersThatProxiesTake(t *testing.T) {
	store := oracle.New()
	users := make([]storage.User, 270)
	for i := range users {
		id := storage.UserID(1 + i*3_000_000_000_000_000) // the longest ids
		users[i] = storage.User{ID: id, Handle: id.ImportedHandle(), Name: "User"}
	}
	store.CreateUsers(t.Context(), users)
	api := apitest.New(t, store, apitest.Options{Redundancy: never{}})
	in, beside := 0, 0
	for n := 10; n < len(users); n += 10 {
		var request strings.Builder
		for i, u := range users[1:n] {
			fmt.Fprintf(&request, " m%d: follow(userId: %s) { user { id } }", i, u.ID)
		}
		a := api.As(1).Ask("mutation {"+request.String()+"}", nil).Whole()
		bytes := 0
		for name, values := range a.Header {
			bytes += len(name) + len(": \r\n") + len(values[0])
		}
		check.That(t, bytes <= 4096-600, "the headers have %d bytes, and there are others: of CORS and traces, the date", bytes)
		if a.Header.Get("Kith-Consistency") != "" {
			in++
		} else if a.Token() != "" {
			beside++
		}
	}
	check.That(t, in > 0 && beside > 0, "%d tokens are in headers, %d are not", in, beside)
}

// The token of the largest followMany fits into a header. Three such tokens are accepted in one
// request, and each stands for all its follows.
func TestTokensOfFollowManyFitIntoHeaders(t *testing.T) {
	store := oracle.New()
	users := make([]storage.User, 1501)
	for i := range users {
		id := storage.UserID(1 + i*3_000_000_000_000_000) // the longest ids
		users[i] = storage.User{ID: id, Handle: id.ImportedHandle(), Name: "User"}
	}
	store.CreateUsers(t.Context(), users)
	api := apitest.New(t, store, apitest.Options{Redundancy: never{}})
	var tokens []string
	for part := range 3 {
		ids := make([]string, 500)
		for i := range ids {
			ids[i] = users[1+500*part+i].ID.String()
		}
		a := api.As(1).Ask(`mutation($ids: [ID!]!) { followMany(userIds: $ids) { outcomes { userId } } }`, apitest.Vars{"ids": ids}).Whole()
		header := a.Header.Get("Kith-Consistency")
		check.That(t, header != "" && header == a.Token(), "the header has %d characters, the extension %d", len(header), len(a.Token()))
		tokens = append(tokens, header)
	}
	rows := storage.PageLookups[storage.Forward].Read(t.Context(), store, storage.PageQuery{Owner: 1, Limit: 2000})[0].Value
	must.Equal(t, "follows that were written", len(rows), 1500)
	last := rows[len(rows)/2]
	for _, row := range rows {
		if row != last {
			store.Apply(t.Context(), storage.Inverse, []storage.Edge{row}, storage.IfNewer)
		}
	}
	read := func() apitest.Answer {
		return api.With("Kith-Consistency", strings.Join(tokens, ",")).Ask(`{ user(by: {id: 1}) { handle } }`, nil).Whole()
	}
	check.That(t, read().Stale(), "one follow has not arrived, and nothing says so")
	store.Apply(t.Context(), storage.Inverse, []storage.Edge{last}, storage.IfNewer)
	must.Soon(t, "all follows have arrived", func() bool { return !read().Stale() }) // a read waits half a second, and a busy machine may take longer
}

// The look-ups that a token needs count towards the cost of the query.
func TestTokensHaveAPrice(t *testing.T) {
	api, _ := withUsers(t, 3, apitest.Options{Limits: limits.Limits{Cost: 3}})
	a := api.As(1).Ask(`mutation { __typename }`, nil)
	must.That(t, a.Data != nil, "%s", a.Text)
	key := consistency.New(consistency.Tokens{Key: []byte("of all tests")})
	marks := func(n int) string {
		var t consistency.Token
		for i := range n {
			t = append(t, consistency.Mark{Side: storage.Forward, Pair: storage.Pair{From: 1, To: storage.UserID(i + 2)}})
		}
		return key.Text(t)
	}
	api.With("Kith-Consistency", marks(2)).Ask(`{ __typename }`, nil).Is(`{"__typename": "Query"}`)
	api.With("Kith-Consistency", marks(3)).Ask(`{ __typename }`, nil).Refused("QUERY_TOO_COSTLY")
}

// A follow of a user who cannot be looked up says why, and the others are made. A gateway that stands still for long finds the time of its
// requests over when it goes on.
func TestFollowsThatWereNotMadeSayWhy(t *testing.T) {
	shards := storage.NewShardMap(2)
	viewer, near, far := storage.UserID(1), storage.UserID(2), storage.UserID(2)
	for shards.Of(near) != shards.Of(viewer) {
		near++
	}
	for shards.Of(far) == shards.Of(viewer) {
		far++
	}
	store := storeOf(t, int(max(near, far)))
	for code, err := range map[string]error{
		"TIMEOUT":               fmt.Errorf("read: %w", context.DeadlineExceeded),
		"UNAVAILABLE":           fmt.Errorf("read: %w", storage.ErrUnavailable),
		"INTERNAL_SERVER_ERROR": errors.New("another"),
	} {
		lost := &faulty{store, shards, func(_ context.Context, _ string, shard int) error {
			if shard == shards.Of(far) {
				return err
			}
			return nil
		}}
		answer := apitest.New(t, lost, apitest.Options{}).As(viewer).Ask(
			`mutation($ids: [ID!]!) { followMany(userIds: $ids) { outcomes { error { code argument } } } }`, apitest.Vars{"ids": []storage.UserID{far, near}})
		answer.Is(fmt.Sprintf(`{"followMany": {"outcomes": [{"error": {"code": "%s", "argument": null}}, {"error": null}]}}`, code))
	}
}
