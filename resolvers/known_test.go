package resolvers_test

import (
	"maps"
	"strings"
	"testing"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/social"
	"kith/storage"
	"kith/storage/sqlstore"
)

const selectKnown = `query($ids: [ID!]!) { users(by: {ids: $ids}) { followersYouKnow(first: 3) { totalCount complete pageInfo { hasNextPage endCursor } nodes { handle } } } }`

// known is an answer about followers you know.
type known struct {
	FollowersYouKnow struct {
		TotalCount int
		Complete   bool
		PageInfo   pageInfo
		Nodes      []struct{ Handle string }
	}
}

// famous makes users 1 … 12, of whom user k is followed by the users 101 … 100+followers(k), and the viewer
// viewerOfFamous, who follows every step-th of all who may be followers.
func famous(t testing.TB, store storage.Store, all int, followers func(k int) int, step int) {
	var users []storage.User
	var edges []storage.Edge
	for id := storage.UserID(1); id <= storage.UserID(100+all); id++ {
		users = append(users, storage.User{ID: id, Handle: "u" + id.String(), CreatedAt: apitest.Epoch})
	}
	apitest.CreateUsers(t, store, users...)
	for k := 1; k <= 12; k++ {
		for i := 1; i <= followers(k); i++ {
			edges = append(edges, storage.Edge{From: storage.UserID(100 + i), To: storage.UserID(k), Type: storage.Following, UpdateTime: apitest.Epoch + storage.Micros(i)})
		}
	}
	for i := step; i <= all; i += step {
		edges = append(edges, storage.Edge{From: viewerOfFamous, To: storage.UserID(100 + i), Type: storage.Following, UpdateTime: apitest.Epoch})
	}
	for chunk := range chunks(edges, 5000) {
		apitest.Apply(t, store, chunk...)
	}
}

const viewerOfFamous = 50 // follows none of 1 … 12

func chunks(edges []storage.Edge, size int) func(func([]storage.Edge) bool) {
	return func(yield func([]storage.Edge) bool) {
		for len(edges) > 0 {
			n := min(size, len(edges))
			if !yield(edges[:n]) {
				return
			}
			edges = edges[n:]
		}
	}
}

// Followers-you-know of twelve users cost as many statements as those of two users, however long the lists
// of followers are.
func TestFollowersYouKnowOfManyUsersCostWhatThoseOfTwoDo(t *testing.T) {
	const all = 1800
	for name, c := range map[string]struct {
		followers func(k int) int
		step      int
	}{
		"short lists":                  {func(k int) int { return 20 * k }, 30},
		"long lists, few followings":   {func(k int) int { return all - k }, 12},
		"some long, few followings":    {func(k int) int { return []int{40, all - 100}[k%2] }, 5},
		"some long, many followings":   {func(k int) int { return []int{60, all}[k%2] }, 2},
		"short lists, many followings": {func(k int) int { return 300 + k }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var two map[string]int // for two users on one shard
			for _, shards := range []int{1, 4} {
				if shards > 1 && !strings.HasPrefix(name, "some long") && !testenv.AllTests() {
					continue // some lists are long and some are short, so both ways are used
				}
				var recorder apitest.Recorder
				store := opened.Store(t, sqlstore.Config{Location: apitest.Location(t, shards), StatementTimeout: generous, OnStatement: recorder.Observe})
				famous(t, store, all, c.followers, c.step)
				api := apitest.New(t, store, apitest.Options{Limits: apitest.NoLimits}).As(viewerOfFamous)
				for _, n := range []int{2, 12} {
					recorder.Take()
					answer := api.Ask(selectKnown, apitest.Vars{"ids": idsUpTo(13-n, 12)}).Whole()
					got := recorder.Take().MostOnOneShard()
					switch {
					case two == nil:
						two = got
						t.Logf("%s: %v", name, two)
					case shards == 1 && !maps.Equal(got, two), !within(got, two):
						t.Errorf("%d users on %d shards: %v on one shard, two users: %v", n, shards, got, two)
					}
					for i, one := range apitest.Into[[]known](answer, "users") {
						checkKnown(t, one, c.followers(13-n+i)/c.step)
					}
				}
			}
		})
	}
}

func checkKnown(t *testing.T, k known, want int) {
	t.Helper()
	f := k.FollowersYouKnow
	check.That(t, f.Complete && f.TotalCount == want && len(f.Nodes) == min(3, want) && f.PageInfo.HasNextPage == (want > 3), "%+v, want %d", f, want)
}

// If the budget ends early, the answer says that it is incomplete. It is never silently empty.
func TestFollowersYouKnowThatAreIncompleteSaySo(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		famous(t, store, 3000, func(k int) int { return 2000 + k }, 3)
		api := apitest.New(t, store, apitest.Options{Limits: apitest.NoLimits, Budget: social.Budget(700)}).As(viewerOfFamous)
		for i := range 12 {
			one := apitest.Into[[]known](api.Ask(selectKnown, apitest.Vars{"ids": idsUpTo(i+1, i+1)}).Whole(), "users")[0]
			f, all := one.FollowersYouKnow, (2000+i+1)/3
			must.That(t, !f.Complete && f.TotalCount > 0 && f.TotalCount < all && len(f.Nodes) == 3 && f.PageInfo.HasNextPage && f.PageInfo.EndCursor != nil, "user %d: %+v, want the beginning of %d", i+1, f, all)
		}
		for i, one := range apitest.Into[[]known](api.Ask(selectKnown, apitest.Vars{"ids": idsUpTo(1, 12)}).Whole(), "users") {
			must.That(t, !one.FollowersYouKnow.Complete, "user %d, of twelve who share the budget: %+v", i+1, one.FollowersYouKnow)
		}
	})
}
