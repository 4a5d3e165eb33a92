package selections

// In graph/generated, the functions below are called before those that gqlgen generates: its plugin internal/generate puts them there. They
// write the fields that have a [fields.Value], and leave the rest to gqlgen: fields with resolvers, and values that failed to load
// (docs/inside/adr/0021-values-written-directly.md).

import (
	"cmp"
	"context"
	"io"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/fields"
)

// AnswerObject answers a selection on one object of a type of the schema, if necessary by slow. A missing object is an error if it must not
// be null.
func AnswerObject[T any](ctx context.Context, of string, nonNull bool, sel ast.SelectionSet, v *T, slow func(context.Context, ast.SelectionSet, *T) graphql.Marshaler) graphql.Marshaler {
	if v == nil {
		if nonNull && !graphql.HasFieldError(ctx, graphql.GetFieldContext(ctx)) {
			graphql.AddErrorf(ctx, "the requested element is null which the schema does not allow")
		}
		return graphql.Null
	}
	if p := templateOf(ctx, fields.Named(of), sel); p != nil && !p.fails(v) {
		return written{p, v}
	}
	return decided(ctx, of, sel, v, slow)
}

// decided answers by slow if the fields of the selection can be collected, and otherwise by an error.
func decided[T any](ctx context.Context, of string, sel ast.SelectionSet, v *T, slow func(context.Context, ast.SelectionSet, *T) graphql.Marshaler) graphql.Marshaler {
	if event, is := any(v).(interface {
		Enter(context.Context) context.Context // see [kith/graph/subscription.State]
	}); is && v != nil {
		ctx = event.Enter(ctx)
	}
	if t := fields.Named(of); v != nil {
		if _, err := Collect(graphql.GetOperationContext(ctx), sel, t.Is); err != nil {
			graphql.AddError(ctx, err)
			return graphql.Null
		}
		if m := mixedOf(ctx, t, sel); m != nil && !m.values.fails(v) {
			return m.answer(v, slow(ctx, m.slow, v))
		}
	}
	return slow(ctx, sel, v)
}

// AnswerSlice answers a selection on each element of a list, if necessary by slow. nil is an empty list if that must not be null.
func AnswerSlice[T any](ctx context.Context, of string, nonNull bool, sel ast.SelectionSet, list []*T, slow func(context.Context, ast.SelectionSet, *T) graphql.Marshaler) graphql.Marshaler {
	if list == nil && !nonNull {
		return graphql.Null
	}
	if objects, p := planned(ctx, of, sel, list); p != nil {
		return written{p, objects}
	}
	array := make(graphql.Array, len(list))
	for i := range list {
		if array[i] = answerElement(ctx, of, sel, list, i, slow); array[i] == nil {
			return graphql.Array(nil)
		}
	}
	return array
}

// answerElement answers one element of a list. It returns nil if that panics, which the errors say then.
func answerElement[T any](ctx context.Context, of string, sel ast.SelectionSet, list []*T, i int, slow func(context.Context, ast.SelectionSet, *T) graphql.Marshaler) (m graphql.Marshaler) {
	ctx = graphql.WithFieldContext(ctx, &graphql.FieldContext{Index: &i, Result: &list[i]})
	defer func() {
		if reason := recover(); reason != nil {
			graphql.AddError(ctx, graphql.Recover(ctx, reason))
			m = nil
		}
	}()
	return decided(ctx, of, sel, list[i], slow)
}

// planned is a list ready to be written; without a plan if slow has to write it.
func planned[T any](ctx context.Context, of string, sel ast.SelectionSet, list []*T) (elements, *template) {
	p := templateOf(ctx, fields.Named(of), sel)
	if p == nil {
		return nil, nil
	}
	objects := make(elements, len(list))
	for i, v := range list {
		if v == nil {
			continue
		}
		if p.fails(v) {
			return nil, nil
		}
		objects[i] = v
	}
	return objects, p
}

// elements are the objects of a list; null ones are nil.
type elements []any

type byGqlgenKey struct{}

// ByGqlgen has everything in a request answered by gqlgen, so that tests can compare.
func ByGqlgen(ctx context.Context) context.Context {
	return context.WithValue(ctx, byGqlgenKey{}, true)
}

func isByGqlgen(ctx context.Context) bool { return ctx.Value(byGqlgenKey{}) != nil }

// written is an answer that is written out when the response is.
type written struct {
	template *template
	v        any
}

// MarshalGQL implements [graphql.Marshaler].
func (a written) MarshalGQL(w io.Writer) {
	if text, ok := w.(*answer); ok {
		text.append(a.template, a.v)
		return
	}
	w.Write(a.template.append(nil, a.v, noLimit))
}

type limitKey struct{}

// A Limit is how many bytes an answer may have.
type Limit int

// With bounds the answers that are written under a context. Writing ends soon after the bound, so
// an answer that is longer is not complete.
func (l *Limit) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, limitKey{}, l)
}

const noLimit = math.MaxInt

// AnswerOnce answers an operation that has one answer, which data makes for an execution.
func AnswerOnce[E any](op *graphql.OperationContext, ec E, data func(E, context.Context, ast.SelectionSet) graphql.Marshaler) graphql.ResponseHandler {
	given := false
	return AnswerEach(func(ctx context.Context) graphql.Marshaler {
		if given {
			return nil
		}
		given = true
		return data(ec, ctx, op.Operation.SelectionSet)
	})
}

// AnswerEach answers an operation whose answers come one after another, until there are no more.
func AnswerEach(next func(context.Context) graphql.Marshaler) graphql.ResponseHandler {
	return func(ctx context.Context) *graphql.Response {
		data := next(ctx)
		if data == nil {
			return nil
		}
		return &graphql.Response{Data: textOf(ctx, data)}
	}
}

