package prefetch

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sort"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/apierr"
	"kith/graph/cursor"
	"kith/graph/fields"
	"kith/graph/limits"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/graph/why"
	"kith/social"
	"kith/storage"
)

// PageArguments are the arguments of a page, checked. Most cursors are a place in a list, that is a time and a number. The
// other ones belong to an answer, which reads them (see [Cursors]).
type PageArguments struct {
	Size          int
	Backward      bool          // `last` was given
	After, Before storage.Place // zero: not given
	// `after` and `before`, if they are not places; empty: not given
	Text, TextBefore string
	kind             cursor.Kind // of these
}

// IsWhole reports whether the page of an answer that is worked out is taken out of the whole answer: all others are continued forward.
func (p PageArguments) IsWhole() bool { return p.Backward || p.TextBefore != "" }

// Around reports what is on both sides of a page. If a cursor was given, something is assumed to be behind it.
func (p PageArguments) Around(info *model.PageInfo, more, after, before bool) {
	info.HasNextPage, info.HasPreviousPage = more, after
	if p.Backward {
		info.HasNextPage, info.HasPreviousPage = before, more
	}
}

// Cut takes the page out of a whole answer, and tells the place where it begins there.
func Cut[T any](p PageArguments, all []T, isBehindAfter, isAheadOfBefore func(T) bool) (page []T, offset int, more bool) {
	from, to := 0, len(all)
	if p.Text != "" {
		from = sort.Search(len(all), func(i int) bool { return isBehindAfter(all[i]) })
	}
	if p.TextBefore != "" {
		to = max(from, sort.Search(len(all), func(i int) bool { return !isAheadOfBefore(all[i]) }))
	}
	if more = to-from > p.Size; more && p.Backward {
		from = to - p.Size
	} else if more {
		to = from + p.Size
	}
	return all[from:to], from, more
}

// TooLong refuses to take a page out of an answer of more users than are worked out at once.
func (p PageArguments) TooLong() error {
	argument := "last"
	if !p.Backward {
		argument = "before"
	}
	return apierr.ListTooLong.Error("the list has more than %d users: page it forward, with first and after", social.MaxMembers).In(argument).Over(social.MaxMembers+1, social.MaxMembers)
}

// ParsePage reads the arguments of a page whose cursors are places.
func ParsePage(ctx context.Context, f *selections.Field, kind cursor.Kind) (p PageArguments, err error) {
	var badAfter, badBefore error
	p.After, badAfter = ParsePlace(ctx, f, kind, "after")
	p.Before, badBefore = ParsePlace(ctx, f, kind, "before")
	err = p.parseSizes(ctx, f, badAfter, badBefore)
	return p, err
}

// ParsePart reads the arguments of a page whose cursors an answer reads: here they are of its kind, and belong to what is known of it.
func ParsePart(ctx context.Context, f *selections.Field, cursors Cursors) (p PageArguments, err error) {
	var badAfter, badBefore error
	p.kind = cursors.Kind
	p.Text, badAfter = ParseCursor(ctx, f, cursors, "after")
	p.TextBefore, badBefore = ParseCursor(ctx, f, cursors, "before")
	err = p.parseSizes(ctx, f, badAfter, badBefore)
	return p, err
}

// parseSizes reads the other arguments of a page, and returns the errors of all.
func (p *PageArguments) parseSizes(ctx context.Context, f *selections.Field, badAfter, badBefore error) error {
	first, hasFirst, badFirst := ParseSize(ctx, f, "first")
	last, hasLast, badLast := ParseSize(ctx, f, "last")
	var badBoth error
	p.Size = limits.DefaultPage
	switch {
	case hasFirst && hasLast:
		badBoth = apierr.InvalidValue.Error("first and last cannot be given together").In("last")
	case hasFirst:
		p.Size = first
	case hasLast:
		p.Size, p.Backward = last, true
	}
	if cmp.Or(badFirst, badLast, badBoth, badAfter, badBefore) == nil { // nothing is kept of most pages
		return nil
	}
	return apierr.All(badFirst, badLast, badBoth, badAfter, badBefore)
}

// ParseSize reads a number of rows, 0 to [limits.MaxPage].
func ParseSize(ctx context.Context, f *selections.Field, name string) (n int, given bool, err error) {
	size, given := f.Argument(ctx, name).(int64)
	if size < 0 || size > limits.MaxPage {
		return 0, true, apierr.OutOfRange.Error("%s is 0 to %d", name, limits.MaxPage).In(name)
	}
	return int(size), given, nil
}

