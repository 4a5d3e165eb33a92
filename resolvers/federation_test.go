package resolvers_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// A router finds each object by each of the keys that the schema gives its type.
func TestEveryKeyNamesItsEntity(t *testing.T) {
	api, _ := withUsers(t, 3, apitest.Options{})
	post := publish(t, api, 2, "A post", "k")
	said := comment(t, api, 3, post, "A-comment")
	api.As(1).Ask(`mutation { requestFriend(userId: 2) { changed } }`, nil).Whole()
	list := api.As(1).Ask(`mutation { createList(name: "A list", public: true) { list { id } } }`, nil).Whole().At("createList.list.id").(string)
	known := map[string]string{
		"List.id": list,
		"User.id": "2", "User.handle": "u2", "Relationship.id": "rel_1_2", "Request.id": "req_1_2", "Post.id": post, "Comment.id": said,
	}
	schema, err := parser.ParseSchema(&ast.Source{Input: api.Ask(`{ _service { sdl } }`, nil).Whole().At("_service.sdl").(string)})
	must.OK(t, err)
	keys := 0
	for _, d := range schema.Definitions {
		for _, key := range d.Directives.ForNames("key") {
			keys++
			field := key.Arguments.ForName("fields").Value.Raw
			value, want := known[d.Name+"."+field], known[d.Name+".id"]
			answer := api.As(1).Ask(`query($of: _Any!) { _entities(representations: [$of]) { __typename ... on `+d.Name+` { id } } }`,
				apitest.Vars{"of": map[string]string{"__typename": d.Name, field: value}})
			answer.Is(fmt.Sprintf(`{"_entities": [{"__typename": %q, "id": %q}]}`, d.Name, want))
		}
	}
	check.Equal(t, "keys of the schema", keys, len(known))
}

// Entities are answered in the order given. An entity that cannot be read is an error at its index, and the
// others are answered.
func TestEntitiesAreAnsweredOneByOne(t *testing.T) {
	api, store := withUsers(t, 3, apitest.Options{})
	apitest.Follow(t, store, 1, 2)
	answer := api.As(1).Ask(`query($of: [_Any!]!) { _entities(representations: $of) { ... on User { handle viewerRelationship { status } } ... on Node { id } } }`,
		apitest.Vars{"of": []any{
			map[string]any{"__typename": "User", "id": "2"},
			map[string]any{"__typename": "User", "handle": "U3"},
			map[string]any{"__typename": "User", "id": "9999"},
			map[string]any{"__typename": "User", "handle": "nobody", "more": []any{1, "x"}},
			map[string]any{"__typename": "Relationship", "id": "rel_1_3"},
			map[string]any{"__typename": "User", "id": 2},
			map[string]any{"__typename": "User", "id": "3", "handle": "u2"}, // the id decides
			map[string]any{"__typename": "User"},                            // 7
			map[string]any{"__typename": "User", "id": "007"},
			map[string]any{"__typename": "User", "id": "rel_1_2"},
			map[string]any{"__typename": "Relationship", "id": "1"},
			map[string]any{"__typename": "Post", "handle": "u2"},
			map[string]any{"__typename": "Nothing", "id": "1"},
			map[string]any{"__typename": "User", "id": map[string]any{"id": 1}},
			map[string]any{"__typename": "User", "handle": 2},
			map[string]any{"id": "1"},
			"2",
			2,
			[]any{},
		}})
	var paths []string
	for i := 7; i < 19; i++ {
		paths = append(paths, fmt.Sprintf("_entities.%d", i))
	}
	answer.FailsAt("BAD_USER_INPUT", paths...)
	two := `{"id": "2", "handle": "u2", "viewerRelationship": {"status": "FOLLOWING"}}`
	three := `{"id": "3", "handle": "u3", "viewerRelationship": {"status": "NONE"}}`
	answer.DataIs(`{"_entities": [` + two + `, ` + three + `, null, null, {"id": "rel_1_3"}, ` + two + `, ` + three + strings.Repeat(", null", 12) + `]}`)

	api.Ask(`{ _entities(representations: []) { __typename } }`, nil).Is(`{"_entities": []}`)
	for _, ofNobody := range []string{``, `id: null`, `handle: null`} {
		answer := api.Ask(`{ _entities(representations: {__typename: "User", `+ofNobody+`}) { __typename } }`, nil)
		answer.FailsAt("BAD_USER_INPUT", "_entities.0")
		check.Has(t, "without a key", answer.Errors[0].Message, "has no key")
	}
	check.Has(t, "without a type", api.Ask(`{ _entities(representations: {id: 2}) { __typename } }`, nil).Errors[0].Message, "has no __typename")
	api.Ask(`{ _entities(representations: {__typename: "User", id: 2}) { ... on _Entity { ... on User { id } } } }`, nil).Is(`{"_entities": [{"id": "2"}]}`)
	once := `{"data":{"user":{"__typename":"User","id":"2","followings":{"nodes":[]}}}}`
	must.Equal(t, "a type asked of a union, too", api.Ask(`{ user(by: {id: 2}) { __typename ... on _Entity { __typename ... on Node { __typename } } id followings { nodes { id } } } }`, nil).Text, once)
	api.Ask(`query($id: ID!) { _entities(representations: [{__typename: "User", id: $id}]) { ... on User { id } } }`, apitest.Vars{"id": 3}).Is(`{"_entities": [{"id": "3"}]}`)
}

