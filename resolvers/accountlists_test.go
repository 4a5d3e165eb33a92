package resolvers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kith/internal/apitest"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// TestImportAccounts: the users of a file are found by their handles and followed, each line with its outcome. Nobody is told who is hidden.
func TestImportAccounts(t *testing.T) {
	store := oracle.New()
	apitest.Users(t, store, 7)
	api := apitest.New(t, store, apitest.Options{MaxFollowing: 3})
	api.As(6).Ask(`mutation { block(userId: 1) { changed } }`, nil).Whole()
	api.As(7).Ask(`mutation { deactivateAccount { changed } }`, nil).Whole()
	api.As(1).Ask(`mutation { follow(userId: 2) { changed } }`, nil).Whole()
	const ask = `mutation($kind: AccountsKind! = FOLLOWS, $file: String!) { importAccounts(kind: $kind, file: $file) { viewer { user { followingCount } } outcomes { line handle changed user { id } error { code reason } } } }`
	api.As(1).Ask(ask, apitest.Vars{"file": "Account address,Show boosts,Notify on new posts,Languages\nu2@example.org,true,false,\n@U3\nnobody@example.org\nu1\nu6\nu7\nu4.bsky.social\nu5\n"}).
		Is(`{"importAccounts": {"viewer": {"user": {"followingCount": 3}}, "outcomes": [
			{"line": 2, "handle": "u2", "changed": false, "user": {"id": "2"}, "error": null},
			{"line": 3, "handle": "u3", "changed": true, "user": {"id": "3"}, "error": null},
			{"line": 4, "handle": "nobody", "changed": false, "user": null, "error": {"code": "NOT_FOUND", "reason": "USER_NOT_FOUND"}},
			{"line": 5, "handle": "u1", "changed": false, "user": {"id": "1"}, "error": {"code": "BAD_USER_INPUT", "reason": "SELF"}},
			{"line": 6, "handle": "u6", "changed": false, "user": {"id": "6"}, "error": {"code": "FORBIDDEN", "reason": "BLOCKED"}},
			{"line": 7, "handle": "u7", "changed": false, "user": null, "error": {"code": "NOT_FOUND", "reason": "USER_NOT_FOUND"}},
			{"line": 8, "handle": "u4", "changed": true, "user": {"id": "4"}, "error": null},
			{"line": 9, "handle": "u5", "changed": false, "user": {"id": "5"}, "error": {"code": "LIMIT_REACHED", "reason": "TOO_MANY_FOLLOWS"}}]}}`)
	for n, want := range map[int]string{500: "", 501: "BAD_USER_INPUT"} {
		a := api.As(5).Ask(ask, apitest.Vars{"file": strings.Repeat("u2\n", n)})
		if got := fmt.Sprint(a.Errors); (want == "") != (len(a.Errors) == 0) || want != "" && a.Errors[0].Code() != want {
			t.Errorf("%d lines: %s", n, got)
		}
	}
}

// TestBringingAccounts: blocks end follows, mutes have their scope, lists are made once; and what one has goes out and comes in again.
func TestBringingAccounts(t *testing.T) {
	onShards(t, apitest.Options{PublicURL: "https://kith.example.org"}, func(t *testing.T, v *village) {
		bring := func(as storage.UserID, kind, file, want string) {
			t.Helper()
			a := v.api.As(as).Ask(`mutation($kind: AccountsKind!, $file: String!) { importAccounts(kind: $kind, file: $file) {
				outcomes { line changed error { reason } } viewer { user { followingCount followerCount } blockedUsers { totalCount } } } }`, apitest.Vars{"kind": kind, "file": file}).Whole()
			var said []string
			for _, o := range a.Data["importAccounts"].(map[string]any)["outcomes"].([]any) {
				o := o.(map[string]any)
				one := fmt.Sprint(o["line"], " ", o["changed"])
				if o["error"] != nil {
					one += " " + fmt.Sprint(o["error"].(map[string]any)["reason"])
				}
				said = append(said, one)
			}
			if got := strings.Join(said, ", "); got != want {
				t.Errorf("%s: %s, want %s", kind, got, want)
			}
		}
		v.does(v.a, "follow", v.b)
		v.does(v.b, "follow", v.a)
		v.does(v.c, "follow", v.a)
		handle := func(id storage.UserID) string { return "u" + id.String() }
		bring(v.a, "BLOCKS", handle(v.b)+"@example.org\n"+handle(v.a)+"\nnobody\n"+handle(v.b)+"\n", "1 true, 2 false SELF, 3 false USER_NOT_FOUND, 4 false")
		bring(v.a, "FOLLOWS", handle(v.b)+"\n"+handle(v.c), "1 false BLOCKING, 2 true")
		bring(v.b, "FOLLOWS", handle(v.a), "1 false BLOCKED")
		for _, id := range []storage.UserID{v.a, v.b, v.c} {
			v.counts(id)
		}
		bring(v.a, "MUTES", "Account address,Hide notifications\n"+handle(v.c)+",true\n"+handle(v.d)+",false\n", "2 true, 3 true")
		lists := "Near," + handle(v.c) + "\n\"Far, away\"," + handle(v.d) + "\nNear," + handle(v.d) + "\nNear," + handle(v.b) + "\n," + handle(v.c) + "\n"
		bring(v.a, "LISTS", lists, "1 true, 2 true, 3 true, 4 false BLOCKING, 5 false TEXT_LENGTH")
		bring(v.a, "LISTS", "Near,"+handle(v.c), "1 false")

		at := func(id storage.UserID) string { return handle(id) + "@kith.example.org" }
		for kind, want := range map[string]string{
			"FOLLOWS": "Account address,Show boosts,Notify on new posts,Languages\n" + at(v.c) + ",true,false,\n",
			"BLOCKS":  at(v.b) + "\n",
			"MUTES":   "Account address,Hide notifications\n" + at(v.c) + ",true\n" + at(v.d) + ",false\n",
			"LISTS":   "\"Far, away\"," + at(v.d) + "\nNear," + at(v.d) + "\nNear," + at(v.c) + "\n",
		} {
			file := v.api.As(v.a).Ask(`query($kind: AccountsKind!) { viewer { accountsFile(kind: $kind) { text endCursor } } }`, apitest.Vars{"kind": kind}).Whole().
				Data["viewer"].(map[string]any)["accountsFile"].(map[string]any)
			sorted := func(text string) []string { return slices.Sorted(strings.Lines(text)) } // what is written at once has no order
			if text := file["text"].(string); !slices.Equal(sorted(text), sorted(want)) || file["endCursor"] != nil || strings.Contains(want, "Hide") && !strings.HasPrefix(text, "Account") {
				t.Errorf("%s: %q, want %q", kind, file, want)
			}
		}
		v.api.As(v.a).Ask(`{ viewer { accountsFile(kind: BLOCKS, after: "x") { text } } }`, nil).Refused("BAD_USER_INPUT")
	})
}

