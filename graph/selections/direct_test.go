package selections_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"pgregory.net/rapid"

	"kith/graph/fields"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

const users = 12

// sameAnswers asks one API that writes directly, and one that leaves everything to gqlgen. The
// first is asked a second time, when it knows the query.
func sameAnswers(t apitest.T, directly, slowly *apitest.API, query string, vars apitest.Vars) {
	t.Helper()
	want := slowly.Ask(query, vars)
	for _, time := range []string{"first", "second"} {
		got := directly.Ask(query, vars)
		if dataOf(got.Text) != dataOf(want.Text) || len(got.Errors) != len(want.Errors) {
			t.Fatalf("%s\n%v\ndirectly, the %s time: %s\nby gqlgen: %s", query, vars, time, got.Text, want.Text)
		}
	}
}

// The plan of a query is also right for other variables and other users.
func TestKnownQueriesAreAnsweredAnew(t *testing.T) {
	store := oracle.New()
	apitest.Users(t, store, users)
	apitest.Tangle(t, store, users)
	directly, slowly := apis(t, store)
	for _, query := range []string{
		`query($id: ID!, $yes: Boolean! = true) { user(by: {id: $id}) { id handle @include(if: $yes) ...F @skip(if: $yes) } } fragment F on User { name }`,
		`query($id: ID!, $yes: Boolean!) { user(by: {id: $id}) { followings(first: 3) { nodes { id name @skip(if: $yes) } edges { node { handle } } } } }`,
		`query($id: ID!, $n: Int) { user(by: {id: $id}) { followers(first: $n) { totalCount edges { followedAt node { id followerCount } } } } }`,
		`query($id: ID!, $ids: [ID!]! = ["1", "2"]) { relationships(from: [$id], to: $ids) { id following blocking from { id } } }`,
		`query($id: ID!) { user(by: {id: $id}) { viewerRelationship { id status } followersYouKnow { totalCount nodes { id } } } }`,
		`query($id: ID!) { alias: user(by: {id: $id}) { relationship(to: 1) { id status } } }`,
		`query($ids: [ID!]!) { users(by: {ids: $ids}) { id friends(first: 2) { nodes { id } } } }`,
		`query($id: ID!, $with: ID!) { user(by: {id: $id}) { commonFollowers(with: $with) { totalCount nodes { name } } } }`,
	} {
		for _, vars := range []apitest.Vars{
			{"id": "1"}, {"id": "2", "yes": false, "n": 1}, {"id": "3", "yes": true, "n": 3, "ids": []string{"5", "3", "5", "99"}},
			{"id": 4, "with": "5", "yes": false, "ids": "6"}, {"id": "x", "with": "0", "ids": []string{}}, {"id": nil}, {"id": "99", "n": 101},
			{"id": "5", "with": "6", "yes": true, "n": nil, "ids": []any{"7", nil}},
		} {
			for _, viewer := range []storage.UserID{2, 3} {
				sameAnswers(t, directly.As(viewer), slowly.As(viewer), query, vars)
			}
			sameAnswers(t, directly, slowly, query, vars)
		}
	}
}

// dataOf removes errors, whose order varies.
func dataOf(text string) string {
	_, data, _ := strings.Cut(text, `"data":`)
	return data
}

func apis(t *testing.T, store storage.Store) (directly, slowly *apitest.API) {
	options := apitest.Options{Limits: apitest.NoLimits}
	directly = apitest.New(t, store, options)
	options.Context = selections.ByGqlgen
	return directly, apitest.New(t, store, options)
}

func TestAnswersAreThoseOfGqlgen(t *testing.T) {
	store := oracle.New()
	apitest.Users(t, store, users)
	apitest.Tangle(t, store, users)
	apitest.Publish(t, store, users)
	directly, slowly := apis(t, store)
	rapid.Check(t, func(t *rapid.T) {
		query, vars := apitest.Query(t, users)
		sameAnswers(t, directly.For(t).As(3), slowly.For(t).As(3), query, vars)
	})
}

