package resolvers

import (
	"context"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql"

	"kith/accounts/identity"
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

// setName names a set answer.
type setName struct {
	field *selections.Field
	user  storage.UserID
}

// setAnswer is a page of a set answer, or the reason why there is none.
type setAnswer struct {
	err      error
	isClosed bool // a list that it is derived from is not open to the viewer

	page     []item
	info     *model.PageInfo
	total    int
	complete bool

	suggested suggested // by `followSuggestions`
}

// setArguments are the arguments of a set answer: it pages forward only.
type setArguments struct {
	size int
	from string // the cursor; empty at the beginning

	other   storage.UserID         // of a common list
	recent  bool                   // a common list in the order RECENT
	orderBy social.SuggestionOrder // of suggestions
}

func parseSet(ctx context.Context, f *selections.Field) (a setArguments, err error) {
	if a.size, a.from, err = forwardPage(f.Argument(ctx, "first"), f.Argument(ctx, "after")); err != nil {
		return a, err
	}
	order, _ := f.Argument(ctx, "orderBy").(string)
	switch f.Ahead {
	case fields.Common:
		a.recent = order == model.CommonOrderRecent.String()
		a.other, err = parseUserID(strings.Join(texts(ctx, f, "with"), ""))
	case fields.Suggestions:
		a.orderBy = suggestionOrders[model.SuggestionOrder(order)]
	}
	return a, err
}

// forwardPage reads the arguments `first` and `after` of a list that pages forward only.
func forwardPage(first, after any) (size int, from string, err error) {
	size = defaultFirst
	if n, given, err := sizeOf("first", first); given {
		if err != nil {
			return 0, "", err
		}
		size = n
	}
	from, given := textOf(after)
	if given && from == "" {
		return 0, "", apierr.BadInput("%q is not a cursor", from)
	}
	return size, from, nil
}

// answerSets works out the set answers of a level, and adds the users on them to the next level.
func (b *batch) answerSets(ctx context.Context) {
	e := accessOf(ctx)
	var sets few[setName, *setAnswer]
	for _, name := range b.sets {
		if !e.isAbsent(name.user) && !b.lacks(e, name.user) {
			sets.add(name, nil)
		}
	}
	among := len(sets.keys)
	e.loaders.Together(among, func(i int, read loaders.Reader) {
		sets.values[i] = e.resolver.answerSet(ctx, sets.keys[i], read, among)
	})
	for i, name := range sets.keys {
		b.next = append(b.next, sets.values[i].wanted(ctx, name.field)...)
	}
	e.request.mu.Lock()
	defer e.request.mu.Unlock()
	for i, name := range sets.keys {
		e.request.sets.put(name, sets.values[i])
	}
}

// lacks reports whether a user whose row has been read does not exist.
func (b *batch) lacks(e *access, id storage.UserID) bool {
	return slices.Contains(b.rows, id) && !e.loaders.Users.Load(id).Found
}

// wanted are the users on the page, and those who recommend them.
func (a *setAnswer) wanted(ctx context.Context, f *selections.Field) (level []wanted) {
	if items := f.Below[0].Items; items != nil && len(a.page) > 0 {
		level = append(level, wanted{users: usersOfPage(a.page), on: items})
	}
	if via := viaOf(ctx, f); via.on != nil && len(a.page) > 0 {
		w := wanted{on: via.on}
		for _, s := range a.suggested.found.Suggestions {
			w.users = append(w.users, s.Via...)
		}
		level = append(level, w)
	}
	return level
}

// answerSet computes a set answer; among is how many are computed together.
func (r *Resolver) answerSet(ctx context.Context, name setName, read loaders.Reader, among int) (a *setAnswer) {
	defer func() {
		if reason := recover(); reason != nil {
			a = &setAnswer{err: graphql.GetOperationContext(ctx).RecoverFunc(ctx, reason)}
		}
	}()
	f := name.field
	graph, err := r.graph(ctx, read)
	if err != nil {
		return &setAnswer{err: err}
	}
	args, err := argument[setArguments](stateOf(ctx), f)
	if err != nil {
		return &setAnswer{err: err}
	}
	q := setQuestion{graph: graph.Among(among), arguments: args, user: name.user}
	a = &setAnswer{}
	switch f.Ahead {
	case fields.BothLists:
		ways := bothWays[f.Name]
		*a, err = q.bothLists(ctx, ways.kind, ways.lists(name.user))
	case fields.Common:
		*a, err = q.common(ctx, f.Side)
	case fields.Known:
		*a, err = q.known(ctx)
	case fields.Suggestions:
		*a, err = q.suggestions(ctx, r, viaOf(ctx, f).most)
	}
	a.err = err
	return a
}

// setAnswer is a set answer that has been worked out.
func (r *requestState) setAnswer(f *selections.Field, user storage.UserID) *setAnswer {
	return mustHave(r, &r.sets, setName{f, user})
}

func (userFields) Friends(ctx context.Context, obj *model.User, _ *int32, _ *string) (*model.UserConnection, error) {
	return set(ctx, obj)
}

func (userFields) NotFollowingBack(ctx context.Context, obj *model.User, _ *int32, _ *string) (*model.UserConnection, error) {
	return set(ctx, obj)
}

func (userFields) NotFollowedBack(ctx context.Context, obj *model.User, _ *int32, _ *string) (*model.UserConnection, error) {
	return set(ctx, obj)
}

func (userFields) CommonFollowings(ctx context.Context, obj *model.User, _ string, _ *int32, _ *string, _ model.CommonOrder) (*model.UserConnection, error) {
	return set(ctx, obj)
}

func (userFields) CommonFollowers(ctx context.Context, obj *model.User, _ string, _ *int32, _ *string, _ model.CommonOrder) (*model.UserConnection, error) {
	return set(ctx, obj)
}

func (userFields) FollowersYouKnow(ctx context.Context, obj *model.User, _ *int32, _ *string) (*model.UserConnection, error) {
	return set(ctx, obj)
}

// set answers a field that is a set answer of users.
func set(ctx context.Context, obj *model.User) (*model.UserConnection, error) {
	f := planned(ctx)
	a := stateOf(ctx).setAnswer(f, obj.UserID)
	if a.err != nil || a.isClosed {
		return nil, a.err
	}
	return pageOfUsers(ctx, f, a), nil
}

// pageOfUsers makes the connection of an answer whose users have been fetched.
func pageOfUsers(ctx context.Context, f *selections.Field, a *setAnswer) *model.UserConnection {
	c := &model.UserConnection{PageInfo: a.info, Complete: a.complete, Total: storage.Result[int64]{Value: int64(a.total)}}
	fill(ctx, c, f, a.page)
	return c
}

// setQuestion has the inputs of a set answer.
type setQuestion struct {
	graph     *social.Graph
	arguments setArguments
	user      storage.UserID
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
		return q.recent(ctx, kinds.recent, social.MatchQuery{Base: a, Other: b})
	}
	return q.intersection(ctx, kinds.byID, a, b)
}

