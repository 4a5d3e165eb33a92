package resolvers

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sort"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/apierr"
	"kith/graph/cursor"
	"kith/graph/fields"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/social"
	"kith/storage"
)

// Bounds on a page.
const (
	defaultFirst = 20
	maxFirst     = 100
)

// pageArguments are the arguments of a page, checked. Most cursors are a place in a list, that is a time and a number. The
// other ones belong to an answer, which reads them (see bound).
type pageArguments struct {
	size          int
	backward      bool          // `last` was given
	after, before storage.Place // zero: not given
	// `after` and `before`, if they are not places; empty: not given
	text, textBefore string
}

// isWhole reports whether the page of an answer that is worked out is taken out of the whole answer: all others are continued forward.
func (p pageArguments) isWhole() bool { return p.backward || p.textBefore != "" }

// around reports what is on both sides of a page. If a cursor was given, something is assumed to be behind it.
func (p pageArguments) around(info *model.PageInfo, more, after, before bool) {
	info.HasNextPage, info.HasPreviousPage = more, after
	if p.backward {
		info.HasNextPage, info.HasPreviousPage = before, more
	}
}

// cut takes the page out of a whole answer, and tells the place where it begins there.
func cut[T any](p pageArguments, all []T, isBehindAfter, isAheadOfBefore func(T) bool) (page []T, offset int, more bool) {
	from, to := 0, len(all)
	if p.text != "" {
		from = sort.Search(len(all), func(i int) bool { return isBehindAfter(all[i]) })
	}
	if p.textBefore != "" {
		to = max(from, sort.Search(len(all), func(i int) bool { return !isAheadOfBefore(all[i]) }))
	}
	if more = to-from > p.size; more && p.backward {
		from = to - p.size
	} else if more {
		to = from + p.size
	}
	return all[from:to], from, more
}

// tooLong refuses to take a page out of an answer of more users than are worked out at once.
func (p pageArguments) tooLong() error {
	argument := "last"
	if !p.backward {
		argument = "before"
	}
	return apierr.ListTooLong.Error("the list has more than %d users: page it forward, with first and after", social.MaxMembers).In(argument).Over(social.MaxMembers+1, social.MaxMembers)
}

// pageOf reads the arguments of a page whose cursors are places. If the kind is zero, they are not.
func pageOf(ctx context.Context, f *selections.Field, kind cursor.Kind) (p pageArguments, err error) {
	first, hasFirst, err := sizeOf(ctx, f, "first")
	if err != nil {
		return p, err
	}
	last, hasLast, err := sizeOf(ctx, f, "last")
	if err != nil {
		return p, err
	}
	p.size = defaultFirst
	switch {
	case hasFirst && hasLast:
		return p, apierr.InvalidValue.Error("first and last cannot be given together").In("last")
	case hasFirst:
		p.size = first
	case hasLast:
		p.size, p.backward = last, true
	}
	if kind == 0 {
		if p.text, err = textOf(ctx, f, "after"); err == nil {
			p.textBefore, err = textOf(ctx, f, "before")
		}
		return p, err
	}
	if p.after, err = placeOf(ctx, f, kind, "after"); err != nil {
		return p, err
	}
	p.before, err = placeOf(ctx, f, kind, "before")
	return p, err
}

// sizeOf reads a number of rows, 0 to maxFirst.
func sizeOf(ctx context.Context, f *selections.Field, name string) (n int, given bool, err error) {
	size, given := f.Argument(ctx, name).(int64)
	if size < 0 || size > maxFirst {
		return 0, true, apierr.OutOfRange.Error("%s is 0 to %d", name, maxFirst).In(name)
	}
	return int(size), given, nil
}

// textOf reads a cursor that is no place; empty: it is not given.
func textOf(ctx context.Context, f *selections.Field, name string) (string, error) {
	text, given := f.Argument(ctx, name).(string)
	if given && text == "" {
		return "", apierr.CursorMalformed.Error("%q is not a cursor", text).In(name)
	}
	return text, nil
}

// placeOf reads a cursor that is a place; zero: it is not given.
func placeOf(ctx context.Context, f *selections.Field, kind cursor.Kind, name string) (storage.Place, error) {
	text, given := f.Argument(ctx, name).(string)
	if !given {
		return storage.Place{}, nil
	}
	var at, number int64
	err := resolverOf(ctx).Cursors.Decode(kind, text, &at, &number)
	return storage.Place{CreatedAt: storage.Micros(at), Number: number}, apierr.In(name, err)
}

// unsealed writes the cursors of rows that are shown.
var unsealed *cursor.Sealer

// spell writes a cursor that is a place.
func spell(seal *cursor.Sealer, kind cursor.Kind, at storage.Place) string {
	return seal.Encode(kind, int64(at.CreatedAt), at.Number)
}

