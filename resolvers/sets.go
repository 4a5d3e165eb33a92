package resolvers

import (
	"context"

	"kith/graph/apierr"
	"kith/graph/cursor"
	"kith/graph/model"
	"kith/identity"
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
func (r *Resolver) commonAt(ctx context.Context, kind cursor.Kind, side storage.Side, obj *model.User, with string, first *int32, after *string) (*model.UserConnection, error) {
	ctx, graph, leave := r.setAnswer(ctx)
	defer leave()
	other, err := parseUserID(with)
	if err != nil {
		return nil, err
	}
	a, b := social.List{Side: side, Owner: obj.UserID}, social.List{Side: side, Owner: other}
	return intersectionAt(ctx, graph, kind, a, b, first, after)
}

// followersYouKnowAt answers `followersYouKnow`.
func (r *Resolver) followersYouKnowAt(ctx context.Context, obj *model.User, first *int32, after *string) (*model.UserConnection, error) {
	viewer, ok := identity.Of(ctx)
	if !ok {
		return nil, nil
	}
	ctx, graph, leave := r.setAnswer(ctx)
	defer leave()
	fans := social.List{Side: storage.Inverse, Owner: obj.UserID}
	followings := social.List{Side: storage.Forward, Owner: viewer.ID}
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
		if from, err = decodeMark(kind, text, a.Owner, b.Owner); err != nil {
			return nil, err
		}
	}
	common, err := graph.Intersect(ctx, a, b, from, size)
	if err != nil {
		return nil, err
	}
	page := make([]entry, len(common.IDs))
	for i, id := range common.IDs {
		page[i] = entry{user: id, cursor: encodeMark(kind, a.Owner, b.Owner, social.Mark{After: id, Found: from.Found + i + 1})}
	}
	next := encodeMark(kind, a.Owner, b.Owner, common.Next)
	return setConnection(ctx, page, common.Total, common.Complete, pageInfoOf(page, text, common.More, next)), nil
}

// The cursors of set answers carry a count, so they belong to the two lists that
// it was counted on.
func encodeMark(kind cursor.Kind, a, b storage.UserID, m social.Mark) string {
	return cursor.Encode(kind, int64(a), int64(b), int64(m.After), int64(m.Found))
}

func decodeMark(kind cursor.Kind, text string, a, b storage.UserID) (social.Mark, error) {
	var ownerA, ownerB, id, found int64
	if err := cursor.Decode(kind, text, &ownerA, &ownerB, &id, &found); err != nil {
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

// friendsAt answers `friends`.
func (r *Resolver) friendsAt(ctx context.Context, obj *model.User, first *int32, after *string) (*model.UserConnection, error) {
	ctx, graph, leave := r.setAnswer(ctx)
	defer leave()
	size, text, err := setArguments(first, after)
	if err != nil {
		return nil, err
	}
	var from social.FriendMark
	if text != "" {
		if from, err = decodeFriendMark(text, obj.UserID); err != nil {
			return nil, err
		}
	}
	f, err := graph.Friends(ctx, obj.UserID, from, size)
	if err != nil {
		return nil, err
	}
	page := make([]entry, len(f.Friends))
	for i, friend := range f.Friends {
		mark := social.FriendMark{After: friend.At, Found: from.Found + i + 1}
		page[i] = entry{friend.ID, encodeFriendMark(obj.UserID, mark), timeOf(friend.Since)}
	}
	next := encodeFriendMark(obj.UserID, f.Next)
	return setConnection(ctx, page, f.Total, f.Complete, pageInfoOf(page, text, f.More, next)), nil
}

func encodeFriendMark(owner storage.UserID, m social.FriendMark) string {
	return cursor.Encode(cursor.Friends, int64(owner), int64(m.After.UpdateTime), int64(m.After.Peer), int64(m.Found))
}

func decodeFriendMark(text string, owner storage.UserID) (social.FriendMark, error) {
	var user, at, peer, found int64
	if err := cursor.Decode(cursor.Friends, text, &user, &at, &peer, &found); err != nil {
		return social.FriendMark{}, err
	}
	if storage.UserID(user) != owner {
		return social.FriendMark{}, otherList(text)
	}
	after := storage.Position{UpdateTime: storage.Micros(at), Peer: storage.UserID(peer)}
	return social.FriendMark{After: after, Found: int(found)}, nil
}

// pageInfoOf is the PageInfo of a set answer, which goes on at next even when its
// page is empty.
func pageInfoOf(page []entry, after string, more bool, next string) *model.PageInfo {
	info := &model.PageInfo{HasNextPage: more, HasPreviousPage: after != ""}
	if len(page) > 0 {
		info.StartCursor = &page[0].cursor
	}
	if len(page) > 0 || more {
		info.EndCursor = &next
	}
	return info
}

// setConnection fetches the users of a set answer and makes its connection.
func setConnection(ctx context.Context, page []entry, total int, complete bool, info *model.PageInfo) *model.UserConnection {
	n := needsOfConnection(ctx, "UserConnection", "UserEdge", selectedHere(ctx))
	fetchPage(ctx, n, page)
	c := &model.UserConnection{PageInfo: info, Complete: complete, Total: storage.Result[int64]{Value: int64(total)}}
	fill(ctx, c, n, page)
	return c
}

// fetchPage reads what the users of a page and everything below them need.
func fetchPage(ctx context.Context, n connectionNeeds, page []entry) {
	if n.users == nil || len(page) == 0 {
		return
	}
	ids := make([]storage.UserID, len(page))
	for i, e := range page {
		ids[i] = e.user
	}
	fetch(ctx, wanted{users: ids, sel: n.users})
}
