package resolvers

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/99designs/gqlgen/graphql"

	"kith/accounts"
	"kith/graph/apierr"
	"kith/graph/declared"
	"kith/graph/model"
	"kith/storage"
)

const maxDateTime = 40 // bytes of a DateTime with an offset, and more digits than are kept

// attributeChange is new values as stores keep them. Their names and types have been validated.
func attributeChange(list map[string]declared.Attribute, given map[string]any) (storage.AttributeChange, error) {
	if given == nil {
		return nil, nil
	}
	change := make(storage.AttributeChange, len(given))
	var refused []error
	for _, name := range slices.Sorted(maps.Keys(given)) {
		text, err := attribute(name, list[name], given[name])
		change[name], refused = text, append(refused, err)
	}
	return change, apierr.All(refused...)
}

func attribute(name string, a declared.Attribute, value any) (json.RawMessage, error) {
	switch v := value.(type) {
	case int64:
		if a.Type == "Int" && v != int64(int32(v)) {
			return nil, apierr.OutOfRange.Error("%s is a number of 32 bits", name).In(name)
		}
	case string:
		if a.Type == "DateTime" {
			at, err := model.UnmarshalDateTime(value)
			if err != nil || len(v) > maxDateTime {
				return nil, apierr.InvalidValue.Error("%s is not a DateTime (RFC 3339)", name).In(name)
			}
			return model.AppendDateTime(nil, at), nil
		}
		checked, err := accounts.CheckText(name, v, 0, a.MaxLength)
		if err != nil {
			return nil, err
		}
		value = checked
	}
	text, err := storage.CompactJSON(value)
	if err != nil || a.Type == "DateTime" && value != nil {
		return nil, apierr.InvalidValue.Error("%s has no value of type %s", name, a.Type).In(name)
	}
	return json.RawMessage(text), nil
}

var (
	ofAttributes    = refusals{{storage.ErrAttributesTooLong, apierr.TooLong.Error("the attributes take more than %d bytes", storage.MaxAttributes).In("attributes")}}
	attributesError = ofAttributes.tell
)

// orRemoved is an argument of the running mutation: null removes an attribute that can be removed. One that is left out
// stays as it is.
func orRemoved[T any](ctx context.Context, name string, value *T) *T {
	if value == nil && isGiven(ctx, name) {
		return new(T)
	}
	return value
}

// checked is a text as it is stored, if it is given.
func checked(check func(what, text string, least, most int) (string, error), what string, text *string, least, most int) (*string, error) {
	if text == nil {
		return nil, nil
	}
	stored, err := check(what, *text, least, most)
	return &stored, err
}

// isGiven reports whether an argument of the running mutation is not left out: it may be null.
func isGiven(ctx context.Context, name string) bool {
	_, given := graphql.GetFieldContext(ctx).Field.ArgumentMap(graphql.GetOperationContext(ctx).Variables)[name]
	return given
}
