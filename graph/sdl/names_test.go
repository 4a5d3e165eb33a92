package sdl

import (
	"testing"

	product "kith/graph/declared"
	"kith/graph/generated"
)

// The list of partFields has no names that the schema does not have, such as earlier ones.
func TestPartsNameFields(t *testing.T) {
	schema := generated.SchemaOf(&product.File{Attributes: product.Attributes{User: map[string]product.Attribute{"verified": {Type: "Boolean"}}}})
	for part, types := range partFields {
		for typeName, fields := range types {
			for _, field := range fields {
				if d := schema.Types[typeName]; d == nil || d.Fields.ForName(field) == nil && d.EnumValues.ForName(field) == nil {
					t.Errorf("%s: there is no %s.%s", part, typeName, field)
				}
			}
		}
	}
}
