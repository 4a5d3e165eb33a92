package prefetch

import (
	"cmp"
	"context"
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"kith/graph/fields"
	"kith/graph/selections"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// asker is a field of objects that are known by an O each: it adds what it needs to a level.
type asker[O any] interface {
	Ask(ctx context.Context, level *Level, f *selections.Field, of []O)
}

// Field is a field with the arguments A, of objects that are known by an O. Nothing is asked for wrong arguments: the field's resolver
// refuses them.
type Field[O, A any] struct {
	parse func(ctx context.Context, f *selections.Field) (A, error)
	need  func(ctx context.Context, level *Level, f *selections.Field, args A, of []O)
}

// NewField is a field, by how its arguments are parsed and what it asks for. One that is parsed and not asked cannot be written.
func NewField[O, A any](
	parse func(ctx context.Context, f *selections.Field) (A, error), ask func(ctx context.Context, level *Level, f *selections.Field, args A, of []O),
) *Field[O, A] {
	return &Field[O, A]{parse, ask}
}

// Parse implements [selections.Read].
func (d *Field[O, A]) Parse(ctx context.Context, f *selections.Field) any {
	return Parsed(d.parse(ctx, f))
}

// Ask adds what the field needs to a level.
func (d *Field[O, A]) Ask(ctx context.Context, level *Level, f *selections.Field, of []O) {
	if args, err := ArgumentsOf[A](level.Request, f); err == nil {
		d.need(ctx, level, f, args, of)
	}
}

// None are the arguments of a field that has none.
type None struct{}

// NoArguments parses them.
func NoArguments(context.Context, *selections.Field) (None, error) { return None{}, nil }

// Inset is a field without arguments that is put into the objects it belongs to, which are an M each. at are the paths of the field.
type Inset[O, M any] struct {
	*Field[O, None]
	show func(ctx context.Context, made []*M, aliases []*selections.Field, at Paths)
}

// NewInset is such a field, by what it asks for and how that is shown.
func NewInset[O, M any](
	ask func(ctx context.Context, level *Level, f *selections.Field, of []O), show func(ctx context.Context, made []*M, aliases []*selections.Field, at Paths),
) *Inset[O, M] {
	need := func(ctx context.Context, level *Level, f *selections.Field, _ None, of []O) { ask(ctx, level, f, of) }
	return &Inset[O, M]{NewField(NoArguments, need), show}
}

func (d *Inset[O, M]) put(ctx context.Context, made []*M, aliases []*selections.Field, at Paths) {
	d.show(ctx, made, aliases, at)
}

// ShowParts puts into objects, which are at some paths, what is selected of them.
func ShowParts[M any](ctx context.Context, made []*M, on []*selections.Object, at Paths) {
	if len(made) == 0 {
		return
	}
	all := fieldsOn(on)
	for i, f := range all {
		field, is := f.Read.(interface {
			put(ctx context.Context, made []*M, aliases []*selections.Field, at Paths)
		})
		isSame := func(other *selections.Field) bool { return other.Read == f.Read }
		if !is || slices.ContainsFunc(all[:i], isSame) {
			continue
		}
		aliases := storage.Filter(all[i:], isSame)
		field.put(ctx, made, aliases, at.Below(ctx, aliases))
	}
}

// Objects are objects on one level of a query, with the selections on them.
type Objects interface {
	// AddTo adds what they need to the level.
	AddTo(ctx context.Context, level *Level)
}

// Rows are objects whose rows are known.
type Rows[R any] struct {
	Rows []R
	On   []*selections.Object
}

// RowsOn are rows with the selections on them.
func RowsOn[R any](rows []R, on []*selections.Object) Rows[R] { return Rows[R]{rows, on} }

// AddTo implements [Objects].
func (w Rows[R]) AddTo(ctx context.Context, level *Level) {
	if len(w.Rows) == 0 {
		return
	}
	for _, f := range fieldsOn(w.On) {
		if a, is := f.Read.(asker[R]); is {
			a.Ask(ctx, level, f, w.Rows)
		}
	}
}

// Users are users by their ids.
type Users struct {
	IDs   []storage.UserID
	Exist bool // read their rows even when no field of them is selected
	On    []*selections.Object
}

// AddTo implements [Objects].
func (w Users) AddTo(ctx context.Context, level *Level) {
	if len(w.IDs) == 0 {
		return
	}
	needs := NeedsOf(ctx, w.On)
	if needs&fields.Row != 0 || w.Exist {
		level.rows = Joined(level.rows, w.IDs)
	}
	if needs&fields.Counts != 0 {
		level.Counts = Joined(level.Counts, w.IDs)
	}
	for side, open := range [...]fields.Needs{storage.Forward: fields.OpenFollowings, storage.Inverse: fields.OpenFollowers} {
		if needs&open != 0 {
			level.AddOpens(storage.Side(side), w.IDs)
		}
	}
	Rows[storage.UserID]{w.IDs, w.On}.AddTo(ctx, level)
}

// NeedsOf is what selections on the same objects need.
func NeedsOf(ctx context.Context, on []*selections.Object) (needs fields.Needs) {
	signedIn := ViewerOf(ctx) != 0
	for _, o := range on {
		needs |= o.Needs(signedIn)
	}
	return needs
}

// Fetch reads all that objects and the levels below them need into the request's loaders: on each level one batch for each look-up, all
// of them at once, and then what its groups need.
func Fetch(ctx context.Context, next ...Objects) {
	RequestOf(ctx).planOf(ctx)
	for len(next) > 0 {
		level := &Level{Access: AccessOf(ctx)}
		level.noticed = nil // its pages notice what is not on them
		for _, objects := range next {
			objects.AddTo(ctx, level)
		}
		level.run(ctx)
		next = level.Next
	}
}

// FetchQuery reads what all root fields of the query and everything below them need, the first time that it is called in a request.
// Before it calls first, with the root fields. It returns the running field.
func FetchQuery(ctx context.Context, first func(ctx context.Context, root []*selections.Field)) *selections.Field {
	loaders.For(ctx).Once.Do(func() {
		root := []*selections.Object{RequestOf(ctx).planOf(ctx).Root}
		first(ctx, root[0].Fields)
		Fetch(ctx, Rows[Root]{make([]Root, 1), root})
	})
	return Running(ctx)
}

// Root is what root fields belong to.
type Root struct{}

// Level is what one level asks of the loaders.
type Level struct {
	*Access
	rows   []storage.UserID
	Counts []storage.UserID   // of users
	asked  []loaders.Question // everything else

	Opens []social.List // lists whose visibility matters

	// Seen are called when this has been read, if it is known who is in the audience …
	Seen []func(ctx context.Context, a *social.Audience)
	// … then groups show …
	groups []Group
	few    [3]Group // the room for those of most levels
	// … and Afterwards are called in any case.
	Afterwards []func(ctx context.Context)
	Next       []Objects // what is fetched next
}

// Group is what fields of one kind ask of a level together.
type Group interface {
	// Ask adds what is read first, when all fields of the level have asked. known is the audience, or, if it is not known yet, one that hides nobody.
	Ask(level *Level, known *social.Audience)
	// Show is called when that has been read and it is known who is in the audience.
	Show(ctx context.Context, level *Level, a *social.Audience)
}

// GroupIn is the level's group of a kind, which begins empty.
func GroupIn[G Group](level *Level, isOf func(G) bool, begin func() G) G {
	for _, g := range level.groups {
		if one, is := g.(G); is && isOf(one) {
			return one
		}
	}
	if level.groups == nil {
		level.groups = level.few[:0]
	}
	one := begin()
	level.groups = append(level.groups, one)
	return one
}

// Lacks reports whether a user whose row has been read does not exist.
func (level *Level) Lacks(id storage.UserID) bool {
	return slices.Contains(level.rows, id) && !level.Loaders.Users.Load(id).Found
}

// Ask has keys read.
func (level *Level) Ask(asked ...loaders.Question) { level.asked = append(level.asked, asked...) }

// AddOpens adds lists of owners whose visibility matters.
func (level *Level) AddOpens(side storage.Side, owners []storage.UserID) {
	for _, id := range owners {
		level.Opens = append(level.Opens, social.List{Side: side, Owner: id})
	}
}

// Joined appends a list. It takes the first list as it is, without capacity beyond its length, because its maker may keep it.
func Joined[T any](to, more []T) []T {
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

// Below joins the selections below some fields.
func Below(some []*selections.Field) (on []*selections.Object) {
	for _, f := range some {
		on = append(on, f.Below...)
	}
	return on
}

// anybody hides nobody.
var anybody = new(social.Audience)

// run reads everything at once, then whatever turns out to be needed.
func (level *Level) run(ctx context.Context) {
	l, known := level.Loaders, level.Request.knownAudience()
	looksAtLists := len(level.Opens)+len(level.groups)+len(level.Seen) > 0
	for _, g := range level.groups {
		g.Ask(level, cmp.Or(known, anybody))
	}
	asked := make([]loaders.Question, 0, 8)
	asked = append(append(asked, l.Users.Ask(Joined(level.rows, ownersOf(level.Viewer, level.Opens))), l.Counts.Ask(level.Counts)), level.asked...)
	if looksAtLists && level.Viewer != 0 && known == nil {
		asked = append(asked, loaders.Of(l, storage.BlockLookups).Ask([]storage.UserID{level.Viewer}))
	}
	l.Dispatch(asked...)
	if looksAtLists {
		level.look(ctx)
	}
	for _, f := range level.Afterwards {
		f(ctx)
	}
}

// look finds out which lists are visible, and reads more if that is needed.
func (level *Level) look(ctx context.Context) {
	a, err := level.Audience()
	if err != nil {
		return // reported by each field that needs it
	}
	level.fetchOpen(a, level.Opens)
	for _, f := range level.Seen {
		f(ctx, a)
	}
	for _, g := range level.groups {
		g.Show(ctx, level, a)
	}
}

// Inputs are the elements of a list that a client has given. An error in one of them is reported at its index in the answer, and the
// others are answered.
type Inputs[T any] struct {
	Good    []T
	indexes []int // of the good ones, in the answer; nil: all are good
	Wrong   []wrongInput
}

// wrongInput is the error at an index.
type wrongInput struct {
	Index int
	Err   error
}

// ParseInputs parses each of them.
func ParseInputs[V, T any](values []V, parse func(V) (T, error)) Inputs[T] {
	g := Inputs[T]{Good: make([]T, 0, len(values))}
	for i, v := range values {
		one, err := parse(v)
		g.Add(i, one, err)
	}
	return g
}

// Add takes the element at an index. Indexes ascend.
func (g *Inputs[T]) Add(index int, one T, err error) {
	switch {
	case err != nil:
		if g.Wrong == nil { // until here all were good
			g.indexes = make([]int, len(g.Good))
			for i := range g.indexes {
				g.indexes[i] = i
			}
		}
		g.Wrong = append(g.Wrong, wrongInput{index, err})
		return
	case g.Wrong != nil:
		g.indexes = append(g.indexes, index)
	}
	g.Good = append(g.Good, one)
}

// Index is the index in the answer of one of the good elements.
func (g *Inputs[T]) Index(i int) int {
	if g.Wrong == nil {
		return i
	}
	return g.indexes[i]
}

// At are the paths of the good elements.
func (g *Inputs[T]) At(p Paths) Paths {
	return func(i int) []ast.Path { return p(g.Index(i)) }
}

// Placed puts the results of the good elements at their indexes, and reports the errors of the others.
func Placed[T, M any](ctx context.Context, g Inputs[T], made []M, at Paths) []M {
	if g.Wrong == nil {
		return made
	}
	all := make([]M, len(g.Good)+len(g.Wrong))
	for i, m := range made {
		all[g.indexes[i]] = m
	}
	for _, w := range g.Wrong {
		FailAt(ctx, at(w.Index), w.Err)
	}
	return all
}

// Paths are where each of some objects is in the answer, by its index: a field that is selected under several names has several paths.
type Paths func(i int) []ast.Path

// Here are the paths of an object below the running field.
func Here(ctx context.Context, steps ...any) Paths {
	return func(int) []ast.Path { return []ast.Path{below(ctx, steps...)} }
}

// Each are the paths of the elements of a list, which is the running field or below it.
func Each(ctx context.Context, steps ...any) Paths {
	return func(i int) []ast.Path { return Here(ctx, append(slices.Clip(steps), i)...)(i) }
}

// Of are the paths of some of the objects.
func (p Paths) Of(indexes ...int) Paths {
	return func(i int) []ast.Path { return p(indexes[i]) }
}

// Below are the paths of some fields of each object, which may have others of them at each of its paths.
func (p Paths) Below(ctx context.Context, asked []*selections.Field) Paths {
	return func(i int) (all []ast.Path) {
		for _, path := range p(i) {
			for _, f := range fieldsOn(RequestOf(ctx).planOf(ctx).On(path)) {
				if slices.Contains(asked, f) {
					all = append(all, append(slices.Clip(path), ast.PathName(f.Alias)))
				}
			}
		}
		return all
	}
}

// Each are the paths of the objects in a list that is at these paths.
func (p Paths) Each() Paths {
	return func(i int) (all []ast.Path) {
		for _, path := range p(i) {
			all = append(all, append(slices.Clip(path), ast.PathIndex(i)))
		}
		return all
	}
}

// FailAt reports why something could not be read, at each path of the answer that is empty because of it.
func FailAt(ctx context.Context, paths []ast.Path, err error) {
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
