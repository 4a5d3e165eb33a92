package resolvers_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kith/graph/apierr"
	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/double"
	"kith/storage"
)

const bring = `mutation($kind: AccountsKind! = FOLLOWS, $file: String!) { importAccounts(kind: $kind, file: $file) { changed viewer { user { followingCount } } accountsImport { kind lineCount doneCount changedCount refusedCount continuesAt refused { line handle error { code reason } } } } }`

// TestImportAccounts: the users of a file are found by their handles and followed, each line with its outcome. Nobody is told who is hidden.
func TestImportAccounts(t *testing.T) {
	api, _ := withUsers(t, 7, apitest.Options{MaxFollowing: 3})
	api.As(6).Ask(`mutation { block(userId: 1) { changed } }`, nil).Whole()
	api.As(7).Ask(`mutation { deactivateAccount { changed } }`, nil).Whole()
	api.As(1).Ask(`mutation { follow(userId: 2) { changed } }`, nil).Whole()
	api.As(1).Ask(bring, apitest.Vars{"file": "Account address,Show boosts,Notify on new posts,Languages\nu2@example.org,true,false,\n@U3\nnobody@example.org\nu1\nu6\nu7\nu4.bsky.social\nu5\n"}).
		Is(`{"importAccounts": {"changed": true, "viewer": {"user": {"followingCount": 3}}, "accountsImport": {"kind": "FOLLOWS", "lineCount": 8, "doneCount": 8, "changedCount": 2, "refusedCount": 5, "continuesAt": null, "refused": [
			{"line": 4, "handle": "nobody", "error": {"code": "NOT_FOUND", "reason": "USER_NOT_FOUND"}},
			{"line": 5, "handle": "u1", "error": {"code": "BAD_USER_INPUT", "reason": "SELF"}},
			{"line": 6, "handle": "u6", "error": {"code": "FORBIDDEN", "reason": "BLOCKED"}},
			{"line": 7, "handle": "u7", "error": {"code": "NOT_FOUND", "reason": "USER_NOT_FOUND"}},
			{"line": 9, "handle": "u5", "error": {"code": "LIMIT_REACHED", "reason": "TOO_MANY_FOLLOWS"}}]}}}`)
	const line = "u2@a.host.with.a.long.name.example.org\n" // 5,000 of them have all bytes that a file may have, but for some
	for n, want := range map[int]string{5000: "", 5001: "BAD_USER_INPUT", 5100: "BAD_USER_INPUT", 0: "BAD_USER_INPUT"} {
		a := api.As(5).Ask(bring, apitest.Vars{"file": strings.Repeat(line, n)})
		got := fmt.Sprint(a.Errors)
		check.That(t, (want == "") == (len(a.Errors) == 0) && (want == "" || a.Errors[0].Code() == want), "%d lines: %s", n, got)
	}
}

// TestLongImportsGoOn: what is not done at once is done by the one who sweeps, in order, also after a part was done already and its end not
// noted; 100 refused lines are shown at a time; the oldest import that is done makes room; what is removed does not go on.
func TestLongImportsGoOn(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		file := ""
		for n := range 120 {
			file += fmt.Sprintf("nobody%d\n", n)
		}
		file += fmt.Sprintf("u%s\nu%s\n", v.b, v.c)
		check.Equal(t, "lines that are done at once", fmt.Sprint(v.api.As(v.a).Ask(bring, apitest.Vars{"file": file}).Whole().At("importAccounts.accountsImport.doneCount")), "50")
		parts := storage.ImportLookups.Read(t.Context(), v.store, v.a)[0].Value
		v.does(v.a, "follow", v.b) // the first half of the last part
		v.api.WorkOnImports()
		const state = `accountsImports { id lineCount doneCount changedCount refusedCount continuesAt refused { line } rest: refused(afterLine: 100) { line handle } }`
		a := v.api.As(v.a).Ask(`{ viewer { `+state+` } }`, nil).Whole()
		one := a.Data["viewer"].(map[string]any)["accountsImports"].([]any)[0].(map[string]any)
		got := fmt.Sprintln(one["lineCount"], one["doneCount"], one["changedCount"], one["refusedCount"], one["continuesAt"], len(one["refused"].([]any)), len(one["rest"].([]any)), one["rest"].([]any)[19])
		check.Equal(t, "the import", got, "122 122 1 120 <nil> 100 20 map[handle:nobody119 line:120]\n")
		for _, id := range []storage.UserID{v.b, v.c} {
			v.api.As(v.a).Ask(`query($id: ID!) { user(by: {id: $id}) { viewerRelationship { status } } }`, apitest.Vars{"id": id.String()}).Is(`{"user": {"viewerRelationship": {"status": "FOLLOWING"}}}`)
		}
		check.That(t, len(parts) == 3 && parts[0].Number != 0, "%+v", parts)

		for range storage.MaxImports {
			v.api.As(v.a).Ask(bring, apitest.Vars{"file": strings.Repeat("nobody\n", 51)}).Whole()
		}
		v.api.As(v.a).Ask(bring, apitest.Vars{"file": "nobody"}).Refused("LIMIT_REACHED")
		all := v.api.As(v.a).Ask(`{ viewer { accountsImports { id lineCount } } }`, nil).Whole().Data["viewer"].(map[string]any)["accountsImports"].([]any)
		check.That(t, len(all) == storage.MaxImports && fmt.Sprint(all[4].(map[string]any)["lineCount"]) == "51", "imports %v", all)
		id := all[0].(map[string]any)["id"]
		const remove = `mutation($id: ID!) { removeAccountsImport(importId: $id) { changed removedImportId accountsImport { id } viewer { accountsImports { id } } } }`
		gone := v.api.As(v.a).Ask(remove, apitest.Vars{"id": id}).Whole().Data["removeAccountsImport"].(map[string]any)
		check.Equal[any](t, "changed", gone["changed"], true)
		check.Equal[any](t, "what is gone", gone["removedImportId"], id)
		check.Equal(t, "the import", gone["accountsImport"], nil)
		check.Equal(t, "what is left", len(gone["viewer"].(map[string]any)["accountsImports"].([]any)), 4)
		again := v.api.As(v.a).Ask(remove, apitest.Vars{"id": id}).Whole().Data["removeAccountsImport"].(map[string]any)
		check.That(t, again["changed"] == false && again["removedImportId"] == nil, "%v", again)
		v.api.As(v.b).Ask(remove, apitest.Vars{"id": all[1].(map[string]any)["id"]}).Whole() // of somebody else
		v.api.As(v.a).Ask(remove, apitest.Vars{"id": "x"}).Refused("BAD_USER_INPUT")
		v.api.As(v.a).Ask(`{ viewer { accountsImports { doneCount } } }`, nil).Is(`{"viewer": {"accountsImports": [{"doneCount": 50}, {"doneCount": 50}, {"doneCount": 50}, {"doneCount": 50}]}}`)
		v.api.WorkOnImports()
		v.api.As(v.a).Ask(`{ viewer { accountsImports { doneCount } } }`, nil).Is(`{"viewer": {"accountsImports": [{"doneCount": 51}, {"doneCount": 51}, {"doneCount": 51}, {"doneCount": 51}]}}`)
	})
}

