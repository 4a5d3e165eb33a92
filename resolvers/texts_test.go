package resolvers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kith/graph/cursor"
	"kith/internal/apitest"
	"kith/internal/check"
)

// unfit are characters that a terminal interprets, or that change the direction of the text around
// them: the characters of Unicode's Bidi_Control other than marks.
const unfit = "\x00\x1b\x7f\u009b\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"

// TestTextsOfUsers: no mutation stores a text with characters that cannot be shown safely beside others.
func TestTextsOfUsers(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		v.does(v.a, "follow", v.b)
		admin, other, stranger := v.api.Admin(), v.b.String(), v.d.String()
		post := publish(t, v.api, v.a, "x", "first")
		for mutation, api := range map[string]*apitest.API{
			`updateProfile(name: $text)`:                                                         v.api.As(v.a),
			`updateProfile(bio: $text)`:                                                          v.api.As(v.a),
			`updateProfile(avatarUrl: $text)`:                                                    v.api.As(v.a),
			`updateProfile(website: $text)`:                                                      v.api.As(v.a),
			`setFollowMark(userId: ` + other + `, remark: $text)`:                                v.api.As(v.a),
			`requestFriend(userId: ` + stranger + `, message: $text)`:                            v.api.As(v.a),
			`publishPost(clientKey: "k", text: $text)`:                                           v.api.As(v.a),
			`publishPost(clientKey: "m", media: [{url: $text, kind: IMAGE}])`:                    v.api.As(v.a),
			`publishPost(clientKey: "n", media: [{name: $text, url: "https://x", kind: IMAGE}])`: v.api.As(v.a),
			`editPost(postId: "` + post + `", text: $text)`:                                      v.api.As(v.a),
			`addComment(postId: "` + post + `", clientKey: "k", text: $text)`:                    v.api.As(v.a),
			`createUser(id: 4711, handle: "a_new_user", name: $text)`:                            admin,
		} {
			try := func(text string) apitest.Answer {
				return api.Ask(`mutation($text: String!) { `+mutation+` { __typename } }`, apitest.Vars{"text": text})
			}
			for _, r := range unfit {
				try("https://x/" + string(r) + "evil").Refused("BAD_USER_INPUT")
			}
			rich := "مرحبا שלום\u200f 👩\u200d💻\r\nb" // from right to left, with a mark, joined, and on two lines of Windows
			isAddress := strings.Contains(mutation, "rl: $text") || strings.Contains(mutation, "website")
			if isAddress { // addresses have no blanks
				try(rich).Refused("BAD_USER_INPUT")
				try("https://x/" + rich).Refused("BAD_USER_INPUT")
				rich = "https://x/مرحبا/שלום\u200f/👩\u200d💻"
			}
			try(rich).Whole()
			if strings.Contains(mutation, "ame: $text") || isAddress {
				for _, r := range "\u200b\u3164\u115f\uffa0\u00ad\ufeff\U000e0041" {
					try("https://x/a" + string(r) + "b").Refused("BAD_USER_INPUT")
				}
			}
		}
	})
}

