package resolvers_test

import (
	"encoding/base64"
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

// If an answer ends at its budget, at a user who is not shown, its cursor does not reveal that
// user: it is sealed, and still leads to the next page. Any other cursor is the cursor of a user on the page.
func TestCursorsRevealNothingOfWhoIsNotShown(t *testing.T) {
	const (
		friends = 3000                 // of user 1, from user 2 on; nearly all of them are hidden
		other   = storage.UserID(3100) // has most of these friends, too
		blocked = 1000                 // by user 1, from user 4000 on, who are hidden as well
	)
	store := oracle.New()
	var also []storage.User
	for id := storage.UserID(friends + 2); id < 4000+blocked; id++ {
		also = append(also, storage.User{ID: id, Handle: "u" + id.String(), CreatedAt: apitest.Epoch})
	}
	var edges []storage.Edge
	for _, text := range star(t, store, friends) {
		id := userID(t, text)
		follow := func(from, to storage.UserID) {
			edges = append(edges, storage.Edge{From: from, To: to, Type: storage.Following, UpdateTime: apitest.Epoch + storage.Micros(id)})
		}
		follow(id, 3200+id%30)
		if id%3 > 0 {
			follow(other, id)
			follow(id, other)
		}
	}
	for id := storage.UserID(4000); id < 4000+blocked; id++ {
		edges = append(edges, storage.Edge{From: 1, To: id, Type: storage.Blocking, UpdateTime: apitest.Epoch + storage.Micros(id)})
	}
	apitest.CreateUsers(t, store, also...)
	apitest.Apply(t, store, edges...)
	isHidden := func(id storage.UserID) bool { return (id > 1 && id < friends+2 || id >= 4000) && id%200 > 0 }
	for id := storage.UserID(1); id < 4000+blocked; id++ {
		if isHidden(id) {
			deactivate(t, store, id)
		}
	}
	whole, small := apitest.New(t, store, apitest.Options{}).As(1), apitest.New(t, store, apitest.Options{Budget: 300}).As(1)
	medium := apitest.New(t, store, apitest.Options{Budget: 4 * (friends + 10)}).As(1)
	for _, list := range []string{
		`viewer { user { list: followings(first: 3 @) $ } }`, `viewer { user { list: followers(first: 3 @) $ } }`, `viewer { user { list: friends(first: 3 @) $ } }`,
		`user(by: {id: 3100}) { list: notFollowingBack(first: 3 @) $ }`, `viewer { user { list: notFollowedBack(first: 3 @) $ } }`,
		`viewer { user { list: commonFollowings(with: 3100, first: 3 @) $ } }`, `viewer { user { list: commonFollowers(with: 3100, first: 3 @) $ } }`,
		`list: people(where: {followersOf: 1}, first: 3 @) $`, `list: people(where: {and: [{followedBy: 1}, {not: {followersOf: 3100}}]}, first: 3 @) $`,
		`viewer { user { list: followSuggestions(first: 3 @) $ } }`, `viewer { list: blockedUsers(first: 3 @) $ }`,
	} {
		want, _ := pages(t, whole, list)
		short := small
		if strings.Contains(list, "followSuggestions") { // this list counts the followings that it begins with, and takes a quarter
			short = medium
		}
		got, sealed := pages(t, short, list)
		check.That(t, strings.Contains(list, "followSuggestions") || slices.Equal(got, want), "%s: %v, want %v", list, got, want)
		check.That(t, !slices.ContainsFunc(got, func(id string) bool { return isHidden(userID(t, id)) }), "%s shows %v", list, got)
		check.Least(t, list+", pages that ended at somebody who is hidden", sealed, 1)
	}
}

// pages lists the users on all pages of a list, and reports how many of their cursors are sealed.
func pages(t *testing.T, api *apitest.API, list string) (ids []string, sealed int) {
	t.Helper()
	after := ""
	for n := 0; ; n++ {
		query := strings.NewReplacer("@", optional("after", after), "$", `{ edges { cursor node { id } } pageInfo { hasNextPage endCursor } }`).Replace(list)
		path := "list"
		for _, above := range []string{"viewer { list", "user(", "viewer { user"} {
			if strings.HasPrefix(list, above) {
				path = map[string]string{"viewer { list": "viewer.list", "user(": "user.list", "viewer { user": "viewer.user.list"}[above]
			}
		}
		p := apitest.Into[page](api.Ask("{ "+query+" }", nil).Whole(), path)
		for i, e := range p.Edges {
			ids = append(ids, e.Node.ID)
			if isSealed(t, e.Cursor) {
				sealed++
			}
			must.That(t, i != len(p.Edges)-1 || p.PageInfo.EndCursor != nil, "%s: no end", query)
		}
		end := p.PageInfo.EndCursor
		switch {
		case !p.PageInfo.HasNextPage:
			return ids, sealed
		case end == nil || n > 1000:
			t.Fatalf("%s: page %d does not end", query, n)
		case len(p.Edges) > 0 && *end == p.Edges[len(p.Edges)-1].Cursor: // it is the cursor of a user who is shown
		case isSealed(t, *end):
			sealed++
		case !strings.Contains(list, "first: 0"): // from the beginning
			t.Errorf("%s: %s is an open cursor of nobody on the page", query, *end)
		}
		if after == *end {
			return ids, sealed // once the total is known, first: 0 has no next page
		}
		after = *end
	}
}

func isSealed(t *testing.T, text string) bool {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(text)
	check.That(t, err == nil && len(text) < 200, "%q is no cursor: %v", text, err)
	return raw[0] >= 0x80
}

// A sealed cursor belongs to its field and its store, and cannot be changed.
func TestSealedCursorsOfOthersAreRefused(t *testing.T) {
	store := oracle.New()
	star(t, store, 200)
	for id := storage.UserID(2); id <= 201; id++ {
		deactivate(t, store, id)
	}
	api := apitest.New(t, store, apitest.Options{Budget: social.Budget(20)})
	p := pageOf(t, api, 1, "followings(first: 5)")
	end := *p.PageInfo.EndCursor
	must.That(t, p.PageInfo.HasNextPage && len(p.Edges) == 0 && isSealed(t, end), "%+v", p)
	pageOf(t, api, 1, fmt.Sprintf("followings(first: 5, after: %q)", end))
	for _, field := range []string{"followers(", "friends(", "commonFollowings(with: 2, ", "followSuggestions("} {
		refused(t, api, field, fmt.Sprintf("after: %q", end))
	}
	backward := api.Ask(`{ user(by: {id: 1}) { list: followings(last: 5) { pageInfo { hasPreviousPage startCursor } } } }`, nil).Whole()
	start, _ := backward.At("user.list.pageInfo.startCursor").(string)
	check.That(t, isSealed(t, start) && backward.At("user.list.pageInfo.hasPreviousPage") == true, "backward: %s", backward.Text)
	for _, wrong := range []string{end[:len(end)-1] + "_", end[:len(end)-4], "A" + end[1:], end + "AA", strings.Repeat(end, 100)} {
		refused(t, api, "followings(", fmt.Sprintf("after: %q", wrong))
	}
}
