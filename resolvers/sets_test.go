package resolvers_test

import (
	"fmt"
	"slices"
	"testing"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/social"
	"kith/storage"
)

// first: 0 asks only for the total. With a budget, that takes several requests.
func TestTheTotalOfASetAnswerIsKeptInItsCursor(t *testing.T) {
	store := oracle.New()
	all := star(t, store, 3000) // all of them friends
	for _, c := range []struct {
		budget social.Budget
		whole  bool
	}{{0, true}, {600, false}} {
		api := apitest.New(t, store, apitest.Options{Budget: c.budget})
		for _, field := range []string{"friends(", "commonFollowers(with: 1, ", "commonFollowings(with: 1, "} {
			cursor, total, requests := "", 0, 0
			for {
				requests++
				p := pageOf(t, api, 1, field+"first: 0"+optional("after", cursor)+")")
				must.That(t, len(p.Edges) == 0 && p.TotalCount >= total && requests <= 100, "%s: %+v in request %d after a total of %d", field, p, requests, total)
				if total = p.TotalCount; p.Complete {
					break
				}
				must.That(t, p.PageInfo.HasNextPage && p.PageInfo.EndCursor != nil, "%s: incomplete, and goes on nowhere: %+v", field, p.PageInfo)
				cursor = *p.PageInfo.EndCursor
			}
			check.That(t, total == len(all) && (requests == 1) == c.whole, "%s budget %d: a total of %d in %d requests, want %d", field, c.budget, total, requests, len(all))
		}
	}
}

// If the budget ends before anything is found, the page of a set answer may be empty.
func TestAnEmptyPageOfASetAnswerSaysHowToGoOn(t *testing.T) {
	store := storeOf(t, 4001)
	var odd, even []storage.UserID
	for id := storage.UserID(3); id <= 4000; id += 2 {
		odd, even = append(odd, id), append(even, id+1)
	}
	apitest.Follow(t, store, 1, append(odd, 4000)...)
	apitest.Follow(t, store, 2, even...)
	api := apitest.New(t, store, apitest.Options{Budget: 1})
	p := pageOf(t, api, 1, "commonFollowings(with: 2)")
	must.That(t, !p.Complete && len(p.Edges) == 0 && p.PageInfo.HasNextPage && p.PageInfo.EndCursor != nil && p.TotalCount == 0, "the first page: %+v", p)
	for requests := 1; !p.Complete; requests++ {
		must.Most(t, "requests", requests, 100)
		p = pageOf(t, api, 1, fmt.Sprintf("commonFollowings(with: 2, after: %q)", *p.PageInfo.EndCursor))
	}
	check.That(t, slices.Equal(p.ids(), []string{"4000"}) && p.TotalCount == 1 && !p.PageInfo.HasNextPage, "the last page: %+v", p)
}
