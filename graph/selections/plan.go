// Package selections reads what an operation says: its variables and arguments, coerced by the GraphQL specification, and its
// selections, compiled into a [Plan]. It remembers results computed from selections, so that the work is done once for a repeated query.
// It also answers selections on objects and lists straight to JSON if all selected values are in memory, see answer.go.
//
// A [Memo] belongs to one document and lives as long as the gateway keeps that document. Values put
// into it must follow from the document alone: not from variables, which is why selections with
// fragments or directives are left out, and not from the viewer.
package selections

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/apierr"
	"kith/graph/fields"
	"kith/storage"
)

// Memo is the results for one document. The zero value is ready; it may be used by
// many requests at once. A nil Memo remembers nothing.
type Memo struct {
	mu   sync.Mutex
	made atomic.Pointer[[]memoized] // replaced as a whole: every request reads it, the first few write it

	walk       sync.Once // over the document, not again for each of its selections
	directives bool
}

// most is how many values one document may have. They are searched one by one; selections beyond
// that are computed again each time.
const most = 24

// memoized is one value, and what it is for.
type memoized struct {
	of    any // what the value is for: a key that the maker chooses
	sel   ast.SelectionSet
	value any
}

type contextKey struct{}

// With returns a context whose document has the memo.
func With(ctx context.Context, m *Memo) context.Context {
	return context.WithValue(ctx, contextKey{}, m)
}

// For is the memo of the document that is being executed; nil if it has none.
func For(ctx context.Context) *Memo {
	m, _ := ctx.Value(contextKey{}).(*Memo)
	return m
}

// Get returns the value for a selection that was put under the same key.
func (m *Memo) Get(of any, sel ast.SelectionSet) (value any, ok bool) {
	if m == nil {
		return nil, false
	}
	made := m.made.Load()
	if made == nil {
		return nil, false
	}
	for i := range *made {
		if e := &(*made)[i]; e.of == of && slices.Equal(e.sel, sel) {
			return e.value, true
		}
	}
	return nil, false
}

// Put keeps a value for a selection, unless the memo is full. The value is shared
// from then on, and must not be changed. It returns the one that is kept, which may have been put before; nil if there is none.
func (m *Memo) Put(of any, sel ast.SelectionSet, value any) (kept any) {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if before, ok := m.Get(of, sel); ok {
		return before
	}
	var made []memoized
	if old := m.made.Load(); old != nil {
		made = *old
	}
	if len(made) == most {
		return nil
	}
	made = append(slices.Clip(made), memoized{of, slices.Clone(sel), value})
	m.made.Store(&made)
	return value
}

// mostSimple is how many fields are compared with one another to find duplicates.
const mostSimple = 32

// Simple reports whether a selection consists of plain fields only, none of which can be
// left out, added or merged. Long selections count as not simple. The selections below the fields
// may be of any kind.
func Simple(sel ast.SelectionSet) bool {
	if len(sel) > mostSimple {
		return false
	}
	for i, s := range sel {
		f, ok := s.(*ast.Field)
		if !ok || len(f.Directives) > 0 {
			return false
		}
		for _, before := range sel[:i] {
			if before.(*ast.Field).Alias == f.Alias {
				return false
			}
		}
	}
	return true
}

// Read is how a field is read before its resolver runs: see kith/resolvers.
type Read interface {
	// Parse reads the arguments of a field.
	Parse(ctx context.Context, f *Field) any
}

// Reads are the fields that are read ahead, by their types and names.
type Reads map[string]map[string]Read

// Plan is the selections of an operation, with the [fields] entry of each field: the tree of its
// answer, without the leaves for which nothing is read ahead. It is shared by all requests for the
// document, and must not be changed.
type Plan struct {
	Root *Object
	// Asked are the fields that have arguments to read ahead by, each at its Index.
	Asked []*Field

	reads Reads
	size  int               // fields, with those that have no [Field]
	same  map[string]*Field // while the plan is made: the first field with a name and arguments, see [Field.Same]
}

// Object is the selection on objects of one type.
type Object struct {
	Type   string
	Fields []*Field
	Items  []*Object // of a page: the selection on its users
	Err    error     // of [Collect]: there are no fields, and no such object is answered

	always, signedIn fields.Needs
}

// Field is a selected field with a selection, or for which something is read ahead. Fields that a response
// merges are one field, however often the document has them.
type Field struct {
	Name, Alias string
	Part        fields.Part
	Read        Read // nil: it is not read ahead

	Below []*Object // one for each type that there may be
	Index int       // in [Plan.Asked]; negative: it is not in it

	Same  *Field   // the first field of the plan with its name and arguments: aliases of one field have one
	Twins []*Field // of the first one: all that have it as Same

	first *ast.Field // in the document
}

