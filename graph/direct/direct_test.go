package direct_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"pgregory.net/rapid"

	"kith/graph/direct"
	"kith/internal/apitest"
	"kith/storage"
	"kith/storage/memory"
)

const users = 12

// sameAnswers asks one API that writes directly and one that leaves everything to
// gqlgen.
func sameAnswers(t apitest.T, directly, slowly *apitest.API, query string, vars apitest.Vars) {
	t.Helper()
	got, want := directly.Ask(query, vars), slowly.Ask(query, vars)
	if dataOf(got.Text) != dataOf(want.Text) || len(got.Errors) != len(want.Errors) {
		t.Fatalf("%s\n%v\ndirectly:  %s\nby gqlgen: %s", query, vars, got.Text, want.Text)
	}
}

// dataOf cuts errors off, which come in any order.
func dataOf(text string) string {
	_, data, _ := strings.Cut(text, `"data":`)
	return data
}

func apis(t *testing.T, store storage.Store) (directly, slowly *apitest.API) {
	options := apitest.Options{Limits: apitest.NoLimits}
	directly = apitest.New(t, store, options)
	options.Context = direct.Without
	return directly, apitest.New(t, store, options)
}

func TestAnswersAreThoseOfGqlgen(t *testing.T) {
	store := memory.New()
	apitest.Users(t, store, users)
	apitest.Tangle(t, store, users)
	directly, slowly := apis(t, store)
	rapid.Check(t, func(t *rapid.T) {
		query, vars := apitest.Query(t, users)
		sameAnswers(t, directly.For(t).As(3), slowly.For(t).As(3), query, vars)
	})
}

// Every field that there is a table for, and what surrounds them in a query.
func TestEveryFieldIsWrittenAsGqlgenDoes(t *testing.T) {
	store := memory.New()
	apitest.Users(t, store, users)
	apitest.Tangle(t, store, users)
	directly, slowly := apis(t, store)
	user := `__typename id handle name bio avatarUrl createdAt followingCount followerCount`
	for _, query := range []string{
		`{ users(ids: [1, 2, 99]) { ` + user + ` } }`,
		`{ viewer { followings { __typename totalCount complete pageInfo { __typename hasNextPage hasPreviousPage startCursor endCursor }
			edges { __typename cursor followedAt node { ` + user + ` } } nodes { id } } } }`,
		`{ relationships(from: [3, 4], to: [1, 2, 3, 99]) { __typename id status following followedBy followedAt followedByAt blocking blockedBy
			from { ` + user + ` } to { handle } } }`,
		`{ user(id: 1) { followSuggestions { edges { __typename cursor score mutualCount reason node { ` + user + ` } } } } }`,
		`{ searchUsers(prefix: "u") { nodes { handle } edges { __typename cursor node { name } } } }`,
		`{ users(ids: [1]) { a: handle b: handle a: handle ...F ... on Node { id } ... @include(if: false) { bio } } } fragment F on User { name c: name @skip(if: true) }`,
		`{ user(id: 1) { followers(first: 0) { totalCount edges { cursor } nodes { id } } } }`,
		`{ user(id: 1) { followings { nodes { handle followings(first: 1) { nodes { id } } } } } }`,
		`{ node(id: "rel_1_2") { __typename id ... on Relationship { status } } nodes(ids: ["1", "rel_2_1", "99"]) { id } }`,
	} {
		sameAnswers(t, directly.As(3), slowly.As(3), query, nil)
	}
}

// Texts with everything that JSON escapes, and what it does not.
func TestTextsAreEscapedAsGqlgenDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text")
		var want bytes.Buffer
		graphql.MarshalString(text).MarshalGQL(&want)
		if got := string(direct.AppendString(nil, text)); got != want.String() {
			t.Fatalf("%q is written %s, by gqlgen %s", text, got, want.String())
		}
	})
}

func TestWhatCannotBeLoadedIsLeftToGqlgen(t *testing.T) {
	broken := direct.BrokenCounts()
	slow := func(context.Context, ast.SelectionSet, *direct.User) graphql.Marshaler {
		return graphql.MarshalString("slow")
	}
	for query, want := range map[string]string{"handle": `{"handle":"anna"}`, "followerCount": `"slow"`} {
		var got strings.Builder
		ctx := graphql.WithOperationContext(t.Context(), &graphql.OperationContext{})
		sel := ast.SelectionSet{&ast.Field{Name: query, Alias: query}}
		direct.Object(ctx, sel, broken, slow).MarshalGQL(&got)
		if got.String() != want {
			t.Errorf("%s gives %s, want %s", query, got.String(), want)
		}
	}
}
