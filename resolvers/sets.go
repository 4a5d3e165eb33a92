package resolvers

import (
	"context"
	"time"

	"kith/graph/apierr"
	"kith/graph/cursor"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/identity"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// setArguments are the arguments of a set answer: it pages forward only.
func setArguments(first *int32, after *string) (size int, from string, err error) {
	size = defaultFirst
	if n, given, err := sizeOf("first", first); given {
		if err != nil {
			return 0, "", err
		}
		size = n
	}
	if after != nil {
		if from = *after; from == "" {
			return 0, "", apierr.BadInput("%q is not a cursor", from)
		}
	}
	return size, from, nil
}

// commonAt answers what the lists of two users have in common.
func (r *Resolver) commonAt(ctx context.Context, obj *model.User, first *int32, after *string, order model.CommonOrder) (*model.UserConnection, error) {
	ctx, graph, leave, err := r.setAnswer(ctx)
	defer leave()
	if err != nil {
		return nil, err
	}
	f := planned(ctx)
	other, err := argument[storage.UserID](requestOf(ctx), f)
	if err != nil {
		return nil, err
	}
	a, b := social.List{Side: f.Side, Owner: obj.UserID}, social.List{Side: f.Side, Owner: other}
	if open, err := isOpen(ctx, a, b); err != nil || !open {
		return nil, err
	}
	kinds := commonKinds[f.Side]
	if order == model.CommonOrderRecent {
		return r.recentAt(ctx, graph, kinds.recent, social.Companions{Base: a, Other: b}, first, after)
	}
	return intersectionAt(ctx, graph, kinds.byID, a, b, first, after)
}

// commonKinds are the cursors of common lists, in each of their orders.
var commonKinds = [...]struct{ byID, recent cursor.Kind }{
	storage.Forward: {cursor.CommonFollowings, cursor.RecentCommonFollowings},
	storage.Inverse: {cursor.CommonFollowers, cursor.RecentCommonFollowers},
}

// recentAt answers a common list in the order of its first user's edges.
func (r *Resolver) recentAt(ctx context.Context, graph *social.Graph, kind cursor.Kind, q social.Companions, first *int32, after *string) (*model.UserConnection, error) {
	rows, fits, err := graph.Fits(ctx, q)
	if err != nil {
		return nil, err
	}
	if !fits {
		return nil, apierr.TooCostly(uint64(rows), uint64(graph.Budget()),
			"in the order RECENT this list takes %d rows, and one answer may examine %d: ask for it in the order ID", rows, graph.Budget())
	}
	return companionsAt(ctx, graph, kind, q, first, after, func(c social.Companion) *time.Time { return timeOf(c.At.UpdateTime) })
}

// followersYouKnowAt answers `followersYouKnow`.
func (r *Resolver) followersYouKnowAt(ctx context.Context, obj *model.User, first *int32, after *string) (*model.UserConnection, error) {
	viewer, ok := identity.Of(ctx)
	if !ok {
		return nil, nil
	}
	ctx, graph, leave, err := r.setAnswer(ctx)
	defer leave()
	if err != nil {
		return nil, err
	}
	fans := social.List{Side: storage.Inverse, Owner: obj.UserID}
	followings := social.List{Side: storage.Forward, Owner: viewer.ID}
	if open, err := isOpen(ctx, fans); err != nil || !open {
		return nil, err
	}
	if loaders.IsMember(ctx) {
		graph = graph.Shared()
	}
	return intersectionAt(ctx, graph, cursor.FollowersYouKnow, fans, followings, first, after)
}

// intersectionAt answers a page of what two lists have in common.
func intersectionAt(ctx context.Context, graph *social.Graph, kind cursor.Kind, a, b social.List, first *int32, after *string) (*model.UserConnection, error) {
	size, text, err := setArguments(first, after)
	if err != nil {
		return nil, err
	}
	var from social.Mark
	if text != "" {
		if from, err = decodeMark(ctx, kind, text, a.Owner, b.Owner); err != nil {
			return nil, err
		}
	}
	common := social.Common{Complete: true} // with somebody who is absent, as with somebody who does not exist
	if !isAbsent(ctx, a.Owner) && !isAbsent(ctx, b.Owner) {
		r := graph.People(ctx, []social.PeopleQuery{{Filter: social.Both(a, b), From: from, First: size}})[0]
		if r.Err != nil {
			return nil, r.Err
		}
		common = r.Value
	}
	spell := func(seal *cursor.Sealer, m social.Mark) string {
		return seal.Encode(kind, int64(a.Owner), int64(b.Owner), int64(m.After), int64(m.Found))
	}
	page, beyond := markedPage(ctx, common, from, spell)
	return setConnection(ctx, planned(ctx), page, common.Total, common.Complete, pageInfoOf(page, common.More, beyond)), nil
}

// unsealed spells the cursors of those who are shown.
var unsealed *cursor.Sealer

// away spells a cursor of a place that is not on the page. Nobody is at the beginning of
// a list.
func (r *Resolver) away(isBeginning bool) *cursor.Sealer {
	if isBeginning {
		return unsealed
	}
	return r.Cursors
}

// markedPage is the places of a page by ascending id, and beyond them where the answer goes on
// unless that is behind the last one.
func markedPage(ctx context.Context, c social.Common, from social.Mark, spell func(*cursor.Sealer, social.Mark) string) (page []entry, beyond func() string) {
	page = make([]entry, len(c.IDs))
	var last social.Mark
	for i, id := range c.IDs {
		last = social.Mark{After: id, Found: from.Found + i + 1}
		page[i] = entry{user: id, cursor: spell(unsealed, last)}
	}
	if len(page) == 0 || c.Next != last {
		beyond = func() string { return spell(resolverOf(ctx).away(c.Next.After == 0), c.Next) }
	}
	return page, beyond
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
	return social.Mark{After: storage.UserID(id), Found: int(found)}, nil
}

func otherList(text string) error {
	return apierr.BadInput("the cursor %q belongs to another list", abridged(text))
}

// bothWaysAt answers `friends` and what else is worked out from both lists of a user.
func (r *Resolver) bothWaysAt(ctx context.Context, kind cursor.Kind, q social.Companions, first *int32, after *string) (*model.UserConnection, error) {
	ctx, graph, leave, err := r.setAnswer(ctx)
	defer leave()
	if err != nil {
		return nil, err
	}
	if open, err := isOpen(ctx, q.Base, q.Other); err != nil || !open {
		return nil, err
	}
	return companionsAt(ctx, graph, kind, q, first, after, func(c social.Companion) *time.Time {
		return timeOf(max(c.At.UpdateTime, c.Other))
	})
}

// companionsAt answers a page of companions. since tells when each came to be one.
func companionsAt(ctx context.Context, graph *social.Graph, kind cursor.Kind, q social.Companions, first *int32, after *string, since func(social.Companion) *time.Time) (*model.UserConnection, error) {
	size, text, err := setArguments(first, after)
	if err != nil {
		return nil, err
	}
	var from social.CompanionMark
	if text != "" {
		if from, err = decodeCompanionMark(ctx, kind, text, q); err != nil {
			return nil, err
		}
	}
	var c social.CompanionPage
	if isAbsent(ctx, q.Other.Owner) {
		c.Complete = true
	} else if c, err = graph.Companions(ctx, q, from, size); err != nil {
		return nil, err
	}
	page := make([]entry, len(c.Companions))
	var last social.CompanionMark
	for i, one := range c.Companions {
		last = social.CompanionMark{After: one.At, Found: from.Found + i + 1}
		page[i] = entry{one.ID, encodeCompanionMark(unsealed, kind, q, last), since(one)}
	}
	var beyond func() string
	if len(page) == 0 || c.Next != last {
		seal := resolverOf(ctx).away(c.Next.After == storage.Position{})
		beyond = func() string { return encodeCompanionMark(seal, kind, q, c.Next) }
	}
	return setConnection(ctx, planned(ctx), page, c.Total, c.Complete, pageInfoOf(page, c.More, beyond)), nil
}

// namesTwo tells whether a cursor names the owners of both lists: of one user's own lists it
// need not.
func namesTwo(kind cursor.Kind) bool {
	return kind == cursor.RecentCommonFollowings || kind == cursor.RecentCommonFollowers
}

func encodeCompanionMark(seal *cursor.Sealer, kind cursor.Kind, q social.Companions, m social.CompanionMark) string {
	numbers := []int64{int64(q.Base.Owner), int64(m.After.UpdateTime), int64(m.After.Peer), int64(m.Found)}
	if namesTwo(kind) {
		numbers = append(numbers, int64(q.Other.Owner))
	}
	return seal.Encode(kind, numbers...)
}

func decodeCompanionMark(ctx context.Context, kind cursor.Kind, text string, q social.Companions) (social.CompanionMark, error) {
	var base, at, peer, found int64
	other := int64(q.Other.Owner)
	places := []*int64{&base, &at, &peer, &found}
	if namesTwo(kind) {
		places = append(places, &other)
	}
	if err := resolverOf(ctx).Cursors.Decode(kind, text, places...); err != nil {
		return social.CompanionMark{}, err
	}
	if storage.UserID(base) != q.Base.Owner || storage.UserID(other) != q.Other.Owner {
		return social.CompanionMark{}, otherList(text)
	}
	after := storage.Position{UpdateTime: storage.Micros(at), Peer: storage.UserID(peer)}
	return social.CompanionMark{After: after, Found: int(found)}, nil
}

// pageInfoOf is the PageInfo of a list that pages forward only. It goes on behind the last
// one of its page, or beyond, where that is not nil: even when the page is empty.
func pageInfoOf(page []entry, more bool, beyond func() string) *model.PageInfo {
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

// setConnection fetches the users of a set answer and makes the connection of its field.
func setConnection(ctx context.Context, f *selections.Field, page []entry, total int, complete bool, info *model.PageInfo) *model.UserConnection {
	fetchPage(ctx, f, page)
	c := &model.UserConnection{PageInfo: info, Complete: complete, Total: storage.Result[int64]{Value: int64(total)}}
	fill(ctx, c, f, page)
	return c
}

// fetchPage reads what the users of a page and everything below them need.
func fetchPage(ctx context.Context, f *selections.Field, page []entry) {
	if items := f.Below[0].Items; items != nil && len(page) > 0 {
		fetch(ctx, wanted{users: usersOfPage(page), on: items})
	}
}