// commonKinds are the cursors of common lists, in each of their orders.
var commonKinds = [...]struct{ byID, recent cursor.Kind }{
	storage.Forward: {cursor.CommonFollowings, cursor.RecentCommonFollowings},
	storage.Inverse: {cursor.CommonFollowers, cursor.RecentCommonFollowers},
}

// recent is a common list in the order of its first user's edges.
func (q setQuestion) recent(ctx context.Context, kind cursor.Kind, lists social.MatchQuery) (setAnswer, error) {
	rows, fits, err := q.graph.Fits(ctx, lists)
	if err != nil {
		return setAnswer{}, err
	}
	if !fits {
		return setAnswer{}, apierr.TooCostly(uint64(rows), uint64(q.graph.Budget()),
			"in the order RECENT this list takes %d rows, and one answer may examine %d: ask for it in the order ID", rows, q.graph.Budget())
	}
	return q.matches(ctx, kind, lists, func(c social.Match) storage.Micros { return c.At.UpdateTime })
}

// known is the followers of a user whom the viewer follows.
func (q setQuestion) known(ctx context.Context) (setAnswer, error) {
	viewer, ok := identity.Of(ctx)
	if !ok {
		return closed, nil
	}
	followers := social.List{Side: storage.Inverse, Owner: q.user}
	if open, err := isOpen(ctx, followers); err != nil || !open {
		return closed, err
	}
	return q.intersection(ctx, cursor.FollowersYouKnow, followers, social.List{Side: storage.Forward, Owner: viewer.ID})
}