// Users in a list have a place as posts have.
func placeAt(p storage.Position) storage.Place {
	return storage.Place{CreatedAt: p.UpdateTime, Number: int64(p.Peer)}
}

func positionAt(p storage.Place) storage.Position {
	return storage.Position{UpdateTime: p.CreatedAt, Peer: storage.UserID(p.Number)}
}

// bound is the cursors of an answer. They say what they belong to, because they would mean something else elsewhere.
type bound struct {
	kind     cursor.Kind
	to, also []int64 // what they belong to: before and behind the numbers of the position
	what     string  // the word for it
}

func (b bound) spell(seal *cursor.Sealer, numbers ...int64) string {
	return seal.Encode(b.kind, slices.Concat(b.to, numbers, b.also)...)
}

// read reads the position of a cursor. The beginning has no cursor, and changes nothing.
func (b bound) read(ctx context.Context, argument, text string, numbers ...*int64) error {
	if text == "" {
		return nil
	}
	belongs := make([]int64, len(b.to)+len(b.also))
	var into []*int64
	for i := range belongs {
		if i == len(b.to) {
			into = append(into, numbers...)
		}
		into = append(into, &belongs[i])
	}
	if len(b.also) == 0 {
		into = append(into, numbers...)
	}
	if err := resolverOf(ctx).Cursors.Decode(b.kind, text, into...); err != nil {
		return apierr.In(argument, err)
	}
	if !slices.Equal(belongs, slices.Concat(b.to, b.also)) {
		return apierr.CursorForeign.Error("the cursor %q belongs to another %s", abridged(text), b.what).In(argument)
	}
	return nil
}

// hashOf binds cursors to a text, such as that of a filter: a positive number.
func hashOf(text string) int64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return int64(h.Sum64() >> 1)
}

// pageInfo is the PageInfo of a page with these cursors. If there is more, the list continues behind the last of them, or
// at next if that is not nil, even if the page is empty. A cursor that is not that of a row on the page is sealed.
func (r *Resolver) pageInfo(cursors []string, more bool, next func(*cursor.Sealer) string) *model.PageInfo {
	info := &model.PageInfo{HasNextPage: more}
	n := len(cursors)
	if n > 0 {
		info.StartCursor, info.EndCursor = &cursors[0], &cursors[n-1]
	}
	if more && next != nil && (n == 0 || next(unsealed) != cursors[n-1]) {
		end := next(r.Cursors)
		info.EndCursor = &end
	}
	return info
}

// pageNeeds is what the selection on a page needs.
type pageNeeds struct {
	rows    bool // anything but totalCount and complete
	total   bool // totalCount
	cursors bool // `cursor` of the edges
	around  bool // pageInfo
	details bool // `until` and `attributes` of the edges
}

// pageNeedsOf is what fields with one answer need together.
func pageNeedsOf(aliases ...*selections.Field) pageNeeds {
	var needs fields.Needs
	for _, f := range aliases {
		needs |= f.Below[0].Needs(true)
	}
	return pageNeeds{needs&fields.Rows != 0, needs&fields.Total != 0, needs&fields.Cursors != 0, needs&fields.Around != 0, needs&fields.Details != 0}
}

func (n pageNeeds) with(m pageNeeds) pageNeeds {
	return pageNeeds{n.rows || m.rows, n.total || m.total, n.cursors || m.cursors, n.around || m.around, n.details || m.details}
}

// edges makes the edges of a page, in one piece of memory.
func edges[E any](n int, edge func(i int) E) []*E {
	list, made := make([]*E, n), make([]E, n)
	for i := range made {
		made[i] = edge(i)
		list[i] = &made[i]
	}
	return list
}

// page is a page of users that has been read, as far as it is selected.
type page struct {
	err      error
	isClosed bool // the viewer does not see the list: the answer is null

	users    []storage.UserID
	cursors  []string    // nil: they are not selected
	since    []time.Time // nil: the list is not made of edges
	info     *model.PageInfo
	total    storage.Result[int64]
	complete bool

	needs pageNeeds // of a plain list: what is selected

	edges []storage.Edge // of an [ownList]: those that the page is made of
	kind  *storage.Kind  // of these, if what is beside them is shown

	suggested *suggested // by `followSuggestions`
}

// suggested is what a page of suggestions says of them.
type suggested struct {
	social.Suggestions
	unit float64 // of the scores
}

// counted is a total that is known.
func counted(n int) storage.Result[int64] { return storage.Result[int64]{Value: int64(n)} }

// rowsPage is a page of what is not users.
type rowsPage[R any] struct {
	page
	rows []R
}

// anyPage is a page of any kind.
type anyPage interface{ base() *page }

func (p *page) base() *page { return p }

