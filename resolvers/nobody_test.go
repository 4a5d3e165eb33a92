package resolvers_test

import (
	"fmt"
	"strings"
	"testing"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/storage"
)

// standings are what can be between a viewer (a) and a user (x) who is then hidden.
var standings = []struct {
	name string
	make func(v *village, a, x storage.UserID)
}{
	{"nothing", func(*village, storage.UserID, storage.UserID) {}},
	{"friends, marked", func(v *village, a, x storage.UserID) {
		v.does(a, "follow", x)
		v.does(x, "follow", a)
		v.api.As(a).Ask(`mutation($id: ID!) { setFollowMark(userId: $id, special: true, remark: "R") { changed } }`, apitest.Vars{"id": x.String()}).Whole()
	}},
	{"asked", func(v *village, a, x storage.UserID) { v.does(a, "requestFriend", x) }},
	{"asks", func(v *village, a, x storage.UserID) { v.does(x, "requestFriend", a) }},
	{"declined", func(v *village, a, x storage.UserID) {
		v.does(a, "requestFriend", x)
		v.does(x, "declineRequest FRIEND", a)
	}},
	{"blocked", func(v *village, a, x storage.UserID) { v.does(a, "block", x) }},
	{"blocks", func(v *village, a, x storage.UserID) { v.does(x, "block", a) }},
	{"muted, dismissed, related, listed", func(v *village, a, x storage.UserID) {
		v.does(a, "mute", x)
		v.does(a, "dismissSuggestion", x)
		v.api.As(a).Ask(`mutation($x: ID!) { relate(kind: BOOKMARKS, ids: [$x]) { outcomes { changed } } }`, apitest.Vars{"x": x.String()}).Whole()
		v.api.As(x).Ask(`mutation($a: ID!) { relate(kind: WORKS_WITH, ids: [$a]) { outcomes { changed } } }`, apitest.Vars{"a": a.String()}).Whole()
	}},
	{"waits for a locked user", func(v *village, a, x storage.UserID) {
		v.api.As(x).Ask(`mutation { updateProfile(locked: true) { changed } }`, nil).Whole()
		v.does(a, "follow", x)
	}},
	{"waits", func(v *village, a, x storage.UserID) {
		v.api.As(a).Ask(`mutation { updateProfile(locked: true) { changed } }`, nil).Whole()
		v.does(x, "follow", a)
	}},
}

const (
	anyTie     = `relationship { id status following followedBy followedAt followedByAt blocking blockedBy followRequested followRequestedBy muted mutedUntil special remark sentRequest { id } receivedRequest { id } from { id } to { id } }`
	anyPayload = `changed viewer { user { id followingCount followerCount } } user { id handle } ` + anyTie
	anyList    = ` { totalCount complete nodes { id } pageInfo { hasNextPage } }`
)

