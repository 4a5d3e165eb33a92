package resolvers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/storage"
)

// TestBringingAccounts: blocks end follows, mutes have their scope, lists are made once; and what one has goes out and comes in again.
func TestBringingAccounts(t *testing.T) {
	onShards(t, apitest.Options{PublicURL: "https://kith.example.org"}, func(t *testing.T, v *village) {
		bring := func(as storage.UserID, kind, file, want string) {
			t.Helper()
			a := v.api.As(as).Ask(`mutation($kind: AccountsKind!, $file: String!) { importAccounts(kind: $kind, file: $file) {
				accountsImport { changedCount refused { line error { reason } } } viewer { user { followingCount followerCount } blockedUsers { totalCount } } } }`, apitest.Vars{"kind": kind, "file": file}).Whole()
			did := a.Data["importAccounts"].(map[string]any)["accountsImport"].(map[string]any)
			said := []string{fmt.Sprint(did["changedCount"])}
			for _, o := range did["refused"].([]any) {
				said = append(said, fmt.Sprint(o.(map[string]any)["line"], " ", o.(map[string]any)["error"].(map[string]any)["reason"]))
			}
			check.Equal(t, kind, strings.Join(said, ", "), want)
		}
		v.does(v.a, "follow", v.b)
		v.does(v.b, "follow", v.a)
		v.does(v.c, "follow", v.a)
		handle := func(id storage.UserID) string { return "u" + id.String() }
		bring(v.a, "BLOCKS", handle(v.b)+"@example.org\n"+handle(v.a)+"\nnobody\n"+handle(v.b)+"\n", "1, 2 SELF, 3 USER_NOT_FOUND")
		bring(v.a, "FOLLOWS", handle(v.b)+"\n"+handle(v.c), "1, 1 BLOCKING")
		bring(v.b, "FOLLOWS", handle(v.a), "0, 1 BLOCKED")
		for _, id := range []storage.UserID{v.a, v.b, v.c} {
			v.counts(id)
		}
		bring(v.a, "MUTES", "Account address,Hide notifications\n"+handle(v.c)+",true\n"+handle(v.d)+",false\n", "2")
		lists := "Near," + handle(v.c) + "\n\"Far, away\"," + handle(v.d) + "\nNear," + handle(v.d) + "\nNear," + handle(v.b) + "\n," + handle(v.c) + "\n"
		bring(v.a, "LISTS", lists, "3, 4 BLOCKING, 5 TEXT_LENGTH")
		bring(v.a, "LISTS", "Near,"+handle(v.c), "0")

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
			text := file["text"].(string)
			check.Equal(t, kind, sorted(text), sorted(want))
			check.That(t, file["endCursor"] == nil && (!strings.Contains(want, "Hide") || strings.HasPrefix(text, "Account")), "%s: %q, want %q", kind, file, want)
		}
		v.api.As(v.a).Ask(`{ viewer { accountsFile(kind: BLOCKS, after: "x") { text } } }`, nil).Refused("BAD_USER_INPUT")
	})
}

// TestListsComeInAgain: what one's file of lists says changes nothing, whoever may see the lists, and makes the same lists for somebody else.
func TestListsComeInAgain(t *testing.T) {
	api, _ := withUsers(t, 3, apitest.Options{})
	for _, list := range []string{`"#go\nthere", public: true`, `"Both", public: true`, `"Both", public: false`} {
		api.As(1).Ask(`mutation { createList(name: `+list+`, userIds: ["2"]) { changed } }`, nil).Is(`{"createList": {"changed": true}}`)
	}
	file := api.As(1).Ask(`{ viewer { accountsFile(kind: LISTS) { text } } }`, nil).Whole().At("viewer.accountsFile.text")
	bring := func(as storage.UserID, changed int, lists string) {
		t.Helper()
		api.As(as).Ask(`mutation($file: String!) { importAccounts(kind: LISTS, file: $file) { accountsImport { lineCount changedCount } viewer { user { lists { nodes { name public } } } } } }`, apitest.Vars{"file": file}).
			Is(fmt.Sprintf(`{"importAccounts": {"accountsImport": {"lineCount": 3, "changedCount": %d}, "viewer": {"user": {"lists": {"nodes": [%s]}}}}}`, changed, lists))
	}
	bring(1, 0, `{"name": "Both", "public": false}, {"name": "Both", "public": true}, {"name": "#go there", "public": true}`)
	bring(3, 2, `{"name": "#go there", "public": false}, {"name": "Both", "public": false}`)
}

// TestNoListIsMadeForNobody: a line of somebody who is hidden is as one of nobody.
func TestNoListIsMadeForNobody(t *testing.T) {
	api, _ := withUsers(t, 2, apitest.Options{})
	api.As(2).Ask(`mutation { deactivateAccount { changed } }`, nil).Whole()
	for _, handle := range []string{"u2", "nobody"} {
		for _, list := range []string{"Near", strings.Repeat("x", storage.MaxListName+1)} {
			api.As(1).Ask(`mutation($file: String!) { importAccounts(kind: LISTS, file: $file) { accountsImport { changedCount refused { error { reason } } } viewer { user { lists { nodes { name } } } } } }`, apitest.Vars{"file": list + "," + handle}).
				Is(`{"importAccounts": {"accountsImport": {"changedCount": 0, "refused": [{"error": {"reason": "USER_NOT_FOUND"}}]}, "viewer": {"user": {"lists": {"nodes": []}}}}}`)
		}
	}
}

