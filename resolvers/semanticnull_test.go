package resolvers_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/cursor"
	"kith/graph/generated"
	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/storage"
	"kith/storage/sqlstore"
)

// A field with `@semanticNonNull` is null only with an error. So if all shards answer, no such field is
// null. Here several viewers ask for everything, about users of whom some are hidden, in a block or deleted.
func TestNullComesOnlyWithAnError(t *testing.T) {
	store := opened.Store(t, sqlstore.Config{Location: apitest.Location(t, 4), StatementTimeout: generous})
	apitest.Users(t, store, 12)
	apitest.Tangle(t, store, 12)
	apitest.Publish(t, store, 12)
	api := apitest.New(t, store, apitest.Options{Limits: apitest.NoLimits})
	n := nulls{t: t, schema: generated.NewSchema(generated.Config{}).Schema(), seen: map[string]bool{}}

	for _, number := range []int64{5, 6} {
		_, _, err := store.CreateList(t.Context(), storage.UserList{ListID: storage.ListID{Owner: 1, Number: number}, Name: "A list", Public: true})
		must.OK(t, err)
	}
	for _, change := range []struct {
		viewer storage.UserID
		call   string
	}{
		{5, `requestFriend(userId: 1)`}, {1, `requestFriend(userId: 6)`}, {7, `requestFriend(userId: 1)`}, {8, `requestFriend(userId: 1)`}, {1, `requestFriend(userId: 9)`},
		{1, `acceptRequest(kind: FRIEND, userId: 8)`}, {9, `declineRequest(kind: FRIEND, userId: 1)`}, {1, `withdrawRequest(kind: FRIEND, userId: 6)`}, {1, `removeFriend(userId: 8)`},
		{1, `requestFriend(userId: 10)`}, {11, `requestFriend(userId: 1)`}, {4, `requestFriend(userId: 1)`},
		{1, `follow(userId: 2)`}, {1, `follow(userId: 2)`}, {1, `unfollow(userId: 3)`}, {1, `followMany(userIds: [3, 4, 99])`}, {1, `importAccounts(kind: MUTES, file: "u3")`}, {1, `removeAccountsImport(importId: "5")`}, {1, `removeFollower(userId: 4)`},
		{1, `setFollowMark(userId: 2, special: true, remark: "a friend")`}, {1, `mute(userId: 2)`}, {1, `unmute(userId: 2)`}, {1, `createList(name: "l")`}, {1, `updateList(listId: "list_1_5", name: "m")`},
		{1, `addToList(listId: "list_1_5", userIds: [2, 3])`}, {1, `followList(listId: "list_1_5")`}, {1, `removeFromList(listId: "list_1_5", userIds: [3])`}, {1, `deleteList(listId: "list_1_6")`}, {1, `dismissSuggestion(userId: 12)`}, {1, `undismissSuggestion(userId: 12)`},
		{1, `block(userId: 6)`}, {1, `block(userId: 12)`}, {1, `unblock(userId: 12)`}, {9, `block(userId: 1)`},
		{1, `updateProfile(bio: "me", locked: true)`}, {2, `unfollow(userId: 1)`}, {2, `follow(userId: 1)`}, {3, `unfollow(userId: 1)`}, {3, `follow(userId: 1)`}, {8, `unfollow(userId: 1)`}, {8, `follow(userId: 1)`},
		{1, `acceptRequest(kind: FOLLOW, userId: 3)`}, {1, `declineRequest(kind: FOLLOW, userId: 8)`}, {1, `acceptRequests(kind: FOLLOW)`}, {5, `deactivateAccount`}, {10, `deactivateAccount`}, {10, `reactivateAccount`}, {7, `deleteAccount`}, {11, `deactivateAccount`},
		{1, `createUser(id: 20, handle: "v20", name: "V")`}, {1, `linkIdentity(userId: 20, issuer: "https://id.example.org", subject: "auth0|20")`}, {1, `unlinkIdentity(issuer: "https://id.example.org", subject: "auth0|20")`}, {1, `signOutEverywhere`},
		{20, `publishPost(text: "x", clientKey: "k")`}, {20, `publishPost(text: "x", clientKey: "k")`}, {1, `editPost(postId: "post_1_1", text: "y")`},
		{1, `markFeedSeen(upTo: "` + (*cursor.Sealer)(nil).Encode(cursor.Feed, 1, 1) + `")`}, {1, `markActivitySeen(upTo: "` + (*cursor.Sealer)(nil).Encode(cursor.Activity, 1, 1, 1) + `")`}, {1, `addComment(postId: "post_2_2", text: "x", clientKey: "c")`}, {1, `favorite(postId: "post_2_2")`}, {1, `unfavorite(postId: "post_2_2")`}, {1, `favorite(postId: "post_3_3")`},
		{1, `deleteComment(commentId: "cmt_1_1000")`}, {3, `deletePost(postId: "post_3_3")`},
		{1, `suspendUser(userId: 12, reason: "x")`}, {1, `reinstateUser(userId: 12, reason: "x")`}, {1, `reinstateUser(userId: 12, reason: "x")`},
		{1, `unfollow(userId: 5)`}, {1, `unblock(userId: 7)`}, {1, `unmute(userId: 99)`}, {1, `removeFriend(userId: 5)`}, {1, `withdrawRequest(kind: FOLLOW, userId: 7)`}, {1, `undismissSuggestion(userId: 5)`},
		{1, `followMany(userIds: [5, 7, 99])`}, {1, `addToList(listId: "list_1_5", userIds: [5, 7, 99])`}, {1, `removeFromList(listId: "list_1_5", userIds: [5, 7, 99])`},
		{1, `linkIdentity(userId: 5, issuer: "https://id.example.org", subject: "auth0|5")`}, {1, `createUser(id: 5, handle: "v5", name: "V")`},
		{1, `reportUser(userId: 2, reason: "x")`}, {1, `reportPost(postId: "post_4_4", reason: "x")`},
		{1, `removePost(postId: "post_4_4", reason: "x")`}, {1, `removeComment(commentId: "cmt_2_1001", reason: "x")`},
	} {
		by := api.Admin()
		if change.viewer != 1 {
			by = api.As(change.viewer)
		}
		n.ask(by, "mutation", n.schema.Mutation, change.call)
	}
	n.ask(api.Admin(), "query", n.schema.Query, "moderationLog")
	for i, viewer := range []*apitest.API{api.As(1), api.As(9), api.As(5), api, api.As(1)} {
		n.bareEdges = i == 4
		for _, field := range n.schema.Query.Fields {
			if !strings.HasPrefix(field.Name, "__") && field.Name != "consistency" && field.Name != "moderationLog" { // these are for operators
				n.ask(viewer, "query", n.schema.Query, field.Name+arguments(field))
			}
		}
	}
	n.seen["SessionPayload.viewer"], n.seen["Mutation.register"], n.seen["Mutation.login"], n.seen["Mutation.renewToken"], n.seen["Mutation.changePassword"] = true, true, true, true, true // an identity provider has them here
	for name, d := range n.schema.Types {
		for _, field := range d.Fields {
			if at := name + "." + field.Name; d != n.schema.Subscription && !isSent(n.schema, name) && field.Directives.ForName("semanticNonNull") != nil && !n.seen[at] {
				t.Errorf("%s was never answered", at)
			}
		}
	}
}

