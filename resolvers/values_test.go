package resolvers_test

import (
	"strings"
	"testing"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/storage"
)

// DateTime is RFC 3339 in UTC, always with six digits.
func TestTimesHaveSixDigits(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		const y2026 = storage.Micros(1_767_225_600_000_000)
		apitest.CreateUsers(t, store, storage.User{ID: 7, Handle: "u7"})
		times := []storage.Micros{0, y2026, y2026 + 1, y2026 + 120_000, 1, 253_402_300_799_999_999} // an import may bring the epoch itself
		for i, at := range times {
			id := storage.UserID(i + 1)
			apitest.CreateUsers(t, store, storage.User{ID: id, Handle: "u" + id.String(), CreatedAt: at})
			apitest.Apply(t, store, storage.Edge{From: 7, To: id, Type: storage.Following, UpdateTime: at})
		}
		apitest.Apply(t, store, storage.Edge{From: 1, To: 7, Type: storage.Following})
		api := apitest.New(t, store, apitest.Options{})
		api.Ask(`{ users(by: {ids: [1, 2, 3, 4, 5, 6]}) { createdAt } user(by: {id: 7}) { followings { edges { followedAt } } friends { edges { matchedAt } } }
			epoch: relationship(from: 7, to: 1) { followedAt } relationship(from: 7, to: 3) { followedAt } }`, nil).Is(`{
			"users": [
				{"createdAt": "1970-01-01T00:00:00.000000Z"}, {"createdAt": "2026-01-01T00:00:00.000000Z"}, {"createdAt": "2026-01-01T00:00:00.000001Z"},
				{"createdAt": "2026-01-01T00:00:00.120000Z"}, {"createdAt": "1970-01-01T00:00:00.000001Z"}, {"createdAt": "9999-12-31T23:59:59.999999Z"}
			],
			"user": {"followings": {"edges": [
				{"followedAt": "9999-12-31T23:59:59.999999Z"}, {"followedAt": "2026-01-01T00:00:00.120000Z"}, {"followedAt": "2026-01-01T00:00:00.000001Z"},
				{"followedAt": "2026-01-01T00:00:00.000000Z"}, {"followedAt": "1970-01-01T00:00:00.000001Z"}, {"followedAt": "1970-01-01T00:00:00.000000Z"}
			]}, "friends": {"edges": [{"matchedAt": "1970-01-01T00:00:00.000000Z"}]}},
			"epoch": {"followedAt": "1970-01-01T00:00:00.000000Z"}, "relationship": {"followedAt": "2026-01-01T00:00:00.000001Z"}
		}`)
	})
}

func TestTextsOfAUser(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		long := strings.Repeat("ż", 500)
		apitest.CreateUsers(t, store,
			storage.User{ID: 1, Handle: "a", Name: "Ada 🙂 \"Lovelace\" <b>\u2028\n", Bio: long, AvatarURL: "https://example.org/ada.png?a=1&b=2", Website: "http://example.org/~ada"},
			storage.User{ID: 2, Handle: "b"})
		api := apitest.New(t, store, apitest.Options{})
		api.Ask(`{ users(by: {ids: [1, 2]}) { handle name bio avatarUrl website followingCount followerCount } }`, nil).Is(`{"users": [
			{"handle": "a", "name": "Ada 🙂 \"Lovelace\" <b>\u2028\n", "bio": "` + long + `", "avatarUrl": "https://example.org/ada.png?a=1&b=2", "website": "http://example.org/~ada", "followingCount": 0, "followerCount": 0},
			{"handle": "b", "name": "", "bio": null, "avatarUrl": null, "website": null, "followingCount": 0, "followerCount": 0}
		]}`)
		for given, kept := range map[string]string{" HTTP://Example.org/ada ": `"http://example.org/ada"`, "": "null"} {
			api.As(2).Ask(`mutation ($url: String) { updateProfile(website: $url) { changed viewer { user { website } } } }`, map[string]any{"url": given})
			api.Ask(`{ user(by: {id: 2}) { website } }`, nil).Is(`{"user": {"website": ` + kept + `}}`)
		}
	})
}

