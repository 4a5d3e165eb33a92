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

// CheckAttributes refuses the running field if it is attributes whose fields cannot be collected. When they are written, it is too late for
// null in the place of what has them.
func CheckAttributes(ctx context.Context) error {
	field := graphql.GetFieldContext(ctx).Field
	name := field.Definition.Type.Name()
	if len(field.Selections) == 0 || !fields.IsAttributes(name) {
		return nil
	}
	_, err := Collect(graphql.GetOperationContext(ctx), field.Selections, fields.Named(name).Is)
	return err
}

// UnmarshalAttributes is required by gqlgen of every scalar: no argument has the type.
func UnmarshalAttributes(context.Context, any) (storage.Attributes, error) {
	return "", errors.New("attributes are given by name")
}