// Needs is what the selected fields need, with or without a viewer.
func (o *Object) Needs(signedIn bool) fields.Needs {
	if signedIn {
		return o.always | o.signedIn
	}
	return o.always
}

// Named is all fields with a name, each under a different alias.
func (o *Object) Named(name string) []*Field {
	return storage.Filter(o.Fields, func(f *Field) bool { return f.Name == name })
}

// On is the selections on the objects of a type.
func (f *Field) On(typeName string) *Object {
	for _, o := range f.Below {
		if o.Type == typeName {
			return o
		}
	}
	return &Object{Type: typeName}
}

// Argument is the value of an argument, coerced; nil if it is null, or if there is none.
func (f *Field) Argument(ctx context.Context, name string) any {
	return Argument(f.first, name, graphql.GetOperationContext(ctx).Variables)
}

// Has reports whether the document gives an argument, even null.
func (f *Field) Has(argument string) bool { return f.first.Arguments.ForName(argument) != nil }

// At is the field of a plan that is being resolved.
func (p *Plan) At(running *graphql.FieldContext) *Field {
	on := p.Root
	for parent := running.Parent; parent != nil; parent = parent.Parent {
		if parent.Field.Field != nil { // it is not an element of a list
			on = p.At(parent).On(running.Object)
			break
		}
	}
	for _, f := range on.Fields {
		if f.first == running.Field.Field {
			return f
		}
	}
	panic("the plan lacks the field " + running.Field.Alias)
}

// On are the selections on what is at a path of the answer.
func (p *Plan) On(path ast.Path) []*Object {
	on := []*Object{p.Root}
	for _, step := range path {
		name, isName := step.(ast.PathName)
		if !isName { // an element of a list has the selections of the list
			continue
		}
		var below []*Object
		for _, o := range on {
			for _, f := range o.Fields {
				if f.Alias == string(name) {
					below = append(below, f.Below...)
				}
			}
		}
		on = below
	}
	return on
}

// planKey is for the plan of a query, or of the root field of a mutation or a subscription.
type planKey struct{ root *ast.Field }

// mostKept is the number of fields up to which a plan is kept with its document.
const mostKept = 500

// Of is the plan of the query that is being executed. For a mutation or subscription it has
// only the running field: each has a request of its own.
func Of(ctx context.Context, reads Reads) *Plan {
	op := graphql.GetOperationContext(ctx)
	key, sel := planKey{}, op.Operation.SelectionSet
	running := graphql.GetFieldContext(ctx)
	if op.Operation.Operation != ast.Query {
		for running.Parent != nil && running.Parent.Field.Field != nil {
			running = running.Parent
		}
		key.root, sel = running.Field.Field, running.Field.Selections // another operation may merge the field of a fragment with others
	}
	memo := For(ctx)
	if known, ok := memo.Get(key, sel); ok {
		return known.(*Plan)
	}
	p := &Plan{reads: reads}
	if op.Operation.Operation == ast.Query {
		p.Root = p.object(op, "Query", sel)
	} else {
		p.Root = &Object{Type: running.Object}
		p.add(op, p.Root, running.Field)
	}
	p.same, p.reads = nil, nil
	if p.size <= mostKept && !memo.varies(op.Doc) {
		memo.Put(key, sel, p)
	}
	return p
}

// hasOneKey reports whether all fields of a selection have the same response key, and none is under a condition.
func hasOneKey(sel ast.SelectionSet, key *string) bool {
	return !slices.ContainsFunc(sel, func(s ast.Selection) bool {
		directives, below := Parts(s)
		isSame := true
		switch s := s.(type) {
		case *ast.Field:
			isSame = *key == "" || *key == s.Alias
			*key = s.Alias
		case *ast.InlineFragment:
			isSame = hasOneKey(below, key)
		case *ast.FragmentSpread:
			isSame = hasOneKey(s.Definition.SelectionSet, key)
		}
		return !isSame || directives.ForName("skip") != nil || directives.ForName("include") != nil
	})
}

// varies reports whether the selections of the document depend on variables. Without a memo, they may.
func (m *Memo) varies(doc *ast.QueryDocument) bool {
	if m == nil {
		return true
	}
	m.walk.Do(func() {
		in := func(sel ast.SelectionSet) bool { return slices.ContainsFunc(sel, hasDirectives) }
		m.directives = slices.ContainsFunc(doc.Operations, func(o *ast.OperationDefinition) bool { return in(o.SelectionSet) }) ||
			slices.ContainsFunc(doc.Fragments, func(f *ast.FragmentDefinition) bool { return in(f.SelectionSet) })
	})
	return m.directives
}

