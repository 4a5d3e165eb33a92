package resolvers

import (
	"context"
	"fmt"

	"github.com/99designs/gqlgen/graphql"

	"kith/graph/apierr"
	"kith/graph/cursor"
	"kith/graph/declared"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/social"
	"kith/storage"
)

// A set answer is worked out from whole lists, or is a page of a list that has to be found first: in several look-ups, one after another. The set
// answers of a level are worked out when the level is fetched, each step of all of them together; their resolvers find them.

// setField is a field with a set answer, of objects that are known by an O.
type setField[O any] struct {
	parse func(ctx context.Context, f *selections.Field) (setArguments, error)
	name  func(O) storage.PostID // names the object, see [prefetch.PageName]
	ahead func(ctx context.Context, level *prefetch.Level, args setArguments, of []O)
	setWork
}

// setWork is how a set answer is worked out.
type setWork struct {
	answer func(q setQuestion, ctx context.Context) (userPage, error)
	single bool // it takes few look-ups and no share of the budget, and its pages have nothing in common
}

func (w *setWork) work() *setWork { return w }

// worked is a [setField] of any objects.
type worked interface{ work() *setWork }

// setOf is a field of users. ahead asks for what is read with the level; nil: nothing is.
func setOf(
	parse func(context.Context, *selections.Field) (setArguments, error), ahead func(ctx context.Context, level *prefetch.Level, args setArguments, users []storage.UserID),
	answer func(q setQuestion, ctx context.Context) (userPage, error),
) *setField[storage.UserID] {
	return &setField[storage.UserID]{parse: parse, name: userName, ahead: ahead, setWork: setWork{answer: answer}}
}

// Parse implements [selections.Read].
func (s *setField[O]) Parse(ctx context.Context, f *selections.Field) any {
	return prefetch.Parsed(s.parse(ctx, f))
}

func (s *setField[O]) Ask(ctx context.Context, level *prefetch.Level, f *selections.Field, of []O) {
	args, err := prefetch.ArgumentsOf[setArguments](level.Request, f)
	if err != nil {
		return
	}
	sets := prefetch.GroupIn(level, func(*setsOfLevel) bool { return true }, func() *setsOfLevel { return new(setsOfLevel) })
	for _, one := range of {
		sets.names = append(sets.names, prefetch.PageName{Field: f, Of: s.name(one)})
	}
	if s.ahead != nil {
		s.ahead(ctx, level, args, of)
	}
}

// setArguments are the arguments of a set answer, or of a plain list.
type setArguments struct {
	prefetch.PageArguments
	other  storage.UserID // of a common list
	recent bool           // a common list in the order RECENT
	best   bool           // suggestions in the order BEST
	choice *choice        // nil: all users of the list, newest first
	isPart bool           // the page may be taken out of the whole answer
}

// parsePart reads the arguments of a page with cursors of a kind, if there are no others.
func parsePart(kind cursor.Kind) func(context.Context, *selections.Field) (setArguments, error) {
	return func(ctx context.Context, f *selections.Field) (a setArguments, err error) {
		a.PageArguments, err = prefetch.ParsePart(ctx, f, prefetch.Cursors{Kind: kind})
		return a, err
	}
}

// setsOfLevel are the set answers of a level.
type setsOfLevel struct {
	names []prefetch.PageName // by each alias
}

func (*setsOfLevel) Ask(*prefetch.Level, *social.Audience) {}

// Show works the answers out, and adds the users on them to the next level.
func (s *setsOfLevel) Show(ctx context.Context, level *prefetch.Level, audience *social.Audience) {
	e := level.Access
	var places loaders.SmallMap[prefetch.PageName, int] // of the answers
	var aliases loaders.SmallMap[prefetch.PageName, struct{}]
	for _, name := range s.names {
		user, isOfList := name.Of.Author, name.Of.Number != 0 // a list that is seen has an owner
		one := prefetch.PageName{Field: name.Field.Same, Of: name.Of}
		switch {
		case !isOfList && (e.IsAbsent(user) || level.Lacks(user)):
			e.Request.Put(one, &userPage{IsClosed: true}) // the user may come back before it is shown
		case aliases.Add(name, struct{}{}):
			places.Add(one, len(places.Keys()))
		}
	}
	names := places.Keys()
	among := 0 // how many share the budget
	answers, isShared := make([]*userPage, len(names)), make([]bool, len(names))
	var turns [2][]int // pages of one whole come after the first of them, which leaves it to them
	var firsts loaders.SmallMap[whole, int]
	for i, name := range names {
		if !name.Field.Read.(worked).work().single {
			among++
		}
		turn := 0
		if whole, isPart := wholeOf(e.Request, name); isPart && !firsts.Add(whole, i) {
			first, _ := firsts.Get(whole)
			isShared[first], isShared[i], turn = true, true, 1
		}
		turns[turn] = append(turns[turn], i)
	}
	for _, turn := range turns {
		e.Loaders.Together(len(turn), func(i int, read loaders.Reader) {
			at := turn[i]
			answers[at] = answerSet(ctx, e, audience, names[at], read, max(1, among), isShared[at])
		})
	}
	for _, name := range aliases.Keys() {
		at, _ := places.Get(prefetch.PageName{Field: name.Field.Same, Of: name.Of})
		level.Next = append(level.Next, objectsOn(answers[at], name.Field)...)
	}
	for i, name := range names {
		e.Request.Put(name, answers[i])
	}
}