// Whom the viewer blocks decides who sees posts. If the viewer's shard does not answer, they are errors at their indexes, and users whom
// another shard has are answered.
func TestEntitiesWithoutTheViewersShard(t *testing.T) {
	store := oracle.New()
	users := byShard(20)
	viewer, author := users[deadShard][0], users[0][0]
	apitest.Users(t, store, 20)
	whole := apitest.New(t, store, apitest.Options{})
	post := publish(t, whole, author, "A post", "k")
	said := comment(t, whole, author, post, "A-comment")
	api := apitest.New(t, dead(store, 4, deadShard), apitest.Options{}).As(viewer)
	answer := api.Ask(`query($of: [_Any!]!, $ids: [ID!]!, $post: ID!) { _entities(representations: $of) { ... on Node { id } } nodes(ids: $ids) { id } node(id: $post) { id } }`, apitest.Vars{
		"post": post, "ids": []any{said, author}, "of": []any{map[string]any{"__typename": "User", "id": author}, map[string]any{"__typename": "Post", "id": post}},
	})
	answer.FailsAt("UNAVAILABLE", "_entities.1", "nodes.0", "node")
	answer.DataIs(fmt.Sprintf(`{"_entities": [{"id": "%s"}, null], "nodes": [null, {"id": "%[1]s"}], "node": null}`, author))
}

// A list at its bound is answered. A list one above the bound is refused. Entities count once, however often a router names them.
func TestListsOfEntitiesAndHandlesAreBounded(t *testing.T) {
	api, _ := withUsers(t, 1, apitest.Options{})
	handles := slices.Repeat([]string{"u1"}, 501)
	entities := func(n, repeated int) (all []map[string]string) {
		for i := range n * repeated {
			all = append(all, map[string]string{"__typename": "User", "id": strconv.Itoa(i%n + 1)})
		}
		return all
	}
	for _, c := range []struct {
		query    string
		of, more any
		n        int
		refusal  string
	}{
		{`query($of: [String!]!) { all: users(by: {handles: $of}) { id } }`, handles[:500], handles, 500, "500 is the most"},
		{`query($of: [_Any!]!) { all: _entities(representations: $of) { ... on User { id } } }`, entities(2000, 1), entities(2001, 1), 2000, "2001 different representations are given, 2000 is the most"},
		{`query($of: [_Any!]!) { all: _entities(representations: $of) { ... on User { id } } }`, entities(700, 5), entities(2001, 1), 3500, "2000 is the most"},
	} {
		users := apitest.Into[[]struct{ ID string }](api.Ask(c.query, apitest.Vars{"of": c.of}).Whole(), "all")
		check.That(t, len(users) == c.n && users[0].ID == "1", "%s: %d users", c.query, len(users))
		check.Has(t, c.query, api.Ask(c.query, apitest.Vars{"of": c.more}).Refused("BAD_USER_INPUT"), c.refusal)
	}
}

func TestUsersByManyHandles(t *testing.T) {
	store := oracle.New()
	apitest.CreateUsers(t, store, storage.User{ID: 1, Handle: "ann", Name: "Ann"}, storage.User{ID: 2, Handle: "bob", Name: "Bob"}, storage.User{ID: 3, Handle: "cem", Name: "Cem"})
	api := apitest.New(t, store, apitest.Options{})
	api.As(3).Ask(`mutation { deactivateAccount { changed } }`, nil).Whole()
	const query = `{ users(by: {handles: ["BOB", "nobody", "ann", "cem", "no handle", "", "bob"]}) { id name } }`
	bob, ann := `{"id": "2", "name": "Bob"}`, `{"id": "1", "name": "Ann"}`
	api.Ask(query, nil).Is(`{"users": [` + bob + `, null, ` + ann + `, null, null, null, ` + bob + `]}`)
	api.As(3).Ask(query, nil).Is(`{"users": [` + bob + `, null, ` + ann + `, {"id": "3", "name": "Cem"}, null, null, ` + bob + `]}`)
	api.Ask(`{ users(by: {handles: []}) { id } }`, nil).Is(`{"users": []}`)
}

// A hidden schema is not given to clients that say that they are a router. Entities are answered.
func TestAHiddenSchemaIsNotToldToRouters(t *testing.T) {
	api, _ := withUsers(t, 1, apitest.Options{HideSchema: true})
	api.Ask(`{ _service { sdl } }`, nil).Refused("FORBIDDEN")
	api.Ask(`{ _entities(representations: [{__typename: "User", id: 1}]) { ... on User { handle } } }`, nil).Is(`{"_entities": [{"handle": "u1"}]}`)
}
