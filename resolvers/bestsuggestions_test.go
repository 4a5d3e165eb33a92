package resolvers_test

import (
	"fmt"
	"slices"
	"testing"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/storage"
)

func (v *village) follows(pairs ...[2]storage.UserID) {
	v.t.Helper()
	for _, p := range pairs {
		v.does(p[0], "follow", p[1])
	}
}

const closeFollowers = `mutation { updateProfile(listVisibility: {followers: NOBODY}) { changed } }`

// In the order BEST, who follows the user comes first, then whom the audience follows; who has posted lately comes before all others.
func TestTheBestSuggestions(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		e, f := v.others()
		v.follows([2]storage.UserID{v.a, v.b}, [2]storage.UserID{v.b, v.c}, [2]storage.UserID{v.d, v.a})
		v.follows([2]storage.UserID{e, v.b}, [2]storage.UserID{e, v.d}, [2]storage.UserID{e, f}) // e is the audience
		reasons := func(viewer storage.UserID) (list []string) {
			page := v.api.As(viewer).Ask(fmt.Sprintf(`{ user(by: {id: %d}) { list: followSuggestions(orderBy: BEST) { edges { reason node { id } } } } }`, v.a), nil).Whole()
			for _, one := range apitest.Into[suggestionPage](page, "user.list").Edges {
				list = append(list, one.Node.ID+" "+one.Reason)
			}
			return list
		}
		of := func(id storage.UserID, reason string) string { return id.String() + " " + reason }
		wants := func(what string, viewer storage.UserID, want ...string) {
			t.Helper()
			check.Equal(t, what, reasons(viewer), want)
		}
		d, c, other := of(v.d, "FOLLOWS_YOU"), of(v.c, "FOLLOWED_BY_FOLLOWINGS"), of(f, "SHARED_AUDIENCE")
		wants("at first", v.a, d, other, c)
		publish(t, v.api, v.c, "text", "k")
		wants("after a post", v.a, c, d, other)
		v.wantIDs("in the other order", v.ids(v.a, ""), v.c)
		cursor := v.suggested(v.a, ", orderBy: BEST").At("viewer.user.list.pageInfo.endCursor")
		v.api.As(v.a).Ask(fmt.Sprintf(`{ viewer { user { followSuggestions(after: %q) { complete } } } }`, cursor), nil).Refused("BAD_USER_INPUT")

		// Once the followers of a are closed, others are not told that d follows a: d counts like anybody whom e follows.
		wants("to another", f, c, d, other)
		v.api.As(v.a).Ask(closeFollowers, nil).Whole()
		like := []string{of(v.d, "SHARED_AUDIENCE"), other}
		if v.d > f {
			slices.Reverse(like)
		}
		wants("with closed followers, to another", f, c, like[0], like[1])
		wants("with closed followers, to a", v.a, c, d, other)
	})
}

func TestADismissalIsUndone(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		v.follows([2]storage.UserID{v.a, v.b}, [2]storage.UserID{v.b, v.c})
		for _, step := range []struct {
			mutation string
			changed  bool
			left     []storage.UserID
		}{
			{"undismissSuggestion", false, []storage.UserID{v.c}},
			{"dismissSuggestion", true, nil},
			{"dismissSuggestion", false, nil},
			{"undismissSuggestion", true, []storage.UserID{v.c}},
			{"undismissSuggestion", false, []storage.UserID{v.c}},
		} {
			v.api.As(v.a).Ask(`mutation($id: ID!) { done: `+step.mutation+`(userId: $id) { changed user { id } } }`, apitest.Vars{"id": v.c.String()}).
				Is(fmt.Sprintf(`{"done": {"changed": %t, "user": {"id": "%d"}}}`, step.changed, v.c))
			v.wantIDs(step.mutation, v.ids(v.a, ""), step.left...)
		}
		v.api.As(v.a).Ask(`mutation($id: ID!) { undismissSuggestion(userId: $id) { changed } }`, apitest.Vars{"id": v.a.String()}).Refused("BAD_USER_INPUT")
		unknown := v.api.As(v.a).Ask(`mutation { dismissSuggestion(userId: 999999) { changed } }`, nil)
		unknown.Refused("NOT_FOUND")
		check.Has(t, "the answer", unknown.Text, `"argument":"userId"`)
	})
}

func TestSimilarUsers(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		e, f := v.others()
		v.follows([2]storage.UserID{v.c, v.a}, [2]storage.UserID{v.d, v.a}, [2]storage.UserID{v.c, v.b}, [2]storage.UserID{v.d, v.b})
		v.follows([2]storage.UserID{v.d, e}, [2]storage.UserID{f, e}) // half of those who follow e
		ask := func(viewer storage.UserID, arguments string) apitest.Answer {
			return v.api.As(viewer).Ask(fmt.Sprintf(`{ user(by: {id: %d}) { list: similarUsers(first: 1%s) { totalCount complete nodes { id } pageInfo { hasNextPage endCursor } } } }`, v.a, arguments), nil).Whole()
		}
		after := ""
		for i, want := range []storage.UserID{v.b, e} {
			page := ask(f, after)
			end := page.At("user.list.pageInfo.endCursor")
			page.Is(fmt.Sprintf(`{"user": {"list": {"totalCount": 2, "complete": true, "nodes": [{"id": "%d"}], "pageInfo": {"hasNextPage": %t, "endCursor": %q}}}}`, want, i == 0, end))
			after = fmt.Sprintf(", after: %q", end)
		}
		total := func(what string, viewer storage.UserID, want int) {
			t.Helper()
			check.Equal(t, what+": users who are similar", fmt.Sprint(ask(viewer, "").At("user.list.totalCount")), fmt.Sprint(want))
		}
		total("to one of them", e, 1)
		v.does(e, "block", v.b)
		total("to one who blocks the other", e, 0)
		v.api.As(v.b).Ask(`mutation { updateProfile(discoverable: false) { changed } }`, nil).Whole()
		total("without who does not want to be suggested", f, 1)
		v.api.As(v.d).Ask(`mutation { updateProfile(listVisibility: {followings: NOBODY}) { changed } }`, nil).Whole()
		total("without whom only closed lists have", f, 0)
		v.api.As(v.a).Ask(closeFollowers, nil).Whole()
		check.Equal(t, "of closed followers", ask(f, "").At("user.list"), nil)
	})
}