// whole names what pages of set answers are taken out of.
type whole struct {
	field string
	of    storage.PostID // see [prefetch.PageName]
	with  storage.UserID
	how   string
}

// wholeOf is what a page may be taken out of; false if each page is worked out alone.
func wholeOf(r *prefetch.Request, name prefetch.PageName) (w whole, isPart bool) {
	args, _ := prefetch.ArgumentsOf[setArguments](r, name.Field)
	if w = (whole{field: name.Field.Name, of: name.Of, with: args.other}); args.choice != nil {
		w.how = args.choice.String()
	}
	return w, args.isPart
}

// suggested is what a page of suggestions says of them.
type suggested struct {
	social.Suggestions
	unit float64 // of the scores
}

// edgesRead are the edges that a page of an [ownList] is made of.
type edgesRead struct {
	edges []storage.Edge
	kind  *declared.Kind // if what is beside them is shown
}

// objectsOn are the users on the page, and those who recommend them.
func objectsOn(p *userPage, f *selections.Field) (level []prefetch.Objects) {
	if len(p.Rows) == 0 {
		return nil
	}
	if items := f.Below[0].Items; items != nil {
		edges, _ := p.Made.(*edgesRead)
		level = append(level, prefetch.Users{IDs: p.Rows, Exist: edges != nil && edges.kind != nil, On: items})
	}
	if suggested, is := p.Made.(*suggested); is {
		for _, edges := range f.Below[0].Named("edges") {
			level = append(level, prefetch.RowsOn(suggested.Suggestions.Suggestions, edges.Below))
		}
	}
	return level
}

// answerSet computes a set answer; among is how many are computed together, and several that there are other pages of the same.
func answerSet(ctx context.Context, e *prefetch.Access, audience *social.Audience, name prefetch.PageName, read loaders.Reader, among int, several bool) (p *userPage) {
	defer func() {
		if reason := recover(); reason != nil {
			p = &userPage{Err: graphql.GetOperationContext(ctx).RecoverFunc(ctx, reason)}
		}
	}()
	args, _ := prefetch.ArgumentsOf[setArguments](e.Request, name.Field)
	e, audience, reasons := e.Noticing(audience)
	one, err := name.Field.Read.(worked).work().answer(setQuestion{
		Access: e, resolver: e.Owner.(*Resolver), audience: audience, graph: e.Graph(read, audience).Among(among), read: read,
		name: name, arguments: args, user: name.Of.Author, several: several,
	}, ctx)
	one.Err, one.Why = err, reasons
	return &one
}

// commonList is the list that a user and that of the argument `with` have in common.
func commonList(side storage.Side) *setField[storage.UserID] {
	parse := func(ctx context.Context, f *selections.Field) (a setArguments, err error) {
		kind := commonKinds[side].byID
		if a.recent = f.Argument(ctx, "orderBy") == model.CommonOrderRecent.String(); a.recent {
			kind, a.isPart = commonKinds[side].recent, true
		}
		var badPage, badOther error
		a.PageArguments, badPage = prefetch.ParsePart(ctx, f, prefetch.Cursors{Kind: kind})
		a.other, badOther = userArgument(ctx, f, "with")
		return a, apierr.All(badPage, badOther)
	}
	ahead := func(_ context.Context, level *prefetch.Level, args setArguments, _ []storage.UserID) {
		level.AddOpens(side, []storage.UserID{args.other})
		level.Counts = append(level.Counts, args.other)
	}
	return setOf(parse, ahead, func(q setQuestion, ctx context.Context) (userPage, error) { return q.common(ctx, side) })
}

func (userFields) CommonFollowings(ctx context.Context, obj *model.User, _ string, _ *int32, _ *string, _ *int32, _ *string, _ model.CommonOrder) (*model.UserConnection, error) {
	return showPage(ctx, userName(obj.UserID))
}

func (userFields) CommonFollowers(ctx context.Context, obj *model.User, _ string, _ *int32, _ *string, _ *int32, _ *string, _ model.CommonOrder) (*model.UserConnection, error) {
	return showPage(ctx, userName(obj.UserID))
}

