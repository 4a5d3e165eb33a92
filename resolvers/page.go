package resolvers

import (
	"context"
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
}

func pageNeedsOf(f *selections.Field) pageNeeds {
	needs := f.Below[0].Needs(true)
	return pageNeeds{needs&fields.Rows != 0, needs&fields.Total != 0, needs&fields.Cursors != 0, needs&fields.Around != 0}
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

// userPage is the users on a page.
type userPage struct {
	users   []storage.UserID
	cursors []string    // nil: they are not selected
	since   []time.Time // nil: the list is not made of edges
}

// fetch reads what the users and everything below them need.
func (p userPage) fetch(ctx context.Context, f *selections.Field) {
	if items := f.Below[0].Items; items != nil && len(p.users) > 0 {
		fetch(ctx, wanted{users: p.users, on: items})
	}
}

// shownUsers are the users of a page that are shown, each with its cursor and the time of its edge.
type shownUsers struct {
	nodes   []*model.User
	cursors []string    // nil: they are not selected
	since   []time.Time // nil: the list is not made of edges
}

// shown makes the users, which have been fetched.
func (p userPage) shown(ctx context.Context, f *selections.Field) (s shownUsers) {
	nodes, places := p.nodes(ctx, f)
	s.nodes = nodes
	for _, at := range places {
		if p.cursors != nil {
			s.cursors = append(s.cursors, p.cursors[at])
		}
		if p.since != nil {
			s.since = append(s.since, p.since[at])
		}
	}
	return s
}

func (s shownUsers) cursor(i int) string {
	if s.cursors == nil {
		return ""
	}
	return s.cursors[i]
}

func (s shownUsers) plain() []*model.UserEdge {
	return edges(len(s.nodes), func(i int) model.UserEdge { return model.UserEdge{Cursor: s.cursor(i), Node: s.nodes[i]} })
}

func (s shownUsers) follows() []*model.FollowEdge {
	return edges(len(s.nodes), func(i int) model.FollowEdge {
		return model.FollowEdge{Cursor: s.cursor(i), Node: s.nodes[i], FollowedAt: s.since[i]}
	})
}

func (s shownUsers) matches() []*model.MatchEdge {
	return edges(len(s.nodes), func(i int) model.MatchEdge {
		return model.MatchEdge{Cursor: s.cursor(i), Node: s.nodes[i], MatchedAt: s.since[i]}
	})
}

func (s shownUsers) blocks() []*model.BlockEdge {
	return edges(len(s.nodes), func(i int) model.BlockEdge {
		return model.BlockEdge{Cursor: s.cursor(i), Node: s.nodes[i], BlockedAt: s.since[i]}
	})
}

func (s shownUsers) requests() []*model.FollowRequestEdge {
	return edges(len(s.nodes), func(i int) model.FollowRequestEdge {
		return model.FollowRequestEdge{Cursor: s.cursor(i), Node: s.nodes[i], RequestedAt: s.since[i]}
	})
}

// nodes makes the users, nil if they could not be read, and tells their places on the page. It leaves out
// users who have gone since the page was read: they would be null without an error.
func (p userPage) nodes(ctx context.Context, f *selections.Field) (users []*model.User, places []int) {
	items := f.Below[0].Items
	if users = make([]*model.User, len(p.users)); items != nil {
		users = usersOf(ctx, wanted{users: p.users, on: items}, itemPaths(ctx, f))
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
			switch on.Ahead {
			case fields.Item:
				all = append(all, below(ctx, on.Alias, i))
			case fields.Edges:
				for _, node := range on.Below[0].Fields {
					if node.Ahead == fields.Item {
						all = append(all, below(ctx, on.Alias, i, node.Alias))
					}
				}
			}
		}
		return all
	}
}
