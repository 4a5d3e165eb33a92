package resolvers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

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

// The other arguments are told of beside a cursor of the kind that is of another list, and every text that is too long.
func TestAllArgumentsThatAreRefused(t *testing.T) {
	onShards(t, apitest.Options{Declared: declare(t, someKinds)}, func(t *testing.T, v *village) {
		cursorOf := func(kind cursor.Kind) string { return (*cursor.Sealer)(nil).Encode(kind, 1, 2, 3, 4, 5) }
		told := map[string][]string{}
		for _, query := range []string{
			`viewer { mutedUsers(first: 101, after: "` + cursorOf(cursor.Edges) + `") { totalCount } sent: requests(kind: FOLLOW, first: 101, after: "` + cursorOf(cursor.Requests) + `") { totalCount } }
				search: searchUsers(text: "ada", first: 101, after: "` + cursorOf(cursor.RankedSearch) + `") { complete } all: people(where: {followedBy: 1}, first: 101, after: "` + cursorOf(cursor.People) + `") { totalCount }
				to: edgesTo(kind: WORKS_WITH, id: 1, first: 101, after: "` + cursorOf(cursor.Edges) + `") { totalCount }`,
			`of: user(by: {id: 2}) { friends(first: 101, after: "` + cursorOf(cursor.Friends) + `") { totalCount } edges(kind: WORKS_WITH, first: 101, after: "` + cursorOf(cursor.Edges) + `") { totalCount }
					followers(first: 101, before: "` + cursorOf(cursor.Selected) + `", filter: {match: "x"}) { totalCount } followSuggestions(first: 101, after: "` + cursorOf(cursor.RankedSuggestions) + `") { complete } }`,
		} {
			for _, e := range v.api.As(v.a).Ask("{ "+query+" }", nil).Errors {
				if told[e.At()] = append(told[e.At()], fmt.Sprint(e.Extensions["argument"])); e.Extensions["argument"] == nil || e.At() == "" {
					t.Error(e.At(), e.Message)
				}
			}
		}
		for at, want := range map[string][]string{
			"viewer.mutedUsers": {"after", "first"}, "viewer.sent": {"after", "first"}, "search": {"after", "first"}, "all": {"after", "first"}, "to": {"after", "first"},
			"of.friends": {"after", "first"}, "of.edges": {"after", "first"}, "of.followers": {"before", "first"}, "of.followSuggestions": {"after", "first"},
		} {
			slices.Sort(told[at])
			check.Equal(t, at, told[at], want)
		}
		long := strings.Repeat("x", 8001)
		errs := v.api.As(v.a).Ask(`mutation { addComment(postId: "`+long+`", text: "`+long+`", clientKey: "`+long+`") { changed } }`, nil).Errors
		check.Equal(t, "errors of three arguments that are too long", len(errs), 3)
		v.tellsOf(t, &ast.FieldDefinition{Name: "relate"}, `mutation { relate(kind: SUBSCRIBES, ids: [`+strings.Repeat("1 ", 101)+`], until: "2001-01-01T00:00:00Z") { __typename } }`, "ids TOO_LONG", "until OUT_OF_RANGE")

		outcomes := v.api.As(v.a).Ask(`mutation($ids: [ID!]!) { followMany(userIds: $ids) { outcomes { error { reason argument retryAfter } } } }`, apitest.Vars{"ids": []any{v.a, "x"}}).Whole()
		outcomes.Is(`{"followMany": {"outcomes": [{"error": {"reason": "SELF", "argument": "userIds", "retryAfter": null}}, {"error": {"reason": "ID_MALFORMED", "argument": "userIds", "retryAfter": null}}]}}`)
	})
}
