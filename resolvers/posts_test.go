package resolvers_test

import (
	"fmt"
	"strings"
	"testing"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/storage"
)

// publish publishes a post and returns its id.
func publish(t *testing.T, api *apitest.API, by storage.UserID, text, key string) string {
	t.Helper()
	return apitest.Into[string](api.As(by).Ask(`mutation($t: String!, $k: String!) { publishPost(text: $t, clientKey: $k) { post { id } } }`,
		apitest.Vars{"t": text, "k": key}).Whole(), "publishPost.post.id")
}

// comment writes a comment and returns its id.
func comment(t *testing.T, api *apitest.API, by storage.UserID, post, text string) string {
	t.Helper()
	return apitest.Into[string](api.As(by).Ask(`mutation($p: ID!, $t: String!) { addComment(postId: $p, text: $t, clientKey: $t) { comment { id } } }`,
		apitest.Vars{"p": post, "t": text}).Whole(), "addComment.comment.id")
}

func TestPostsAndComments(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		a := v.api.As(v.a)
		const publishes = `mutation { publishPost(text: " Hello\n", clientKey: "k-1", media: [{url: "https://x/1.mp4", kind: VIDEO}, {name: "c", url: "https://x/c", kind: COVER}]) {
			changed viewer { user { postCount } } post { id text media { name url kind } author { handle postCount } editedAt commentCount comments { nodes { id } pageInfo { hasNextPage } } } } }`
		first := a.Ask(publishes, nil).Whole()
		id := apitest.Into[string](first, "publishPost.post.id")
		post := fmt.Sprintf(`{"id": "%s", "text": "Hello", "media": [{"name": "", "url": "https://x/1.mp4", "kind": "VIDEO"}, {"name": "c", "url": "https://x/c", "kind": "COVER"}],
			"author": {"handle": "u%s", "postCount": 1}, "editedAt": null, "commentCount": 0, "comments": {"nodes": [], "pageInfo": {"hasNextPage": false}}}`, id, v.a)
		first.Is(`{"publishPost": {"changed": true, "viewer": {"user": {"postCount": 1}}, "post": ` + post + `}}`)
		a.Ask(publishes, nil).Is(`{"publishPost": {"changed": false, "viewer": {"user": {"postCount": 1}}, "post": ` + post + `}}`)

		v.api.As(v.b).Ask(`mutation($p: ID!) { addComment(postId: $p, text: "nice", clientKey: "1") { changed comment { postId text author { handle } } post { commentCount } } }`, apitest.Vars{"p": id}).
			Is(fmt.Sprintf(`{"addComment": {"changed": true, "comment": {"postId": "%s", "text": "nice", "author": {"handle": "u%s"}}, "post": {"commentCount": 1}}}`, id, v.b))
		third := comment(t, v.api, v.c, id, "third")
		const look = `query($p: ID!, $c: ID!) { node(id: $p) { ... on Post { commentCount comments { edges { node { text author { handle } } } } } } c: node(id: $c) { id ... on Comment { text } } }`
		v.api.Ask(look, apitest.Vars{"p": id, "c": third}).Is(fmt.Sprintf(`{"node": {"commentCount": 2, "comments": {"edges": [
			{"node": {"text": "third", "author": {"handle": "u%s"}}}, {"node": {"text": "nice", "author": {"handle": "u%s"}}}]}}, "c": {"id": "%s", "text": "third"}}`, v.c, v.b, third))

		// A comment of somebody else's is answered as none, so that one that is hidden does not show.
		const deletes = `mutation($c: ID!) { deleteComment(commentId: $c) { changed post { commentCount } } }`
		v.api.As(v.b).Ask(deletes, apitest.Vars{"c": third}).Is(`{"deleteComment": {"changed": false, "post": null}}`)
		v.api.As(v.b).Ask(`mutation($c: ID!) { block(userId: $c) { changed } }`, apitest.Vars{"c": v.c})
		v.api.As(v.b).Ask(deletes, apitest.Vars{"c": third}).Is(`{"deleteComment": {"changed": false, "post": null}}`)
		v.api.As(v.b).Ask(deletes, apitest.Vars{"c": unused(third)}).Is(`{"deleteComment": {"changed": false, "post": null}}`)
		v.api.Ask(`query($c: ID!) { node(id: $c) { id } }`, apitest.Vars{"c": third}).Is(fmt.Sprintf(`{"node": {"id": "%s"}}`, third))
		for _, changed := range []bool{true, false} {
			a.Ask(`mutation($c: ID!) { deleteComment(commentId: $c) { changed } }`, apitest.Vars{"c": third}).Is(fmt.Sprintf(`{"deleteComment": {"changed": %t}}`, changed))
		}
		for _, changed := range []bool{true, false} {
			a.Ask(`mutation($p: ID!) { editPost(postId: $p, media: []) { changed post { text media { url } commentCount } } }`, apitest.Vars{"p": id}).
				Is(fmt.Sprintf(`{"editPost": {"changed": %t, "post": {"text": "Hello", "media": [], "commentCount": 1}}}`, changed))
		}
		edited := a.Ask(`query($p: ID!) { node(id: $p) { ... on Post { editedAt } } }`, apitest.Vars{"p": id}).Whole().At("node.editedAt")
		check.That(t, edited != nil, "no time of the edit")
		for mutation, code := range map[string]string{`editPost(postId: $p, text: "x") { changed }`: "FORBIDDEN", `deletePost(postId: $p) { changed }`: "FORBIDDEN"} {
			v.api.As(v.b).Ask(`mutation($p: ID!) { `+mutation+` }`, apitest.Vars{"p": id}).Refused(code)
		}
		for _, changed := range []bool{true, false} {
			a.Ask(`mutation($p: ID!) { deletePost(postId: $p) { changed viewer { user { postCount posts { nodes { id } } } } } }`, apitest.Vars{"p": id}).
				Is(fmt.Sprintf(`{"deletePost": {"changed": %t, "viewer": {"user": {"postCount": 0, "posts": {"nodes": []}}}}}`, changed))
		}
		v.api.Ask(look, apitest.Vars{"p": id, "c": third}).Is(`{"node": null, "c": null}`)
		a.Ask(publishes, nil).Refused("BAD_USER_INPUT")
		a.Ask(`mutation($p: ID!) { editPost(postId: $p, text: "x") { changed } }`, apitest.Vars{"p": id}).Refused("NOT_FOUND")
		v.api.As(v.b).Ask(`mutation($p: ID!) { addComment(postId: $p, text: "late", clientKey: "2") { changed } }`, apitest.Vars{"p": id}).Refused("NOT_FOUND")
	})
}