// asksAboutX are all mutations and fields that take a user's id, for a hidden user X. B is another
// user, and C is a user whose lists are closed.
func asksAboutX() []string {
	var asks []string
	for _, args := range []string{``, `, special: true`, `, remark: "other"`, `, special: false, remark: ""`} {
		asks = append(asks, `mutation { setFollowMark(userId: "X"`+args+`) { `+anyPayload+` } }`)
	}
	for payload, mutations := range map[string]string{
		anyPayload + ` followingEdge { node { id } } followerEdge { node { id } } blockEdge { node { id } } muteEdge { node { id } }`:                     `follow unfollow removeFollower block unblock mute unmute`,
		anyPayload + ` request { id state from { id } to { id } } requestEdge { node { id } } followingEdge { node { id } } followerEdge { node { id } }`: `requestFriend removeFriend`,
		anyPayload + ` request { id kind state from { id } to { id } } followerEdge { node { id } } `:                                                     "acceptRequest declineRequest withdrawRequest",
		`viewer { user { id } } user { id } dismissedEdge { node { id } }`:                                                                                `dismissSuggestion undismissSuggestion`,
	} {
		for field := range strings.FieldsSeq(mutations) {
			kinds := []string{field}
			if strings.HasSuffix(field, "Request") {
				kinds = []string{field + " FRIEND", field + " FOLLOW"}
			}
			for _, one := range kinds {
				asks = append(asks, `mutation { `+apitest.Call(one, `"X"`)+` { `+payload+` } }`)
			}
		}
	}
	asks = append(asks, `mutation { followMany(userIds: ["X", "X"]) { viewer { user { id followingCount } } outcomes { userId changed user { id } followingEdge { node { id } } memberEdge { node { id } } `+anyTie+` error { code message } } } }`)
	asks = append(asks, `mutation { reportUser(userId: "X", reason: "rude") { changed } }`)
	for _, file := range []string{`FOLLOWS, file: "uX\n@uX@example.org`, `BLOCKS, file: "uX\nuX`, `MUTES, file: "uX,true\nuX,false`, `LISTS, file: "Brought,uX\nOther,uX`} {
		asks = append(asks, `mutation { importAccounts(kind: `+file+`") { viewer { user { id followingCount } lists(with: "X") { name } } accountsImport { lineCount doneCount changedCount refusedCount refused { line handle error { code message } } } } }`, `{ viewer { accountsImports { changedCount refusedCount } } }`, `{ viewer { accountsFile(kind: `+file[:strings.Index(file, ",")]+`) { text endCursor } } }`)
	}
	const anyRelated = `(kind: BOOKMARKS, ids: ["X", "X"]) { viewer { user { id } } outcomes { id changed edge { endId node { id } } error { code message } } } }`
	const anyListed = `(listId: "L", userIds: ["X"]) { changed list { memberCount has(userId: "X") members { totalCount nodes { id } } } outcomes { userId changed user { id } followingEdge { node { id } } memberEdge { node { id } } ` + anyTie + ` error { code message } } } }`
	for _, mutation := range []string{`relate` + anyRelated, `unrelate` + anyRelated, `addToList` + anyListed, `removeFromList` + anyListed} {
		asks = append(asks, `mutation { `+mutation)
	}
	tie := strings.TrimPrefix(anyTie, "relationship ")
	nodes := `id ... on User { handle } ... on Relationship ` + tie
	for _, field := range []string{
		`user(by: {id: "X"}) { id }`, `users(by: {ids: ["B", "X"]}) { id }`, `user(by: {handle: "uX"}) { id }`, `users(by: {handles: ["uB", "uX"]}) { id }`,
		`_entities(representations: [{__typename: "User", id: "X"}, {__typename: "User", handle: "uX"}, {__typename: "User", id: "B"}, {__typename: "Relationship", id: "rel_A_X"}, {__typename: "Relationship", id: "rel_B_X"}]) { ... on User { id viewerRelationship ` + tie + ` } ... on Relationship ` + tie + ` }`, `searchUsers(text: "uX") { nodes { id } pageInfo { hasNextPage endCursor } }`,
		`node(id: "X") { ` + nodes + ` }`, `nodes(ids: ["X", "rel_A_X", "rel_X_A", "rel_B_X", "rel_X_B", "rel_C_X", "rel_X_C", "rel_X_X", "req_A_X", "req_X_A", "req_B_X"]) { ` + nodes + ` }`,
		`relationships(from: ["A", "B", "C", "X"], to: ["A", "B", "C", "X"]) ` + tie, `relationship(from: "X", to: "A") ` + tie,
		`user(by: {id: "B"}) { relationship(to: "X") ` + tie + ` }`, `viewer { user { relationship(to: "X") ` + tie + ` } }`,
		`edgesAmong(ids: ["A", "X", "B"]) { followings complete }`, `node(id: "L") { ... on List { memberCount has(userId: "X") } }`, `viewer { edge(kind: BOOKMARKS, id: "X") { since } }`,
		`edgesTo(kind: WORKS_WITH, id: "X")` + anyList, `user(by: {id: "X"}) { edges(kind: WORKS_WITH)` + anyList + ` lists { nodes { id } } posts { nodes { id } } }`,
		`people(where: {followersOf: "X"})` + anyList, `people(where: {followedBy: "X"})` + anyList, `people(where: {or: [{friendsOf: "X"}, {friendsOf: "B"}]})` + anyList,
		`people(where: {and: [{followedBy: "B"}, {not: {followersOf: "X"}}]})` + anyList,
	} {
		asks = append(asks, `{ a: `+field+` }`)
	}
	for _, of := range []string{`user(by: {id: "B"})`, `viewer`} {
		for _, common := range []string{"commonFollowings", "commonFollowers"} {
			for _, order := range []string{"ID", "RECENT"} {
				asks = append(asks, `{ a: `+of+` { `+common+`(with: "X", orderBy: `+order+`)`+anyList+` } }`)
			}
		}
	}
	return asks
}

