package resolvers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql"

	"kith/graph/apierr"
	"kith/graph/cursor"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// A set answer is worked out from whole lists, or is a page of a list that has to be found first: in several look-ups, one after another. The set
// answers of a level are worked out when the level is fetched, each step of all of them together; their resolvers find them.

// setField is a field with a set answer, of objects that are known by an O.
type setField[O any] struct {
	parse  func(ctx context.Context, f *selections.Field) (setArguments, error)
	name   func(O) storage.PostID // names the object, see answerName
	ahead  func(ctx context.Context, b *batch, args setArguments, of []O)
	answer func(q setQuestion, ctx context.Context) (page, error)
	// single: it takes few look-ups and no share of the budget, and its pages have nothing in common.
	single bool
}

// setOf is a field of users. ahead asks for what is read with the level; nil: nothing is.
func setOf(
	parse func(context.Context, *selections.Field) (setArguments, error), ahead func(ctx context.Context, b *batch, args setArguments, users []storage.UserID),
	answer func(q setQuestion, ctx context.Context) (page, error),
) *setField[storage.UserID] {
	return &setField[storage.UserID]{parse: parse, name: userName, ahead: ahead, answer: answer}
}

// Parse implements [selections.Read].
func (s *setField[O]) Parse(ctx context.Context, f *selections.Field) any {
	return parsedAs(s.parse(ctx, f))
}

func (s *setField[O]) ask(ctx context.Context, b *batch, f *selections.Field, of []O) {
	args, err := argument[setArguments](b.request, f)
	if err != nil {
		return
	}
	if b.sets == nil && len(of) > 0 {
		b.afterwards = append(b.afterwards, b.answerSets)
	}
	for _, one := range of {
		b.sets = append(b.sets, answerName{f, s.name(one)})
	}
	if s.ahead != nil {
		s.ahead(ctx, b, args, of)
	}
}

// workOf is how a set answer is worked out, and whether it is single.
func (s *setField[O]) workOf() (answer func(setQuestion, context.Context) (page, error), single bool) {
	return s.answer, s.single
}

// worked is a [setField] of any objects.
type worked interface {
	workOf() (answer func(setQuestion, context.Context) (page, error), single bool)
}

// setArguments are the arguments of a set answer, or of a plain list.
type setArguments struct {
	pageArguments
	other  storage.UserID // of a common list
	recent bool           // a common list in the order RECENT
	best   bool           // suggestions in the order BEST
	choice *choice        // nil: all users of the list, newest first
	isPart bool           // the page may be taken out of the whole answer
}

// parsePage reads the arguments of a page, if there are no others.
func parsePage(ctx context.Context, f *selections.Field) (a setArguments, err error) {
	a.pageArguments, err = pageOf(ctx, f, 0)
	return a, err
}

// answerSets works out the set answers of a level, and adds the users on them to the next level.
func (b *batch) answerSets(ctx context.Context) {
	e := b.access
	var places loaders.SmallMap[answerName, int] // of the answers
	var aliases loaders.SmallMap[answerName, struct{}]
	for _, name := range b.sets {
		user, isOfList := name.of.Author, name.of.Number != 0 // a list that is seen has an owner
		if (isOfList || !e.isAbsent(user) && !b.lacks(user)) && aliases.Add(name, struct{}{}) {
			places.Add(answerName{name.field.Same, name.of}, len(places.Keys()))
		}
	}
	names := places.Keys()
	among := 0 // how many share the budget
	var wholes loaders.SmallMap[any, []int]
	for i, name := range names {
		if _, single := name.field.Read.(worked).workOf(); !single {
			among++
		}
		whole := wholeOf(e.request, name)
		pages, _ := wholes.Get(whole)
		wholes.Put(whole, append(pages, i))
	}
	answers, isShared := make([]*page, len(names)), make([]bool, len(names))
	var turns [2][]int // pages of one whole come after the first of them, which leaves it to them
	for _, whole := range wholes.Keys() {
		pages, _ := wholes.Get(whole)
		turns[0], turns[1] = append(turns[0], pages[0]), append(turns[1], pages[1:]...)
		for _, i := range pages {
			isShared[i] = len(pages) > 1
		}
	}
	for _, turn := range turns {
		e.loaders.Together(len(turn), func(i int, read loaders.Reader) {
			at := turn[i]
			answers[at] = e.resolver.answerSet(ctx, names[at], read, max(1, among), isShared[at])
		})
	}
	for _, name := range aliases.Keys() {
		at, _ := places.Get(answerName{name.field.Same, name.of})
		b.next = append(b.next, answers[at].wanted(name.field)...)
	}
	e.request.mu.Lock()
	defer e.request.mu.Unlock()
	for i, name := range names {
		e.request.answers.Put(name, answers[i])
	}
}