// intersection is a page of the intersection of two lists.
func (q setQuestion) intersection(ctx context.Context, kind cursor.Kind, a, b social.List) (setAnswer, error) {
	var from social.Mark
	if text := q.arguments.from; text != "" {
		var err error
		if from, err = decodeMark(ctx, kind, text, a.Owner, b.Owner); err != nil {
			return setAnswer{}, err
		}
	}
	common := social.Common{Complete: true} // for a hidden user, as for one who does not exist
	if !isAbsent(ctx, a.Owner) && !isAbsent(ctx, b.Owner) {
		var err error
		if common, err = q.graph.People(ctx, social.PeopleQuery{Filter: social.Both(a, b), From: from, First: q.arguments.size}); err != nil {
			return setAnswer{}, err
		}
	}
	return markedPage(ctx, common, from, func(seal *cursor.Sealer, m social.Mark) string {
		return seal.Encode(kind, int64(a.Owner), int64(b.Owner), int64(m.After), int64(m.Found))
	}), nil
}

// unsealed writes the cursors of users who are shown.
var unsealed *cursor.Sealer

// away writes a cursor of a position that is not on the page. The beginning of a list has no user,
// so it needs no seal.
func (r *Resolver) away(isBeginning bool) *cursor.Sealer {
	if isBeginning {
		return unsealed
	}
	return r.Cursors
}

// markedPage is a page of users by ascending id.
func markedPage(ctx context.Context, c social.Common, from social.Mark, spell func(*cursor.Sealer, social.Mark) string) setAnswer {
	page := make([]item, len(c.IDs))
	var last social.Mark
	for i, id := range c.IDs {
		last = social.Mark{After: id, Found: from.Found + i + 1}
		page[i] = item{user: id, cursor: spell(unsealed, last)}
	}
	var beyond func() string
	if len(page) == 0 || c.Next != last {
		beyond = func() string { return spell(resolverOf(ctx).away(c.Next.After == 0), c.Next) }
	}
	return setAnswer{page: page, info: pageInfoOf(page, c.More, beyond), total: c.Total, complete: c.Complete}
}

// The cursors of set answers carry a count, so they belong to the two lists that
// it was counted on.
func decodeMark(ctx context.Context, kind cursor.Kind, text string, a, b storage.UserID) (social.Mark, error) {
	var ownerA, ownerB, id, found int64
	if err := resolverOf(ctx).Cursors.Decode(kind, text, &ownerA, &ownerB, &id, &found); err != nil {
		return social.Mark{}, err
	}
	if storage.UserID(ownerA) != a || storage.UserID(ownerB) != b {
		return social.Mark{}, otherList(text)
	}
	return social.Mark{After: storage.UserID(id), Found: foundBefore(found)}, nil
}

// foundBefore is the count of a cursor. No list is so long as a made-up cursor may say: the total stays an Int,
// and the next cursor one that can be read.
func foundBefore(claimed int64) int { return int(min(claimed, 1<<30)) }