// ParseCursor reads a cursor that is no place; empty: it is not given.
func ParseCursor(ctx context.Context, f *selections.Field, cursors Cursors, name string) (string, error) {
	text, given := f.Argument(ctx, name).(string)
	if !given {
		return "", nil
	}
	if err := cursors.check(ctx, name, text); err != nil {
		return "", err
	}
	return text, nil
}

// ofAnother refuses cursors of a list of another owner, once it is known whose list is asked for.
func (p PageArguments) ofAnother(ctx context.Context, of storage.PostID) error {
	var refused [2]error
	for i, text := range []string{p.Text, p.TextBefore} {
		if text != "" {
			refused[i] = Cursors{Kind: p.kind, To: []int64{int64(of.Author)}, What: "list"}.check(ctx, [...]string{"after", "before"}[i], text)
		}
	}
	return apierr.All(refused[:]...)
}

// ParsePlace reads a cursor that is a place; zero: it is not given.
func ParsePlace(ctx context.Context, f *selections.Field, kind cursor.Kind, name string) (storage.Place, error) {
	text, given := f.Argument(ctx, name).(string)
	if !given {
		return storage.Place{}, nil
	}
	var at, number int64
	err := OperationOf(ctx).Cursors.Decode(kind, text, &at, &number)
	return storage.Place{CreatedAt: storage.Micros(at), Number: number}, apierr.In(name, err)
}

// Unsealed writes the cursors of rows that are shown.
var Unsealed *cursor.Sealer

// Spell writes a cursor that is a place.
func Spell(seal *cursor.Sealer, kind cursor.Kind, at storage.Place) string {
	return seal.Encode(kind, int64(at.CreatedAt), at.Number)
}

// PlaceAt is a position as a place: users in a list have one as posts have.
func PlaceAt(p storage.Position) storage.Place {
	return storage.Place{CreatedAt: p.UpdateTime, Number: int64(p.Peer)}
}

// PositionAt is a place as a position.
func PositionAt(p storage.Place) storage.Position {
	return storage.Position{UpdateTime: p.CreatedAt, Peer: storage.UserID(p.Number)}
}

// Cursors are those of an answer. They say what they belong to, because they would mean something else elsewhere.
type Cursors struct {
	Kind     cursor.Kind
	To, Also []int64 // what they belong to: before and behind the numbers of the position
	What     string  // the word for it
}

// Spell writes the cursor of a position.
func (c Cursors) Spell(seal *cursor.Sealer, numbers ...int64) string {
	return seal.Encode(c.Kind, slices.Concat(c.To, numbers, c.Also)...)
}

// Read reads the position of a cursor. The beginning has no cursor, and changes nothing.
func (c Cursors) Read(ctx context.Context, argument, text string, numbers ...*int64) error {
	if text == "" {
		return nil
	}
	to, also := make([]int64, len(c.To)), make([]int64, len(c.Also))
	if err := OperationOf(ctx).Cursors.Decode(c.Kind, text, slices.Concat(into(to), numbers, into(also))...); err != nil {
		return apierr.In(argument, err)
	}
	return c.belong(argument, text, slices.Concat(to, also), slices.Concat(c.To, c.Also))
}

// check refuses a cursor of another kind, and one that begins with something else.
func (c Cursors) check(ctx context.Context, argument, text string) error {
	to := make([]int64, len(c.To))
	if err := OperationOf(ctx).Cursors.Begin(c.Kind, text, into(to)...); err != nil {
		return apierr.In(argument, err)
	}
	return c.belong(argument, text, to, c.To)
}

func into(numbers []int64) (all []*int64) {
	for i := range numbers {
		all = append(all, &numbers[i])
	}
	return all
}

// belong refuses a cursor that belongs to something else.
func (c Cursors) belong(argument, text string, to, want []int64) error {
	if !slices.Equal(to, want) {
		return apierr.CursorForeign.Error("the cursor %q belongs to another %s", apierr.Shortened(text, 40), c.What).In(argument)
	}
	return nil
}

// If is these cursors, or, if what they belong to has not been given rightly, those of the kind.
func (c Cursors) If(bad error) Cursors {
	if bad != nil {
		c.To = nil
	}
	return c
}

