package selections

import (
	"context"
	"errors"
	"io"

	"github.com/99designs/gqlgen/graphql"

	"kith/graph/fields"
	"kith/storage"
)

// MarshalAttributes writes what the running field selects of attributes, which are a scalar to gqlgen and a type to clients.
func MarshalAttributes(a storage.Attributes) graphql.ContextMarshaler {
	return graphql.ContextWriterFunc(func(ctx context.Context, w io.Writer) error {
		field := graphql.GetFieldContext(ctx).Field
		p := compile(graphql.GetOperationContext(ctx), fields.Named(field.Definition.Type.Name()), field.Selections)
		values, err := a.Values()
		if p == nil || err != nil {
			return errors.Join(err, errors.New("attributes cannot be written"))
		}
		_, err = w.Write(p.append(nil, values, noLimit))
		return err
	})
}

// UnmarshalAttributes is required by gqlgen of every scalar: no argument has the type.
func UnmarshalAttributes(context.Context, any) (storage.Attributes, error) {
	return "", errors.New("attributes are given by name")
}