// isSent reports whether a type is what a subscription sends.
func isSent(schema *ast.Schema, name string) bool {
	return slices.ContainsFunc(schema.Subscription.Fields, func(f *ast.FieldDefinition) bool { return f.Type.Name() == name })
}

// nulls looks for nulls that must not be there.
type nulls struct {
	t      *testing.T
	schema *ast.Schema
	seen   map[string]bool // fields that have been answered with a value

	bareEdges bool // edges are asked for without their nodes
}

// ask asks for everything below a field.
func (n nulls) ask(api *apitest.API, operation string, root *ast.Definition, call string) {
	name := call[:strings.IndexAny(call+"(", "(")]
	way := []string{"User", "Post"} // a few queries look below them
	switch name {
	case "user":
		way = way[1:]
	case "viewer", "nodes":
		way = nil
	case "latestPosts":
		way = way[:1]
	}
	query := operation + " { __typename " + call + n.below(root.Fields.ForName(name).Type.Name(), way) + " }"
	answer := api.For(n.t).Ask(query, nil)
	must.That(n.t, len(answer.Errors) == 0, "%s: %v", call, answer.Errors)
	n.check(call, answer.Data)
}

// below selects everything of a type, and of each type below a user or a post once on the way.
func (n nulls) below(name string, way []string) string {
	d := n.schema.Types[name]
	switch d.Kind {
	case ast.Interface, ast.Union:
		var all []string
		for _, possible := range n.schema.PossibleTypes[name] {
			all = append(all, "... on "+possible.Name+n.below(possible.Name, way))
		}
		return " { " + strings.Join(all, " ") + " }"
	case ast.Object:
	default:
		return ""
	}
	again := slices.Contains(way, name)
	if way = append(slices.Clip(way), name); name == "Activity" {
		way = append(way, "User", "Post") // the query would be too long
	}
	selected := []string{"__typename"}
	for _, field := range d.Fields {
		if n.bareEdges && (field.Name == "node" && strings.HasSuffix(name, "Edge") || field.Name == "nodes" && len(way) > 1) {
			continue
		}
		if object := n.schema.Types[field.Type.Name()].Kind == ast.Object; strings.HasPrefix(field.Name, "__") || object && (again || len(way) > 8) {
			continue
		}
		selected = append(selected, field.Name+arguments(field)+n.below(field.Type.Name(), way))
	}
	return " { " + strings.Join(selected, " ") + " }"
}