// textOf writes a whole answer into its own memory.
func textOf(ctx context.Context, of graphql.Marshaler) []byte {
	a := answers.Get().(*answer)
	a.bytes, a.most = a.bytes[:0], noLimit
	if most, ok := ctx.Value(limitKey{}).(*Limit); ok {
		a.most = int(*most)
	}
	of.MarshalGQL(a)
	if cap(a.bytes) > maxPooled { // it is not kept for other answers
		return a.bytes
	}
	text := slices.Clone(a.bytes)
	answers.Put(a)
	return text
}

// answer grows until it is complete, or longer than it may be: from then on it takes no more.
type answer struct {
	bytes []byte
	most  int
}

// Write implements [io.Writer].
func (a *answer) Write(text []byte) (int, error) {
	if len(a.bytes) <= a.most {
		a.bytes = append(a.bytes, text...)
	}
	return len(text), nil
}

// WriteString implements [io.StringWriter].
func (a *answer) WriteString(text string) (int, error) {
	if len(a.bytes) <= a.most {
		a.bytes = append(a.bytes, text...)
	}
	return len(text), nil
}

func (a *answer) append(p *template, v any) {
	if len(a.bytes) <= a.most {
		a.bytes = p.append(a.bytes, v, a.most)
	}
}

// answers are the memory in which answers grow. It is kept, unless it is too large.
var answers = sync.Pool{New: func() any { return new(answer) }}

const maxPooled = 64 << 10

// Roots are the fields of the type Query, by name: how an execution answers each.
type Roots[E any] map[string]func(ec E, ctx context.Context, field graphql.CollectedField) graphql.Marshaler

// AnswerQuery answers a query that asks for one field, as most do, without a set of fields. Everything else is answered by slow. Middleware of
// root fields is not called: Kith has it only for mutations.
func AnswerQuery[E any](ec E, ctx context.Context, sel ast.SelectionSet, roots Roots[E], slow func(E, context.Context, ast.SelectionSet) graphql.Marshaler) graphql.Marshaler {
	if len(sel) != 1 || !Simple(sel) || isByGqlgen(ctx) {
		return slow(ec, ctx, sel)
	}
	field := sel[0].(*ast.Field)
	root := roots[field.Name]
	if root == nil {
		return slow(ec, ctx, sel)
	}
	ctx = graphql.WithFieldContext(ctx, &graphql.FieldContext{Object: "Query"})
	answer := answerRoot(ctx, ec, root, graphql.CollectedField{Field: field, Selections: field.SelectionSet})
	if answer == graphql.RequiredNull || answer == graphql.Null && field.Definition.Type.NonNull {
		return graphql.Null // if a value must not be null, its parent becomes null
	}
	return single{field.Alias, answer}
}

func answerRoot[E any](ctx context.Context, ec E, root func(E, context.Context, graphql.CollectedField) graphql.Marshaler, field graphql.CollectedField) (answer graphql.Marshaler) {
	defer func() {
		if reason := recover(); reason != nil {
			op := graphql.GetOperationContext(ctx)
			op.Error(ctx, op.Recover(ctx, reason))
			answer = graphql.Null
		}
	}()
	return root(ec, ctx, field)
}

// single is an object of one field.
type single struct {
	key   string
	value graphql.Marshaler
}

// MarshalGQL implements [graphql.Marshaler].
func (s single) MarshalGQL(w io.Writer) {
	io.WriteString(w, `{"`)
	io.WriteString(w, s.key) // a name of GraphQL, with nothing to escape
	io.WriteString(w, `":`)
	s.value.MarshalGQL(w)
	io.WriteString(w, `}`)
}

// ReadList reads a list by reading each of its elements. gqlgen makes a context for each that has
// the element's place, which matters only to an error about it.
func ReadList[T any](ctx context.Context, v any, one func(context.Context, any) (T, error)) ([]T, error) {
	given := graphql.CoerceList(v)
	list := make([]T, len(given))
	for i, v := range given {
		var err error
		if list[i], err = one(ctx, v); err != nil {
			_, err = one(graphql.WithPathContext(ctx, graphql.NewPathWithIndex(i)), v)
			return nil, err
		}
	}
	return list, nil
}

// Schema completes a schema that was parsed: what all lists have alike is described here, once. And it takes @defer out, which the parser
// declares in every one: no transport here answers in parts.
func Schema(schema *ast.Schema) *ast.Schema {
	delete(schema.Directives, "defer")
	for _, d := range schema.Types {
		for _, f := range d.Fields {
			if strings.HasSuffix(d.Name, "Connection") || strings.HasSuffix(d.Name, "Edge") {
				f.Description = cmp.Or(f.Description, ofEveryList[f.Name])
			}
			for _, a := range f.Arguments {
				a.Description = cmp.Or(a.Description, ofEveryPage[a.Name])
			}
		}
	}
	return schema
}

var ofEveryList = map[string]string{
	"edges":    "The rows of the page, each with its cursor, and what the list knows about it.",
	"nodes":    "What the rows of the page lead to: `node` of each edge.",
	"pageInfo": "Where the page begins and ends, and whether the list goes on.",
	"complete": "False if the list is longer than one answer looks at; then the page may hold less than there is.",
	"cursor":   "The position in the list: `after` of the next page, where a page shall begin behind this row.",
	"node":     "What the row leads to.",
}

var ofEveryPage = map[string]string{
	"first":  "How many rows at most, from the beginning or behind `after`: 0 to 100, 20 unless given.",
	"after":  "The cursor behind which the page begins.",
	"last":   "How many rows at most, up to the end or before `before`: 0 to 100.",
	"before": "The cursor before which the page ends.",
}