// TestLongAccountsFiles: a file is read in pages of 500 lines, of at most 20 lists.
func TestLongAccountsFiles(t *testing.T) {
	store := oracle.New()
	apitest.Users(t, store, 602)
	api := apitest.New(t, store, apitest.Options{})
	var all []string
	for id := 2; id <= 602; id++ {
		all = append(all, "u"+fmt.Sprint(id)+"\n")
	}
	const ask = `mutation($kind: AccountsKind!, $file: String!) { importAccounts(kind: $kind, file: $file) { outcomes { changed } } }`
	for _, kind := range []string{"FOLLOWS", "MUTES"} {
		for _, part := range [][]string{all[:500], all[500:]} {
			api.As(1).Ask(ask, apitest.Vars{"kind": kind, "file": strings.Join(part, "")}).Whole()
		}
	}
	for from := range 3 {
		file := ""
		for n := range 20 {
			file += fmt.Sprintf("List %[1]d,u%[2]d\nList %[1]d,u%[3]d\n", 20*from+n, 2+n, 3+n)
		}
		api.As(1).Ask(ask, apitest.Vars{"kind": "LISTS", "file": file}).Whole()
	}
	var over string
	for n := range 21 {
		over += fmt.Sprintf("More %d,u2\n", n)
	}
	api.As(1).Ask(ask, apitest.Vars{"kind": "LISTS", "file": over}).Refused("BAD_USER_INPUT")

	for kind, want := range map[string]struct{ lines, pages int }{"FOLLOWS": {602, 2}, "MUTES": {602, 2}, "LISTS": {120, 3}} {
		seen, pages := map[string]bool{}, 0
		for after := any(nil); pages == 0 || after != nil; pages++ {
			file := api.As(1).Ask(`query($kind: AccountsKind!, $after: String) { viewer { accountsFile(kind: $kind, after: $after) { text endCursor } } }`, apitest.Vars{"kind": kind, "after": after}).Whole().
				Data["viewer"].(map[string]any)["accountsFile"].(map[string]any)
			for line := range strings.Lines(file["text"].(string)) {
				if seen[line] {
					t.Errorf("%s: %q twice", kind, line)
				}
				seen[line] = true
			}
			after = file["endCursor"]
		}
		if len(seen) != want.lines || pages != want.pages {
			t.Errorf("%s: %d lines on %d pages, want %+v", kind, len(seen), pages, want)
		}
	}
}

// TestImportedBlocksHoldAtOnce: the follow of whoever is blocked ends in every redundancy mode, as by `block`.
func TestImportedBlocksHoldAtOnce(t *testing.T) {
	api, store := threeUsers(t, apitest.Options{Redundancy: never{}})
	api.As(2).Ask(`mutation { follow(userId: 1) { changed } }`, nil).Whole()
	api.As(1).Ask(`mutation { importAccounts(kind: BLOCKS, file: "u2") { outcomes { changed } } }`, nil).Is(`{"importAccounts": {"outcomes": [{"changed": true}]}}`)
	if e := storage.EdgeLookups[storage.Forward].Read(t.Context(), store, storage.Pair{From: 2, To: 1})[0].Value; e.Type != storage.None {
		t.Errorf("user 2 still follows: %+v", e)
	}
}