// Pages of posts and comments continue after their cursors, even if the row at the cursor is gone.
func TestPagesOfPosts(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		var all, comments []string // newest first
		for i := range 7 {
			all = append([]string{publish(t, v.api, []storage.UserID{v.a, v.a, v.b}[i%3], fmt.Sprint(i), fmt.Sprint(i))}, all...)
		}
		for i := range 5 {
			comments = append([]string{comment(t, v.api, v.c, all[0], fmt.Sprint("c", i))}, comments...)
		}
		pages := func(query, path string, between func(page int)) (got []string) {
			t.Helper()
			for page, answer := range pagesAt(v.api.As(v.d), query, apitest.Vars{"post": all[0], "a": v.a}, path) {
				for _, node := range apitest.Into[[]struct{ ID string }](answer, path+".nodes") {
					got = append(got, node.ID)
				}
				between(page)
			}
			return got
		}
		wait := func(int) {}
		const latest = `query($after: String) { latestPosts(first: 2, after: $after) { nodes { id } edges { cursor } pageInfo { hasNextPage endCursor } } }`
		same(t, pages(latest, "latestPosts", wait), all)
		same(t, pages(`query($after: String, $post: ID!) { node(id: $post) { ... on Post { comments(first: 2, after: $after) { nodes { id } pageInfo { hasNextPage endCursor } } } } }`, "node.comments", wait), comments)
		own := []string{all[0], all[2], all[3], all[5], all[6]}
		same(t, pages(`query($after: String, $a: ID!) { user(by: {id: $a}) { posts(first: 2, after: $after) { nodes { id } pageInfo { hasNextPage endCursor } } } }`, "user.posts", wait), own)
		gone := pages(latest, "latestPosts", func(page int) {
			if page == 0 {
				v.api.As(v.a).Ask(`mutation($p: ID!) { deletePost(postId: $p) { changed } }`, apitest.Vars{"p": all[2]}).Whole()
				v.api.As(v.b).Ask(`mutation($p: ID!) { deletePost(postId: $p) { changed } }`, apitest.Vars{"p": all[1]}).Whole()
			}
		})
		same(t, gone, append([]string{all[0], all[1]}, all[3:]...))
	})
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	check.Equal(t, "posts", strings.Join(got, " "), strings.Join(want, " "))
}

