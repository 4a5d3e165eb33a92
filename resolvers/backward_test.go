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
	"kith/social"
	"kith/storage"
)

// Every page of a list is what its arguments cut out of the list as it is read as a whole: so many from the beginning or from the end of what
// is behind one cursor and before another. So are pages of all set lists, by every filter and in every order, and of empty ones.
func TestPagesArePartsOfTheWholeList(t *testing.T) {
	properties.Check(t, cases, func(t *rapid.T) {
		w := drawWorld(rapid.Uint64().Draw(t, "seed"), 12)
		store := oracle.New()
		must.OK(t, w.fill(store))
		api := w.api(t, store)
		owner := rapid.SampledFrom([]int{rapid.IntRange(1, w.n).Draw(t, "owner"), max(1, int(w.viewer))}).Draw(t, "whose")
		fields := []string{"people(where: {or: [{followersOf: 1}, {followedBy: 2}]})"}
		for field := range w.connections(1) {
			fields = append(fields, field)
		}
		slices.Sort(fields)
		for range 60 {
			fields = append(fields, filteredList().Draw(t, "list"))
		}
		for _, field := range fields {
			list := partedList{api, owner, field}
			all, isOpen := list.page(t, "first: 100")
			if !isOpen {
				continue
			}
			list.want(t, "first: 100", all, all, 0, len(all.cursors), false, false)
			for range 4 {
				list.draw(t, all)
			}
		}
	})
}

// draw asks for a page by any arguments.
func (l partedList) draw(t *rapid.T, all listPage) {
	size, low, high := rapid.IntRange(0, 5).Draw(t, "size"), 0, len(all.cursors)
	args := ""
	cut := func(name string) (at int, isCut bool) {
		if at = rapid.IntRange(-3, len(all.cursors)-1).Draw(t, name); at < 0 {
			return 0, false
		}
		args += fmt.Sprintf(", %s: %q", name, all.cursors[at])
		return at, true
	}
	after, isAfter := cut("after")
	if isAfter {
		low = after + 1
	}
	before, isBefore := cut("before")
	if isBefore {
		high = before
	}
	high = max(low, high)
	if rapid.Bool().Draw(t, "from the end") {
		args = fmt.Sprint("last: ", size) + args
		page, _ := l.page(t, args)
		l.want(t, args, page, all, max(low, high-size), high, isBefore, high-size > low)
		return
	}
	args = fmt.Sprint("first: ", size) + args
	page, _ := l.page(t, args)
	l.want(t, args, page, all, low, min(low+size, high), low+size < high, isAfter)
}

// filteredList draws a list of a user with any of its filters and orders.
func filteredList() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		list := rapid.SampledFrom([]string{"followings", "followers", "friends"}).Draw(t, "of")
		var filter []string
		for _, one := range [][]string{{"", "mutual: true", "mutual: false"}, {"", "special: true", "special: false"}, {"", `match: "u"`, `match: "1"`}} {
			if f := rapid.SampledFrom(one).Draw(t, "filter"); f != "" {
				filter = append(filter, f)
			}
		}
		order := rapid.SampledFrom([]string{"RECENT", "CLOSEST", "MOST_FOLLOWED"}).Draw(t, "order")
		return fmt.Sprintf("%s(filter: {%s}, orderBy: %s)", list, strings.Join(filter, ", "), order)
	})
}

// partedList is a list of a user, or of the query.
type partedList struct {
	api   *apitest.API
	owner int
	field string
}

type listPage struct {
	ids, cursors []string
	total        int
	info         pageInfo
}

func (l partedList) page(t *rapid.T, args string) (p listPage, isOpen bool) {
	open, given, _ := strings.Cut(l.field, "(")
	list := "list: " + open + "(" + args + ", " + given
	if given == "" {
		list += ")"
	}
	list += ` { totalCount edges { cursor node { id } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } }`
	at := "list"
	if open != "people" {
		list, at = fmt.Sprintf("user(by: {id: %d}) { %s }", l.owner, list), "user.list"
	}
	answer := l.api.Ask("{ "+list+" }", nil).Whole()
	if strings.Contains(answer.Text, `"user":null`) || strings.Contains(answer.Text, `"list":null`) {
		return p, false
	}
	c := apitest.Into[struct {
		TotalCount int
		Edges      []struct {
			Cursor string
			Node   struct{ ID string }
		}
		PageInfo pageInfo
	}](answer, at)
	for _, e := range c.Edges {
		p.ids, p.cursors = append(p.ids, e.Node.ID), append(p.cursors, e.Cursor)
	}
	p.total, p.info = c.TotalCount, c.PageInfo
	return p, true
}

// want compares a page with a part of the whole list, and its cursors, which carry counts.
func (l partedList) want(t *rapid.T, args string, page, all listPage, begin, end int, next, previous bool) {
	must.That(t, slices.Equal(page.ids, all.ids[begin:end]) && slices.Equal(page.cursors, all.cursors[begin:end]) && page.total == all.total, "%s of %d, %s: %v of %d, want %v of %d", l.field, l.owner, args, page.ids, page.total, all.ids[begin:end], all.total)
	must.That(t, page.info.HasNextPage == next && page.info.HasPreviousPage == previous, "%s of %d, %s: next %t, previous %t; want %t, %t", l.field, l.owner, args, page.info.HasNextPage, page.info.HasPreviousPage, next, previous)
}

// At most 10,000 users are worked out for one answer. A longer set list is paged forward only; of a longer list the newest are selected,
// which the answer says, unless few have the words.
func TestBoundsOfWholeAnswers(t *testing.T) {
	const most = social.MaxMembers
	store := oracle.New()
	var users []storage.User
	var edges []storage.Edge
	for id := storage.UserID(1); id <= most+2; id++ {
		name := "Many"
		if id <= 3 {
			name = "Few"
		}
		users = append(users, storage.User{ID: id, Handle: "u" + id.String(), Name: name, CreatedAt: apitest.Epoch})
		if id > 1 { // the newest come last
			at := apitest.Epoch + storage.Micros(id)
			edges = append(edges, storage.Edge{From: 1, To: id, Type: storage.Following, UpdateTime: at}, storage.Edge{From: id, To: 1, Type: storage.Following, UpdateTime: at})
		}
	}
	apitest.CreateUsers(t, store, users...)
	apitest.Apply(t, store, edges...)
	api := apitest.New(t, store, apitest.Options{Limits: apitest.NoLimits})
	first := pageOf(t, api, 1, "friends(first: 1)")
	for _, list := range []string{"friends(last: 1)", fmt.Sprintf("friends(before: %q)", *first.PageInfo.EndCursor), "commonFollowers(with: 1, last: 1)"} {
		api.Ask(`{ user(by: {id: 1}) { `+list+` { totalCount } } }`, nil).Refused("QUERY_TOO_COSTLY")
	}
	api.Ask(`{ user(by: {id: 1}) {
		many: followings(filter: {match: "man"}, first: 0) { totalCount complete } all: followers(orderBy: MOST_FOLLOWED, first: 0) { totalCount complete }
		few: followings(filter: {match: "few"}, first: 2) { totalCount complete nodes { id } } friends(filter: {match: "few"}) { totalCount complete }
	} searchUsers(text: "man", first: 1) { complete } }`, nil).
		Is(fmt.Sprintf(`{"user": {"many": {"totalCount": %d, "complete": false}, "all": {"totalCount": %d, "complete": false},
			"few": {"totalCount": 2, "complete": true, "nodes": [{"id": "3"}, {"id": "2"}]}, "friends": {"totalCount": 2, "complete": true}}, "searchUsers": {"complete": false}}`, most-1, most))
}
