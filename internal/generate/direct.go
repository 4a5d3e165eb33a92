package main

import (
	_ "embed"
	"go/types"
	"maps"
	"path/filepath"
	"slices"

	"github.com/99designs/gqlgen/codegen"
	"github.com/99designs/gqlgen/codegen/config"
	"github.com/99designs/gqlgen/codegen/templates"
	"github.com/vektah/gqlparser/v2/ast"
)

// direct is a plugin of gqlgen. It runs before gqlgen writes its code, takes some functions out of
// what gqlgen is going to write, and writes them itself, from direct.gotpl: they call
// kith/graph/selections. gqlgen calls a function by its name, so it may come from the plugin.
type direct struct{}

//go:embed direct.gotpl
var directTemplate string

// functions are what the template writes.
type functions struct {
	*codegen.Data
	Objects []*config.TypeReference // pointers to objects, and lists of them
	IDs     []*config.TypeReference // lists of ids, [ID!]!, which only arguments have
}

// Name implements [plugin.Plugin].
func (direct) Name() string { return "direct" }

// GenerateCode implements [plugin.CodeGenerator].
func (direct) GenerateCode(data *codegen.Data) error {
	ours := functions{Data: data}
	for _, name := range slices.Sorted(maps.Keys(data.ReferencedTypes)) {
		ref := data.ReferencedTypes[name]
		switch {
		case isObject(ref):
			ours.Objects = append(ours.Objects, ref)
		case ref.GQL.String() == "[ID!]!":
			ours.IDs = append(ours.IDs, ref)
		default:
			continue
		}
		delete(data.ReferencedTypes, name)
	}
	return templates.Render(templates.Options{
		PackageName:     data.Config.Exec.Package,
		Filename:        filepath.Join(filepath.Dir(data.Config.Exec.Filename), "direct.generated.go"),
		Template:        directTemplate,
		Data:            ours,
		GeneratedHeader: true,
		Packages:        data.Config.Packages,
		PruneOptions:    data.Config.GetPruneOptions(),
	})
}

// isObject reports whether values are pointers to an object of the schema, or a list of those. A
// list that must not hold null stays with gqlgen, which looks for null in it.
func isObject(ref *config.TypeReference) bool {
	if ref.Definition.Kind != ast.Object || ref.Definition.BuiltIn || ref.IsRoot {
		return false
	}
	one := ref.GO
	if ref.IsSlice() {
		if ref.GQL.Elem.NonNull {
			return false
		}
		one = one.(*types.Slice).Elem()
	}
	pointer, ok := one.(*types.Pointer)
	if !ok {
		return false
	}
	_, ok = pointer.Elem().(*types.Named)
	return ok
}