// A post at a bound is accepted. A post beyond it is refused, and nothing is written.
func TestBadPosts(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		a := v.api.As(v.a)
		post := publish(t, v.api, v.a, "x", "first")
		file := func(name, url string) map[string]any {
			return map[string]any{"name": name, "url": url, "kind": "IMAGE"}
		}
		files := func(n int) (list []any) {
			for range n {
				list = append(list, file("", "https://x"))
			}
			return list
		}
		key := 0
		for name, c := range map[string]struct {
			text, key string
			media     []any
			bad       bool
		}{
			"the longest text":       {text: strings.Repeat("👩", storage.MaxPostLength)},
			"a longer text":          {text: strings.Repeat("x", storage.MaxPostLength+1), bad: true},
			"nothing":                {text: " \n", bad: true},
			"files alone":            {media: files(storage.MaxMedia)},
			"too many files":         {text: "x", media: files(storage.MaxMedia + 1), bad: true},
			"the longest name":       {media: []any{file(strings.Repeat("ё", storage.MaxMediaNameLength), "https://x")}},
			"a longer name":          {media: []any{file(strings.Repeat("x", storage.MaxMediaNameLength+1), "https://x")}, bad: true},
			"the longest address":    {media: []any{file("", "https://"+strings.Repeat("x", storage.MaxMediaURLLength-8))}},
			"a longer address":       {media: []any{file("", "https://"+strings.Repeat("x", storage.MaxMediaURLLength-7))}, bad: true},
			"an address of a script": {media: []any{file("", "javascript:alert(1)")}, bad: true},
			"the longest key":        {text: "x", key: strings.Repeat("~", storage.MaxClientKeyLength)},
			"a longer key":           {text: "x", key: strings.Repeat("k", storage.MaxClientKeyLength+1), bad: true},
			"an empty key":           {text: "x", key: " ", bad: true},
			"a key of others":        {text: "x", key: "ключ", bad: true},
		} {
			if key++; c.key == "" {
				c.key = fmt.Sprint("key", key)
			}
			before := a.Ask(`{ viewer { user { postCount } } }`, nil).Text
			answer := a.Ask(`mutation($t: String!, $k: String!, $m: [MediaInput!]) { publishPost(text: $t, clientKey: $k, media: $m) { changed } }`,
				apitest.Vars{"t": c.text, "k": c.key, "m": c.media})
			if !c.bad {
				answer.Is(`{"publishPost": {"changed": true}}`)
			} else if answer.Refused("BAD_USER_INPUT"); a.Ask(`{ viewer { user { postCount } } }`, nil).Text != before {
				t.Errorf("%s: something was written", name)
			}
		}
		for text, good := range map[string]bool{strings.Repeat("👩", storage.MaxCommentLength): true, strings.Repeat("x", storage.MaxCommentLength+1): false, " ": false} {
			answer := a.Ask(`mutation($p: ID!, $t: String!) { addComment(postId: $p, text: $t, clientKey: "k") { changed } }`, apitest.Vars{"p": post, "t": text})
			if good {
				answer.Is(`{"addComment": {"changed": true}}`)
			} else {
				answer.Refused("BAD_USER_INPUT")
			}
		}
		for _, id := range []string{"1", "post_", "post_1", "post_1_x", "post_0_1", "post_1_0", "cmt_1_1", "rel_1_2", "", post + "0x", "post_1_9223372036854775808", strings.Repeat("9", 100)} {
			a.Ask(`mutation($p: ID!) { deletePost(postId: $p) { changed } }`, apitest.Vars{"p": id}).Refused("BAD_USER_INPUT")
		}
		a.Ask(`mutation($p: ID!) { deleteComment(commentId: $p) { changed } }`, apitest.Vars{"p": post}).Refused("BAD_USER_INPUT")
		v.api.Ask(`mutation { publishPost(text: "x", clientKey: "k") { changed } }`, nil).Refused("UNAUTHENTICATED")
		v.api.As(99).Ask(`mutation { publishPost(text: "x", clientKey: "k") { changed } }`, nil).Refused("UNAUTHENTICATED")
		v.api.As(99).Ask(`mutation($p: ID!) { addComment(postId: $p, text: "x", clientKey: "k") { changed } }`, apitest.Vars{"p": post}).Refused("UNAUTHENTICATED")
	})
}

// unused is an id of the same form that nothing has.
func unused(id string) string {
	last := byte('9')
	if id[len(id)-1] == last {
		last = '8'
	}
	return id[:len(id)-1] + string(last)
}
