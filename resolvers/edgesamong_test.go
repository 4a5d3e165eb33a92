package resolvers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/apitest"
	"kith/internal/must"
	"kith/internal/properties"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// among is an answer of `edgesAmong`.
type among struct {
	Followings [][]int
	Complete   bool
}

const edgesAmong = `query($ids: [ID!]!) { edgesAmong(ids: $ids) { followings complete } }`

// Of every edge among the users asked about, the answer has those that the viewer may see, and no others.
func TestEdgesAmongAreThoseInOpenLists(t *testing.T) {
	properties.Check(t, cases, func(t *rapid.T) {
		w := drawWorld(rapid.Uint64().Draw(t, "seed"), 9)
		store := oracle.New()
		must.OK(t, w.fill(store))
		ids := rapid.SliceOfN(rapid.IntRange(1, w.n+1), 0, 14).Draw(t, "ids") // one of these users does not exist
		texts := make([]string, len(ids))
		for i, id := range ids {
			texts[i] = fmt.Sprint(id)
		}
		got := apitest.Into[among](w.api(t, store).Ask(edgesAmong, apitest.Vars{"ids": texts}).Whole(), "edgesAmong")
		must.That(t, got.Complete && len(got.Followings) == len(ids), "%+v", got)
		for i, from := range ids {
			want := []int{}
			for j, to := range ids {
				p := storage.Pair{From: storage.UserID(from), To: storage.UserID(to)}
				isFirst := slices.Index(ids, from) == i && slices.Index(ids, to) == j
				if isFirst && w.follows[p] != 0 && w.sees(p) && !w.hides(p.From) && !w.hides(p.To) {
					want = append(want, j)
				}
			}
			must.Equal(t, fmt.Sprintf("viewer %d: %d at %d follows of %v", w.viewer, from, i, ids), got.Followings[i], want)
		}
	})
}

// On every engine, lists are read by few statements, and lists beyond the budget are left out.
func TestEdgesAmongAndTheBudget(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		star(t, store, 30)
		apitest.Follow(t, store, 2, 3, 5, 7)
		ids := []string{"1", "2", "3", "7", "99"}
		apitest.New(t, store, apitest.Options{}).Ask(edgesAmong, apitest.Vars{"ids": ids}).
			Is(`{"edgesAmong": {"followings": [[1, 2, 3], [0, 2, 3], [0], [0], []], "complete": true}}`)
		// User 1 follows 30 users, which is more than the budget has left after the other lists.
		apitest.New(t, store, apitest.Options{Budget: 10}).Ask(edgesAmong, apitest.Vars{"ids": ids}).
			Is(`{"edgesAmong": {"followings": [[], [0, 2, 3], [0], [0], []], "complete": false}}`)
		// In a list that is far longer than the list of users asked about, those users are looked up.
		apitest.New(t, store, apitest.Options{Budget: 20}).Ask(edgesAmong, apitest.Vars{"ids": []string{"1", "2"}}).
			Is(`{"edgesAmong": {"followings": [[1], [0]], "complete": true}}`)
	})
}

func TestEdgesAmongThatAreRefused(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		apitest.Users(t, store, 2)
		api := apitest.New(t, store, apitest.Options{Limits: apitest.NoLimits})
		many := strings.Split(strings.Repeat("1 ", 2000)+"1", " ")
		api.Ask(edgesAmong, apitest.Vars{"ids": many[1:]}).Whole()
		api.Ask(edgesAmong, apitest.Vars{"ids": many}).Refused("BAD_USER_INPUT")
		api.Ask(edgesAmong, apitest.Vars{"ids": []string{"1", "rel_1_2"}}).Refused("BAD_USER_INPUT")
	})
}
