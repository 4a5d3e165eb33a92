package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/gateway"
	"kith/graph/apierr"
	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

const testSchema = `
type Query {
	hello: String
	big: String
	add(n: Int): Int
	fail(name: String): String
	wait: String
	page(first: Int): [String]
}
type Mutation { touch: String }
type Subscription { tick: String }
`

// secret must never reach a client.
const secret = "root:hunter2@tcp(10.0.0.7)/kith"

// resolver answers one field of the test's schema.
type resolver func(ctx context.Context, args map[string]any) (any, error)

// newSchema is an executable schema, made by hand. As far as the gateway can see, it behaves like a
// generated schema: paths, errors, panics.
func newSchema(more map[string]resolver) graphql.ExecutableSchema {
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: testSchema})
	resolvers := map[string]resolver{
		"__typename": func(context.Context, map[string]any) (any, error) { return "Query", nil },
		"__type":     func(context.Context, map[string]any) (any, error) { return nil, nil },
		"__schema":   introspect,
		"hello":      func(context.Context, map[string]any) (any, error) { return "world <3", nil },
		"touch":      func(context.Context, map[string]any) (any, error) { return "touched", nil },
		"big":        func(context.Context, map[string]any) (any, error) { return strings.Repeat("kith ", 1000), nil },
		"add":        func(_ context.Context, args map[string]any) (any, error) { return args["n"], nil },
		"fail":       func(_ context.Context, args map[string]any) (any, error) { return nil, failure(args["name"]) },
		"wait": func(ctx context.Context, _ map[string]any) (any, error) {
			<-ctx.Done()
			return nil, fmt.Errorf("read users on shard 3: %w", ctx.Err())
		},
		"page": func(context.Context, map[string]any) (any, error) { return []string{"a"}, nil },
	}
	for name, r := range more {
		resolvers[name] = r
	}
	return &graphql.ExecutableSchemaMock{
		SchemaFunc: func() *ast.Schema { return schema },
		ExecFunc: func(ctx context.Context) graphql.ResponseHandler {
			if graphql.GetOperationContext(ctx).Operation.Operation == ast.Subscription {
				return executeStream(ctx, resolvers)
			}
			return func(ctx context.Context) *graphql.Response { return execute(ctx, resolvers) }
		},
	}
}

func introspect(ctx context.Context, _ map[string]any) (any, error) {
	if graphql.GetOperationContext(ctx).DisableIntrospection {
		return nil, errors.New("introspection disabled")
	}
	return map[string]any{"queryType": map[string]any{"name": "Query"}}, nil
}

func failure(how any) error {
	switch how {
	case "input":
		return fmt.Errorf("users 1: %w", apierr.IDMalformed.Error("ids are positive"))
	case "notfound":
		return apierr.UserNotFound.Error("there is no such user")
	case "rate":
		return apierr.TooManyWrites.Error("too many follows for now")
	case "shard":
		return fmt.Errorf("read users on shard 3 of %s: %w", secret, storage.ErrUnavailable)
	case "panic":
		panic("nil map in " + secret)
	}
	return errors.New("Error 1064: syntax error near SELECT password_hash at " + secret)
}

func execute(ctx context.Context, resolvers map[string]resolver) *graphql.Response {
	op := graphql.GetOperationContext(ctx)
	var data bytes.Buffer
	data.WriteByte('{')
	for i, field := range graphql.CollectFields(op, op.Operation.SelectionSet, nil) {
		if i > 0 {
			data.WriteByte(',')
		}
		fc := &graphql.FieldContext{Object: "Query", Field: field}
		value := resolve(graphql.WithFieldContext(ctx, fc), op, field, resolvers[field.Name])
		text, err := json.Marshal(value)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&data, "%q:%s", field.Alias, text)
	}
	data.WriteByte('}')
	return &graphql.Response{Data: data.Bytes()}
}

// executeStream executes a subscription of one field. Its resolver returns a channel of texts, or
// nil, which stands for a closed channel.
func executeStream(ctx context.Context, resolvers map[string]resolver) graphql.ResponseHandler {
	op := graphql.GetOperationContext(ctx)
	field := graphql.CollectFields(op, op.Operation.SelectionSet, nil)[0]
	made, err := resolvers[field.Name](ctx, nil)
	if err != nil {
		op.Error(ctx, err)
		return func(context.Context) *graphql.Response { return nil }
	}
	ticks, _ := made.(chan string)
	if ticks == nil {
		return func(context.Context) *graphql.Response { return nil }
	}
	return func(ctx context.Context) *graphql.Response {
		select {
		case text, open := <-ticks:
			if !open {
				return nil
			}
			data, err := json.Marshal(map[string]string{field.Alias: text})
			if err != nil {
				panic(err)
			}
			return &graphql.Response{Data: data}
		case <-ctx.Done():
			return nil
		}
	}
}

func resolve(ctx context.Context, op *graphql.OperationContext, field graphql.CollectedField, r resolver) (value any) {
	defer func() {
		if reason := recover(); reason != nil {
			op.Error(ctx, op.Recover(ctx, reason))
			value = nil
		}
	}()
	args := field.ArgumentMap(op.Variables)
	for name, raw := range args {
		if field.Definition.Arguments.ForName(name).Type.Name() != "Int" {
			continue
		}
		n, err := graphql.ProcessArgField(ctx, args, name, func(ctx context.Context, v any) (int32, error) {
			n, err := graphql.UnmarshalInt32(v)
			return n, graphql.ErrorOnPath(ctx, err)
		})
		if err != nil {
			op.Error(ctx, err)
			return nil
		}
		if raw != nil {
			args[name] = n
		}
	}
	value, err := r(ctx, args)
	if err != nil {
		op.Error(ctx, graphql.AddFieldLocationToError(ctx, err))
		return nil
	}
	return value
}

// The schema is a file for code generators. It is transferred again only if it has changed.
func TestTheSchemaIsAFile(t *testing.T) {
	s := serve(t, gateway.Config{})
	got := s.operators("/schema.graphql")
	_, err := gqlparser.LoadSchema(&ast.Source{Input: got.text})
	must.That(t, err == nil && got.status == 200 && strings.Contains(got.text, "type Query"), "%d %v %s", got.status, err, got.text)
	check.Equal(t, "the type", got.header.Get("Content-Type"), "application/graphql; charset=utf-8")
	check.Equal(t, "asked again", s.operators("/schema.graphql", "If-None-Match", got.header.Get("ETag")).status, http.StatusNotModified)
	check.Equal(t, "a hidden schema", serve(t, gateway.Config{HideSchema: true}).operators("/schema.graphql").status, http.StatusNotFound)
}