// Hash binds cursors to a text, such as that of a filter: a positive number.
func Hash(text string) int64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return int64(h.Sum64() >> 1)
}

// PageInfo is the PageInfo of a page with these cursors. If there is more, the list continues behind the last of them, or
// at next if that is not nil, even if the page is empty. A cursor that is not that of a row on the page is sealed.
func PageInfo(sealer *cursor.Sealer, cursors []string, more bool, next func(*cursor.Sealer) string) *model.PageInfo {
	info := &model.PageInfo{HasNextPage: more}
	n := len(cursors)
	if n > 0 {
		info.StartCursor, info.EndCursor = &cursors[0], &cursors[n-1]
	}
	if more && next != nil && (n == 0 || next(Unsealed) != cursors[n-1]) {
		end := next(sealer)
		info.EndCursor = &end
	}
	return info
}

// PageOf makes the edges of a page, in one piece of memory.
func PageOf[E, N any](info *model.PageInfo, nodes []*N, edge func(i int) E) model.Page[E, N] {
	edges, made := make([]*E, len(nodes)), make([]E, len(nodes))
	for i := range made {
		made[i] = edge(i)
		edges[i] = &made[i]
	}
	return model.Page[E, N]{Edges: edges, Nodes: nodes, PageInfo: info}
}

// PageNeedsOf is what the selections on pages with one answer need together.
func PageNeedsOf(aliases ...*selections.Field) (needs fields.Needs) {
	for _, f := range aliases {
		needs |= f.Below[0].Needs(true)
	}
	return needs
}

// Page is a page of a list that has been read, as far as it is selected.
type Page[R any] struct {
	Err      error
	IsClosed bool // the viewer does not see the list: the answer is null

	Rows     []R
	Cursors  []string    // nil: they are not selected
	Since    []time.Time // of users; nil: the list is not made of edges
	Info     *model.PageInfo
	Total    storage.Result[int64]
	Complete bool

	Why *why.Reasons // of what is not on the page; nil: nobody asks

	Needs fields.Needs // of a plain list: what is selected
	Made  any          // what the page is made of, if its topic shows more than the rows
}

// Cursor is that of a row; empty if cursors are not selected.
func (p *Page[R]) Cursor(i int) string {
	if p.Cursors == nil {
		return ""
	}
	return p.Cursors[i]
}

// Counted is a total that is known.
func Counted(n int) storage.Result[int64] { return storage.Result[int64]{Value: int64(n)} }

// Answer is the page of the running field that has been read; nil if the viewer does not see the list.
func Answer[R any](ctx context.Context, of storage.PostID) (f *selections.Field, p *Page[R], err error) {
	f, request := Running(ctx), RequestOf(ctx)
	if f.Index >= 0 {
		if err := request.arguments[f.Index].(interface {
			failed(context.Context, storage.PostID) error
		}).failed(ctx, of); err != nil {
			return f, p, err
		}
	}
	read, ok := request.Answer(PageName{f.Same, of})
	if !ok {
		if _, err := AudienceOf(ctx); err != nil {
			return f, p, err
		}
		panic(fmt.Sprintf("the plan has not read %s of %+v", f.Name, of))
	}
	p = read.(*Page[R])
	Explain(ctx, p)
	if p.Err != nil || p.IsClosed {
		return f, nil, p.Err
	}
	return f, p, nil
}

// Explain gives the reasons of a page, which the running field is, if somebody asks.
func Explain[R any](ctx context.Context, p *Page[R]) {
	reasons := RequestOf(ctx).why
	if reasons == nil {
		return
	}
	if p.Why != nil {
		for _, one := range p.Why.All() {
			reasons.Add(graphql.GetPath(ctx), one.Rule, one.About)
		}
	}
	if !p.Complete && !p.IsClosed && p.Err == nil {
		reasons.Add(graphql.GetPath(ctx), why.Budget, 0)
	}
}

// ItemPaths are the paths of the items of a page.
func ItemPaths(ctx context.Context, f *selections.Field) Paths {
	return func(i int) (all []ast.Path) {
		for _, on := range f.Below[0].Fields {
			switch on.Part {
			case fields.Item:
				all = append(all, below(ctx, on.Alias, i))
			case fields.Edges:
				for _, node := range on.Below[0].Fields {
					if node.Part == fields.Item {
						all = append(all, below(ctx, on.Alias, i, node.Alias))
					}
				}
			}
		}
		return all
	}
}
