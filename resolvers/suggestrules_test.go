package resolvers_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/social"
	"kith/storage"
)

// suggested asks for the viewer's own suggestions.
func (v *village) suggested(user storage.UserID, arguments string) apitest.Answer {
	v.t.Helper()
	return v.api.As(user).Ask(fmt.Sprintf(`{ viewer { user { list: followSuggestions(first: 50%s) {
		edges { score sharedCount reason node { id } via { id } } excluded { followed blocked dismissed } complete pageInfo { hasNextPage endCursor }
	} } } }`, arguments), nil).Whole()
}

// ids lists who is suggested, on one page and one by one.
func (v *village) ids(user storage.UserID, arguments string) []storage.UserID {
	v.t.Helper()
	var ids, oneByOne []storage.UserID
	for _, e := range apitest.Into[suggestionPage](v.suggested(user, arguments), "viewer.user.list").Edges {
		ids = append(ids, userID(v.t, e.Node.ID))
	}
	query := `query($after: String) { viewer { user { list: followSuggestions(first: 1, after: $after, ` + arguments + `) { edges { cursor node { id } } pageInfo { hasNextPage endCursor } } } } }`
	for _, answer := range pagesAt(v.api.As(user), query, nil, "viewer.user.list") {
		p := apitest.Into[suggestionPage](answer, "viewer.user.list")
		for _, e := range p.Edges {
			oneByOne = append(oneByOne, userID(v.t, e.Node.ID))
			check.That(v.t, e.Cursor == *p.PageInfo.EndCursor, "%+v", p)
		}
	}
	check.Equal(v.t, "one by one", oneByOne, ids)
	return ids
}

func (v *village) wantIDs(what string, got []storage.UserID, want ...storage.UserID) {
	v.t.Helper()
	check.Equal(v.t, what, got, want)
}

// excluded is the number of users that the viewer's suggestions leave out, by reason.
func (v *village) excluded(user storage.UserID) string {
	v.t.Helper()
	e := v.suggested(user, "").At("viewer.user.list.excluded").(map[string]any)
	return fmt.Sprintf("followed %v, blocked %v, dismissed %v", e["followed"], e["blocked"], e["dismissed"])
}

