package resolvers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/social"
	"kith/storage"
)

func deactivate(t testing.TB, store storage.Store, ids ...storage.UserID) {
	t.Helper()
	for _, id := range ids {
		_, err := store.SetState(t.Context(), id, storage.Deactivated, apitest.Epoch)
		must.OK(t, err)
	}
}

// If nearly all of a list is hidden, it is read as far as the budget goes, and the next page
// continues from there.
func TestAPlainListIsIncompleteOnlyWhereTheBudgetEnds(t *testing.T) {
	store := oracle.New()
	all := star(t, store, 1500)
	for _, id := range all[:1400] {
		deactivate(t, store, userID(t, id))
	}
	for budget, complete := range map[social.Budget]bool{0: true, 600: false} {
		api := apitest.New(t, store, apitest.Options{Budget: budget})
		for _, list := range plainLists {
			p := pageOf(t, api, 1, list+"(first: 10)")
			must.That(t, p.Complete == complete, "%s, budget %d: %+v", list, budget, p)
			for requests := 0; len(p.Edges) == 0; requests++ {
				must.That(t, requests <= 20 && p.PageInfo.HasNextPage && p.PageInfo.EndCursor != nil, "%s, budget %d: %+v", list, budget, p)
				p = pageOf(t, api, 1, fmt.Sprintf("%s(first: 10, after: %q)", list, *p.PageInfo.EndCursor))
			}
			check.Equal(t, fmt.Sprintf("%s, budget %d", list, budget), p.ids(), all[1400:1410])
		}
	}
}

// Common lists in the order RECENT are sorted by the edges of their first user. A cursor of one
// order is refused in the other.
func TestCommonListsInTheOrderRecent(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		all := star(t, store, 40)
		even := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return userID(t, id)%2 == 1 || id == "2" })
		for _, id := range even {
			apitest.Follow(t, store, 2, userID(t, id))
			apitest.Follow(t, store, userID(t, id), 2)
		}
		api := apitest.New(t, store, apitest.Options{})
		for _, list := range []string{"commonFollowings(with: 2, ", "commonFollowers(with: 2, "} {
			p := pageOf(t, api, 1, list+"orderBy: RECENT, first: 5)")
			p.is(t, list, even[:5], true, false)
			check.That(t, p.TotalCount == len(even) && p.Complete, "%s: %+v", list, p)
			pageOf(t, api, 1, fmt.Sprintf("%sorderBy: RECENT, after: %q)", list, *p.PageInfo.EndCursor)).is(t, list+" behind it", even[5:], false, true)
			refused(t, api, list, fmt.Sprintf("after: %q", *p.PageInfo.EndCursor))
			byID := pageOf(t, api, 1, list+"first: 5)")
			refused(t, api, list, fmt.Sprintf("orderBy: RECENT, after: %q", *byID.PageInfo.EndCursor))
			refused(t, api, strings.Replace(list, "2", "3", 1), fmt.Sprintf("orderBy: RECENT, after: %q", *p.PageInfo.EndCursor))
		}
		small := apitest.New(t, store, apitest.Options{Budget: 79})
		for _, list := range []string{"commonFollowings", "commonFollowers"} {
			answer := small.Ask(`{ user(by: {id: 1}) { id `+list+`(with: 2, orderBy: RECENT) { totalCount } } }`, nil)
			answer.FailsAt("QUERY_TOO_COSTLY", "user."+list)
			answer.DataIs(`{"user": {"id": "1", "` + list + `": null}}`)
			e := answer.Errors[0].Extensions
			check.Equal(t, "the cost", fmt.Sprintf("%v of %v", e["cost"], e["limit"]), "80 of 79")
			small.Ask(`{ user(by: {id: 2}) { `+list+`(with: 1, orderBy: RECENT) { totalCount } } }`, nil).Whole()
		}
	})
}

// The requests between the viewer and another user are shown with their messages.
func TestRequestsOfARelationship(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		apitest.Users(t, store, 5)
		api := apitest.New(t, store, apitest.Options{})
		api.As(1).Ask(`mutation { a: requestFriend(userId: 2, message: "hi") { changed } b: requestFriend(userId: 3) { changed } }`, nil).Whole()
		api.As(4).Ask(`mutation { requestFriend(userId: 1, message: "hello") { changed } }`, nil).Whole()
		api.As(3).Ask(`mutation { declineRequest(kind: FRIEND, userId: 1) { changed } }`, nil).Whole()
		const query = `query($from: [ID!]!, $to: [ID!]!) { relationships(from: $from, to: $to) {
			s: sentRequest { id state message to { handle } } receivedRequest { id state message from { handle followerCount } } } }`
		api.As(1).Ask(query, apitest.Vars{"from": []int{1}, "to": []int{2, 3, 4, 5, 1}}).Is(`{"relationships": [
			{"s": {"id": "req_1_2", "state": "PENDING", "message": "hi", "to": {"handle": "u2"}}, "receivedRequest": null},
			{"s": {"id": "req_1_3", "state": "DECLINED", "message": null, "to": {"handle": "u3"}}, "receivedRequest": null},
			{"s": null, "receivedRequest": {"id": "req_4_1", "state": "PENDING", "message": "hello", "from": {"handle": "u4", "followerCount": 0}}},
			{"s": null, "receivedRequest": null}, {"s": null, "receivedRequest": null}]}`)
		api.As(2).Ask(query, apitest.Vars{"from": []int{2, 1}, "to": []int{1}}).Is(`{"relationships": [
			{"s": null, "receivedRequest": {"id": "req_1_2", "state": "PENDING", "message": "hi", "from": {"handle": "u1", "followerCount": 0}}},
			{"s": null, "receivedRequest": null}]}`)
		const nodes = `{ nodes(ids: ["req_1_2", "req_4_1", "req_2_1", "req_1_3", "rel_1_2", 1]) { id ... on Request { state message from { id } to { handle followerCount } } } }`
		api.As(1).Ask(nodes, nil).Is(`{"nodes": [
			{"id": "req_1_2", "state": "PENDING", "message": "hi", "from": {"id": "1"}, "to": {"handle": "u2", "followerCount": 0}},
			{"id": "req_4_1", "state": "PENDING", "message": "hello", "from": {"id": "4"}, "to": {"handle": "u1", "followerCount": 0}},
			null, {"id": "req_1_3", "state": "DECLINED", "message": null, "from": {"id": "1"}, "to": {"handle": "u3", "followerCount": 0}},
			{"id": "rel_1_2"}, {"id": "1"}]}`)
		// Nobody else sees the requests.
		for _, other := range []*apitest.API{api, api.As(5)} {
			other.Ask(nodes, nil).Is(`{"nodes": [null, null, null, null, {"id": "rel_1_2"}, {"id": "1"}]}`)
			other.Ask(query, apitest.Vars{"from": []int{1}, "to": []int{2, 4}}).Is(`{"relationships": [{"s": null, "receivedRequest": null}, {"s": null, "receivedRequest": null}]}`)
		}
	})
}
