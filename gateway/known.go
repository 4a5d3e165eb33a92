package gateway

import (
	"context"
	"encoding/json"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"kith/graph/limits"
)

// operations makes the operation of each request as gqlgen's executor does. If the text has been
// executed before, it needs less work. It keeps only the text and the operation's name of a
// request: variables, headers and extensions are those of each request.
//
// Unusual cases, above all errors, are left to the executor: clients see the executor's errors.
type operations struct {
	exec       *executor.Executor
	documents  documents
	limit      *limits.Extension
	registered *registered
}

// known is an operation that has been executed before.
type known struct {
	document  *document
	text      string
	operation *ast.OperationDefinition
	variables []variable

	// Set by the executor in every operation.
	hidesSchema     bool
	recover         graphql.RecoverFunc
	aroundFields    graphql.FieldMiddleware
	aroundRootField graphql.RootFieldMiddleware
}

// create makes the operation of a request and returns its cost, or the reasons why
// there is none.
func (o operations) create(ctx context.Context, params *graphql.RawParams) (*graphql.OperationContext, *document, uint64, gqlerror.List) {
	if o.registered.resolve(params) == nil && params.Extensions[extensionPersisted] == nil {
		if d := o.documents.of(ctx, params.Query); d != nil && o.registered.answers(params.Query) {
			if k := d.operation(params.OperationName); k != nil {
				if variables, ok := coerced(k.variables, params.Variables); ok {
					_ = o.registered.check(ctx, params.Query, params.OperationName) // it is answered in any case
					return o.again(k, params, variables)
				}
			}
		}
	}
	name := params.OperationName
	op, errs := o.exec.CreateOperationContext(graphql.StartOperationTrace(ctx), params)
	if errs != nil {
		return op, nil, 0, errs
	}
	cost, _ := o.limit.Cost(op)
	d := o.documents.of(ctx, op.RawQuery)
	if d == nil || d.parsed != op.Doc {
		return op, nil, cost, nil // it is too long to be kept
	}
	if d.operation(name) == nil {
		d.keep(name, &known{
			document: d, text: op.RawQuery, operation: op.Operation, variables: variablesOf(op.Operation),
			hidesSchema: op.DisableIntrospection, recover: op.RecoverFunc,
			aroundFields: op.ResolverMiddleware, aroundRootField: op.RootResolverMiddleware,
		})
	}
	return op, d, cost, nil
}

// knows reports whether a query was parsed and validated before.
func (o operations) knows(ctx context.Context, query string) bool {
	return o.documents.of(ctx, query) != nil
}

// again makes an operation with checked variables. Its cost depends
// on them.
func (o operations) again(k *known, params *graphql.RawParams, variables map[string]any) (*graphql.OperationContext, *document, uint64, gqlerror.List) {
	op := &graphql.OperationContext{
		RawQuery:               k.text,
		OperationName:          params.OperationName,
		Variables:              variables,
		Extensions:             params.Extensions,
		Headers:                params.Headers,
		Doc:                    k.document.parsed,
		Operation:              k.operation,
		DisableIntrospection:   k.hidesSchema,
		RecoverFunc:            k.recover,
		ResolverMiddleware:     k.aroundFields,
		RootResolverMiddleware: k.aroundRootField,
		Stats:                  graphql.Stats{Read: params.ReadTime},
	}
	cost, err := o.limit.Cost(op)
	if err != nil {
		return op, nil, 0, gqlerror.List{gqlerror.Wrap(err)}
	}
	return op, k.document, cost, nil
}

// variable is the definition of a variable in an operation.
type variable struct {
	name       string
	kind       kind
	list       bool
	nonNull    bool // the variable itself
	hasDefault bool
}

// kind is how the value of a variable, or of the elements of its list, is checked.
type kind int

const (
	other kind = iota // by the executor
	texts             // ID and String
	integers
	booleans
)

var kinds = map[string]kind{"ID": texts, "String": texts, "Int": integers, "Boolean": booleans}

func variablesOf(op *ast.OperationDefinition) []variable {
	all := make([]variable, len(op.VariableDefinitions))
	for i, d := range op.VariableDefinitions {
		v := variable{name: d.Variable, nonNull: d.Type.NonNull, hasDefault: d.DefaultValue != nil}
		if named := d.Type; named.Elem != nil {
			v.list = true
			v.kind = kinds[named.Elem.NamedType] // "" in a list of lists
		} else {
			v.kind = kinds[named.NamedType]
		}
		all[i] = v
	}
	return all
}

// coerced does the same as [github.com/vektah/gqlparser/v2/validator.VariableValues] if all
// variables of an operation are given, none is superfluous, and each is of exactly the type in its
// definition. Otherwise ok is false. The map that it returns is the one that it was given.
func coerced(all []variable, given map[string]any) (map[string]any, bool) {
	if given == nil {
		given = map[string]any{}
	}
	present := 0
	for _, v := range all {
		value, ok := given[v.name]
		switch {
		case !ok && (v.nonNull || v.hasDefault):
			return nil, false
		case !ok:
			continue
		case v.list:
			if v.kind != texts || !allTexts(value) {
				return nil, false
			}
		case v.kind == texts:
			if _, ok := value.(string); !ok {
				return nil, false
			}
		case v.kind == booleans:
			if _, ok := value.(bool); !ok {
				return nil, false
			}
		case v.kind == integers:
			number, ok := value.(json.Number)
			if !ok {
				return nil, false
			}
			n, err := number.Int64()
			if err != nil {
				return nil, false
			}
			given[v.name] = n
		default:
			return nil, false
		}
		present++
	}
	return given, present == len(given)
}

// allTexts reports whether a value is a list of texts only.
func allTexts(value any) bool {
	list, ok := value.([]any)
	if !ok {
		return false
	}
	for _, one := range list {
		if _, ok := one.(string); !ok {
			return false
		}
	}
	return true
}