// Every field that has a table entry, with everything that can surround it in a query.
func TestEveryFieldIsWrittenAsGqlgenDoes(t *testing.T) {
	store := oracle.New()
	apitest.Users(t, store, users)
	apitest.Tangle(t, store, users)
	apitest.Publish(t, store, users)
	for i, media := range [][]storage.Media{
		{{Name: "a \"cat\"", URL: "https://example.org/<1>.png", Kind: storage.Image}, {URL: "https://example.org/2", Kind: storage.Video}},
		{{URL: "https://example.org/3", Kind: 99}}, // from a later version
	} {
		post := storage.PostRow{PostID: storage.PostID{Author: 5, Number: int64(100 + i)}, Key: fmt.Sprint("files ", i), Text: "\n", Media: media, At: apitest.Epoch}
		_, _, err := store.Publish(t.Context(), post)
		must.OK(t, err)
	}
	directly, slowly := apis(t, store)
	post := `__typename id text createdAt editedAt commentCount favoritesReceivedCount viewerHasFavorited author { handle }`
	files := `media { __typename name url kind }`
	user := `__typename id handle name bio avatarUrl createdAt followingCount followerCount`
	for _, query := range []string{
		`{ users(by: {ids: [1, 2, 99]}) { ` + user + ` } }`,
		`{ viewer { user { followings { __typename totalCount complete pageInfo { __typename hasNextPage hasPreviousPage startCursor endCursor }
			edges { __typename cursor followedAt node { ` + user + ` } } nodes { id } } } } }`,
		`{ relationships(from: [3, 4], to: [1, 2, 3, 99]) { __typename id status following followedBy followedAt followedByAt blocking blockedBy
			from { ` + user + ` } to { handle } } }`,
		`{ user(by: {id: 1}) { followSuggestions { edges { __typename cursor score sharedCount reason node { ` + user + ` } } } } }`,
		`{ searchUsers(text: "u") { nodes { handle } edges { __typename cursor node { name } } } }`,
		`{ users(by: {ids: [1]}) { a: handle b: handle a: handle ...F ... on Node { id } ... @include(if: false) { bio } } } fragment F on User { name c: name @skip(if: true) }`,
		`{ user(by: {id: 1}) { followers(first: 0) { totalCount edges { cursor } nodes { id } } } }`,
		`{ user(by: {id: 1}) { followings { nodes { handle followings(first: 1) { nodes { id } } } } } }`,
		`{ latestPosts { pageInfo { endCursor } edges { __typename cursor node { ` + post + ` } } nodes { id } } }`,
		`{ nodes(ids: ["post_5_100", "post_1_1", "post_9_99", "cmt_1_1001"]) { id ... on Post { ` + post + files + ` comments { edges { __typename cursor node { __typename id postId text createdAt author { name } } } nodes { id } pageInfo { hasNextPage } }
			favoritedBy { edges { __typename cursor favoritedAt node { handle } } nodes { id } } } ... on Comment { postId } } }`,
		`{ nodes(ids: ["post_1_1", "post_5_101"]) { ... on Post { id ` + files + ` } } }`, // the second has an error
		`{ viewer { feed(first: 5) { complete newerThan { count } pageInfo { startCursor } edges { cursor node { ` + post + files + ` } } nodes { text } }
			user { favorites { edges { __typename cursor favoritedAt node { id } } nodes { ` + post + ` } } posts { nodes { author { ` + user + ` } } } } } }`,
		`{ users(by: {ids: ["x"]}) { id } }`, // an error below a value that must not be null
		`{ mine: relationships(from: ["0"], to: ["1"]) { id } }`,
		`{ user(by: {id: "x"}) { id } }`,
		`{ one: user(by: {id: 1}) { id } }`, `{ __typename }`, `{ __type(name: "User") { name } }`, `{ viewer { user { id } } viewer { user { name } } }`,
		`{ ...on Query { user(by: {id: 1}) { id } } }`,
		`{ node(id: "rel_1_2") { __typename id ... on Relationship { status } } nodes(ids: ["1", "rel_2_1", "99"]) { id } }`,
	} {
		sameAnswers(t, directly.As(3), slowly.As(3), query, nil)
	}
}

// Texts contain everything that JSON escapes, and things that it does not escape.
func TestTextsAreEscapedAsGqlgenDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text")
		var want bytes.Buffer
		graphql.MarshalString(text).MarshalGQL(&want)
		must.Equal(t, text, string(fields.AppendString(nil, text)), want.String())
	})
}

func TestWhatCannotBeLoadedIsLeftToGqlgen(t *testing.T) {
	broken := &model.User{Row: storage.User{Handle: "anna"}, Counts: storage.Result[storage.Counts]{Err: errors.New("shard unavailable")}}
	slow := func(context.Context, ast.SelectionSet, *model.User) graphql.Marshaler {
		return graphql.MarshalString("slow")
	}
	for query, want := range map[string]string{"handle": `{"handle":"anna"}`, "followerCount": `"slow"`} {
		var got strings.Builder
		ctx := graphql.WithOperationContext(t.Context(), &graphql.OperationContext{})
		sel := ast.SelectionSet{&ast.Field{Name: query, Alias: query}}
		selections.AnswerObject(ctx, "User", true, sel, broken, slow).MarshalGQL(&got)
		check.That(t, got.String() == want, "%s gives %s, want %s", query, got.String(), want)
	}
}