// To others, a hidden user looks like a user who has never existed. Every field and every mutation
// that takes an id gives the same answer for both, and changes nothing.
func TestHiddenUsersAreLikeUnknownOnes(t *testing.T) {
	onShards(t, apitest.Options{Declared: declare(t, someKinds)}, func(t *testing.T, v *village) {
		ids := []storage.UserID{} // users whose handle is not a prefix of another handle
		for id := storage.UserID(11); id <= 40; id++ {
			if id != v.a && id != v.b && id != v.c {
				ids = append(ids, id)
			}
		}
		v.does(v.b, "follow", v.a)
		v.api.As(v.c).Ask(`mutation { updateProfile(listVisibility: {followings: NOBODY, followers: NOBODY}) { viewer { user { id } } } }`, nil).Whole()
		type hidden struct {
			id   storage.UserID
			what string
		}
		list := v.createList(v.a, true, v.c)
		var all []hidden
		for i, s := range standings {
			away, deleted := ids[2*i], ids[2*i+1]
			for _, x := range []storage.UserID{away, deleted} {
				v.does(v.b, "follow", x)
				s.make(v, v.a, x)
			}
			if strings.HasSuffix(s.name, "listed") {
				v.api.As(v.a).Ask(`mutation($list: ID!, $ids: [ID!]!) { addToList(listId: $list, userIds: $ids) { changed } }`, apitest.Vars{"list": list, "ids": []string{away.String(), deleted.String()}}).Whole()
			}
			all = append(all, hidden{away, s.name + ", deactivated"}, hidden{deleted, s.name + ", deleted"})
		}
		hide := func(mutation string) {
			for i, h := range all {
				if i%2 == 0 {
					v.api.As(h.id).Ask(`mutation { `+mutation+` { changed } }`, nil).Whole()
				}
			}
		}
		before := map[storage.UserID]string{}
		for _, h := range all {
			before[h.id] = v.standing(v.a, h.id)
		}
		hide("deactivateAccount")
		for i, h := range all {
			if i%2 == 1 {
				v.api.As(h.id).Ask(`mutation { deleteAccount { complete } }`, nil).Is(`{"deleteAccount": {"complete": true}}`)
			}
		}
		const unknown storage.UserID = 999983
		ask := func(viewer storage.UserID, text string, x storage.UserID) string {
			asker := v.api
			if viewer != 0 {
				asker = asker.As(viewer)
			}
			asker, text = asker.With("Kith-Cost", "1"), strings.ReplaceAll(text, `"L"`, fmt.Sprintf("%q", list))
			for letter, id := range map[string]storage.UserID{"A": v.a, "B": v.b, "C": v.c, "X": x} {
				for _, around := range []string{`"%s"`, `"rel_%s_`, `"req_%s_`, `_%s"`, `"u%s"`} {
					text = strings.ReplaceAll(text, fmt.Sprintf(around, letter), fmt.Sprintf(around, id))
				}
			}
			answer := asker.Ask(text, nil)
			answer.Header.Del("Content-Length") // ids differ in their lengths
			shown := fmt.Sprint(answer.Text, headersOf(answer.Header))
			for _, around := range []string{`"%s"`, `rel_%s_`, `req_%s_`, `_%s"`} {
				shown = strings.ReplaceAll(shown, fmt.Sprintf(around, x), fmt.Sprintf(around, "X"))
			}
			return shown
		}
		for _, viewer := range []storage.UserID{v.a, v.b, 0} {
			for _, text := range asksAboutX() {
				want := ask(viewer, text, unknown)
				for _, h := range all {
					check.Equal(t, fmt.Sprintf("viewer %s, %s\n%s beside an unknown one", viewer, text, h.what), ask(viewer, text, h.id), want)
				}
			}
		}
		hide("reactivateAccount")
		for i, h := range all {
			got := v.standing(v.a, h.id)
			check.That(t, i%2 != 0 || got == before[h.id], "%s, and back: %s, want %s", h.what, got, before[h.id])
		}
	})
}
