package program_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kith/files/importer/demo"
	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/storage"
)

// suggestion is an edge of followSuggestions.
type suggestion struct {
	Reason string
	Score  float64
	Node   struct {
		ID            string
		FollowerCount int64
	}
}

// page asks for a user's first suggestions.
func page(t *testing.T, g *kithtest.Gateway, token string) []suggestion {
	t.Helper()
	var data struct {
		Viewer struct {
			User struct{ FollowSuggestions struct{ Edges []suggestion } }
		}
	}
	dataAs(t, g, token, "{ viewer { user { followSuggestions(first: 20) { edges { reason score node { id followerCount } } } } } }", &data)
	return data.Viewer.User.FollowSuggestions.Edges
}

// dataAs runs a query as a user. The answer must have no errors.
func dataAs(t *testing.T, g *kithtest.Gateway, token, query string, data any) {
	t.Helper()
	text := textAs(t, g, token, query)
	answer := struct {
		Data   any
		Errors []any
	}{Data: data}
	must.That(t, json.Unmarshal([]byte(text), &answer) == nil && len(answer.Errors) == 0, "%s: %s", query, text)
}

// A newcomer registers, is suggested the most followed users, follows them, and then is suggested
// the users whom they follow.
func TestANewcomerFindsUsers(t *testing.T) {
	t.Parallel()
	g := kithtest.Start(t, kithtest.Args("--store", kithtest.DemoStore(t, 2), "--suggest", "1999,77"))
	token := tokenOf(t, g, "", `register(handle: "newcomer", name: "New", password: "correct horse")`)

	first := page(t, g, token)
	if len(first) != 20 || first[0].Node.ID != "1999" || first[1].Node.ID != "77" || first[1].Reason != "PINNED" {
		t.Fatalf("suggested are %+v, want 20, the pinned first", first)
	}
	var got, ids []string
	for i, s := range first {
		check.That(t, i < 2 || s.Reason == "POPULAR" && s.Score == float64(s.Node.FollowerCount) && s.Score >= 1, "suggestion %d is %+v", i, s)
		got, ids = append(got, s.Node.ID), append(ids, `"`+s.Node.ID+`"`)
	}
	// In the demo graph, users are active because of posts or new followers, and even some of the most
	// followed have had none in the last month.
	best := mostFollowed(t, g, token)
	rank := func(id string) int { return slices.Index(best, id) }
	if r := rank(got[2]); r < 0 || r >= 30 || !slices.IsSortedFunc(got[2:], func(a, b string) int { return rank(a) - rank(b) }) {
		t.Errorf("suggested are %v, most followed are %v", got[2:], best[:50])
	}

	var followed struct {
		FollowMany struct{ Outcomes []struct{ Changed bool } }
	}
	dataAs(t, g, token, "mutation { followMany(userIds: ["+strings.Join(ids, ",")+"]) { outcomes { changed } } }", &followed)
	must.Equal(t, "outcomes", len(followed.FollowMany.Outcomes), 20)
	second := page(t, g, token)
	check.Equal(t, "suggestions then", len(second), 20)
	for _, s := range second {
		check.That(t, s.Reason == "FOLLOWED_BY_FOLLOWINGS" && !slices.Contains(got, s.Node.ID), "suggested is %+v", s)
	}
}

// mostFollowed lists the users of the demo graph who are not pinned, most followed first.
func mostFollowed(t *testing.T, g *kithtest.Gateway, token string) []string {
	t.Helper()
	type user struct {
		ID            string
		FollowerCount int64
	}
	var all []user
	for from := 1; from <= demo.Users; from += 500 {
		var ids []string
		for id := from; id < from+500; id++ {
			ids = append(ids, fmt.Sprintf(`"%d"`, id))
		}
		var data struct{ Users []user }
		dataAs(t, g, token, "{ users(by: {ids: ["+strings.Join(ids, ",")+"]}) { id followerCount } }", &data)
		all = append(all, data.Users...)
	}
	slices.SortStableFunc(all, func(a, b user) int { return cmp.Compare(b.FollowerCount, a.FollowerCount) })
	var ids []string
	for _, u := range all {
		if u.ID != "1999" && u.ID != "77" {
			ids = append(ids, u.ID)
		}
	}
	return ids
}

// Reading counts as being active. That is written in the background, at the latest when the gateway stops.
func TestReadersAreActive(t *testing.T) {
	t.Parallel()
	shard := demoSQLite(t, 1)[0]
	g := kithtest.Start(t, kithtest.Args("--demo", "--store", location(shard)))
	activeOn := func(id int) string {
		return shard.text(t, fmt.Sprintf("SELECT active_day FROM user_counts WHERE user_id = %d", id))
	}
	before := [2]string{activeOn(1), activeOn(2)}
	from := storage.MicrosOf(time.Now()).Day()
	textAs(t, g, g.DemoToken(t), "{ viewer { user { id } } users(by: {ids: [2]}) { handle } }", `{"viewer":{"user":{"id":"1"}}`)
	must.Equal(t, "the code", g.Interrupt(t).Code, 0)
	day, err := strconv.Atoi(activeOn(1))
	if err != nil || storage.Day(day) < from || before[0] == activeOn(1) {
		t.Errorf("user 1 was active on day %s and then on %d, %v; want %d", before[0], day, err, from)
	}
	check.Equal(t, "the day of user 2, who was read", activeOn(2), before[1])
}
