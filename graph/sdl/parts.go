package sdl

import (
	"fmt"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/declared"
)

// The parts that a schema may lack. A definition that is in none of them is in every schema.
const (
	Federation = "federation" // by which routers ask
	Operators  = "operators"  // what takes a token with the scope admin
	Accounts   = "accounts"   // how users sign up and in where no identity provider does that
	Posts      = "posts"      // what users publish, and what others make of it
)

// partFields are the fields of each part, and values of enums. The types to which only these lead belong to it, too.
var partFields = map[string]map[string][]string{
	Federation: {"Query": {"_entities", "_service"}},
	Operators: {
		"Query":        {"consistency", "moderationLog"},
		"Mutation":     {"createUser", "linkIdentity", "setUserAttributes", "suspendUser", "reinstateUser", "removePost", "removeComment"},
		"Subscription": {"changes"},
	},
	Accounts: {"Mutation": {"register", "login", "renewToken", "changePassword", "signOutEverywhere"}},
	Posts: {
		"Query":        {"latestPosts"},
		"Mutation":     {"publishPost", "editPost", "deletePost", "addComment", "deleteComment", "favorite", "unfavorite", "markFeedSeen", "reportPost", "removePost", "removeComment"},
		"Subscription": {"postAdded", "favoriteAdded", "commentAdded"},
		"Viewer":       {"feed", "feedSeenUpTo"},
		"Activity":     {"post"},
		"ActivityKind": {"FAVORITE", "COMMENT", "MENTION"},
		"User":         {"postCount", "posts", "favoritesGivenCount", "favoritesReceivedCount", "favorites"},
	},
}

// CheckParts refuses names of parts that a gateway cannot lack by its settings.
func CheckParts(names []string) error {
	for _, name := range names {
		if name != Accounts && name != Posts {
			return fmt.Errorf("there is no part %q: the parts are %s and %s", name, Accounts, Posts)
		}
	}
	return nil
}

// Without is a schema without some of its parts. Definitions of fields, from which costs and plans follow, are the same ones. Parts
// that the schema lacks already change nothing.
func Without(schema *ast.Schema, names ...string) *ast.Schema {
	w := without{schema, map[string]*ast.Definition{}, names}
	own := *schema
	own.Query, own.Mutation, own.Subscription = w.keep("Query"), w.keep("Mutation"), w.keep("Subscription")
	for name, d := range schema.Types {
		if d.BuiltIn {
			w.keep(name)
		}
	}
	for _, d := range schema.Directives {
		w.keepArguments(d.Arguments)
	}
	own.Types, own.PossibleTypes, own.Implements = w.kept, declared.Related(schema.PossibleTypes, w.kept), declared.Related(schema.Implements, w.kept)
	for _, d := range w.kept {
		d.Types = slices.DeleteFunc(slices.Clone(d.Types), func(member string) bool { return w.kept[member] == nil }) // of a union
	}
	return &own
}

// without is a schema that is being made of another one, from its roots on.
type without struct {
	from *ast.Schema
	kept map[string]*ast.Definition
	left []string
}

// keep keeps a type and those to which its fields lead. An interface or a union does not lead to its members:
// of these, the ones are kept to which fields lead as well.
func (w *without) keep(name string) *ast.Definition {
	d := w.from.Types[name]
	if w.kept[name] != nil || d == nil {
		return w.kept[name]
	}
	own := *d
	isLeft := func(field string) bool {
		return slices.ContainsFunc(w.left, func(part string) bool { return slices.Contains(partFields[part][name], field) })
	}
	own.Fields = slices.DeleteFunc(slices.Clone(d.Fields), func(f *ast.FieldDefinition) bool { return isLeft(f.Name) })
	own.EnumValues = slices.DeleteFunc(slices.Clone(d.EnumValues), func(v *ast.EnumValueDefinition) bool { return isLeft(v.Name) })
	w.kept[name] = &own
	for _, f := range own.Fields {
		w.keep(f.Type.Name())
		w.keepArguments(f.Arguments)
	}
	for _, name := range d.Interfaces {
		w.keep(name)
	}
	return &own
}

func (w *without) keepArguments(list ast.ArgumentDefinitionList) {
	for _, a := range list {
		w.keep(a.Type.Name())
	}
}
