package limits

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/internal/check"
	"kith/internal/must"
)

func loadSchema(t *testing.T) *ast.Schema {
	t.Helper()
	files, _ := filepath.Glob("../schema/*.graphqls")
	var sources []*ast.Source
	for _, file := range files {
		sources = append(sources, &ast.Source{Name: file, Input: string(must.File(t, file))})
	}
	schema, err := gqlparser.LoadSchema(sources...)
	must.OK(t, err)
	return schema
}

// TestEveryListHasALength, and it is the intended length.
func TestEveryListHasALength(t *testing.T) {
	schema := loadSchema(t)
	c, err := rulesOf(schema)
	must.OK(t, err)
	for kind, want := range map[kind][]string{
		page: {
			"User.commonFollowers", "User.commonFollowings", "User.followSuggestions", "User.followers",
			"User.followersYouKnow", "User.followings", "User.friends", "Mutation.followMany",
			"User.notFollowingBack", "User.notFollowedBack", "Viewer.blockedUsers", "Viewer.requests", "Viewer.feed", "Viewer.dismissedUsers", "Query.people", "Query.searchUsers",
		},
		item: {"SuggestionConnection.edges", "SuggestionConnection.nodes", "UserConnection.edges", "UserConnection.nodes", "FollowManyPayload.outcomes",
			"UserSearchConnection.edges", "UserSearchConnection.nodes", "RequestConnection.edges"},
		list: {"Query.nodes", "Query.relationships", "Query.users", "SuggestionEdge.via", "Consistency.modes", "ReconcileStatus.kinds"},
	} {
		got := namesOf(c, schema, kind)
		for _, name := range want {
			check.That(t, slices.Contains(got, name), "%s is missing in %v", name, got)
		}
	}
}

func TestListOfUnknownLengthIsRefused(t *testing.T) {
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: "type Query { all: [String!]! }"})
	_, err := rulesOf(schema)
	check.That(t, err != nil && strings.Contains(err.Error(), "Query.all"), "got %v; want an error that names Query.all", err)
}

func TestTextOfUnknownLengthIsRefused(t *testing.T) {
	for where, schema := range map[string]string{
		"Query.one(poem:)": "type Query { one(poem: String!): Int }",
		"Poem.verses":      "type Query { one(poem: Poem): Int } input Poem { next: Poem verses: [String!] }",
	} {
		_, err := rulesOf(gqlparser.MustLoadSchema(&ast.Source{Input: schema}))
		check.That(t, err != nil && strings.Contains(err.Error(), where), "got %v; want an error that names %s", err, where)
	}
}

func namesOf(c rules, schema *ast.Schema, wanted kind) []string {
	var names []string
	for _, d := range schema.Types {
		for _, f := range d.Fields {
			if r, ok := c[f]; ok && r.kind == wanted {
				names = append(names, d.Name+"."+f.Name)
			}
		}
	}
	return names
}