// arguments returns values for the required arguments.
func arguments(field *ast.FieldDefinition) string {
	var given []string
	for _, a := range field.Arguments {
		if !a.Type.NonNull || a.DefaultValue != nil {
			continue
		}
		value := map[string]string{
			"id": "2", "userId": "2", "to": "2", "with": "2", "from": "1", "by": `{handle: "u2"}`, "text": `"u"`, "direction": "RECEIVED", "where": "{followersOf: 2}",
			"ids":             `[1, 2, 5, 6, 7, 9, 99]`,
			"representations": `[{__typename: "User", id: 2}, {__typename: "User", handle: "u5"}, {__typename: "Post", id: "post_2_2"}, {__typename: "Relationship", id: "rel_1_2"}]`,
		}[a.Name]
		if (a.Name == "from" || a.Name == "to") && a.Type.Elem != nil {
			value = "[1, 2, 5, 6, 7, 9, 99]"
		}
		if a.Type.Name() == "RequestKind" {
			value = "FRIEND"
		}
		if a.Type.Name() == "AccountsKind" {
			value = "LISTS"
		}
		if field.Name == "nodes" {
			value = `[1, 5, 99, "post_2_2", "post_3_3", "post_5_5", "cmt_2_1005", "rel_1_2", "rel_2_7", "req_11_1", "req_1_10"]`
		}
		if field.Name == "users" {
			value = "{ids: [1, 2, 5, 6, 7, 9, 99]}"
		}
		given = append(given, a.Name+": "+value)
	}
	if len(given) == 0 {
		return ""
	}
	return "(" + strings.Join(given, ", ") + ")"
}

// check reports the nulls in an answer, or in a part of it.
func (n nulls) check(at string, value any) {
	switch value := value.(type) {
	case []any:
		for i, element := range value {
			n.check(at+"."+strconv.Itoa(i), element)
		}
	case map[string]any:
		typ, _ := value["__typename"].(string)
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if field := n.schema.Types[typ].Fields.ForName(name); field != nil {
				if d := field.Directives.ForName("semanticNonNull"); d != nil {
					n.never(at+"."+name, typ+"."+name, value[name], fmt.Sprint(d.ArgumentMap(nil)["levels"]))
				}
			}
			n.check(at+"."+name, value[name])
		}
	}
}

// never reports a null at a level where the field forbids it.
func (n nulls) never(at, field string, value any, levels string) {
	check.That(n.t, value != nil || !strings.Contains(levels, "0"), "%s (%s) is null", at, field)
	n.seen[field] = n.seen[field] || value != nil
	list, _ := value.([]any)
	for i, element := range list {
		check.That(n.t, element != nil || !strings.Contains(levels, "1"), "%s.%d (%s) is null", at, i, field)
	}
}