func TestSuggestionsLeaveOutWhomTheyShould(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		// a follows b, who follows c, d, and two more.
		e, f := v.others()
		v.does(v.a, "follow", v.b)
		for _, id := range []storage.UserID{v.c, v.d, e, f} {
			v.does(v.b, "follow", id)
		}
		all := []storage.UserID{v.c, v.d, e, f}
		slices.Sort(all)
		v.wantIDs("at first", v.ids(v.a, ""), all...)

		v.does(v.a, "follow", v.c)
		v.does(v.d, "block", v.a)
		v.api.As(v.a).Ask(`mutation($id: ID!) { dismissSuggestion(userId: $id) { viewer { user { id } } user { id } } }`, apitest.Vars{"id": e.String()}).
			Is(fmt.Sprintf(`{"dismissSuggestion": {"viewer": {"user": {"id": "%d"}}, "user": {"id": "%d"}}}`, v.a, e))
		v.wantIDs("followed, blocked, dismissed", v.ids(v.a, ""), f)
		check.Equal(t, "excluded", v.excluded(v.a), "followed 1, blocked 1, dismissed 1")
		// Whom one mutes, or has asked to be friends, is not counted.
		for _, act := range [][2]string{{"mute", "unmute"}, {"requestFriend", "withdrawRequest FRIEND"}} {
			v.does(v.a, act[0], f)
			v.wantIDs(act[0], v.ids(v.a, ""))
			v.wantIDs(act[0]+", in the order BEST", v.ids(v.a, "orderBy: BEST"))
			check.Equal(t, "excluded after "+act[0], v.excluded(v.a), "followed 1, blocked 1, dismissed 1")
			v.does(v.a, act[1], f)
			v.wantIDs(act[1], v.ids(v.a, ""), f)
		}
		// This block and this dismissal do not change what another user sees.
		page := apitest.Into[suggestionPage](v.api.As(f).Ask(fmt.Sprintf(`{ user(by: {id: %d}) { list: followSuggestions { edges { node { id } } } } }`, v.a), nil).Whole(), "user.list")
		var others []storage.UserID
		for _, one := range page.Edges {
			others = append(others, userID(t, one.Node.ID))
		}
		want := []storage.UserID{v.d, e, f}
		slices.Sort(want)
		v.wantIDs("to somebody else", others, want...)
		v.does(f, "block", v.d)
		v.api.As(f).Ask(fmt.Sprintf(`{ user(by: {id: %d}) { followSuggestions { excluded { blocked } } } }`, v.a), nil).Is(`{"user": {"followSuggestions": {"excluded": {"blocked": 0}}}}`)
		v.does(f, "unblock", v.d)

		v.pass(181 * 24 * time.Hour)
		now := func() time.Time { return time.Now().Add(time.Duration(v.later.Load())) }
		for shard := range v.store.Shards() {
			must.OK(t, social.NewRelations(social.Relations{Store: v.store, Redundancy: nobodyElse{}, Now: now}).EndDue(t.Context(), shard, func() bool { return true }))
		}
		v.wantIDs("half a year later", v.ids(v.a, ""), sorted(e, f)...)

		v.api.As(f).Ask(`mutation { updateProfile(discoverable: false) { viewer { discoverable } } }`, nil).
			Is(`{"updateProfile": {"viewer": {"discoverable": false}}}`)
		v.wantIDs("one does not want to be", v.ids(v.a, ""), e)
		v.api.As(e).Ask(`mutation { deactivateAccount { changed } }`, nil).Is(`{"deactivateAccount": {"changed": true}}`)
		v.wantIDs("and one is not there", v.ids(v.a, ""))
		v.api.As(e).Ask(`mutation { reactivateAccount { changed } }`, nil).Is(`{"reactivateAccount": {"changed": true}}`)
		v.wantIDs("and comes back", v.ids(v.a, ""), e)

		// A closed list recommends nobody.
		v.api.As(v.b).Ask(`mutation { updateProfile(listVisibility: {followings: NOBODY}) { viewer { user { listVisibility { followings } } } } }`, nil).Whole()
		v.wantIDs("nobody speaks", v.ids(v.a, ""))
		v.api.As(v.b).Ask(`mutation { updateProfile(listVisibility: {followings: FOLLOWERS}) { viewer { user { id } } } }`, nil).Whole()
		v.wantIDs("to its followers it does", v.ids(v.a, ""), e)
	})
}

func sorted(ids ...storage.UserID) []storage.UserID { slices.Sort(ids); return ids }

// others returns two more users.
func (v *village) others() (e, f storage.UserID) {
	var ids []storage.UserID
	for id := storage.UserID(1); len(ids) < 2; id++ {
		if !slices.Contains([]storage.UserID{v.a, v.b, v.c, v.d}, id) {
			ids = append(ids, id)
		}
	}
	return ids[0], ids[1]
}

func TestWhoFollowsNobodyIsSuggestedThePopular(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		// The users of the village were created long ago. Users who do something are active.
		v.does(v.b, "follow", v.c)
		v.does(v.d, "follow", v.c)
		v.does(v.c, "follow", v.b)
		answer := v.suggested(v.a, "")
		answer.DataIs(fmt.Sprintf(`{"viewer": {"user": {"list": {
			"edges": [
				{"score": 2, "sharedCount": 0, "reason": "POPULAR", "node": {"id": "%d"}, "via": []},
				{"score": 1, "sharedCount": 0, "reason": "POPULAR", "node": {"id": "%d"}, "via": []}],
			"excluded": {"followed": 0, "blocked": 0, "dismissed": 0}, "complete": true, "pageInfo": {"hasNextPage": false, "endCursor": %q}
		}}}}`, v.c, v.b, answer.At("viewer.user.list.pageInfo.endCursor")))
		v.does(v.a, "follow", v.d)
		v.wantIDs("of a following that follows one", v.ids(v.a, ""), v.c)
	})
}
