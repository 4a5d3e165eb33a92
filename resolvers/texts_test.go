package resolvers_test

import (
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
