package program_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
)

// A store in two files is copied to two servers while a gateway serves it. Sessions stay valid, pages
// continue where they were, and all data are there.
func TestAStoreIsCopied(t *testing.T) {
	t.Parallel()
	from, to := demoSQLite(t, 2), newMariaDB(t, 2)
	serve := func(shards []database) *kithtest.Gateway {
		return kithtest.Start(t, kithtest.Args("--store", location(shards...), "--redundancy", "sync", "--jwt-secret", secret))
	}
	old := serve(from)
	token := tokenOf(t, old, "", `register(handle: "early", name: "E", password: "correct horse")`)
	textAs(t, old, token, `mutation { follow(userId: 77) { changed } }`, `"changed":true`)
	first, cursor := pageOf(t, old, "")
	second, _ := pageOf(t, old, cursor)

	end := kithtest.Run(t, kithtest.Args("copy", location(to...), "--store", location(from...), "--output=json", "--max-load", "1"))
	var report struct{ Rows, Compared, Repaired int64 }
	err := json.Unmarshal([]byte(end.Stdout), &report)
	must.That(t, err == nil && end.Code == 0 && report.Compared != 0 && report.Repaired <= 0, "kith copy: %+v", end)
	check.Equal(t, "digests", digests(t, to), digests(t, from))
	countsAgree(t, to...)

	const refused = "nothing can be changed here any more"
	textAs(t, old, token, `mutation { follow(userId: 79) { changed } }`, refused, `"retryable":false`)
	check.Has(t, "the settings of the copy", kithtest.Run(t, kithtest.Args("settings", "get", "redundancy", "--store", location(to...))).Stdout, " sync ", " set ")
	copied := serve(to)
	firstThere, _ := pageOf(t, copied, "")
	check.Equal(t, "the copy's first page", firstThere, first)
	got, _ := pageOf(t, copied, cursor)
	check.That(t, got == second && second != first, "behind a cursor of before the copy has %s, want %s", got, second)
	for _, as := range []string{token, tokenOf(t, copied, "", `login(handle: "early", password: "correct horse")`)} { // who had registered
		textAs(t, copied, as, `{ viewer { user { handle followings { totalCount } } } }`, `{"user":{"handle":"early","followings":{"totalCount":1}}}`)
	}
	textAs(t, copied, token, `mutation { follow(userId: 78) { changed } }`, `"changed":true`)

	again := kithtest.Run(t, kithtest.Args("copy", location(to...), "--store", location(from...)))
	complains(t, "copied again", again, 1, "has been copied to another one")
	other := kithtest.Run(t, kithtest.Args("copy", location(newSQLite(t, 1)...), "--store", location(from...)))
	other.Fails(t, "copied to a third", 1, "being copied to another one: give that up first")
	kithtest.Ends(t, 0, kithtest.Args("shards", "abort", "--store", location(from...)))
	kithtest.Run(t, kithtest.Args("copy", location(to...), "--store", location(from...))).Fails(t, "to a copy that was given up", 1, "of a copy that was given up")
}

// pageOf returns a page of a user's followers, and its last cursor.
func pageOf(t *testing.T, g *kithtest.Gateway, after string) (ids, cursor string) {
	t.Helper()
	var data struct {
		User struct {
			Followers struct {
				Nodes    []struct{ ID string }
				PageInfo struct{ EndCursor string }
			}
		}
	}
	g.Query(t, `query($after: String) { user(by: {id: 1999}) { followers(first: 5, after: $after) { nodes { id } pageInfo { endCursor } } } }`,
		map[string]any{"after": map[bool]any{true: nil, false: after}[after == ""]}, &data)
	return fmt.Sprint(data.User.Followers.Nodes), data.User.Followers.PageInfo.EndCursor
}
