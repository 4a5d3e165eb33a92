package resolvers

import (
	"context"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql"

	"kith/graph/apierr"
	"kith/graph/cursor"
	"kith/graph/fields"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// A set answer is worked out from whole lists, in several look-ups, one after another. The set
// answers of a level are worked out when the level is fetched, each step of all of them together;
// their resolvers find them here.

// setAnswer is a page of a set answer, or the reason why there is none.
type setAnswer struct {
	err      error
	isClosed bool // a list that it is derived from is not open to the viewer

	page     userPage
	info     *model.PageInfo
	total    storage.Result[int64]
	complete bool

	edges []storage.Edge // of an [ownList]: those that the page is made of
	kind  storage.Kind   // of these, if what is beside them is shown

	suggested social.Suggestions // by `followSuggestions`
	best      bool               // in the order BEST
}

// setArguments are the arguments of a set answer, or of a plain list.
type setArguments struct {
	pageArguments
	other    storage.UserID // of a common list
	recent   bool           // a common list in the order RECENT
	best     bool           // suggestions in the order BEST
	selected *choice        // nil: all users of the list, newest first
}

func parseSet(ctx context.Context, f *selections.Field) (a setArguments, err error) {
	if a.selected, err = choiceOf(ctx, f); err != nil {
		return a, err
	}
	kind := cursor.Kind(0)
	if f.Ahead == fields.List && a.selected == nil {
		kind = listKinds[f.Side]
	}
	if a.pageArguments, err = pageOf(ctx, f, kind); err != nil {
		return a, err
	}
	a.best = f.Ahead == fields.Suggestions && f.Argument(ctx, "orderBy") == model.SuggestionOrderBest.String()
	if f.Ahead == fields.Common {
		a.recent = f.Argument(ctx, "orderBy") == model.CommonOrderRecent.String()
		a.other, err = parseUserID("with", strings.Join(texts(ctx, f, "with"), ""))
	}
	return a, err
}

// answerSets works out the set answers of a level, and adds the users on them to the next level.
func (b *batch) answerSets(ctx context.Context) {
	e := accessOf(ctx)
	var places loaders.SmallMap[answerName, int] // of the answers
	var aliases loaders.SmallMap[answerName, struct{}]
	for _, name := range b.sets {
		user, isOfList := name.of.Author, name.of.Number != 0 // a list that is seen has an owner
		if (isOfList || !e.isAbsent(user) && !b.lacks(e, user)) && aliases.Add(name, struct{}{}) {
			places.Add(answerName{name.field.Same, name.of}, len(places.Keys()))
		}
	}
	names := places.Keys()
	among := 0 // how many share the budget; pages of relations take none of it
	var wholes loaders.SmallMap[any, []int]
	for i, name := range names {
		if name.field.Ahead < fields.Related {
			among++
		}
		whole := wholeOf(e.request, name)
		pages, _ := wholes.Get(whole)
		wholes.Put(whole, append(pages, i))
	}
	answers, isShared := make([]*setAnswer, len(names)), make([]bool, len(names))
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
			answers[at] = e.resolver.answerSet(ctx, names[at], read, among, isShared[at])
		})
	}
	for _, name := range aliases.Keys() {
		at, _ := places.Get(answerName{name.field.Same, name.of})
		b.next = append(b.next, answers[at].wanted(ctx, name.field)...)
	}
	e.request.mu.Lock()
	defer e.request.mu.Unlock()
	for i, name := range names {
		e.request.answers.Put(name, storage.Result[*setAnswer]{Value: answers[i], Err: answers[i].err})
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
	if name.field.Ahead >= fields.Related {
		return name
	}
	args, err := argument[setArguments](r, name.field)
	if err != nil || args.selected == nil && name.field.Ahead != fields.BothLists && !args.recent {
		return name
	}
	w := whole{field: name.field.Name, of: name.of, with: args.other}
	if args.selected != nil {
		w.how = args.selected.String()
	}
	return w
}

// lacks reports whether a user whose row has been read does not exist.
func (b *batch) lacks(e *access, id storage.UserID) bool {
	return slices.Contains(b.rows, id) && !e.loaders.Users.Load(id).Found
}

// wanted are the users on the page, and those who recommend them.
func (a *setAnswer) wanted(ctx context.Context, f *selections.Field) (level []wanted) {
	if len(a.page.users) == 0 {
		return nil
	}
	if items := f.Below[0].Items; items != nil {
		level = append(level, wanted{users: a.page.users, exist: a.kind.Number != 0, on: items})
	}
	if via := viaOf(ctx, f); via.on != nil {
		w := wanted{on: via.on}
		for _, s := range a.suggested.Suggestions {
			w.users = append(w.users, s.Via...)
		}
		level = append(level, w)
	}
	return level
}

