package resolvers_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"kith/internal/apitest"
	"kith/internal/check"
)

// rowAtOnce is two changes of one row by its owner at the same time. Both are acknowledged, so both are there afterwards.
type rowAtOnce struct {
	make     string    // a mutation that makes the row; $n is the number of the try
	id       string    // where its answer has the $id of the row
	changes  [2]string // of these, `changed` is true once, or twice if both is set
	both     bool
	refused  string // the code with which one of them is refused
	look     string // a query, whose answer is one of
	together []string
}

var rowsAtOnce = map[string]rowAtOnce{
	"a list's name and who sees it": {
		make: `made: createList(name: "$n") { list { id } }`, id: "made.list.id", both: true,
		changes: [2]string{`updateList(listId: "$id", name: "other $n")`, `updateList(listId: "$id", public: true)`},
		look:    `node(id: "$id") { ... on List { name public } }`, together: []string{`{"node": {"name": "other $n", "public": true}}`},
	},
	"a list that is created twice": {
		changes: [2]string{`createList(name: "twice $n")`, `createList(name: "twice $n")`},
	},
	"a list that is deleted twice": {
		make: `made: createList(name: "$n", userIds: ["$b"]) { list { id } }`, id: "made.list.id",
		changes: [2]string{`deleteList(listId: "$id")`, `deleteList(listId: "$id")`},
		look:    `node(id: "$id") { id }`, together: []string{`{"node": null}`},
	},
	"the members of a list": {
		make: `made: createList(name: "$n") { list { id } }`, id: "made.list.id", both: true,
		changes: [2]string{`addToList(listId: "$id", userIds: ["$b", "$c"])`, `addToList(listId: "$id", userIds: ["$d"])`},
		look:    `node(id: "$id") { ... on List { memberCount } }`, together: []string{`{"node": {"memberCount": 3}}`},
	},
	"mutes of two scopes": {
		make: `unmute(userId: "$b") { changed }`, both: true,
		changes: [2]string{`mute(userId: "$b", scope: EVERYTHING)`, `mute(userId: "$b", scope: POSTS)`},
		look:    `user(by: {id: "$b"}) { viewerRelationship { muted } }`,
		together: []string{
			`{"user": {"viewerRelationship": {"muted": "EVERYTHING"}}}`, `{"user": {"viewerRelationship": {"muted": "POSTS"}}}`,
		},
	},
	"a mute and its end": {
		make: `mute(userId: "$b", scope: POSTS) { changed }`, both: true,
		changes: [2]string{`mute(userId: "$b", scope: EVERYTHING)`, `unmute(userId: "$b")`},
		look:    `user(by: {id: "$b"}) { viewerRelationship { muted } }`,
		together: []string{
			`{"user": {"viewerRelationship": {"muted": "EVERYTHING"}}}`, `{"user": {"viewerRelationship": {"muted": null}}}`,
		},
	},
	"a dismissal": {
		make:    `undismissSuggestion(userId: "$b") { changed }`,
		changes: [2]string{`dismissSuggestion(userId: "$b")`, `dismissSuggestion(userId: "$b")`},
		look:    `viewer { dismissedUsers { totalCount } }`, together: []string{`{"viewer": {"dismissedUsers": {"totalCount": 1}}}`},
	},
	"attributes of an edge": {
		make:    `gone: unrelate(kind: BOOKMARKS, ids: ["$b"]) { outcomes { id } } made: relate(kind: BOOKMARKS, ids: ["$b"]) { outcomes { id } }`,
		changes: [2]string{`relate(kind: BOOKMARKS, ids: ["$b"], attributes: {since: "$n"})`, `relate(kind: BOOKMARKS, ids: ["$b"], attributes: {rank: $n})`}, both: true,
		look: `viewer { edge(kind: BOOKMARKS, id: "$b") { attributes { since rank } } }`, together: []string{`{"viewer": {"edge": {"attributes": {"since": "$n", "rank": $n}}}}`},
	},
	"a profile": {
		changes: [2]string{`updateProfile(name: "name $n", locked: false, attributes: {pronouns: "$n"})`, `updateProfile(bio: "bio $n", attributes: {age: $n})`}, both: true,
		look:     `viewer { user { name bio attributes { pronouns age } } }`,
		together: []string{`{"viewer": {"user": {"name": "name $n", "bio": "bio $n", "attributes": {"pronouns": "$n", "age": $n}}}}`},
	},
	"who sees two lists": {
		make:    `updateProfile(listVisibility: {followings: EVERYONE, followers: EVERYONE}) { changed }`,
		changes: [2]string{`updateProfile(listVisibility: {followings: NOBODY})`, `updateProfile(listVisibility: {followers: FOLLOWERS}, discoverable: true)`}, both: true,
		look:     `viewer { user { listVisibility { followings followers } } }`,
		together: []string{`{"viewer": {"user": {"listVisibility": {"followings": "NOBODY", "followers": "FOLLOWERS"}}}}`},
	},
	"a mark": {
		make:    `follow(userId: "$c") { changed } setFollowMark(userId: "$c", special: false, remark: "", attributes: {metAt: null}) { changed }`,
		changes: [2]string{`setFollowMark(userId: "$c", special: true, attributes: {metAt: "$n"})`, `setFollowMark(userId: "$c", remark: "$n")`}, both: true,
		look:     `relationship(from: "$a", to: "$c") { special remark attributes { metAt } }`,
		together: []string{`{"relationship": {"special": true, "remark": "$n", "attributes": {"metAt": "$n"}}}`},
	},
	"what a post has": {
		make: `made: publishPost(text: "text", media: [{url: "https://example.org/a.jpg", kind: IMAGE}], clientKey: "both$n") { post { id } }`, id: "made.post.id",
		changes: [2]string{`editPost(postId: "$id", text: "\u2800")`, `editPost(postId: "$id", media: [])`}, refused: "BAD_USER_INPUT",
		look:     `node(id: "$id") { ... on Post { text media { url } } }`,
		together: []string{`{"node": {"text": "", "media": [{"url": "https://example.org/a.jpg"}]}}`, `{"node": {"text": "text", "media": []}}`},
	},
	"a post": {
		make: `made: publishPost(text: "first", clientKey: "$n") { post { id } }`, id: "made.post.id", both: true,
		changes:  [2]string{`editPost(postId: "$id", text: "second", attributes: {price: $n})`, `editPost(postId: "$id", media: [{url: "https://example.org/a.jpg", kind: IMAGE}], attributes: {name: "$n"})`},
		look:     `node(id: "$id") { ... on Post { text media { url } attributes { price name } } }`,
		together: []string{`{"node": {"text": "second", "media": [{"url": "https://example.org/a.jpg"}], "attributes": {"price": $n, "name": "$n"}}}`},
	},
}

