package selections

import (
	"cmp"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// Schemas are what the callers of one gateway may ask.
type Schemas struct {
	// Schema is for everybody.
	Schema graphql.ExecutableSchema

	// Operators is for callers with the scope admin: it has all fields of Schema, with the same definitions, and more. Plans and
	// costs follow from it. Defaults to Schema.
	Operators graphql.ExecutableSchema
}

// Validate validates a document by a set of rules, nil for the usual ones, as an operator asks it or anybody else. A
// valid document has the definitions of the whole schema. only says that nobody but operators may ask it.
func (s Schemas) Validate(doc *ast.QueryDocument, operator bool, set *rules.Rules) (only bool, errs gqlerror.List) {
	operators := cmp.Or(s.Operators, s.Schema)
	if errs = validator.ValidateWithRules(shown(s.Schema), doc, set); len(errs) > 0 && operator && operators != s.Schema {
		only, errs = true, validator.ValidateWithRules(shown(operators), doc, set)
	}
	if len(errs) > 0 {
		return false, errs
	}
	if r, ok := operators.(Renamed); ok {
		r.read(doc)
	}
	return only, nil
}

// shown is a schema as clients know it.
func shown(schema graphql.ExecutableSchema) *ast.Schema {
	if r, ok := schema.(Renamed); ok {
		return r.ExecutableSchema.Schema()
	}
	return schema.Schema()
}