// answerSet computes a set answer; among is how many are computed together, and several that there are other pages of the same.
func (r *Resolver) answerSet(ctx context.Context, name answerName, read loaders.Reader, among int, several bool) (a *setAnswer) {
	defer func() {
		if reason := recover(); reason != nil {
			a = &setAnswer{err: graphql.GetOperationContext(ctx).RecoverFunc(ctx, reason)}
		}
	}()
	f := name.field
	if f.Ahead == fields.Related || f.Ahead == fields.Members {
		one, err := r.edgesAnswer(ctx, name, read)
		one.err = err
		return &one
	}
	graph, err := r.graph(ctx, read)
	if err != nil {
		return &setAnswer{err: err}
	}
	args, err := argument[setArguments](stateOf(ctx), f)
	if err != nil {
		return &setAnswer{err: err}
	}
	q := setQuestion{resolver: r, graph: graph.Among(among), arguments: args, user: name.of.Author, several: several}
	a = &setAnswer{}
	switch {
	case f.Ahead == fields.Known:
		*a, err = q.known(ctx, f)
	case args.selected != nil:
		*a, err = q.selected(ctx, f)
	case f.Ahead == fields.BothLists:
		ways := bothWays[f.Name]
		*a, err = q.bothLists(ctx, ways.kind, ways.lists(name.of.Author))
	case f.Ahead == fields.Common:
		*a, err = q.common(ctx, f.Side)
	case f.Ahead == fields.Suggestions:
		most := 0
		for _, alias := range f.Twins {
			most = max(most, viaOf(ctx, alias).most)
		}
		*a, err = q.suggestions(ctx, most)
	case f.Ahead == fields.Similar:
		*a, err = q.similar(ctx)
	}
	a.err = err
	return a
}

func (userFields) Friends(ctx context.Context, obj *model.User, _ *int32, _ *string, _ *int32, _ *string, _ *model.ListFilter, _ model.ListOrder) (*model.MatchConnection, error) {
	return set(ctx, obj, func(page model.UserPage, shown shownUsers) *model.MatchConnection {
		return &model.MatchConnection{UserPage: page, Edges: shown.matches()}
	})
}

func (userFields) NotFollowingBack(ctx context.Context, obj *model.User, _ *int32, _ *string, _ *int32, _ *string) (*model.FollowConnection, error) {
	return set(ctx, obj, follows)
}

func (userFields) NotFollowedBack(ctx context.Context, obj *model.User, _ *int32, _ *string, _ *int32, _ *string) (*model.FollowConnection, error) {
	return set(ctx, obj, follows)
}

func follows(page model.UserPage, shown shownUsers) *model.FollowConnection {
	return &model.FollowConnection{UserPage: page, Edges: shown.follows()}
}

func (userFields) CommonFollowings(ctx context.Context, obj *model.User, _ string, _ *int32, _ *string, _ *int32, _ *string, _ model.CommonOrder) (*model.UserConnection, error) {
	return set(ctx, obj, plain)
}

func (userFields) CommonFollowers(ctx context.Context, obj *model.User, _ string, _ *int32, _ *string, _ *int32, _ *string, _ model.CommonOrder) (*model.UserConnection, error) {
	return set(ctx, obj, plain)
}

func (userFields) FollowersYouKnow(ctx context.Context, obj *model.User, _ *int32, _ *string, _ *int32, _ *string) (*model.UserConnection, error) {
	return set(ctx, obj, plain)
}

func (userFields) SimilarUsers(ctx context.Context, obj *model.User, _ *int32, _ *string) (*model.UserConnection, error) {
	return set(ctx, obj, plain)
}

func plain(page model.UserPage, shown shownUsers) *model.UserConnection {
	return &model.UserConnection{UserPage: page, Edges: shown.plain()}
}

// set answers a field that is a set answer of users.
func set[C any](ctx context.Context, obj *model.User, connection func(model.UserPage, shownUsers) *C) (*C, error) {
	f := planned(ctx)
	a, err := answerTo[*setAnswer](stateOf(ctx), nameOf(f, obj.UserID))
	if err != nil || a.isClosed {
		return nil, err
	}
	return connection(a.show(ctx, f)), nil
}

// show is the page of an answer whose users have been fetched.
func (a *setAnswer) show(ctx context.Context, f *selections.Field) (model.UserPage, shownUsers) {
	shown := a.page.shown(ctx, f)
	return model.UserPage{Nodes: shown.nodes, PageInfo: a.info, Complete: a.complete, Total: a.total}, shown
}

// counted is a total that is known.
func counted(n int) storage.Result[int64] { return storage.Result[int64]{Value: int64(n)} }

// setQuestion has the inputs of a set answer.
type setQuestion struct {
	resolver  *Resolver
	graph     *social.Graph
	arguments setArguments
	user      storage.UserID
	several   bool // there are other pages of the same
}

var closed = setAnswer{isClosed: true}

