package resolvers_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// check asks for everything, and compares it with what is wanted.
func (w *world) check(t apitest.T, api *apitest.API) {
	t.Helper()
	ids := append(w.users(), nobody)
	w.checkUsers(t, api, ids)
	var relations, ties, names []string
	each := ""
	for i, from := range ids {
		for _, to := range ids {
			relations = append(relations, w.relationship(storage.Pair{From: from, To: to}))
		}
		tie := w.relationship(storage.Pair{From: from, To: with})
		ties, names = append(ties, tie), append(names, fmt.Sprintf("rel_%d_%d", from, with))
		below := `null`
		if !w.gone(from) {
			below = `{"r": ` + tie + `}`
		}
		each += fmt.Sprintf(`, "a%d": %s, "b%[1]d": %[2]s, "c%[1]d": %[3]s`, i, tie, below)
	}
	api.Ask(`query($ids: [ID!]!) { r: relationships(from: $ids, to: $ids)`+selectTie+` }`, apitest.Vars{"ids": ids}).
		Is(`{"r": [` + strings.Join(relations, ", ") + `]}`)
	oneByOne := ""
	for i, from := range ids {
		oneByOne += fmt.Sprintf(` a%d: relationship(from: %d, to: %d) { ...tie } b%[1]d: node(id: "rel_%[2]d_%[3]d") { ...tie } c%[1]d: user(by: {id: %[2]d}) { r: relationship(to: %[3]d) { ...tie } }`, i, from, with)
	}
	api.Ask(`query($ids: [ID!]!) { r: nodes(ids: $ids) { ...tie }`+oneByOne+` } fragment tie on Relationship`+selectTie, apitest.Vars{"ids": names}).
		Is(`{"r": [` + strings.Join(ties, ", ") + `]` + each + `}`)
	w.checkPeople(t, api)
	w.checkSearch(t, api)
}

// checkUsers asks for the users in every way there is.
func (w *world) checkUsers(t apitest.T, api *apitest.API, ids []storage.UserID) {
	t.Helper()
	var users []string
	for _, id := range ids {
		users = append(users, w.user(id))
	}
	api.Ask(`query($ids: [ID!]!) { users(by: {ids: $ids}) `+w.selectUser()+` }`, apitest.Vars{"ids": ids}).
		Is(`{"users": [` + strings.Join(users, ", ") + `]}`)
	api.Ask(`query($ids: [ID!]!) { nodes(ids: $ids) { ... on User `+w.selectUser()+` } }`, apitest.Vars{"ids": ids}).
		Is(`{"nodes": [` + strings.Join(users, ", ") + `]}`)
	some := ids[len(ids)/2]
	api.Ask(fmt.Sprintf(`{ a: user(by: {id: %d}) %s b: user(by: {handle: "u%d"}) { id } c: node(id: %d) { id } }`, some, w.selectUser(), some, some), nil).
		Is(map[bool]string{
			true:  `{"a": null, "b": null, "c": null}`,
			false: fmt.Sprintf(`{"a": %s, "b": {"id": "%d"}, "c": {"id": "%d"}}`, w.user(some), some, some),
		}[w.gone(some)])
}

// checkPeople asks for people by filters of every kind.
func (w *world) checkPeople(t apitest.T, api *apitest.API) {
	t.Helper()
	type list = struct {
		side  storage.Side
		owner storage.UserID
	}
	follower, followed := func(id, of storage.UserID) bool { return w.isOn(storage.Inverse, of, id) }, func(id, by storage.UserID) bool { return w.isOn(storage.Forward, by, id) }
	for _, c := range []struct {
		where string
		lists []list
		fits  func(id storage.UserID) bool
	}{
		{`{followersOf: 1}`, []list{{storage.Inverse, 1}}, func(id storage.UserID) bool { return follower(id, 1) }},
		{`{friendsOf: 4}`, []list{{storage.Inverse, 4}, {storage.Forward, 4}}, func(id storage.UserID) bool { return follower(id, 4) && followed(id, 4) }},
		{`{or: [{followedBy: 2}, {followersOf: 5}]}`, []list{{storage.Forward, 2}, {storage.Inverse, 5}}, func(id storage.UserID) bool { return followed(id, 2) || follower(id, 5) }},
		{`{and: [{followedBy: 1}, {not: {followersOf: 6}}]}`, []list{{storage.Forward, 1}, {storage.Inverse, 6}}, func(id storage.UserID) bool { return followed(id, 1) && !follower(id, 6) }},
		{fmt.Sprintf(`{and: [{not: {followersOf: %d}}, {or: [{followedBy: 7}, {followedBy: %d}]}]}`, nobody, nobody), []list{{storage.Forward, 7}}, func(id storage.UserID) bool { return followed(id, 7) }},
	} {
		want := connection(w.byID(c.fits))
		for _, l := range c.lists {
			if !w.open(l.side, l.owner) {
				want = "null"
			}
		}
		api.Ask(`{ people(where: `+c.where+`, first: 100)`+selectAll("people")+` }`, nil).Is(`{"people": ` + want + `}`)
	}
}

// checkSearch pages through all users by their names.
func (w *world) checkSearch(t apitest.T, api *apitest.API) {
	t.Helper()
	var want, got []string
	near := map[storage.UserID]int{}
	for p := range w.follows {
		if w.viewer != 0 && p.From == w.viewer {
			near[p.To] = 2
		} else if by := (storage.Pair{From: w.viewer, To: p.From}); w.follows[by] != 0 && !w.hides(p.From) && w.opens[p.From][0] != storage.ToNobody {
			near[p.To] = max(near[p.To], 1)
		}
	}
	found := slices.DeleteFunc(w.users(), w.hides)
	slices.SortStableFunc(found, func(a, b storage.UserID) int {
		return cmp.Or(cmp.Compare(near[b], near[a]), cmp.Compare(w.followers(b), w.followers(a)), cmp.Compare(a, b))
	})
	for _, id := range found {
		want = append(want, "u"+id.String())
	}
	for after, more := "", true; more; {
		answer := api.Ask(`{ searchUsers(text: "Usér", first: 7`+optional("after", after)+`) { edges { cursor node { handle } } pageInfo { hasNextPage endCursor } } }`, nil).Whole()
		p := apitest.Into[struct {
			Edges []struct {
				Cursor string
				Node   struct{ Handle string }
			}
			PageInfo pageInfo
		}](answer, "searchUsers")
		for _, e := range p.Edges {
			got = append(got, e.Node.Handle)
		}
		more = p.PageInfo.HasNextPage
		must.That(t, !more || len(p.Edges) == 7 && p.PageInfo.EndCursor != nil && len(got) <= w.n, "a page of a search that goes on: %+v", p)
		if more {
			after = *p.PageInfo.EndCursor
		}
	}
	check.Equal(t, "search", got, want)
}

// decoded is a JSON value that can be compared.
func decoded(t apitest.T, text string) any {
	t.Helper()
	var v any
	err := json.Unmarshal([]byte(text), &v)
	must.That(t, err == nil, "%s: %v", text, err)
	return v
}