// answerTo is the page of the running field that has been read; nil if the viewer does not see the list.
func answerTo[P anyPage](ctx context.Context, of storage.PostID) (f *selections.Field, p P, err error) {
	f, request := planned(ctx), stateOf(ctx)
	if f.Index >= 0 {
		if err := request.arguments[f.Index].(interface{ failed() error }).failed(); err != nil {
			return f, p, err
		}
	}
	read, ok := lookUp(request, &request.answers, answerName{f.Same, of})
	if !ok {
		if _, err := audienceOf(ctx); err != nil {
			return f, p, err
		}
		panic(fmt.Sprintf("the plan has not read %s of %+v", f.Name, of))
	}
	if base := read.(anyPage).base(); base.err != nil || base.isClosed {
		return f, p, base.err
	}
	return f, read.(P), nil
}

// showPage answers a field that is a page of users.
func showPage[C any](ctx context.Context, of storage.PostID, connection func(model.UserPage, page) *C) (*C, error) {
	f, p, err := answerTo[*page](ctx, of)
	if err != nil || p == nil {
		return nil, err
	}
	return connection(p.shown(ctx, f)), nil
}

// readPage answers a field whose page no level has read ahead.
func readPage[C any](ctx context.Context, f *selections.Field, p page, connection func(model.UserPage, page) *C) *C {
	if items := f.Below[0].Items; items != nil {
		fetch(ctx, wantedUsers{ids: p.users, on: items})
	}
	return connection(p.shown(ctx, f))
}

// shown makes the users, who have been fetched, and leaves out what belongs to users who have gone.
func (p page) shown(ctx context.Context, f *selections.Field) (model.UserPage, page) {
	nodes, places := p.nodes(ctx, f)
	if len(places) < len(p.users) {
		p.cursors, p.since = some(p.cursors, places), some(p.since, places)
	}
	return model.UserPage{Nodes: nodes, PageInfo: p.info, Complete: p.complete, Total: p.total}, p
}

// some are those elements of a list that are at some places; nil stays nil.
func some[T any](list []T, places []int) []T {
	if list == nil {
		return nil
	}
	return storage.Each(places, func(at int) T { return list[at] })
}

func (p page) cursor(i int) string {
	if p.cursors == nil {
		return ""
	}
	return p.cursors[i]
}

// The connections of users.

func plain(users model.UserPage, p page) *model.UserConnection {
	return &model.UserConnection{UserPage: users, Edges: edges(len(users.Nodes), func(i int) model.UserEdge {
		return model.UserEdge{Cursor: p.cursor(i), Node: users.Nodes[i]}
	})}
}

func follows(users model.UserPage, p page) *model.FollowConnection {
	return &model.FollowConnection{UserPage: users, Edges: edges(len(users.Nodes), func(i int) model.FollowEdge {
		return model.FollowEdge{Cursor: p.cursor(i), Node: users.Nodes[i], FollowedAt: p.since[i]}
	})}
}

func matches(users model.UserPage, p page) *model.MatchConnection {
	return &model.MatchConnection{UserPage: users, Edges: edges(len(users.Nodes), func(i int) model.MatchEdge {
		return model.MatchEdge{Cursor: p.cursor(i), Node: users.Nodes[i], MatchedAt: p.since[i]}
	})}
}

func blocks(users model.UserPage, p page) *model.BlockConnection {
	return &model.BlockConnection{UserPage: users, Edges: edges(len(users.Nodes), func(i int) model.BlockEdge {
		return model.BlockEdge{Cursor: p.cursor(i), Node: users.Nodes[i], BlockedAt: p.since[i]}
	})}
}

func followRequests(users model.UserPage, p page) *model.FollowRequestConnection {
	return &model.FollowRequestConnection{UserPage: users, Edges: edges(len(users.Nodes), func(i int) model.FollowRequestEdge {
		return model.FollowRequestEdge{Cursor: p.cursor(i), Node: users.Nodes[i], RequestedAt: p.since[i]}
	})}
}

// nodes makes the users, nil if they could not be read, and tells their places on the page. It leaves out
// users who have gone since the page was read: they would be null without an error.
func (p page) nodes(ctx context.Context, f *selections.Field) (users []*model.User, places []int) {
	items := f.Below[0].Items
	if users = make([]*model.User, len(p.users)); items != nil {
		users = usersOf(ctx, wantedUsers{ids: p.users, on: items}, itemPaths(ctx, f))
	}
	e := accessOf(ctx)
	places = make([]int, 0, len(users))
	for i, u := range users {
		id := p.users[i]
		if u != nil || items == nil || !e.isAbsent(id) && e.loaders.Users.Load(id).Err != nil {
			users[len(places)] = u
			places = append(places, i)
		}
	}
	return users[:len(places)], places
}

// itemPaths are the paths of the items of a page.
func itemPaths(ctx context.Context, f *selections.Field) paths {
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
