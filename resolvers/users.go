package resolvers

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/fields"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/resolvers/prefetch"
	"kith/social"
	"kith/storage"
)

// usersOf makes the users of a selection, from what the loaders hold. A user who does not exist, or is hidden from all others, is nil. If a
// shard did not answer, the user is nil, with an error at each of its paths.
func usersOf(ctx context.Context, w prefetch.Users, at prefetch.Paths) []*model.User {
	e := prefetch.AccessOf(ctx)
	needs, l, r := prefetch.NeedsOf(ctx, w.On), e.Loaders, e.Owner.(*Resolver)
	users, made := make([]*model.User, len(w.IDs)), make([]model.User, len(w.IDs))
	for i, id := range w.IDs {
		if e.At(at, i); e.IsAbsent(id) {
			continue
		}
		u := &made[i]
		u.UserID = id
		if needs&fields.Row != 0 || w.Exist {
			row := l.Users.Load(id)
			if row.Err != nil {
				prefetch.FailAt(ctx, at(i), row.Err)
			}
			if !row.Found {
				continue
			}
			u.Row = row.Value
			if strings.HasPrefix(u.Row.AvatarURL, "/") { // for pages of other origins, too
				u.Row.AvatarURL = r.PublicURL + u.Row.AvatarURL
			}
		}
		if needs&fields.Counts != 0 {
			u.Counts = l.Counts.Load(id)
		}
		users[i] = u
	}
	if needs&fields.Friends != 0 {
		addFriendCounts(e, users, at)
	}
	prefetch.ShowParts(ctx, users, w.On, at)
	return users
}

// bothLists are all lists of a user.
func bothLists(id storage.UserID) []social.List {
	return []social.List{{Side: storage.Forward, Owner: id}, {Side: storage.Inverse, Owner: id}}
}

// addFriendCounts adds how many friends users have, whose lists are both open.
func addFriendCounts(e *prefetch.Access, users []*model.User, at prefetch.Paths) {
	for i, u := range users {
		if u == nil {
			continue
		}
		e.At(at, i)
		n, open := model.CountOf(u.Counts.Value.Friend), true
		for _, list := range bothLists(u.UserID) {
			if is, err := e.IsOpen(list); err != nil || !is {
				open, u.Friends.Err = false, cmp.Or(u.Friends.Err, err)
			}
		}
		if open {
			u.Friends = storage.Result[*int32]{Value: &n, Err: u.Counts.Err}
		}
	}
}

// userName names a user as what has lists.
func userName(id storage.UserID) storage.PostID { return storage.PostID{Author: id} }

// userPage is a page of users.
type userPage = prefetch.Page[storage.UserID]

// takeUsers takes the users at the other ends of edges.
func takeUsers(p *userPage, side storage.Side, edges []storage.Edge) {
	p.Rows, p.Since = make([]storage.UserID, len(edges)), make([]time.Time, len(edges))
	for i, e := range edges {
		p.Rows[i], p.Since[i] = side.Peer(e.Pair()), e.UpdateTime.Time()
	}
}

func startsOf(rows []storage.Edge) []storage.UserID {
	return storage.Each(rows, func(row storage.Edge) storage.UserID { return row.From })
}

// showPage answers a field that is a page of users.
func showPage(ctx context.Context, of storage.PostID) (*model.UserConnection, error) {
	f, p, err := prefetch.Answer[storage.UserID](ctx, of)
	if err != nil || p == nil {
		return nil, err
	}
	return shownUsers(ctx, f, p), nil
}

// readPage answers a field whose page no level has read ahead.
func readPage(ctx context.Context, f *selections.Field, p *userPage) *model.UserConnection {
	if items := f.Below[0].Items; items != nil {
		prefetch.Fetch(ctx, prefetch.Users{IDs: p.Rows, On: items})
	}
	return shownUsers(ctx, f, p)
}

// shownUsers makes the users, who have been fetched, and leaves out what belongs to users who have gone.
func shownUsers(ctx context.Context, f *selections.Field, p *userPage) *model.UserConnection {
	prefetch.Explain(ctx, p)
	nodes, places := nodesOn(ctx, f, p)
	c := &model.UserConnection{}
	c.Complete, c.Total = p.Complete, p.Total
	c.Page = prefetch.PageOf(p.Info, nodes, func(i int) model.UserEdge {
		e := model.UserEdge{Cursor: p.Cursor(places[i]), Node: nodes[i]}
		if p.Since != nil {
			e.Since = p.Since[places[i]]
		}
		return e
	})
	return c
}

// nodesOn makes the users, nil if they could not be read, and tells their places on the page. It leaves out
// users who have gone since the page was read: they would be null without an error.
func nodesOn(ctx context.Context, f *selections.Field, p *userPage) (users []*model.User, places []int) {
	e, items := prefetch.AccessOf(ctx), f.Below[0].Items
	isGone := func(id storage.UserID) bool {
		row := storage.Result[storage.User]{Found: true}
		if prefetch.NeedsOf(ctx, items)&fields.Row != 0 {
			row = e.Loaders.Users.Load(id)
		}
		return e.IsAbsent(id) || !row.Found && row.Err == nil
	}
	at := prefetch.ItemPaths(ctx, f)
	if users = make([]*model.User, len(p.Rows)); items != nil {
		users = usersOf(ctx, prefetch.Users{IDs: p.Rows, On: items}, func(i int) []ast.Path { // which is asked for errors
			return at(len(slices.DeleteFunc(slices.Clone(p.Rows[:i]), isGone)))
		})
	}
	places = make([]int, 0, len(users))
	for i, u := range users {
		if u != nil || items == nil || !isGone(p.Rows[i]) {
			users[len(places)] = u
			places = append(places, i)
		}
	}
	return users[:len(places)], places
}

// writer is a user of each object, who is read in the object's level. into is where the user is put.
func writer[R, M any](of func(R) storage.UserID, into func(*M) (storage.UserID, **model.User)) *prefetch.Inset[R, M] {
	ask := func(ctx context.Context, level *prefetch.Level, f *selections.Field, rows []R) {
		prefetch.Users{IDs: prefetch.Distinct(storage.Each(rows, of)), Exist: true, On: f.Below}.AddTo(ctx, level)
	}
	return prefetch.NewInset(ask, func(ctx context.Context, made []*M, aliases []*selections.Field, at prefetch.Paths) {
		ids := storage.Each(made, func(m *M) storage.UserID { id, _ := into(m); return id })
		for i, u := range usersOf(ctx, prefetch.Users{IDs: ids, Exist: true, On: prefetch.Below(aliases)}, at) {
			_, user := into(made[i])
			*user = u
		}
	})
}