// TestAnImportCountsWhatItHasChanged, also if its client disconnects during the commit.
func TestAnImportCountsWhatItHasChanged(t *testing.T) {
	engine := storeOf(t, 3)
	store, disconnect := double.Of(engine), func() {}
	store.Instead.ChangeEdges = func(ctx context.Context, side storage.Side, user storage.UserID, changes []storage.EdgeChange, o storage.ChangeOptions) []storage.Result[storage.Changed] {
		defer disconnect()
		return engine.ChangeEdges(ctx, side, user, changes, o)
	}
	var late atomic.Int64
	api := apitest.New(t, store, apitest.Options{
		Now: func() time.Time { return time.Now().Add(time.Duration(late.Load())) },
		Context: func(ctx context.Context) context.Context {
			ctx, disconnect = context.WithCancel(ctx)
			return ctx
		},
	})
	api.As(1).Ask(bring, apitest.Vars{"file": "u2\nu3"})
	disconnect = func() {}
	late.Store(int64(time.Minute))
	api.WorkOnImports()
	api.As(1).Ask(`{ viewer { accountsImports { doneCount changedCount } } }`, nil).Is(`{"viewer": {"accountsImports": [{"doneCount": 2, "changedCount": 2}]}}`)
}

// thrifty lets a user write so often.
type thrifty struct{ left map[storage.UserID]int }

func (l thrifty) Write(_ context.Context, user storage.UserID, mutation string, objects int) error {
	if l.left[user] < objects {
		return apierr.TooManyWrites.Error("later").After(time.Minute)
	}
	l.left[user] -= objects
	return nil
}

// TestImportsKeepToTheRates: an import goes on as fast as its user may write, and does not hold up those of others.
func TestImportsKeepToTheRates(t *testing.T) {
	limits := thrifty{map[storage.UserID]int{1: 120, 2: 10_000}}
	api, store := withUsers(t, 3, apitest.Options{MayWrite: limits.Write})
	file := strings.Repeat("nobody\n", 1500)
	for _, user := range []storage.UserID{1, 2} {
		api.As(user).Ask(bring, apitest.Vars{"file": file}).Whole()
	}
	done := func(user storage.UserID, want string) {
		t.Helper()
		api.As(user).Ask(`{ viewer { accountsImports { doneCount } } }`, nil).Is(`{"viewer": {"accountsImports": [{"doneCount": ` + want + `}]}}`)
	}
	api.WorkOnImports()
	done(1, "100")
	done(2, "1500")
	limits.left[1] = 10_000
	api.WorkOnImports() // it is not a minute later
	done(1, "100")
	for _, p := range storage.ImportLookups.Read(t.Context(), store, 1)[0].Value {
		wait := time.Until(p.DueAt.Time())
		check.That(t, p.Done || wait >= 30*time.Second && wait <= time.Minute, "part %d is due in %s", p.Part, wait)
	}
	api.As(1).Ask(`mutation { deactivateAccount { changed } }`, nil).Whole()
	api.As(1).Ask(bring, apitest.Vars{"file": file}).Refused("FORBIDDEN")
}

// TestImportsEnd: what has been there for a week is gone, whether it is done or not.
func TestImportsEnd(t *testing.T) {
	api, store := withUsers(t, 3, apitest.Options{})
	api.As(1).Ask(bring, apitest.Vars{"file": "u2"}).Whole()
	old := storage.ImportPart{ImportID: storage.ImportID{Owner: 1, Number: int64(storage.MicrosOf(time.Now().Add(-8 * 24 * time.Hour)))}, Kind: "FOLLOWS", Size: 1, Lines: `[{"Line": 1, "Handle": "u3"}]`, DueAt: 5}
	old.Owner = 2
	_, err := store.AddImport(t.Context(), []storage.ImportPart{old})
	must.OK(t, err)
	api.WorkOnImports()
	for user, want := range map[storage.UserID]string{1: `[{"changedCount": 1}]`, 2: `[]`} {
		api.As(user).Ask(`{ viewer { accountsImports { changedCount } } }`, nil).Is(`{"viewer": {"accountsImports": ` + want + `}}`)
	}
}