func hasDirectives(s ast.Selection) bool {
	directives, below := Parts(s)
	return len(directives) > 0 || slices.ContainsFunc(below, hasDirectives)
}

// Parts is the directives of a selection, and what is selected below it; of a spread, nothing.
func Parts(s ast.Selection) (ast.DirectiveList, ast.SelectionSet) {
	switch s := s.(type) {
	case *ast.Field:
		return s.Directives, s.SelectionSet
	case *ast.InlineFragment:
		return s.Directives, s.SelectionSet
	case *ast.FragmentSpread:
		return s.Directives, nil
	}
	return nil, nil
}

func (p *Plan) object(op *graphql.OperationContext, typeName string, sel ast.SelectionSet) *Object {
	all, err := Collect(op, sel, fields.Named(typeName).Is)
	o := &Object{Type: typeName, Err: err}
	for _, f := range all {
		p.add(op, o, f)
	}
	return o
}

// add adds a field to the selection on an object.
func (p *Plan) add(op *graphql.OperationContext, o *Object, f graphql.CollectedField) {
	p.size++
	entry := fields.Of(o.Type, f.Name)
	if entry == nil { // of introspection
		return
	}
	to := &o.always
	if entry.Needs&fields.SignedIn != 0 {
		to = &o.signedIn
	}
	*to |= entry.Needs &^ fields.SignedIn
	read := p.reads[o.Type][f.Name]
	if read == nil && len(f.Selections) == 0 {
		return
	}
	field := &Field{Name: f.Name, Alias: f.Alias, Part: entry.Part, Read: read, Index: -1, first: f.Field}
	if read != nil && len(f.Definition.Arguments) > 0 {
		field.Index = len(p.Asked)
		p.Asked = append(p.Asked, field)
	}
	o.Fields = append(o.Fields, field)
	p.pair(field, o.Type)
	if len(f.Selections) == 0 {
		return
	}
	for _, typeName := range fields.Named(f.Definition.Type.Name()).Possible {
		below := p.object(op, typeName, f.Selections)
		field.Below = append(field.Below, below)
		*to |= below.Needs(true) & fields.Inverse
		switch entry.Part {
		case fields.Item:
			o.Items = append(o.Items, below)
		case fields.Edges:
			o.Items = append(o.Items, below.Items...)
			*to |= below.always & (fields.Cursors | fields.Details)
		}
	}
}

// pair finds the first field of the plan with the name and the arguments of a field.
func (p *Plan) pair(f *Field, typeName string) {
	name := typeName + "." + f.Name
	for _, takes := range f.first.Definition.Arguments {
		if given := f.first.Arguments.ForName(takes.Name); given != nil {
			name += " " + takes.Name + ":" + given.Value.String()
		}
	}
	if p.same[name] == nil {
		if p.same == nil {
			p.same = map[string]*Field{}
		}
		p.same[name] = f
	}
	f.Same = p.same[name]
	f.Same.Twins = append(f.Same.Twins, f)
}

// Collect is [graphql.CollectFields]. It fails if @skip or @include takes a variable that is null, which is valid if the variable
// has a default; gqlgen panics then.
func Collect(op *graphql.OperationContext, sel ast.SelectionSet, types []string) (all []graphql.CollectedField, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			if err = NullDirective(reason); err == nil {
				panic(reason)
			}
		}
	}()
	return graphql.CollectFields(op, sel, types), nil
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

// NullDirective is the error that a panic of gqlgen about a directive stands for; nil if it is another panic.
func NullDirective(reason any) error {
	for _, name := range []string{"skip", "include"} {
		if reason == fmt.Sprintf("%s: argument 'if' is not a boolean", name) {
			return apierr.InvalidValue.Error("argument %q of @%s: a variable is null, and Boolean! takes no null", "if", name)
		}
	}
	return nil
}

// CheckRoot refuses an operation whose root fields cannot be collected, and a subscription that has not one root field,
// whatever its variables are (section 5.2.4.1).
func CheckRoot(op *graphql.OperationContext) error {
	if op.Operation.Operation == ast.Subscription && !hasOneKey(op.Operation.SelectionSet, new(string)) {
		return apierr.InvalidQuery.Error("a subscription has one field, under one name, without @skip and @include")
	}
	for _, value := range op.Variables {
		if value == nil {
			_, err := Collect(op, op.Operation.SelectionSet, nil)
			return err
		}
	}
	return nil
}
