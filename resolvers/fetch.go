package resolvers

import (
	"context"
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"kith/accounts/identity"
	"kith/graph/fields"
	"kith/graph/selections"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// A field that is read ahead is a value, in the file of its topic: how its arguments are parsed, what it asks for with the level
// that its objects are on, and how what was read is shown. Fields with resolvers of their own are shown by these. The table of all is
// in reads.go.

// asks is a field of objects that are known by an O each: it adds what it needs to a level.
type asks[O any] interface {
	ask(ctx context.Context, b *batch, f *selections.Field, of []O)
}

// field is a field with the arguments A, of objects that are known by an O. It is made by a function that takes both of how it is parsed
// and asked. Nothing is asked for wrong arguments: the field's resolver refuses them.
type field[O, A any] struct {
	parse func(ctx context.Context, f *selections.Field) (A, error)
	need  func(ctx context.Context, b *batch, f *selections.Field, args A, of []O)
}

func fieldOf[O, A any](
	parse func(ctx context.Context, f *selections.Field) (A, error), ask func(ctx context.Context, b *batch, f *selections.Field, args A, of []O),
) *field[O, A] {
	return &field[O, A]{parse, ask}
}

// Parse implements [selections.Read].
func (d *field[O, A]) Parse(ctx context.Context, f *selections.Field) any {
	return parsedAs(d.parse(ctx, f))
}

func (d *field[O, A]) ask(ctx context.Context, b *batch, f *selections.Field, of []O) {
	if args, err := argument[A](b.request, f); err == nil {
		d.need(ctx, b, f, args, of)
	}
}

// planned is the running field as the request's plan has it.
func planned(ctx context.Context) *selections.Field {
	return stateOf(ctx).planOf(ctx).At(graphql.GetFieldContext(ctx))
}

// planOf is the plan of the request. The first call parses its arguments.
func (r *requestState) planOf(ctx context.Context) *selections.Plan {
	r.once.Do(func() {
		r.plan = selections.Of(ctx, operationOf(ctx).reads)
		r.arguments = make([]any, len(r.plan.Asked))
		for i, f := range r.plan.Asked {
			r.arguments[i] = f.Read.Parse(ctx, f)
		}
	})
	return r.plan
}

// parsed is the arguments of a field, or the error in them.
type parsed[T any] struct {
	value T
	err   error
}

func parsedAs[T any](value T, err error) any { return &parsed[T]{value, err} }

func (p *parsed[T]) failed() error { return p.err }

// argument is the arguments of a planned field, as they have been parsed; zero if it has none. An error in them is
// reported when the field is resolved.
func argument[T any](r *requestState, f *selections.Field) (value T, err error) {
	if f.Index < 0 {
		return value, nil
	}
	p := r.arguments[f.Index].(*parsed[T])
	return p.value, p.err
}

// none are the arguments of a field that has none.
type none struct{}

func noArguments(context.Context, *selections.Field) (none, error) { return none{}, nil }

// inset is a field without arguments that is put into the objects it belongs to, which are an M each. at are the paths of the field.
type inset[O, M any] struct {
	need func(ctx context.Context, b *batch, f *selections.Field, of []O)
	show func(ctx context.Context, made []*M, aliases []*selections.Field, at paths)
}

func insetOf[O, M any](
	ask func(ctx context.Context, b *batch, f *selections.Field, of []O), show func(ctx context.Context, made []*M, aliases []*selections.Field, at paths),
) *inset[O, M] {
	return &inset[O, M]{ask, show}
}

// Parse implements [selections.Read].
func (*inset[O, M]) Parse(context.Context, *selections.Field) any { return parsedAs(none{}, nil) }

func (d *inset[O, M]) ask(ctx context.Context, b *batch, f *selections.Field, of []O) {
	d.need(ctx, b, f, of)
}

func (d *inset[O, M]) put(ctx context.Context, made []*M, aliases []*selections.Field, at paths) {
	d.show(ctx, made, aliases, at)
}

// showParts puts into objects, which are at some paths, what is selected of them.
func showParts[M any](ctx context.Context, made []*M, on []*selections.Object, at paths) {
	all := fieldsOn(on)
	for i, f := range all {
		field, is := f.Read.(interface {
			put(ctx context.Context, made []*M, aliases []*selections.Field, at paths)
		})
		isSame := func(other *selections.Field) bool { return other.Read == f.Read }
		if !is || slices.ContainsFunc(all[:i], isSame) {
			continue
		}
		var aliases []*selections.Field
		for _, other := range all[i:] {
			if isSame(other) {
				aliases = append(aliases, other)
			}
		}
		field.put(ctx, made, aliases, at.below(aliases))
	}
}

// wanted is objects on one level of a query, with the selections on them.
type wanted interface {
	// add adds what they need to the level.
	add(ctx context.Context, b *batch)
}

// wantedRows are objects whose rows are known.
type wantedRows[R any] struct {
	rows []R
	on   []*selections.Object
}

func (w wantedRows[R]) add(ctx context.Context, b *batch) {
	if len(w.rows) == 0 {
		return
	}
	for _, f := range fieldsOn(w.on) {
		if a, is := f.Read.(asks[R]); is {
			a.ask(ctx, b, f, w.rows)
		}
	}
}

// wantedUsers are users.
type wantedUsers struct {
	ids   []storage.UserID
	exist bool // read their rows even when no field of them is selected
	on    []*selections.Object
}

func (w wantedUsers) add(ctx context.Context, b *batch) {
	if len(w.ids) == 0 {
		return
	}
	needs := needsOf(ctx, w.on)
	if needs&fields.Row != 0 || w.exist {
		b.rows = joined(b.rows, w.ids)
	}
	if needs&fields.Counts != 0 {
		b.counts = joined(b.counts, w.ids)
	}
	for side, open := range [...]fields.Needs{storage.Forward: fields.OpenFollowings, storage.Inverse: fields.OpenFollowers} {
		if needs&open != 0 {
			b.addOpens(storage.Side(side), w.ids)
		}
	}
	wantedRows[storage.UserID]{w.ids, w.on}.add(ctx, b)
}

// needsOf is what selections on the same objects need.
func needsOf(ctx context.Context, on []*selections.Object) (needs fields.Needs) {
	_, signedIn := identity.Of(ctx)
	for _, o := range on {
		needs |= o.Needs(signedIn)
	}
	return needs
}

// fetch reads all that a level and the levels below it need into the request's loaders: on each
// level one batch for each look-up, all of them at once, and then what the level's set answers
// need.
func fetch(ctx context.Context, level ...wanted) {
	stateOf(ctx).planOf(ctx)
	for len(level) > 0 {
		b := batch{access: accessOf(ctx)}
		for _, w := range level {
			w.add(ctx, &b)
		}
		b.run(ctx)
		level = b.next
	}
}

// batch is what one level asks of the loaders.
type batch struct {
	*access
	rows   []storage.UserID
	counts []storage.UserID
	asked  []loaders.Question // everything else

	lists [len(sides)]*listsOfSide // plain lists
	opens []social.List            // lists whose visibility matters
	sets  []answerName             // by each alias

	// afterwards are called when everything has been read …
	afterwards []func(ctx context.Context)
	// … and seen before them, if it is known who is in the audience.
	seen []func(ctx context.Context, a *social.Audience)
	next []wanted
}

// ask has keys read.
func (b *batch) ask(asked ...loaders.Question) { b.asked = append(b.asked, asked...) }

func (b *batch) addOpens(side storage.Side, owners []storage.UserID) {
	for _, id := range owners {
		b.opens = append(b.opens, social.List{Side: side, Owner: id})
	}
}

// joined appends a list. It takes the first list as it is, without capacity beyond its length,
// because its maker may keep it.
func joined[T any](to, more []T) []T {
	if to == nil {
		return slices.Clip(more)
	}
	return append(to, more...)
}

// fieldsOn are the fields of selections on the same objects.
func fieldsOn(on []*selections.Object) []*selections.Field {
	if len(on) == 1 {
		return on[0].Fields
	}
	var all []*selections.Field
	for _, o := range on {
		all = append(all, o.Fields...)
	}
	return all
}

// belowOf joins the selections below some fields.
func belowOf(some []*selections.Field) (on []*selections.Object) {
	for _, f := range some {
		on = append(on, f.Below...)
	}
	return on
}

// run reads everything at once, then whatever turns out to be needed.
func (b *batch) run(ctx context.Context) {
	l, known := b.loaders, b.request.knownAudience()
	looksAtLists := len(b.opens)+len(b.sets)+len(b.seen) > 0
	asked := make([]loaders.Question, 0, 8)
	asked = append(append(asked, l.Users.Ask(joined(b.rows, ownersOf(b.viewer, b.opens))), l.Counts.Ask(b.counts)), b.asked...)
	for _, p := range b.lists {
		asked = p.askAhead(asked, b.request, l, known)
	}
	if looksAtLists && b.viewer != 0 && known == nil {
		asked = append(asked, loaders.Of(l, storage.BlockLookups).Ask([]storage.UserID{b.viewer}))
	}
	l.Dispatch(asked...)
	if looksAtLists {
		b.look(ctx)
	}
	for _, f := range b.afterwards {
		f(ctx)
	}
}

// look finds out which lists are visible, and reads more if that is needed.
func (b *batch) look(ctx context.Context) {
	a, err := audienceOf(ctx)
	if err != nil {
		return // reported by each field that needs it
	}
	b.fetchOpen(a, b.opens)
	for _, f := range b.seen {
		f(ctx, a)
	}
	for _, p := range b.lists {
		p.showTo(ctx, b, a)
	}
}

// paths are where each of some objects is in the answer, by its index: a field that is selected under several names
// has several paths.
type paths func(i int) []ast.Path

// here are the paths of an object below the running field.
func here(ctx context.Context, steps ...any) paths {
	return func(int) []ast.Path { return []ast.Path{below(ctx, steps...)} }
}

// each are the paths of the elements of a list, which is the running field or below it.
func each(ctx context.Context, steps ...any) paths {
	return func(i int) []ast.Path { return here(ctx, append(steps[:len(steps):len(steps)], i)...)(i) }
}

// of are the paths of some of the objects.
func (p paths) of(indexes ...int) paths {
	return func(i int) []ast.Path { return p(indexes[i]) }
}

// below are the paths of some fields of each object.
func (p paths) below(asked []*selections.Field) paths {
	return func(i int) (all []ast.Path) {
		for _, path := range p(i) {
			for _, f := range asked {
				all = append(all, append(path[:len(path):len(path)], ast.PathName(f.Alias)))
			}
		}
		return all
	}
}

// failAt reports why something could not be read, at each path of the answer that is empty because
// of it.
func failAt(ctx context.Context, paths []ast.Path, err error) {
	for _, p := range paths {
		graphql.AddError(ctx, gqlerror.WrapPath(p, err))
	}
}

// below is the path of something below the running field.
func below(ctx context.Context, steps ...any) ast.Path {
	parent := graphql.GetPath(ctx)
	path := make(ast.Path, len(parent), len(parent)+len(steps))
	copy(path, parent)
	for _, step := range steps {
		switch s := step.(type) {
		case int:
			path = append(path, ast.PathIndex(s))
		case string:
			path = append(path, ast.PathName(s))
		}
	}
	return path
}