// What a change does not give, it does not write: of two changes of one row at once, neither undoes the other.
func TestOfTwoChangesAtOnceNoneIsLost(t *testing.T) {
	file := declare(t, someKinds)
	file.Attributes.User, file.Attributes.Follow, file.Attributes.Post = declaredOf().Attributes.User, declaredOf().Attributes.Follow, declaredOf().Attributes.Post
	onAllShards(t, apitest.Options{Declared: file}, func(t *testing.T, v *village) {
		for name, row := range rowsAtOnce {
			t.Run(name, func(t *testing.T) {
				me := v.api.For(t).As(v.a)
				for n := range 12 {
					row.try(t, me, strings.NewReplacer("$a", v.a.String(), "$b", v.b.String(), "$c", v.c.String(), "$d", v.d.String(), "$n", fmt.Sprint(n+1)))
				}
			})
		}
	})
}

func (row rowAtOnce) try(t *testing.T, me *apitest.API, names *strings.Replacer) {
	t.Helper()
	id := ""
	if row.make != "" {
		made := me.Ask(`mutation { `+names.Replace(row.make)+` }`, nil).Whole()
		if row.id != "" {
			id = apitest.Into[string](made, row.id)
		}
	}
	spell := func(text string) string { return strings.ReplaceAll(names.Replace(text), "$id", id) }
	var answers [2]apitest.Answer
	var group sync.WaitGroup
	for i, change := range row.changes {
		selection := ` { changed } }`
		if strings.HasPrefix(change, "relate") {
			selection = ` { outcomes { changed } } }`
		}
		group.Go(func() { answers[i] = me.Ask(`mutation { done: `+spell(change)+selection, nil) })
	}
	group.Wait()
	changed := 0
	for _, a := range answers {
		if changed += strings.Count(a.Text, `"changed":true`); row.refused == "" || len(a.Errors) == 0 {
			a.Whole()
		} else {
			a.Refused(row.refused)
		}
	}
	check.That(t, row.both || changed == 1, "%q changed something %d times", row.changes, changed)
	if row.look == "" {
		return
	}
	got := me.Ask(`{ `+spell(row.look)+` }`, nil).Whole()
	for _, want := range row.together {
		if got.HasData(spell(want)) {
			return
		}
	}
	t.Errorf("after %q there is %s", row.changes, got.Text)
}