// whole names what pages of set answers are taken out of.
type whole struct {
	field string
	of    storage.PostID // see [answerName]
	with  storage.UserID
	how   string
}

// wholeOf is what a page may be taken out of; itself if each page is worked out alone.
func wholeOf(r *requestState, name answerName) any {
	args, _ := argument[setArguments](r, name.field)
	if !args.isPart {
		return name
	}
	w := whole{field: name.field.Name, of: name.of, with: args.other}
	if args.choice != nil {
		w.how = args.choice.String()
	}
	return w
}

// lacks reports whether a user whose row has been read does not exist.
func (b *batch) lacks(id storage.UserID) bool {
	return slices.Contains(b.rows, id) && !b.loaders.Users.Load(id).Found
}

// wanted are the users on the page, and those who recommend them.
func (p *page) wanted(f *selections.Field) (level []wanted) {
	if len(p.users) == 0 {
		return nil
	}
	if items := f.Below[0].Items; items != nil {
		level = append(level, wantedUsers{ids: p.users, exist: p.kind != nil, on: items})
	}
	if p.suggested != nil {
		for _, edges := range f.Below[0].Named("edges") {
			level = append(level, wantedRows[social.Suggestion]{p.suggested.Suggestions.Suggestions, edges.Below})
		}
	}
	return level
}

// answerSet computes a set answer; among is how many are computed together, and several that there are other pages of the same.
func (r *Resolver) answerSet(ctx context.Context, name answerName, read loaders.Reader, among int, several bool) (p *page) {
	defer func() {
		if reason := recover(); reason != nil {
			p = &page{err: graphql.GetOperationContext(ctx).RecoverFunc(ctx, reason)}
		}
	}()
	audience, err := audienceOf(ctx)
	if err != nil {
		return &page{err: err}
	}
	args, _ := argument[setArguments](stateOf(ctx), name.field)
	work, _ := name.field.Read.(worked).workOf()
	one, err := work(setQuestion{
		resolver: r, audience: audience, graph: social.New(read, r.Budget, audience).Among(among), read: read,
		name: name, arguments: args, user: name.of.Author, several: several,
	}, ctx)
	one.err = err
	return &one
}

// commonList is the list that a user and that of the argument `with` have in common.
func commonList(side storage.Side) *setField[storage.UserID] {
	parse := func(ctx context.Context, f *selections.Field) (setArguments, error) {
		a, err := parsePage(ctx, f)
		if err == nil {
			a.recent = f.Argument(ctx, "orderBy") == model.CommonOrderRecent.String()
			a.isPart = a.recent
			a.other, err = parseUserID("with", strings.Join(texts(ctx, f, "with"), ""))
		}
		return a, err
	}
	ahead := func(_ context.Context, b *batch, args setArguments, _ []storage.UserID) {
		b.addOpens(side, []storage.UserID{args.other})
		b.counts = append(b.counts, args.other)
	}
	return setOf(parse, ahead, func(q setQuestion, ctx context.Context) (page, error) { return q.common(ctx, side) })
}

func (userFields) CommonFollowings(ctx context.Context, obj *model.User, _ string, _ *int32, _ *string, _ *int32, _ *string, _ model.CommonOrder) (*model.UserConnection, error) {
	return showPage(ctx, userName(obj.UserID), plain)
}

