package main

import "github.com/99designs/gqlgen/codegen"

// federation makes `_entities` and `_service` fields with resolvers like all others. gqlgen takes these
// two names for its own plugin, which would call a resolver for each entity or for each type, without
// the plan of the whole query.
type federation struct{}

// Name implements [plugin.Plugin].
func (federation) Name() string { return "federation of kith" }

// GenerateCode implements [plugin.CodeGenerator].
func (federation) GenerateCode(data *codegen.Data) error {
	for _, f := range data.QueryRoot.Fields {
		name, ours := map[string]string{"_entities": "Entities", "_service": "Service"}[f.Name]
		if ours {
			f.IsResolver, f.GoFieldName, f.GoReceiverName, f.GoFieldType = true, name, "obj", codegen.GoFieldVariable
			f.NoErr, f.MethodHasContext = false, false
		}
	}
	return nil
}