// setQuestion has the inputs of a set answer.
type setQuestion struct {
	*prefetch.Access
	resolver  *Resolver
	audience  *social.Audience
	graph     *social.Graph
	read      loaders.Reader
	name      prefetch.PageName
	arguments setArguments
	user      storage.UserID
	several   bool // there are other pages of the same
}

var closed = userPage{IsClosed: true}

// common is the common list of two users.
func (q setQuestion) common(ctx context.Context, side storage.Side) (userPage, error) {
	a, b := social.List{Side: side, Owner: q.user}, social.List{Side: side, Owner: q.arguments.other}
	if open, err := q.AreOpen(a, b); err != nil || !open {
		return closed, err
	}
	kinds := commonKinds[side]
	if q.arguments.recent {
		cursors := prefetch.Cursors{Kind: kinds.recent, To: []int64{int64(a.Owner)}, Also: []int64{int64(b.Owner)}, What: "list"}
		return q.recent(ctx, cursors, social.MatchQuery{Base: a, Other: b})
	}
	return q.intersection(ctx, kinds.byID, a, b)
}

// commonKinds are the cursors of common lists, in each of their orders.
var commonKinds = [...]struct{ byID, recent cursor.Kind }{
	storage.Forward: {cursor.CommonFollowings, cursor.RecentCommonFollowings},
	storage.Inverse: {cursor.CommonFollowers, cursor.RecentCommonFollowers},
}

// recent is a common list in the order of its first user's edges.
func (q setQuestion) recent(ctx context.Context, cursors prefetch.Cursors, lists social.MatchQuery) (userPage, error) {
	rows, fits, err := q.graph.Fits(ctx, lists)
	if err != nil {
		return userPage{}, err
	}
	if !fits {
		return userPage{}, apierr.ListTooLong.Error(
			"in the order RECENT this list takes %d rows, and one answer may examine %d: ask for it in the order ID", rows, q.graph.Budget()).In("orderBy").Over(uint64(rows), uint64(q.graph.Budget()))
	}
	return q.matches(ctx, cursors, lists)
}

// intersection is a page of the intersection of two lists.
func (q setQuestion) intersection(ctx context.Context, kind cursor.Kind, a, b social.List) (userPage, error) {
	cursors := prefetch.Cursors{Kind: kind, To: []int64{int64(a.Owner), int64(b.Owner)}, What: "list"} // they carry a count
	return byID(ctx, q.arguments.PageArguments, cursors, func(from social.Mark, first int) (social.Common, error) {
		if q.IsAbsent(a.Owner) || q.IsAbsent(b.Owner) { // for a hidden user, as for one who does not exist
			return social.Common{Complete: true}, nil
		}
		return q.graph.People(ctx, social.PeopleQuery{Filter: social.Both(a, b), From: from, First: first})
	})
}

// byID is a page of users by ascending id.
func byID(ctx context.Context, args prefetch.PageArguments, cursors prefetch.Cursors, people func(from social.Mark, first int) (social.Common, error)) (userPage, error) {
	from, before, err := marksOf(ctx, cursors, args, markOn)
	if err != nil {
		return userPage{}, err
	}
	if !args.IsWhole() {
		c, err := people(from, args.Size)
		a := markedPage(ctx, c, from, cursors)
		args.Around(a.Info, c.More, args.Text != "", false)
		return a, err
	}
	c, err := people(social.Mark{}, social.MaxMembers)
	if err == nil && c.More {
		err = args.TooLong()
	}
	ids, offset, more := prefetch.Cut(args, c.IDs,
		func(id storage.UserID) bool { return id > from.After }, func(id storage.UserID) bool { return id < before.After })
	c.IDs, c.More = ids, false
	a := markedPage(ctx, c, social.Mark{Found: offset}, cursors)
	args.Around(a.Info, more, args.Text != "", args.TextBefore != "")
	return a, err
}

// markedPage is a page of users by ascending id.
func markedPage(ctx context.Context, c social.Common, from social.Mark, cursors prefetch.Cursors) userPage {
	p := userPage{Rows: c.IDs, Cursors: make([]string, len(c.IDs)), Total: prefetch.Counted(c.Total), Complete: c.Complete}
	for i, id := range c.IDs {
		p.Cursors[i] = cursors.Spell(prefetch.Unsealed, int64(id), int64(from.Found+i+1))
	}
	p.Info = prefetch.PageInfo(prefetch.OperationOf(ctx).Cursors, p.Cursors, c.More, func(seal *cursor.Sealer) string {
		return cursors.Spell(seal, int64(c.Next.After), int64(c.Next.Found))
	})
	return p
}