func (userFields) CommonFollowers(ctx context.Context, obj *model.User, _ string, _ *int32, _ *string, _ *int32, _ *string, _ model.CommonOrder) (*model.UserConnection, error) {
	return showPage(ctx, userName(obj.UserID), plain)
}

// setQuestion has the inputs of a set answer.
type setQuestion struct {
	resolver  *Resolver
	audience  *social.Audience
	graph     *social.Graph
	read      loaders.Reader
	name      answerName
	arguments setArguments
	user      storage.UserID
	several   bool // there are other pages of the same
}

var closed = page{isClosed: true}

// common is the common list of two users.
func (q setQuestion) common(ctx context.Context, side storage.Side) (page, error) {
	a, b := social.List{Side: side, Owner: q.user}, social.List{Side: side, Owner: q.arguments.other}
	if open, err := isOpen(ctx, a, b); err != nil || !open {
		return closed, err
	}
	kinds := commonKinds[side]
	if q.arguments.recent {
		cursors := bound{kind: kinds.recent, to: []int64{int64(a.Owner)}, also: []int64{int64(b.Owner)}, what: "list"}
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
func (q setQuestion) recent(ctx context.Context, cursors bound, lists social.MatchQuery) (page, error) {
	rows, fits, err := q.graph.Fits(ctx, lists)
	if err != nil {
		return page{}, err
	}
	if !fits {
		return page{}, apierr.ListTooLong.Error(
			"in the order RECENT this list takes %d rows, and one answer may examine %d: ask for it in the order ID", rows, q.graph.Budget()).In("orderBy").Over(uint64(rows), uint64(q.graph.Budget()))
	}
	return q.matches(ctx, cursors, lists)
}

// intersection is a page of the intersection of two lists.
func (q setQuestion) intersection(ctx context.Context, kind cursor.Kind, a, b social.List) (page, error) {
	cursors := bound{kind: kind, to: []int64{int64(a.Owner), int64(b.Owner)}, what: "list"} // they carry a count
	return q.resolver.byID(ctx, q.arguments.pageArguments, cursors, func(from social.Mark, first int) (social.Common, error) {
		if isAbsent(ctx, a.Owner) || isAbsent(ctx, b.Owner) { // for a hidden user, as for one who does not exist
			return social.Common{Complete: true}, nil
		}
		return q.graph.People(ctx, social.PeopleQuery{Filter: social.Both(a, b), From: from, First: first})
	})
}

// byID is a page of users by ascending id.
func (r *Resolver) byID(ctx context.Context, args pageArguments, cursors bound, people func(from social.Mark, first int) (social.Common, error)) (page, error) {
	from, err := cursors.mark(ctx, "after", args.text)
	if err != nil {
		return page{}, err
	}
	before, err := cursors.mark(ctx, "before", args.textBefore)
	if err != nil {
		return page{}, err
	}
	if !args.isWhole() {
		c, err := people(from, args.size)
		a := r.markedPage(c, from, cursors)
		args.around(a.info, c.More, args.text != "", false)
		return a, err
	}
	c, err := people(social.Mark{}, social.MaxMembers)
	if err == nil && c.More {
		err = args.tooLong()
	}
	ids, offset, more := cut(args, c.IDs,
		func(id storage.UserID) bool { return id > from.After }, func(id storage.UserID) bool { return id < before.After })
	c.IDs, c.More = ids, false
	a := r.markedPage(c, social.Mark{Found: offset}, cursors)
	args.around(a.info, more, args.text != "", args.textBefore != "")
	return a, err
}

// markedPage is a page of users by ascending id.
func (r *Resolver) markedPage(c social.Common, from social.Mark, cursors bound) page {
	p := page{users: c.IDs, cursors: make([]string, len(c.IDs)), total: counted(c.Total), complete: c.Complete}
	for i, id := range c.IDs {
		p.cursors[i] = cursors.spell(unsealed, int64(id), int64(from.Found+i+1))
	}
	p.info = r.pageInfo(p.cursors, c.More, func(seal *cursor.Sealer) string {
		return cursors.spell(seal, int64(c.Next.After), int64(c.Next.Found))
	})
	return p
}

// mark reads a cursor of such a page.
func (b bound) mark(ctx context.Context, argument, text string) (social.Mark, error) {
	var id, found int64
	err := b.read(ctx, argument, text, &id, &found)
	return social.Mark{After: storage.UserID(id), Found: foundBefore(found)}, err
}

// foundBefore is the count of a cursor. No list is so long as a made-up cursor may say: the total stays an Int,
// and the next cursor one that can be read.
func foundBefore(claimed int64) int { return int(min(claimed, 1<<30)) }

func (q setQuestion) bothLists(ctx context.Context, kind cursor.Kind, lists social.MatchQuery) (page, error) {
	if open, err := isOpen(ctx, lists.Base, lists.Other); err != nil || !open {
		return closed, err
	}
	cursors := bound{kind: kind, to: []int64{int64(lists.Base.Owner)}, what: "list"}
	return q.matches(ctx, cursors, lists)
}

// matches is a page of matches, each with the time since when it is one.
func (q setQuestion) matches(ctx context.Context, cursors bound, lists social.MatchQuery) (page, error) {
	args := q.arguments
	from, err := cursors.matchMark(ctx, "after", args.text)
	if err != nil {
		return page{}, err
	}
	before, err := cursors.matchMark(ctx, "before", args.textBefore)
	if err != nil {
		return page{}, err
	}
	isWhole := args.isWhole()
	if !isWhole && q.several { // one page alone may take as long, if the list is not too long
		length := loaders.For(ctx).Counts.Get(lists.Base.Owner)
		isWhole = length.Err == nil && length.Value.Of(lists.Base.Side) <= social.MaxMembers
	}
	begin, c := from, social.MatchPage{Complete: true}
	absent := isAbsent(ctx, lists.Other.Owner)
	if isWhole && !absent {
		if c, err = keep(ctx, lists, func() (social.MatchPage, error) {
			return q.graph.Matches(ctx, lists, social.MatchMark{}, social.MaxMembers)
		}); err != nil {
			return page{}, err
		}
		isWhole = args.isWhole() || c.Complete && !c.More
	}
	if !isWhole && !absent {
		if c, err = q.graph.Matches(ctx, lists, from, args.size); err != nil {
			return page{}, err
		}
	}
	more := c.More
	if isWhole {
		if c.More {
			return page{}, args.tooLong()
		}
		c.Matches, begin.Found, more = cut(args.pageArguments, c.Matches,
			func(m social.Match) bool { return m.At.Compare(from.After) > 0 }, func(m social.Match) bool { return m.At.Compare(before.After) < 0 })
		if c.Next, c.More = begin, more && !args.isWhole(); len(c.Matches) > 0 {
			c.Next = social.MatchMark{After: c.Matches[len(c.Matches)-1].At, Found: begin.Found + len(c.Matches)}
		}
	}
	spell := func(seal *cursor.Sealer, m social.MatchMark) string {
		return cursors.spell(seal, int64(m.After.UpdateTime), int64(m.After.Peer), int64(m.Found))
	}
	p := page{total: counted(c.Total), complete: c.Complete}
	for i, one := range c.Matches {
		p.users, p.since = append(p.users, one.ID), append(p.since, max(one.At.UpdateTime, one.Other).Time())
		p.cursors = append(p.cursors, spell(unsealed, social.MatchMark{After: one.At, Found: begin.Found + i + 1}))
	}
	p.info = q.resolver.pageInfo(p.cursors, c.More, func(seal *cursor.Sealer) string { return spell(seal, c.Next) })
	args.around(p.info, more, args.text != "", args.textBefore != "")
	return p, nil
}

// matchMark reads a cursor of such a page.
func (b bound) matchMark(ctx context.Context, argument, text string) (social.MatchMark, error) {
	var at, peer, found int64
	err := b.read(ctx, argument, text, &at, &peer, &found)
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
