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

// Pages are full as long as there are enough users who may be shown, in both directions. Totals
// count the users who can be paged through.
func TestPagesRefillWhereUsersAreHidden(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		all := star(t, store, 120)
		var shown []string
		for i, id := range all {
			if i%3 == 0 || 30 <= i && i < 100 { // a gap that is longer than what a page reads ahead
				deactivate(t, store, userID(t, id))
			} else {
				shown = append(shown, id)
			}
		}
		api := apitest.New(t, store, apitest.Options{})
		for _, list := range append([]string{"friends"}, plainLists...) {
			p := pageOf(t, api, 1, list+"(first: 25)")
			p.is(t, list, shown[:25], true, false)
			check.That(t, p.TotalCount == len(shown) && p.Complete, "%s: total %d, complete %t, want %d", list, p.TotalCount, p.Complete, len(shown))
			rest := pageOf(t, api, 1, fmt.Sprintf("%s(after: %q)", list, *p.PageInfo.EndCursor))
			rest.is(t, list+" behind it", shown[25:], false, true)
			exact := pageOf(t, api, 1, fmt.Sprintf("%s(first: %d)", list, len(shown)))
			exact.is(t, list+" as a whole", shown, false, false)
		}
		for _, list := range plainLists {
			pageOf(t, api, 1, list+"(last: 25)").is(t, list+" backward", shown[len(shown)-25:], false, true)
		}
		api.Ask(`{ user(by: {id: 1}) { followingCount followerCount friendCount } }`, nil).
			Is(`{"user": {"followingCount": 120, "followerCount": 120, "friendCount": 120}}`)
	})
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

// Special follows are the viewer's own, newest first, with the cursors of the viewer's list.
func TestSpecialFollows(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		apitest.Users(t, store, 8)
		apitest.Follow(t, store, 1, 2, 3, 4, 5, 6, 7)
		apitest.Follow(t, store, 2, 1)
		yes, remark := true, "met at school"
		for _, to := range []storage.UserID{3, 5, 6, 7} {
			_, _, err := store.SetMark(t.Context(), storage.Pair{From: 1, To: to}, storage.MarkChange{Special: &yes})
			must.OK(t, err)
		}
		_, _, err := store.SetMark(t.Context(), storage.Pair{From: 1, To: 4}, storage.MarkChange{Remark: &remark})
		must.OK(t, err)
		deactivate(t, store, 6)
		api := apitest.New(t, store, apitest.Options{})
		own := api.As(1)
		const special = "followings(filter: {special: true}"
		p := pageOf(t, own, 1, special+")")
		p.is(t, "special follows", []string{"7", "5", "3"}, false, false)
		check.That(t, p.TotalCount == 3 && p.Complete && p.Edges[1].FollowedAt != nil, "%+v", p)
		pageOf(t, own, 1, special+", first: 2)").is(t, "the first two", []string{"7", "5"}, true, false)
		pageOf(t, own, 1, special+", last: 2)").is(t, "the last two", []string{"5", "3"}, false, true)
		pageOf(t, own, 1, fmt.Sprintf("%s, after: %q)", special, p.Edges[0].Cursor)).is(t, "behind the first", []string{"5", "3"}, false, true)
		pageOf(t, own, 1, fmt.Sprintf("%s, last: 5, before: %q)", special, p.Edges[2].Cursor)).is(t, "before the last", []string{"7", "5"}, true, false)
		const others = "followings(filter: {special: false}"
		p = pageOf(t, own, 1, others+")")
		p.is(t, "the other follows", []string{"4", "2"}, false, false)
		check.That(t, p.TotalCount == 2 && p.Complete, "%+v", p)
		pageOf(t, own, 1, others+", first: 1)").is(t, "the first other", []string{"4"}, true, false)
		pageOf(t, own, 1, others+", last: 1)").is(t, "the last other", []string{"2"}, false, true)
		pageOf(t, own, 1, others+", first: 0)").is(t, "none of the others", nil, true, false)
		pageOf(t, own, 1, fmt.Sprintf("%s, after: %q)", others, p.Edges[0].Cursor)).is(t, "others behind the first", []string{"2"}, false, true)
		for _, filter := range []string{"{special: null}", "{}", "null"} {
			pageOf(t, own, 1, "followings(filter: "+filter+")").is(t, filter, []string{"7", "5", "4", "3", "2"}, false, false)
		}
		const strangers = `{ user(by: {id: 1}) { id followings(filter: {special: true}) { totalCount } } users(by: {ids: [1, 2]}) { followings(filter: {special: true}) { totalCount } } }`
		api.As(2).Ask(strangers, nil).Is(`{"user": {"id": "1", "followings": null}, "users": [{"followings": null}, {"followings": {"totalCount": 0}}]}`)
		api.Ask(strangers, nil).Is(`{"user": {"id": "1", "followings": null}, "users": [{"followings": null}, {"followings": null}]}`)
		own.Ask(`query($f: ListFilter) { user(by: {id: 1}) { followings(filter: $f) { nodes { id } } } }`, apitest.Vars{"f": map[string]any{"special": true}}).
			Is(`{"user": {"followings": {"nodes": [{"id": "7"}, {"id": "5"}, {"id": "3"}]}}}`)

		// Only the follower sees its marks.
		const marks = `{ relationships(from: [1], to: [2, 3, 4, 6]) { special remark } }`
		own.Ask(marks, nil).Is(`{"relationships": [{"special": false, "remark": null}, {"special": true, "remark": null},
			{"special": false, "remark": "met at school"}, {"special": false, "remark": null}]}`)
		api.As(3).Ask(marks, nil).Is(`{"relationships": [` + strings.Repeat(`{"special": null, "remark": null}, `, 3) + `{"special": null, "remark": null}]}`)
	})
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