// A form is told all that is wrong with it at once, with the argument of each error, and nothing of it is stored.
func TestAllArgumentsThatAreRefused(t *testing.T) {
	onShards(t, apitest.Options{Declared: declare(t, someKinds)}, func(t *testing.T, v *village) {
		post := publish(t, v.api, v.a, "x", "first")
		admins := []string{"suspendUser", "linkIdentity", "createUser"}
		for mutation, want := range map[string][]string{
			`updateProfile(name: "", bio: "\u202e", website: "x", locked: true)`:                 {"bio TEXT_INVISIBLE", "name TEXT_LENGTH", "website URL_MALFORMED"},
			`publishPost(clientKey: "", text: "", media: [])`:                                    {"clientKey INVALID_VALUE", "text TEXT_LENGTH"},
			`editPost(postId: "` + post + `", text: "\u202e", media: [{url: "x", kind: IMAGE}])`: {"media URL_MALFORMED", "text TEXT_INVISIBLE"},
			`addComment(postId: "` + post + `", clientKey: " ", text: " ")`:                      {"clientKey INVALID_VALUE", "text TEXT_LENGTH"},
			`addComment(postId: "x", clientKey: " ", text: "a")`:                                 {"clientKey INVALID_VALUE", "postId ID_MALFORMED"},
			`editPost(postId: "x", text: "\u202e")`:                                              {"postId ID_MALFORMED", "text TEXT_INVISIBLE"},
			`requestFriend(userId: "x", message: "\u202e")`:                                      {"message TEXT_INVISIBLE", "userId ID_MALFORMED"},
			`setFollowMark(userId: "x", remark: "\u202e")`:                                       {"remark TEXT_INVISIBLE", "userId ID_MALFORMED"},
			`mute(userId: "x", scope: EVERYTHING, until: "2001-01-01T00:00:00Z")`:                {"until OUT_OF_RANGE", "userId ID_MALFORMED"},
			`reportUser(userId: "x", reason: "")`:                                                {"reason TEXT_LENGTH", "userId ID_MALFORMED"},
			`reportPost(postId: "x", reason: "")`:                                                {"postId ID_MALFORMED", "reason TEXT_LENGTH"},
			`acceptRequests(kind: FOLLOW, first: 101, after: "")`:                                {"after CURSOR_MALFORMED", "first OUT_OF_RANGE"},
			`reportUser(userId: "` + v.a.String() + `", reason: "x")`:                            {"userId SELF"},
			`reportPost(postId: "` + post + `", reason: "x")`:                                    {"postId SELF"},
			`updateList(listId: "x", name: "")`:                                                  {"listId ID_MALFORMED", "name TEXT_LENGTH"},
			`addToList(listId: "x", userIds: [` + strings.Repeat("1 ", 501) + `])`:               {"listId ID_MALFORMED", "userIds TOO_LONG"},
			`followList(listId: "x", after: "y")`:                                                {"after CURSOR_MALFORMED", "listId ID_MALFORMED"},
			`suspendUser(userId: "x", reason: "", until: "2001-01-01T00:00:00Z")`:                {"reason TEXT_LENGTH", "until OUT_OF_RANGE", "userId ID_MALFORMED"},
			`linkIdentity(userId: "x", issuer: "", subject: "y")`:                                {"issuer IDENTITY_MALFORMED", "userId ID_MALFORMED"},
			`createUser(id: "x", handle: "", name: "")`:                                          {"handle HANDLE_MALFORMED", "id ID_MALFORMED", "name TEXT_LENGTH"},
			`relate(kind: WORKS_WITH, ids: [` + strings.Repeat("1 ", 101) + `], until: "2101-01-01T00:00:00Z", attributes: {since: "\u202e"})`: {"ids TOO_LONG", "since TEXT_INVISIBLE", "until INVALID_VALUE"},
			`relate(kind: SUBSCRIBES, ids: [1], until: "2001-01-01T00:00:00Z", attributes: {since: "\u202e"})`:                                 {"since TEXT_INVISIBLE", "until OUT_OF_RANGE"},
		} {
			field, _, _ := strings.Cut(mutation, "(")
			by := v.api.As(v.a)
			if slices.Contains(admins, field) {
				by = v.api.Admin()
			}
			answer := by.Ask(`mutation { `+mutation+` { __typename } }`, nil)
			answer.DataIs(fmt.Sprintf(`{%q: null}`, field))
			var got []string
			for _, e := range answer.Errors {
				got = append(got, fmt.Sprint(e.Extensions["argument"], " ", e.Extensions["reason"]))
				check.Equal(t, mutation, e.At(), field)
			}
			slices.Sort(got)
			check.Equal(t, mutation, got, want)
		}

		// So are the arguments of lists, at the place of each.
		long, foreign := strings.Repeat("x", 401), "HAEB" // a cursor of another kind
		cursorOf := func(kind cursor.Kind) string { return (*cursor.Sealer)(nil).Encode(kind, 1, 2, 3, 4, 5) }
		told := map[string][]string{}
		for _, query := range []string{
			`user(by: {id: 1}) { followings(first: -1, last: 101, after: "x", before: "y") { totalCount } edges(kind: WORKS_WITH, first: 101, after: "` + foreign + `") { totalCount } }`,
			`user(by: {id: 1}) { followSuggestions(first: 101, after: "` + foreign + `") { complete } }`, `user(by: {id: 1}) { commonFollowings(with: "x", first: 101, after: "` + foreign + `", before: "x") { totalCount } }`,
			`user(by: {id: 1}) { friends(first: 101, after: "x", filter: {match: "x"}) { totalCount } followers(last: 101, before: "x", filter: {match: "x"}) { totalCount } }`,
			`viewer { feed(first: 101, newerThan: "z") { edges { cursor } } requests(kind: FOLLOW, state: DECLINED, first: 101, after: "` + foreign + `") { totalCount }
				activity(first: 101, after: "x") { edges { cursor } } blockedUsers(first: 101, after: "` + foreign + `") { totalCount } dismissedUsers(first: 101, after: "x") { totalCount } edge(kind: ADMIRES, id: "x") { cursor } }`,
			`edgesTo(kind: WORKS_WITH, id: "x", first: 101, after: "y") { totalCount } searchUsers(text: "` + long + `", first: 101, after: "x") { complete }
				people(where: {followedBy: "x"}, first: 101, after: "y") { totalCount }`,
			`moderationLog(userId: "x", first: 101, after: "y") { edges { cursor } }`,
			// These are cursors of the kind, and of another list.
			`viewer { mutedUsers(first: 101, after: "` + cursorOf(cursor.Edges) + `") { totalCount } sent: requests(kind: FOLLOW, first: 101, after: "` + cursorOf(cursor.Requests) + `") { totalCount } }
				search: searchUsers(text: "ada", first: 101, after: "` + cursorOf(cursor.RankedSearch) + `") { complete } all: people(where: {followedBy: 1}, first: 101, after: "` + cursorOf(cursor.People) + `") { totalCount }
				to: edgesTo(kind: WORKS_WITH, id: 1, first: 101, after: "` + cursorOf(cursor.Edges) + `") { totalCount }`,
			`of: user(by: {id: 2}) { friends(first: 101, after: "` + cursorOf(cursor.Friends) + `") { totalCount } edges(kind: WORKS_WITH, first: 101, after: "` + cursorOf(cursor.Edges) + `") { totalCount }
					followers(first: 101, before: "` + cursorOf(cursor.Selected) + `", filter: {match: "x"}) { totalCount } followSuggestions(first: 101, after: "` + cursorOf(cursor.RankedSuggestions) + `") { complete } }`,
		} {
			by := v.api.As(v.a)
			if strings.HasPrefix(query, "moderationLog") {
				by = v.api.Admin()
			}
			for _, e := range by.Ask("{ "+query+" }", nil).Errors {
				if told[e.At()] = append(told[e.At()], fmt.Sprint(e.Extensions["argument"])); e.Extensions["argument"] == nil || e.At() == "" {
					t.Error(e.At(), e.Message)
				}
			}
		}
		for at, want := range map[string][]string{
			"user.followings": {"after", "before", "first", "last", "last"}, "user.followSuggestions": {"after", "first"}, "user.friends": {"after", "first"},
			"user.followers": {"before", "last"}, "user.commonFollowings": {"after", "before", "first", "with"}, "user.edges": {"after", "first"},
			"viewer.feed": {"first", "newerThan"}, "viewer.requests": {"after", "first", "state"}, "viewer.activity": {"after", "first"}, "viewer.blockedUsers": {"after", "first"},
			"viewer.dismissedUsers": {"after", "first"}, "viewer.edge": {"id"}, "edgesTo": {"after", "first", "id"}, "searchUsers": {"after", "first", "text"},
			"people": {"after", "first", "where"}, "moderationLog": {"after", "first", "userId"},
			"viewer.mutedUsers": {"after", "first"}, "viewer.sent": {"after", "first"}, "search": {"after", "first"}, "all": {"after", "first"}, "to": {"after", "first"},
			"of.friends": {"after", "first"}, "of.edges": {"after", "first"}, "of.followers": {"before", "first"}, "of.followSuggestions": {"after", "first"},
		} {
			slices.Sort(told[at])
			check.Equal(t, at, told[at], want)
		}
		long = strings.Repeat("x", 8001)
		errs := v.api.As(v.a).Ask(`mutation { addComment(postId: "`+long+`", text: "`+long+`", clientKey: "`+long+`") { changed } }`, nil).Errors
		check.Equal(t, "errors of three arguments that are too long", len(errs), 3)
		v.api.Ask(`{ user(by: {id: `+v.a.String()+`}) { locked } }`, nil).Is(`{"user": {"locked": false}}`)

		outcomes := v.api.As(v.a).Ask(`mutation($ids: [ID!]!) { followMany(userIds: $ids) { outcomes { error { reason argument retryAfter } } } }`, apitest.Vars{"ids": []any{v.a, "x"}}).Whole()
		outcomes.Is(`{"followMany": {"outcomes": [{"error": {"reason": "SELF", "argument": "userIds", "retryAfter": null}}, {"error": {"reason": "ID_MALFORMED", "argument": "userIds", "retryAfter": null}}]}}`)
	})
}
