package direct

import "github.com/vektah/gqlparser/v2/ast"

// Schema takes @defer out of a schema: the parser declares it in every one, and no transport
// here answers in parts.
func Schema(schema *ast.Schema) *ast.Schema {
	delete(schema.Directives, "defer")
	return schema
}
