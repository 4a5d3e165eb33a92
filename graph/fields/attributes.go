package fields

import (
	"encoding/json"
	"strconv"

	"kith/graph/model"
	"kith/storage"
)

// The types of attributes have the fields that a product declares. Their objects are values by name, as JSON.
var (
	userAttributes   = Type{Name: "UserAttributes", declared: true}
	followAttributes = Type{Name: "FollowAttributes", declared: true}
	postAttributes   = Type{Name: "PostAttributes", declared: true}
	edgeAttributes   = Type{Name: "EdgeAttributes", declared: true}
)

// declared is the attribute of a name and a type. A value that was stored when the attribute had
// another type is null.
func declared(name, typeName string) *Value {
	return &Value{Append: func(to []byte, v any) []byte {
		if value := v.(map[string]json.RawMessage)[name]; isOf(typeName, value) {
			return append(to, value...)
		}
		return append(to, "null"...)
	}}
}

func isOf(typeName string, value json.RawMessage) bool {
	var v any
	if json.Unmarshal(value, &v) != nil {
		return false
	}
	switch v := v.(type) {
	case bool:
		return typeName == "Boolean"
	case float64:
		_, err := strconv.ParseInt(string(value), 10, 32)
		return typeName == "Float" || typeName == "Int" && err == nil
	case string:
		_, err := model.UnmarshalDateTime(v)
		return typeName == "String" || typeName == "DateTime" && err == nil
	}
	return false
}

// attributes is a field that is the attributes of an object, or null. Damaged ones have no values.
func attributes[T any](get func(*T) *storage.Attributes) *Value {
	return &Value{Object: func(v any) any {
		if a := get(v.(*T)); a != nil {
			values, _ := a.Values()
			return values
		}
		return nil
	}}
}

// attributesOrFail are attributes that may not have been read.
func attributesOrFail[T any](get func(*T) (*storage.Attributes, error)) *Value {
	v := attributes(func(of *T) *storage.Attributes { a, _ := get(of); return a })
	v.Fails = failing(get)
	return v
}