// Null removes what can be removed, written into the document or given as a variable; what is left out, also by a variable without a value, stays.
func TestNullRemoves(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		apitest.CreateUsers(t, store, storage.User{ID: 1, Handle: "a", Name: "A"}, storage.User{ID: 2, Handle: "b"})
		apitest.Follow(t, store, 1, 2)
		api := apitest.New(t, store, apitest.Options{}).As(1)
		shown := func(what, want string) {
			t.Helper()
			const text = `{ user(by: {id: 1}) { name bio avatarUrl website posts { nodes { text media { url } } } } relationship(from: 1, to: 2) { remark special } }`
			check.Equal(t, what, api.Ask(text, nil).Text, `{"data":`+want+`}`)
		}
		postID := api.Ask(`mutation { publishPost(clientKey: "k", text: "one", media: [{kind: IMAGE, url: "https://example.org/1"}]) { post { id } } }`, nil).Whole().At("publishPost.post.id").(string)
		const change = `mutation ($post: ID!, $bio: String, $remark: String, $special: Boolean, $text: String, $media: [MediaInput!]) {
			updateProfile(bio: $bio) { changed } setFollowMark(userId: 2, remark: $remark, special: $special) { changed } editPost(postId: $post, text: $text, media: $media) { changed } }`
		full := `{"user":{"name":"A","bio":"b","avatarUrl":"/faces/7.svg","website":"https://example.org","posts":{"nodes":[{"text":"one","media":[{"url":"https://example.org/1"}]}]}},"relationship":{"remark":"r","special":true}}`
		given := apitest.Vars{"post": postID}
		api.Ask(`mutation { updateProfile(bio: "b", avatarUrl: "/faces/7.svg", website: "https://example.org") { changed } setFollowMark(userId: 2, special: true, remark: "r") { changed } }`, nil).Whole()
		api.Ask(change, given).Is(`{"updateProfile": {"changed": false}, "setFollowMark": {"changed": false}, "editPost": {"changed": false}}`)
		shown("left out", full)
		given["bio"], given["remark"], given["special"], given["media"] = nil, nil, nil, nil
		api.Ask(change, given).Is(`{"updateProfile": {"changed": true}, "setFollowMark": {"changed": true}, "editPost": {"changed": true}}`)
		api.Ask(`mutation { updateProfile(avatarUrl: null, website: null, name: null, locked: null) { changed } }`, nil).Is(`{"updateProfile": {"changed": true}}`)
		shown("null", `{"user":{"name":"A","bio":null,"avatarUrl":null,"website":null,"posts":{"nodes":[{"text":"one","media":[]}]}},"relationship":{"remark":null,"special":false}}`)
		api.Ask(`mutation ($post: ID!) { editPost(postId: $post, text: null) { changed } }`, apitest.Vars{"post": postID}).Refused("BAD_USER_INPUT")
	})
}

// With a public address, pages of other origins can show faces: what is a path is absolute, and can be written as it was read.
func TestAvatarsAreAbsolute(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		apitest.CreateUsers(t, store,
			storage.User{ID: 1, Handle: "a", Name: "A", AvatarURL: "/faces/7.svg"},
			storage.User{ID: 2, Handle: "b", Name: "B", AvatarURL: "https://example.org/b.png"},
			storage.User{ID: 3, Handle: "c", Name: "C"})
		const asked = `{ users(by: {ids: [1, 2, 3]}) { avatarUrl } }`
		plain, public := apitest.New(t, store, apitest.Options{}), apitest.New(t, store, apitest.Options{PublicURL: "https://kith.example.org"})
		plain.Ask(asked, nil).Is(`{"users": [{"avatarUrl": "/faces/7.svg"}, {"avatarUrl": "https://example.org/b.png"}, {"avatarUrl": null}]}`)
		public.Ask(asked, nil).Is(`{"users": [{"avatarUrl": "https://kith.example.org/faces/7.svg"}, {"avatarUrl": "https://example.org/b.png"}, {"avatarUrl": null}]}`)

		for given, kept := range map[string]string{
			"https://kith.example.org/faces/8.svg":      "/faces/8.svg",
			"/faces/9.svg":                              "/faces/9.svg",
			"https://kith.example.org.evil/faces/8.svg": "https://kith.example.org.evil/faces/8.svg",
			"https://kith.example.org/pictures/8.png":   "https://kith.example.org/pictures/8.png", // of something else behind the same proxy
		} {
			public.As(1).Ask(`mutation ($url: String) { updateProfile(avatarUrl: $url) { changed } }`, map[string]any{"url": given}).Is(`{"updateProfile": {"changed": true}}`)
			plain.Ask(`{ user(by: {id: 1}) { avatarUrl } }`, nil).Is(`{"user": {"avatarUrl": "` + kept + `"}}`)
		}
	})
}

// A number that no type can hold is refused where a type of its own would be taken, which validation lets pass. The library panics at it: anybody
// could fill the log.
func TestNumbersOutOfRangeAreRefused(t *testing.T) {
	api := apitest.New(t, storeOf(t, 2), apitest.Options{})
	for _, n := range []string{"1e999", "-1e999", "99999999999999999999"} {
		api.Ask(`mutation { mute(userId: 2, until: `+n+`) { changed } }`, nil).RefusedFor("INVALID_QUERY", "")
	}
}