// marksOf reads both cursors of a page.
func marksOf[M any](ctx context.Context, b prefetch.Cursors, args prefetch.PageArguments, read func(ctx context.Context, b prefetch.Cursors, argument, text string) (M, error)) (after, before M, err error) {
	after, badAfter := read(ctx, b, "after", args.Text)
	before, badBefore := read(ctx, b, "before", args.TextBefore)
	return after, before, apierr.All(badAfter, badBefore)
}

// markOn reads a cursor of such a page.
func markOn(ctx context.Context, b prefetch.Cursors, argument, text string) (social.Mark, error) {
	var id, found int64
	err := b.Read(ctx, argument, text, &id, &found)
	return social.Mark{After: storage.UserID(id), Found: foundBefore(found)}, err
}

// foundBefore is the count of a cursor. No list is so long as a made-up cursor may say: the total stays an Int,
// and the next cursor one that can be read.
func foundBefore(claimed int64) int { return int(min(claimed, 1<<30)) }

// matches is a page of matches, each with the time since when it is one.
func (q setQuestion) matches(ctx context.Context, cursors prefetch.Cursors, lists social.MatchQuery) (userPage, error) {
	args := q.arguments
	from, before, err := marksOf(ctx, cursors, args.PageArguments, matchMark)
	if err != nil {
		return userPage{}, err
	}
	isWhole := args.IsWhole()
	if !isWhole && q.several { // one page alone may take as long, if the list is not too long
		length := loaders.For(ctx).Counts.Get(lists.Base.Owner)
		isWhole = length.Err == nil && length.Value.Of(lists.Base.Side) <= social.MaxMembers
	}
	begin, c := from, social.MatchPage{Complete: true}
	absent := q.IsAbsent(lists.Other.Owner)
	if isWhole && !absent {
		if c, err = prefetch.Keep(ctx, lists, func() (social.MatchPage, error) {
			return q.graph.Matches(ctx, lists, social.MatchMark{}, social.MaxMembers)
		}); err != nil {
			return userPage{}, err
		}
		isWhole = args.IsWhole() || c.Complete && !c.More
	}
	if !isWhole && !absent {
		if c, err = q.graph.Matches(ctx, lists, from, args.Size); err != nil {
			return userPage{}, err
		}
	}
	more := c.More
	if isWhole {
		if c.More {
			return userPage{}, args.TooLong()
		}
		c.Matches, begin.Found, more = prefetch.Cut(args.PageArguments, c.Matches,
			func(m social.Match) bool { return m.At.Compare(from.After) > 0 }, func(m social.Match) bool { return m.At.Compare(before.After) < 0 })
		if c.Next, c.More = begin, more && !args.IsWhole(); len(c.Matches) > 0 {
			c.Next = social.MatchMark{After: c.Matches[len(c.Matches)-1].At, Found: begin.Found + len(c.Matches)}
		}
	}
	spell := func(seal *cursor.Sealer, m social.MatchMark) string {
		return cursors.Spell(seal, int64(m.After.UpdateTime), int64(m.After.Peer), int64(m.Found))
	}
	p := userPage{Total: prefetch.Counted(c.Total), Complete: c.Complete}
	for i, one := range c.Matches {
		p.Rows, p.Since = append(p.Rows, one.ID), append(p.Since, max(one.At.UpdateTime, one.Other).Time())
		p.Cursors = append(p.Cursors, spell(prefetch.Unsealed, social.MatchMark{After: one.At, Found: begin.Found + i + 1}))
	}
	p.Info = prefetch.PageInfo(q.Cursors, p.Cursors, c.More, func(seal *cursor.Sealer) string { return spell(seal, c.Next) })
	args.Around(p.Info, more, args.Text != "", args.TextBefore != "")
	return p, nil
}

// matchMark reads a cursor of such a page.
func matchMark(ctx context.Context, b prefetch.Cursors, argument, text string) (social.MatchMark, error) {
	var at, peer, found int64
	err := b.Read(ctx, argument, text, &at, &peer, &found)
	return social.MatchMark{After: storage.Position{UpdateTime: storage.Micros(at), Peer: storage.UserID(peer)}, Found: foundBefore(found)}, err
}

// A choice is which users of a list are wanted, and in which order.
type choice struct {
	words           []string
	nobody          bool // match is given and has no words
	mutual, special *bool
	order           social.Order
}

// String writes equal choices in the same way: cursors are bound to the text.
func (s choice) String() string {
	is := func(b *bool) string {
		if b == nil {
			return "any"
		}
		return fmt.Sprint(*b)
	}
	return fmt.Sprintf("%q %s %s %d", s.words, is(s.mutual), is(s.special), s.order)
}
