package resolvers_test

import (
	"fmt"
	"strings"
	"testing"

	"kith/internal/apitest"
	"kith/storage"
)

// People are found by words of their names and handles, whatever their case and accents, among all users and in lists.
func TestPeopleAreFoundByTheirNames(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		names := []string{"Viewer", "Sōta Müller", "Sota Øst", "山田 太郎", "Ann-Sophie Lé", "Sōta Deactivated", "Sota Blocked", "Sota Stranger", "Sota Famous"}
		for i, name := range names {
			apitest.CreateUsers(t, store, storage.User{ID: storage.UserID(i + 1), Handle: fmt.Sprintf("h%d_x%d", i+1, i+1), Name: name, CreatedAt: apitest.Epoch})
		}
		apitest.Follow(t, store, 1, 2, 3, 4, 5, 6)
		for _, id := range []storage.UserID{3, 5, 6} {
			apitest.Follow(t, store, id, 1)
		}
		apitest.Follow(t, store, 5, 8) // a friend of a friend
		apitest.Follow(t, store, 7, 9)
		apitest.Follow(t, store, 8, 9)
		apitest.Apply(t, store, storage.Edge{From: 7, To: 1, Type: storage.Blocking, UpdateTime: apitest.Epoch})
		deactivate(t, store, 6)
		api := apitest.New(t, store, apitest.Options{})
		ids := func(all ...int) string {
			var nodes []string
			for _, id := range all {
				nodes = append(nodes, fmt.Sprintf(`{"id": "%d"}`, id))
			}
			return "[" + strings.Join(nodes, ", ") + "]"
		}
		for text, want := range map[string]string{
			"sota": ids(2, 3, 8, 9), "SOTA mul": ids(2), "muller, sōta": ids(2), "ost": ids(3), "山": ids(4), "田": ids(4), "sophie": ids(5), "ann-so": ids(5),
			"h2_x": ids(2), "x3": ids(3), "@h2_x2": ids(2), "otas": ids(), "deactivated": ids(), "blocked": ids(),
		} {
			api.As(1).Ask(`query($t: String!) { searchUsers(text: $t) { nodes { id } complete } }`, apitest.Vars{"t": text}).
				Is(`{"searchUsers": {"nodes": ` + want + `, "complete": true}}`)
		}
		api.Ask(`{ searchUsers(text: "sota") { nodes { id } } }`, nil).Is(`{"searchUsers": {"nodes": ` + ids(9, 2, 3, 8, 7) + `}}`)
		api.As(6).Ask(`{ searchUsers(text: "deact") { nodes { id } } }`, nil).Is(`{"searchUsers": {"nodes": ` + ids(6) + `}}`)
		for args, want := range map[string]string{
			`filter: {match: "sota"}`: ids(3, 2), `filter: {match: "sota", mutual: true}`: ids(3), `filter: {match: "s", mutual: false}`: ids(2),
			`filter: {match: ""}`: ids(), `filter: {match: null}`: ids(5, 4, 3, 2), `orderBy: CLOSEST`: ids(5, 3, 4, 2), `filter: {}`: ids(5, 4, 3, 2),
		} {
			api.As(1).Ask(`{ viewer { user { followings(`+args+`) { nodes { id } complete } } } }`, nil).
				Is(`{"viewer": {"user": {"followings": {"nodes": ` + want + `, "complete": true}}}}`)
		}
		api.As(2).Ask(`{ user(by: {id: 1}) { followings(filter: {special: false}) { totalCount } followers(filter: {match: "ann"}) { nodes { id } } } }`, nil).
			Is(`{"user": {"followings": null, "followers": {"nodes": ` + ids(5) + `}}}`)

		// Whom the viewer mutes is not found, and no other user takes the place for that.
		api.As(1).Ask(`mutation { mute(userId: 2) { changed } }`, nil).Whole()
		api.As(1).Ask(`{ sota: searchUsers(text: "sota") { nodes { id } } muller: searchUsers(text: "muller") { nodes { id } } }`, nil).
			Is(`{"sota": {"nodes": ` + ids(3, 8, 9) + `}, "muller": {"nodes": []}}`)

		// A cursor belongs to its filter and order.
		p := pageOf(t, api, 1, `followings(first: 1, filter: {match: "sota"})`)
		for _, other := range []string{`followings(filter: {match: "so"}, `, `followings(filter: {match: "sota"}, orderBy: CLOSEST, `, `followings(`, `followers(filter: {match: "sota"}, `, "friends("} {
			refused(t, api, other, fmt.Sprintf("after: %q", *p.PageInfo.EndCursor))
		}
		pageOf(t, api, 1, fmt.Sprintf(`followings(first: 1, filter: {match: "SŌTA"}, after: %q)`, *p.PageInfo.EndCursor)).is(t, "behind it", []string{"2"}, false, true)
		api.Ask(`query($m: String) { user(by: {id: 1}) { followings(filter: {match: $m}) { totalCount } } }`, apitest.Vars{"m": strings.Repeat("a", 401)}).Refused("BAD_USER_INPUT")
	})
}