// TestLongAccountsFiles: a file is read in pages of 500 lines, of at most 20 lists.
func TestLongAccountsFiles(t *testing.T) {
	api, _ := withUsers(t, 602, apitest.Options{})
	var all []string
	for id := 2; id <= 602; id++ {
		all = append(all, "u"+fmt.Sprint(id)+"\n")
	}
	bring := func(kind, file string) {
		api.As(1).Ask(`mutation($kind: AccountsKind!, $file: String!) { importAccounts(kind: $kind, file: $file) { changed } }`, apitest.Vars{"kind": kind, "file": file}).Whole()
		api.WorkOnImports()
	}
	for _, kind := range []string{"FOLLOWS", "MUTES"} {
		bring(kind, strings.Join(all, ""))
	}
	var lists strings.Builder
	for n := range 60 {
		fmt.Fprintf(&lists, "List %[1]d,u%[2]d\nList %[1]d,u%[3]d\n", n, 2+n%20, 3+n%20)
	}
	bring("LISTS", lists.String())

	for kind, want := range map[string]struct{ lines, pages int }{"FOLLOWS": {602, 2}, "MUTES": {602, 2}, "LISTS": {120, 3}} {
		seen, pages := map[string]bool{}, 0
		for after := any(nil); pages == 0 || after != nil; pages++ {
			file := api.As(1).Ask(`query($kind: AccountsKind!, $after: String) { viewer { accountsFile(kind: $kind, after: $after) { text endCursor } } }`, apitest.Vars{"kind": kind, "after": after}).Whole().
				Data["viewer"].(map[string]any)["accountsFile"].(map[string]any)
			for line := range strings.Lines(file["text"].(string)) {
				check.That(t, !seen[line], "%s: %q twice", kind, line)
				seen[line] = true
			}
			after = file["endCursor"]
		}
		check.Equal(t, kind+": lines", len(seen), want.lines)
		check.Equal(t, kind+": pages", pages, want.pages)
	}
}

// TestAnAccountsFileGoesOnBehindADeletedList: if the list in which a page ends is deleted, the next page begins with the list behind it.
func TestAnAccountsFileGoesOnBehindADeletedList(t *testing.T) {
	api, _ := withUsers(t, 602, apitest.Options{})
	var lists strings.Builder
	for id := 2; id <= 602; id++ {
		fmt.Fprintf(&lists, "Long,u%d\n", id)
	}
	for _, file := range []string{"Old,u2\n", lists.String()} {
		api.As(1).Ask(`mutation($file: String!) { importAccounts(kind: LISTS, file: $file) { changed } }`, apitest.Vars{"file": file}).Whole()
		api.WorkOnImports()
	}
	page := func(after any) apitest.Answer {
		return api.As(1).Ask(`query($after: String) { viewer { accountsFile(kind: LISTS, after: $after) { text endCursor } } }`, apitest.Vars{"after": after}).Whole()
	}
	after := page(nil).At("viewer.accountsFile.endCursor").(string)
	number, _, _ := strings.Cut(after, ".")
	api.As(1).Ask(`mutation($id: ID!) { deleteList(listId: $id) { changed } }`, apitest.Vars{"id": "list_1_" + number}).Is(`{"deleteList": {"changed": true}}`)
	page(after).Is(`{"viewer": {"accountsFile": {"text": "Old,u2\n", "endCursor": null}}}`)
}

// TestImportedBlocksHoldAtOnce: the follow of whoever is blocked ends in every redundancy mode, as by `block`.
func TestImportedBlocksHoldAtOnce(t *testing.T) {
	api, store := withUsers(t, 3, apitest.Options{Redundancy: never{}})
	api.As(2).Ask(`mutation { follow(userId: 1) { changed } }`, nil).Whole()
	api.As(1).Ask(`mutation { importAccounts(kind: BLOCKS, file: "u2") { accountsImport { changedCount } } }`, nil).Is(`{"importAccounts": {"accountsImport": {"changedCount": 1}}}`)
	check.Equal(t, "the edge of user 2", storage.EdgeLookups[storage.Forward].Read(t.Context(), store, storage.Pair{From: 2, To: 1})[0].Value.Type, storage.None)
}

// TestTokensOfImports: what an import has written arrives, whatever it is, so a read with its token is not stale.
func TestTokensOfImports(t *testing.T) {
	for kind, file := range map[string]string{"FOLLOWS": "u2", "BLOCKS": "u2", "MUTES": "u2\nu3,false", "LISTS": "Near,u2\nFar,u3"} {
		api, _ := withUsers(t, 3, apitest.Options{})
		a := api.As(1).Ask(`mutation($kind: AccountsKind!, $file: String!) { importAccounts(kind: $kind, file: $file) { viewer { user { followerCount } } } }`, apitest.Vars{"kind": kind, "file": file}).Whole()
		b := api.As(1).With("Kith-Consistency", a.Token()).Ask(`{ user(by: {id: 2}) { followerCount } }`, nil).Whole()
		check.That(t, !a.Stale() && !b.Stale() && a.Token() != "", "%s: stale is the answer: %t, a read: %t, with the token %q", kind, a.Stale(), b.Stale(), a.Token())
	}
}
