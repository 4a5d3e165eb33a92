package gateway

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"

	"kith/graph/apierr"
	"kith/graph/inputs"
	"kith/graph/limits"
	"kith/graph/selections"
)

// operations makes the operation of each request, in place of gqlgen's executor, which takes a text for a number among the
// variables, and refuses 2.0 as an Int.
type operations struct {
	documents  documents
	limit      *limits.Extension
	registered *registered

	schema          graphql.ExecutableSchema
	hidesSchema     bool
	recover         graphql.RecoverFunc
	aroundRootField graphql.RootFieldMiddleware
}

// create makes the operation of a request and returns its cost, or the reasons why there is none. The document is nil if it is too
// long to be kept.
func (o operations) create(ctx context.Context, params *graphql.RawParams) (*graphql.OperationContext, *document, uint64, gqlerror.List) {
	op := &graphql.OperationContext{
		DisableIntrospection: o.hidesSchema, RecoverFunc: o.recover,
		ResolverMiddleware: refuseNulls, RootResolverMiddleware: o.aroundRootField,
		Stats: graphql.Stats{Read: params.ReadTime},
	}
	ctx = graphql.WithOperationContext(ctx, op)
	for _, fill := range []func(context.Context, *graphql.RawParams) *gqlerror.Error{
		o.registered.MutateOperationParameters, o.limit.MutateOperationParameters,
	} {
		if err := fill(ctx, params); err != nil {
			return op, nil, 0, gqlerror.List{err}
		}
	}
	op.RawQuery, op.OperationName, op.Extensions, op.Headers = params.Query, params.OperationName, params.Extensions, params.Headers
	known := o.documents.of(ctx, op.RawQuery)
	if known == nil {
		var errs gqlerror.List
		if op.Doc, errs = o.parse(op.RawQuery); errs != nil {
			return op, nil, 0, errs
		}
		op.Stats.Validation.End = graphql.Now()
		o.documents.Add(ctx, op.RawQuery, op.Doc)
		known = o.documents.of(ctx, op.RawQuery)
	}
	if known != nil {
		op.Doc = known.parsed
	}
	cost, err := o.choose(op, params.Variables)
	if err != nil {
		return op, nil, 0, gqlerror.List{gqlerror.Wrap(err)}
	}
	return op, known, cost, nil
}

// parse parses and validates a text.
func (o operations) parse(text string) (*ast.QueryDocument, gqlerror.List) {
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, o.limit.Tokens())
	if err != nil {
		return nil, gqlerror.List{gqlerror.WrapIfUnwrapped(err)}
	}
	errs := gqlerror.List{gqlerror.Wrap(apierr.BadInput("no operation provided"))}
	if len(doc.Operations) > 0 {
		errs = validator.ValidateWithRules(o.schema.Schema(), doc, quietRules())
	}
	for _, err := range errs {
		errcode.Set(err, errcode.ValidationFailed)
	}
	if errs == nil {
		if err := inputs.Settle(doc); err != nil {
			errs = gqlerror.List{err}
		}
	}
	return doc, errs
}

// choose finds the operation in its document, its variables and its cost.
func (o operations) choose(op *graphql.OperationContext, given map[string]any) (cost uint64, err error) {
	if op.Operation = op.Doc.Operations.ForName(op.OperationName); op.Operation == nil {
		return 0, apierr.BadInput("operation %s not found", op.OperationName)
	}
	if op.Variables, err = inputs.Variables(o.schema.Schema(), op.Operation, given); err != nil {
		return 0, err
	}
	if err := selections.CheckRoot(op); err != nil {
		return 0, err
	}
	return o.limit.Cost(op)
}

// knows reports whether a query was parsed and validated before.
func (o operations) knows(ctx context.Context, query string) bool {
	return o.documents.of(ctx, query) != nil
}

// refuseNulls refuses a field some of whose arguments are null and must not be.
func refuseNulls(ctx context.Context, next graphql.Resolver) (any, error) {
	if f := graphql.GetFieldContext(ctx); len(f.Args) > 0 {
		if err := inputs.CheckNulls(f.Field.Field, graphql.GetOperationContext(ctx).Variables); err != nil {
			return nil, err
		}
	}
	return next(ctx)
}
