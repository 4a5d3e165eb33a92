package faults_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/cache/rediscache"
	"kith/storage/epoch"
	"kith/storage/sqlstore"
)

// everything is what a viewer reads of users: all of it can come from a cache.
const everything = `query($ids: [ID!]!, $me: ID!) {
	users(by: {ids: $ids}) {
		id name handle bio followingCount followerCount friendCount
		followings(first: 100) { totalCount edges { cursor followedAt node { id } } }
		followers(first: 100) { totalCount edges { cursor followedAt node { id } } }
		friends(first: 50) { totalCount nodes { id } }
		notFollowedBack(first: 50) { totalCount nodes { id } }
		commonFollowings(with: $me, first: 50) { totalCount nodes { id } }
		commonFollowers(with: $me, first: 50) { totalCount nodes { id } }
		followersYouKnow(first: 50) { totalCount nodes { id } }
		viewerRelationship { status blocking blockedBy followedAt followedByAt }
	}
	viewer { user { followSuggestions(first: 30) { nodes { id } excluded { followed blocked dismissed } } } blockedUsers(first: 50) { nodes { id } } }
}`

// allPairs asks for every relationship among some users.
const allPairs = `query($ids: [ID!]!) { relationships(from: $ids, to: $ids) { id status followedAt followedByAt } }`

// agreeSoon is how long a change may still be on its way to another gateway after writing has stopped.
const agreeSoon = 100 * time.Millisecond

// agree compares every answer of the gateways with that of a gateway without any cache. Each is
// asked twice: the first time shows what a gateway had in memory, the second time what it has then filled in.
func (d *cachedDeployment) agree(t *testing.T, viewers []int64) {
	t.Helper()
	time.Sleep(agreeSoon) // exactly as long as is promised
	cold := d.cold(t)
	c := d.client(t)
	var ids []string
	for u := range somePeople {
		ids = append(ids, id(u))
	}
	ids = append(ids, id(everybodyThere-1), id(everybodyThere), "999999") // two users who were never touched, and one who does not exist
	wrong := 0
	compare := func(viewer int64, query string, variables map[string]any) {
		for _, n := range slices.Concat(d.gateways, d.gateways) {
			got, want := d.answerTo(t, c, n.now.Load(), viewer, query, variables), d.answerTo(t, c, cold, viewer, query, variables)
			if got != want {
				if wrong++; wrong <= 5 {
					t.Errorf("%s shows user %d something else than the tables: %s", n.name, viewer, difference(got, want))
				}
			}
		}
	}
	compare(viewers[0], allPairs, map[string]any{"ids": ids[:len(ids)-1]})
	for _, viewer := range viewers {
		compare(viewer, everything, map[string]any{"ids": ids, "me": id(viewer)})
	}
	t.Logf("compared the answers of both gateways to %d users about %d with a gateway without caches", len(viewers), len(ids))
}

func (d *cachedDeployment) answerTo(t *testing.T, c *client, l *life, viewer int64, query string, variables map[string]any) string {
	t.Helper()
	var a answer
	until(t, l.name+" has room for a request", func() bool {
		var err error
		a, err = c.ask(t.Context(), l.gateway.URL, viewer, "", query, variables)
		must.That(t, err == nil, "%s: %v", l.name, err)
		return !a.busy()
	})
	must.That(t, a.code() == "", "%s: %+v", l.name, a.Errors)
	text, err := json.Marshal(a.Data)
	must.OK(t, err)
	return string(text)
}

// difference shows where two texts begin to differ.
func difference(got, want string) string {
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	around := func(text string) string { return text[max(0, min(at-300, len(text))):min(len(text), at+80)] }
	user := strings.LastIndex(got[:at], `"handle":`)
	return fmt.Sprintf("of %.30s: …%s…, the tables: …%s…", got[max(0, user):], around(got), around(want))
}

// redisAgrees compares what Redis has of these users with the tables.
func (d *cachedDeployment) redisAgrees(t *testing.T) {
	t.Helper()
	held := d.redisAgreesOn(t, slices.Collect(somePeople)...)
	t.Logf("Redis held %d users and lists, as they are in the tables", held)
	check.Least(t, "users and lists that Redis held", held, stars+onlookers)
}

// redisAgreesOn reads from Redis as gateways do, in front of an empty store. So a value that is not
// in Redis is not found.
func (d *cachedDeployment) redisAgreesOn(t *testing.T, users ...int64) (held int) {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Location: d.location()})
	must.OK(t, err)
	defer store.Close()
	options, err := redis.ParseURL(d.redis.URL())
	must.OK(t, err)
	runs := new(epoch.Runs)
	options.OnConnect, options.ContextTimeoutEnabled = runs.OnConnect, true
	client := redis.NewClient(options)
	defer client.Close()
	cache := rediscache.New(epoch.NewClock(client, runs, "kith:"+store.UUID()), empty{}, func([]storage.UserID) {}, nil)
	defer cache.Close()
	for _, u := range users {
		user := storage.UserID(u)
		var got storage.Result[storage.Profile]
		until(t, "Redis answers", func() bool {
			got = storage.ProfileLookups.Read(t.Context(), cache, user)[0]
			return !cache.Behind()
		})
		want := storage.ProfileLookups.Read(t.Context(), store, user)[0]
		if got.Err == nil {
			held++
			check.That(t, want.Err == nil && got.Value == want.Value, "Redis holds %+v of user %d, the tables %+v, %v", got.Value, u, want.Value, want.Err)
		}
		for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
			query := []storage.ListQuery{{Owner: user, Longest: 100, EndedSince: 1 << 62}}
			var got storage.Result[storage.List]
			until(t, "Redis answers", func() bool {
				got = storage.SnapshotLookups[side].Read(t.Context(), cache, query...)[0]
				return !cache.Behind()
			})
			want := storage.SnapshotLookups[side].Read(t.Context(), store, query...)[0]
			if got.Err != nil {
				continue
			}
			held++
			if want.Err != nil || !slices.Equal(standing(got.Value.Edges), standing(want.Value.Edges)) {
				t.Errorf("Redis holds %v of user %d: %+v, the tables %+v, %v", side, u, got.Value, want.Value, want.Err)
			}
		}
	}
	return held
}

// standing returns the edges that have not ended. How long tombstones are kept is not compared.
func standing(edges []storage.Edge) []storage.Edge {
	return slices.DeleteFunc(slices.Clone(edges), func(e storage.Edge) bool { return e.Type == storage.None })
}

// empty is a store from which nothing can be read.
type empty struct{}

var errEmpty = errors.New("it is not in Redis")

func (empty) AtHand(*storage.Bundle) {}

func (empty) Bundle(_ context.Context, b *storage.Bundle) { b.Fail(errEmpty) }
