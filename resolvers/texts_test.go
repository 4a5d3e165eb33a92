package resolvers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kith/internal/apitest"
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
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		post := publish(t, v.api, v.a, "x", "first")
		for mutation, want := range map[string][]string{
			`updateProfile(name: "", bio: "\u202e", website: "x", locked: true)`:                 {"bio TEXT_INVISIBLE", "name TEXT_LENGTH", "website URL_MALFORMED"},
			`publishPost(clientKey: "", text: "", media: [])`:                                    {"clientKey INVALID_VALUE", "text TEXT_LENGTH"},
			`editPost(postId: "` + post + `", text: "\u202e", media: [{url: "x", kind: IMAGE}])`: {"media URL_MALFORMED", "text TEXT_INVISIBLE"},
			`addComment(postId: "` + post + `", clientKey: " ", text: " ")`:                      {"clientKey INVALID_VALUE", "text TEXT_LENGTH"},
		} {
			answer := v.api.As(v.a).Ask(`mutation { `+mutation+` { __typename } }`, nil)
			field, _, _ := strings.Cut(mutation, "(")
			answer.DataIs(fmt.Sprintf(`{%q: null}`, field))
			var got []string
			for _, e := range answer.Errors {
				if got = append(got, fmt.Sprint(e.Extensions["argument"], " ", e.Extensions["reason"])); e.At() != field {
					t.Errorf("%s: an error is at %s", mutation, e.At())
				}
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", mutation, got, want)
			}
		}
		v.api.Ask(`{ user(by: {id: `+v.a.String()+`}) { locked } }`, nil).Is(`{"user": {"locked": false}}`)

		outcomes := v.api.As(v.a).Ask(`mutation($ids: [ID!]!) { followMany(userIds: $ids) { outcomes { error { reason argument retryAfter } } } }`, apitest.Vars{"ids": []any{v.a, "x"}}).Whole()
		outcomes.Is(`{"followMany": {"outcomes": [{"error": {"reason": "SELF", "argument": "userIds", "retryAfter": null}}, {"error": {"reason": "ID_MALFORMED", "argument": "userIds", "retryAfter": null}}]}}`)
	})
}