// common is the common list of two users.
func (q setQuestion) common(ctx context.Context, side storage.Side) (setAnswer, error) {
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
func (q setQuestion) recent(ctx context.Context, cursors bound, lists social.MatchQuery) (setAnswer, error) {
	rows, fits, err := q.graph.Fits(ctx, lists)
	if err != nil {
		return setAnswer{}, err
	}
	if !fits {
		return setAnswer{}, apierr.ListTooLong.Error(
			"in the order RECENT this list takes %d rows, and one answer may examine %d: ask for it in the order ID", rows, q.graph.Budget()).In("orderBy").Over(uint64(rows), uint64(q.graph.Budget()))
	}
	return q.matches(ctx, cursors, lists)
}

// intersection is a page of the intersection of two lists.
func (q setQuestion) intersection(ctx context.Context, kind cursor.Kind, a, b social.List) (setAnswer, error) {
	cursors := bound{kind: kind, to: []int64{int64(a.Owner), int64(b.Owner)}, what: "list"} // they carry a count
	return q.resolver.byID(ctx, q.arguments.pageArguments, cursors, func(from social.Mark, first int) (social.Common, error) {
		if isAbsent(ctx, a.Owner) || isAbsent(ctx, b.Owner) { // for a hidden user, as for one who does not exist
			return social.Common{Complete: true}, nil
		}
		return q.graph.People(ctx, social.PeopleQuery{Filter: social.Both(a, b), From: from, First: first})
	})
}

// byID is a page of users by ascending id.
func (r *Resolver) byID(ctx context.Context, args pageArguments, cursors bound, people func(from social.Mark, first int) (social.Common, error)) (setAnswer, error) {
	from, err := cursors.mark(ctx, "after", args.text)
	if err != nil {
		return setAnswer{}, err
	}
	before, err := cursors.mark(ctx, "before", args.textBefore)
	if err != nil {
		return setAnswer{}, err
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
	page, offset, more := cut(args, c.IDs,
		func(id storage.UserID) bool { return id > from.After }, func(id storage.UserID) bool { return id < before.After })
	c.IDs, c.More = page, false
	a := r.markedPage(c, social.Mark{Found: offset}, cursors)
	args.around(a.info, more, args.text != "", args.textBefore != "")
	return a, err
}

// markedPage is a page of users by ascending id.
func (r *Resolver) markedPage(c social.Common, from social.Mark, cursors bound) setAnswer {
	page := userPage{users: c.IDs, cursors: make([]string, len(c.IDs))}
	for i, id := range c.IDs {
		page.cursors[i] = cursors.spell(unsealed, int64(id), int64(from.Found+i+1))
	}
	info := r.pageInfo(page.cursors, c.More, func(seal *cursor.Sealer) string {
		return cursors.spell(seal, int64(c.Next.After), int64(c.Next.Found))
	})
	return setAnswer{page: page, info: info, total: counted(c.Total), complete: c.Complete}
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

// bothWays are the answers that are worked out from both lists of one user.
var bothWays = map[string]struct {
	kind  cursor.Kind
	lists func(user storage.UserID) social.MatchQuery
}{
	"friends":          {cursor.Friends, social.Friends},
	"notFollowingBack": {cursor.NotFollowingBack, social.NotFollowingBack},
	"notFollowedBack":  {cursor.NotFollowedBack, social.NotFollowedBack},
}

func (q setQuestion) bothLists(ctx context.Context, kind cursor.Kind, lists social.MatchQuery) (setAnswer, error) {
	if open, err := isOpen(ctx, lists.Base, lists.Other); err != nil || !open {
		return closed, err
	}
	cursors := bound{kind: kind, to: []int64{int64(lists.Base.Owner)}, what: "list"}
	return q.matches(ctx, cursors, lists)
}

// matches is a page of matches, each with the time since when it is one.
func (q setQuestion) matches(ctx context.Context, cursors bound, lists social.MatchQuery) (setAnswer, error) {
	args := q.arguments
	from, err := cursors.matchMark(ctx, "after", args.text)
	if err != nil {
		return setAnswer{}, err
	}
	before, err := cursors.matchMark(ctx, "before", args.textBefore)
	if err != nil {
		return setAnswer{}, err
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
			return setAnswer{}, err
		}
		isWhole = args.isWhole() || c.Complete && !c.More
	}
	if !isWhole && !absent {
		if c, err = q.graph.Matches(ctx, lists, from, args.size); err != nil {
			return setAnswer{}, err
		}
	}
	more := c.More
	if isWhole {
		if c.More {
			return setAnswer{}, args.tooLong()
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
	var page userPage
	for i, one := range c.Matches {
		page.users, page.since = append(page.users, one.ID), append(page.since, max(one.At.UpdateTime, one.Other).Time())
		page.cursors = append(page.cursors, spell(unsealed, social.MatchMark{After: one.At, Found: begin.Found + i + 1}))
	}
	info := q.resolver.pageInfo(page.cursors, c.More, func(seal *cursor.Sealer) string { return spell(seal, c.Next) })
	args.around(info, more, args.text != "", args.textBefore != "")
	return setAnswer{page: page, info: info, total: counted(c.Total), complete: c.Complete}, nil
}

// matchMark reads a cursor of such a page.
func (b bound) matchMark(ctx context.Context, argument, text string) (social.MatchMark, error) {
	var at, peer, found int64
	err := b.read(ctx, argument, text, &at, &peer, &found)
	return social.MatchMark{After: storage.Position{UpdateTime: storage.Micros(at), Peer: storage.UserID(peer)}, Found: foundBefore(found)}, err
}
