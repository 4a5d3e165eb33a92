package program_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"kith/internal/kithtest"
)

// A store in two files is copied to two servers while a gateway serves it. Sessions stay valid, pages
// continue where they were, and all data are there.
func TestAStoreIsCopied(t *testing.T) {
	t.Parallel()
	from, to := newSQLite(t, 2), newMariaDB(t, 2)
	serve := func(shards []database, more ...string) *kithtest.Gateway {
		return kithtest.Start(t, kithtest.Args(append(more, "--store", location(shards...), "--redundancy", "sync", "--jwt-secret", secret)...))
	}
	old := serve(from, "--demo")
	token := tokenOf(t, old, "", `register(handle: "early", name: "E", password: "correct horse")`)
	if _, text := askAs(t, old, token, `mutation { follow(userId: 77) { changed } }`); !strings.Contains(text, `"changed":true`) {
		t.Fatal(text)
	}
	first, cursor := pageOf(t, old, "")
	second, _ := pageOf(t, old, cursor)

	end := kithtest.Run(t, kithtest.Args("copy", location(to...), "--store", location(from...), "--output=json", "--max-load", "1"))
	var report struct{ Rows, Compared, Repaired int64 }
	if err := json.Unmarshal([]byte(end.Stdout), &report); err != nil || end.Code != 0 || report.Compared == 0 || report.Repaired > 0 {
		t.Fatalf("kith copy: %+v", end)
	}
	if got, want := digests(t, to), digests(t, from); got != want {
		t.Errorf("digests %v, want %v", got, want)
	}
	countsAgree(t, to...)

	const refused = "nothing can be changed here any more"
	if _, text := askAs(t, old, token, `mutation { follow(userId: 79) { changed } }`); !strings.Contains(text, refused) || !strings.Contains(text, `"retryable":false`) {
		t.Errorf("a write to the store that has been copied: %s", text)
	}
	if end := kithtest.Run(t, kithtest.Args("settings", "get", "redundancy", "--store", location(to...))); !strings.Contains(end.Stdout, " sync ") || !strings.Contains(end.Stdout, " set ") {
		t.Errorf("the settings of the copy: %+v", end)
	}
	copied := serve(to)
	if got, _ := pageOf(t, copied, ""); got != first {
		t.Errorf("the copy's first page is %s, want %s", got, first)
	}
	if got, _ := pageOf(t, copied, cursor); got != second || second == first {
		t.Errorf("behind a cursor of before the copy has %s, want %s", got, second)
	}
	var me struct {
		Viewer struct {
			User struct {
				Handle     string
				Followings struct{ TotalCount int }
			}
		}
	}
	for _, as := range []string{token, tokenOf(t, copied, "", `login(handle: "early", password: "correct horse")`)} {
		if dataAs(t, copied, as, `{ viewer { user { handle followings { totalCount } } } }`, &me); me.Viewer.User.Handle != "early" || me.Viewer.User.Followings.TotalCount != 1 {
			t.Errorf("who had registered is %+v", me)
		}
	}
	if _, text := askAs(t, copied, token, `mutation { follow(userId: 78) { changed } }`); !strings.Contains(text, `"changed":true`) {
		t.Errorf("the copy takes no writes: %s", text)
	}

	again := kithtest.Run(t, kithtest.Args("copy", location(to...), "--store", location(from...)))
	if again.Code != 1 || !strings.Contains(again.Stderr, "has been copied to another one") || strings.Count(again.Stderr, "\n") != 1 {
		t.Errorf("copied again: %+v", again)
	}
	other := kithtest.Run(t, kithtest.Args("copy", location(newSQLite(t, 1)...), "--store", location(from...)))
	if other.Code != 1 || !strings.Contains(other.Stderr, "being copied to another one: give that up first") {
		t.Errorf("copied to a third: %+v", other)
	}
	if end := kithtest.Run(t, kithtest.Args("shards", "abort", "--store", location(from...))); end.Code != 0 {
		t.Fatalf("given up: %+v", end)
	}
	if end := kithtest.Run(t, kithtest.Args("copy", location(to...), "--store", location(from...))); end.Code != 1 || !strings.Contains(end.Stderr, "of a copy that was given up") {
		t.Errorf("to a copy that was given up: %+v", end)
	}
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