func otherList(text string) error {
	return apierr.BadInput("the cursor %q belongs to another list", abridged(text))
}

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
	return q.matches(ctx, kind, lists, func(c social.Match) storage.Micros { return max(c.At.UpdateTime, c.Other) })
}

// matches is a page of matches. since returns the time since when a match is one.
func (q setQuestion) matches(ctx context.Context, kind cursor.Kind, lists social.MatchQuery, since func(social.Match) storage.Micros) (setAnswer, error) {
	var from social.MatchMark
	if text := q.arguments.from; text != "" {
		var err error
		if from, err = decodeMatchMark(ctx, kind, text, lists); err != nil {
			return setAnswer{}, err
		}
	}
	c := social.MatchPage{Complete: true}
	if !isAbsent(ctx, lists.Other.Owner) {
		var err error
		if c, err = q.graph.Matches(ctx, lists, from, q.arguments.size); err != nil {
			return setAnswer{}, err
		}
	}
	page := make([]item, len(c.Matches))
	var last social.MatchMark
	for i, one := range c.Matches {
		last = social.MatchMark{After: one.At, Found: from.Found + i + 1}
		page[i] = item{one.ID, encodeMatchMark(unsealed, kind, lists, last), timeOf(since(one))}
	}
	var beyond func() string
	if len(page) == 0 || c.Next != last {
		seal := resolverOf(ctx).away(c.Next.After == storage.Position{})
		beyond = func() string { return encodeMatchMark(seal, kind, lists, c.Next) }
	}
	return setAnswer{page: page, info: pageInfoOf(page, c.More, beyond), total: c.Total, complete: c.Complete}, nil
}

// namesTwo reports whether a cursor names the owners of both lists. If both lists are of one user,
// it need not.
func namesTwo(kind cursor.Kind) bool {
	return kind == cursor.RecentCommonFollowings || kind == cursor.RecentCommonFollowers
}

func encodeMatchMark(seal *cursor.Sealer, kind cursor.Kind, q social.MatchQuery, m social.MatchMark) string {
	numbers := []int64{int64(q.Base.Owner), int64(m.After.UpdateTime), int64(m.After.Peer), int64(m.Found)}
	if namesTwo(kind) {
		numbers = append(numbers, int64(q.Other.Owner))
	}
	return seal.Encode(kind, numbers...)
}

func decodeMatchMark(ctx context.Context, kind cursor.Kind, text string, q social.MatchQuery) (social.MatchMark, error) {
	var base, at, peer, found int64
	other := int64(q.Other.Owner)
	into := []*int64{&base, &at, &peer, &found}
	if namesTwo(kind) {
		into = append(into, &other)
	}
	if err := resolverOf(ctx).Cursors.Decode(kind, text, into...); err != nil {
		return social.MatchMark{}, err
	}
	if storage.UserID(base) != q.Base.Owner || storage.UserID(other) != q.Other.Owner {
		return social.MatchMark{}, otherList(text)
	}
	after := storage.Position{UpdateTime: storage.Micros(at), Peer: storage.UserID(peer)}
	return social.MatchMark{After: after, Found: foundBefore(found)}, nil
}

// pageInfoOf is the PageInfo of a list that pages forward only. The list continues behind the last
// item of its page, or at beyond if that is not nil, even if the page is empty.
func pageInfoOf(page []item, more bool, beyond func() string) *model.PageInfo {
	info := &model.PageInfo{HasNextPage: more}
	if n := len(page); n > 0 {
		info.StartCursor, info.EndCursor = &page[0].cursor, &page[n-1].cursor
	}
	if more && beyond != nil {
		end := beyond()
		info.EndCursor = &end
	}
	return info
}

// fetchPage reads what the users of a page and everything below them need.
func fetchPage(ctx context.Context, f *selections.Field, page []item) {
	if items := f.Below[0].Items; items != nil && len(page) > 0 {
		fetch(ctx, wanted{users: usersOfPage(page), on: items})
	}
}
