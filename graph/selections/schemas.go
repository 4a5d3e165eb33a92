package selections

import (
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

	// Operators is for callers with the scope admin: it has all fields of Schema, and more. Defaults to Schema.
	Operators graphql.ExecutableSchema
}

// Whole is the schema with all fields, from which plans and costs follow.
func (s Schemas) Whole() *ast.Schema {
	if s.Operators != nil {
		return s.Operators.Schema()
	}
	return s.Schema.Schema()
}

// Validate validates a document by a set of rules, nil for the usual ones, as an operator asks it or anybody else. A
// valid document has the definitions of the whole schema. only says that nobody but operators may ask it.
func (s Schemas) Validate(doc *ast.QueryDocument, operator bool, set *rules.Rules) (only bool, errs gqlerror.List) {
	by := s.Schema
	if operator && s.Operators != nil {
		by = s.Operators
		only = len(validator.ValidateWithRules(shown(s.Schema), doc, set)) > 0
	}
	if errs = validator.ValidateWithRules(shown(by), doc, set); len(errs) > 0 {
		return false, errs
	}
	if r, ok := by.(Renamed); ok {
		r.read(doc, s.Whole())
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
