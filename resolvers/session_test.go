package resolvers_test

import (
	"fmt"
	"strconv"
	"testing"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// What is selected below the viewer whom a mutation signs in is as this viewer sees it, whoever has sent the mutation.
func TestWhoSignsInSeesAsItself(t *testing.T) {
	api := apitest.New(t, oracle.New(), apitest.Options{Passwords: true, Limits: apitest.NoLimits})
	ids := map[string]storage.UserID{}
	for _, handle := range []string{"maya", "locked", "blocked", "friend"} {
		a := api.Ask(`mutation($h: String!) { register(handle: $h, name: "X", password: "correct horse") { viewer { user { id isViewer viewerRelationship { id } } } } }`, apitest.Vars{"h": handle}).Whole()
		check.That(t, a.At("register.viewer.user.isViewer") == true && a.At("register.viewer.user.viewerRelationship") == nil, "who registers is answered %s", a.Text)
		id, err := strconv.Atoi(a.At("register.viewer.user.id").(string))
		must.OK(t, err)
		ids[handle] = storage.UserID(id)
	}
	do := func(by, mutation string) apitest.Answer {
		return api.As(ids[by]).Ask(`mutation { `+mutation+` }`, nil).Whole()
	}
	do("locked", `updateProfile(locked: true) { changed } publishPost(text: "for followers", clientKey: "k") { changed }`)
	do("maya", fmt.Sprintf(`follow(userId: %s) { changed } mute(userId: %s) { changed } block(userId: %[2]s) { changed }`, ids["locked"], ids["blocked"]))
	do("locked", fmt.Sprintf(`acceptRequest(kind: FOLLOW, userId: %s) { changed }`, ids["maya"]))
	list := apitest.Into[string](do("maya", fmt.Sprintf(`createList(name: "L", userIds: [%s]) { list { id } }`, ids["locked"])), "createList.list.id")
	for _, selection := range []string{
		`mutedUsers { totalCount nodes { handle } }`, `accountsFile(kind: MUTES) { text }`, fmt.Sprintf(`feed(only: {list: %q}) { nodes { text } }`, list),
		`feed { nodes { viewerHasFavorited author { isViewer viewerRelationship { status } posts { nodes { text } } followers { totalCount nodes { handle isViewer } } } } }`,
		`activity { nodes { actors { viewerRelationship { status } } } }`, `user { followings { nodes { viewerRelationship { status } posts { nodes { text } } } } }`,
	} {
		want := api.As(ids["maya"]).Ask(`{ viewer { `+selection+` } }`, nil).Whole()
		for _, by := range []*apitest.API{api, api.As(ids["friend"])} {
			got := by.Ask(`mutation { login(handle: "maya", password: "correct horse") { viewer { `+selection+` } } }`, nil).Whole()
			check.Equal(t, selection, fmt.Sprint(got.At("login")), fmt.Sprint(want.Data))
		}
	}
	// The next field of the mutation is again for who has sent it.
	both := api.As(ids["friend"]).Ask(`mutation { login(handle: "maya", password: "correct horse") { viewer { user { isViewer } } } updateProfile(bio: "b") { viewer { user { handle isViewer } } } }`, nil)
	both.Is(`{"login": {"viewer": {"user": {"isViewer": true}}}, "updateProfile": {"viewer": {"user": {"handle": "friend", "isViewer": true}}}}`)
}