// A deactivated user sees itself and all its data. Nobody else sees it.
func TestADeactivatedUserSeesItself(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		apitest.Users(t, store, 4)
		apitest.Follow(t, store, 1, 2, 3)
		apitest.Follow(t, store, 2, 1)
		deactivate(t, store, 1)
		api := apitest.New(t, store, apitest.Options{})
		const query = `{ viewer { user { id } standing { state } } user(by: {id: 1}) { handle followings { nodes { id } } friendCount } byHandle: user(by: {handle: "u1"}) { id }
			node(id: 1) { id } nodes(ids: [1, 2]) { id } relationship(from: 1, to: 2) { status from { id } } back: user(by: {id: 2}) { followers { totalCount nodes { id } } viewerRelationship { status } } }`
		api.As(1).Ask(query, nil).Is(`{"viewer": {"user": {"id": "1"}, "standing": {"state": "DEACTIVATED"}}, "user": {"handle": "u1", "followings": {"nodes": [{"id": "3"}, {"id": "2"}]}, "friendCount": 1},
			"byHandle": {"id": "1"}, "node": {"id": "1"}, "nodes": [{"id": "1"}, {"id": "2"}], "relationship": {"status": "MUTUAL", "from": {"id": "1"}},
			"back": {"followers": {"totalCount": 1, "nodes": [{"id": "1"}]}, "viewerRelationship": {"status": "MUTUAL"}}}`)
		api.As(2).Ask(query, nil).Is(`{"viewer": {"user": {"id": "2"}, "standing": {"state": "ACTIVE"}}, "user": null, "byHandle": null, "node": null, "nodes": [null, {"id": "2"}],
			"relationship": {"status": "NONE", "from": null}, "back": {"followers": {"totalCount": 0, "nodes": []}, "viewerRelationship": null}}`)
		api.As(2).Ask(`{ viewer { discoverable } user(by: {id: 3}) { listVisibility { followings followers } } }`, nil).
			Is(`{"viewer": {"discoverable": true}, "user": {"listVisibility": {"followings": "EVERYONE", "followers": "EVERYONE"}}}`)
	})
}

// A block hides lists, not profiles.
func TestProfilesStayVisibleAcrossBlocks(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		apitest.Users(t, store, 4)
		apitest.Follow(t, store, 1, 3)
		apitest.Follow(t, store, 3, 1)
		apitest.Follow(t, store, 2, 3)
		apitest.Apply(t, store, storage.Edge{From: 1, To: 2, Type: storage.Blocking, UpdateTime: apitest.Epoch})
		api := apitest.New(t, store, apitest.Options{})
		for viewer, other := range map[storage.UserID]int{1: 2, 2: 1} {
			api.As(viewer).Ask(fmt.Sprintf(`{ user(by: {id: %d}) { handle followingCount friendCount followings { totalCount } followers { totalCount } friends { totalCount } }
				third: user(by: {id: 3}) { followers { totalCount nodes { id } } } }`, other), nil).
				Is(fmt.Sprintf(`{"user": {"handle": "u%d", "followingCount": 1, "friendCount": null, "followings": null, "followers": null, "friends": null},
					"third": {"followers": {"totalCount": 1, "nodes": [{"id": "%d"}]}}}`, other, viewer))
		}
		// Between 3 and 2 there is nothing that 1 may see: lists leave 2 out.
		api.As(1).Ask(`{ relationship(from: 2, to: 3) { status } back: relationship(from: 3, to: 2) { status } viewerIs: relationship(from: 1, to: 2) { blocking blockedBy } }`, nil).
			Is(`{"relationship": null, "back": null, "viewerIs": {"blocking": true, "blockedBy": false}}`)
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
		api.Ask(nodes, nil).Is(`{"nodes": [null, null, null, null, {"id": "rel_1_2"}, {"id": "1"}]}`)
		// Nobody else sees the requests.
		for _, other := range []*apitest.API{api, api.As(5)} {
			other.Ask(query, apitest.Vars{"from": []int{1}, "to": []int{2, 4}}).Is(`{"relationships": [{"s": null, "receivedRequest": null}, {"s": null, "receivedRequest": null}]}`)
		}
	})
}
