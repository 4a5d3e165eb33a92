package resolvers

import (
	"context"
	"sync"

	"kith/identity"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// Attach gives a request what its resolvers share: the loaders, and the resolver
// itself, for what is read below fields.
func (r *Resolver) Attach(ctx context.Context) context.Context {
	return context.WithValue(loaders.Attach(ctx, r.Store), resolverKey{}, r)
}

type resolverKey struct{}

func resolverOf(ctx context.Context) *Resolver { return ctx.Value(resolverKey{}).(*Resolver) }

// request is what is known for the length of a request.
type request struct {
	mu       sync.Mutex
	audience *social.Audience
	shown    map[listPage]storage.Result[social.Shown]
	sizes    map[social.List]storage.Result[social.Size]
}

func requestOf(ctx context.Context) *request { return loaders.Kept[request](loaders.For(ctx)) }

// isAbsent tells whether a user is hidden from everybody but itself. It reads nothing.
func isAbsent(ctx context.Context, id storage.UserID) bool {
	if !resolverOf(ctx).isHidden(id) {
		return false
	}
	viewer, ok := identity.Of(ctx)
	return !ok || viewer.ID != id
}

func (r *Resolver) isHidden(id storage.UserID) bool { return r.Absentees != nil && r.Absentees.Has(id) }

// audienceOf is for whom the answers are made. The first who asks has the viewer's
// blocks read. A mutation that changes them asks afterwards only.
func audienceOf(ctx context.Context) (*social.Audience, error) {
	request := requestOf(ctx)
	if a := request.knownAudience(); a != nil {
		return a, nil
	}
	var blocks []storage.UserID
	viewer, ok := identity.Of(ctx)
	if ok {
		r := loaders.For(ctx).Blocks().Fetch(ctx, []storage.UserID{viewer.ID})[0]
		if r.Err != nil {
			return nil, r.Err
		}
		blocks = r.Value
	}
	request.mu.Lock()
	defer request.mu.Unlock()
	if request.audience == nil {
		request.audience = social.NewAudience(viewer.ID, resolverOf(ctx).Absentees, blocks)
	}
	return request.audience, nil
}

func (r *request) knownAudience() *social.Audience {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.audience
}

// bothLists are all lists of a user.
func bothLists(id storage.UserID) []social.List {
	return []social.List{{Side: storage.Forward, Owner: id}, {Side: storage.Inverse, Owner: id}}
}

// fetchOpen reads what tells whether lists are open: the rows of their owners, and
// whether the viewer follows those who show them to their fans.
func fetchOpen(ctx context.Context, a *social.Audience, lists []social.List) {
	l := loaders.For(ctx)
	owners := ownersOf(a, lists)
	rows := map[storage.UserID]storage.User{}
	for i, r := range l.Users.Fetch(ctx, owners) {
		rows[owners[i]] = r.Value
	}
	var follows []storage.Pair
	for _, list := range lists {
		if a.MindsFollow(list, rows[list.Owner]) {
			follows = append(follows, storage.Pair{From: a.Viewer, To: list.Owner})
		}
	}
	if len(follows) > 0 {
		l.Edges(storage.Forward).Fetch(ctx, follows)
	}
}

// ownersOf lists whose lists they are, each once, without the viewer's.
func ownersOf(a *social.Audience, lists []social.List) []storage.UserID {
	var owners []storage.UserID
	seen := map[storage.UserID]bool{}
	for _, list := range lists {
		if !a.Owns(list) && !seen[list.Owner] {
			seen[list.Owner] = true
			owners = append(owners, list.Owner)
		}
	}
	return owners
}

// isOpen tells whether lists are open to whoever asks, all of them. What tells so has
// been fetched. The lists of somebody who is unknown, or absent, are open: there is
// nothing on them.
func isOpen(ctx context.Context, lists ...social.List) (bool, error) {
	a, err := audienceOf(ctx)
	if err != nil {
		return false, err
	}
	l := loaders.For(ctx)
	for _, list := range lists {
		if a.Owns(list) || a.Lacks(list.Owner) {
			continue
		}
		row := l.Users.Fetch(ctx, []storage.UserID{list.Owner})[0]
		if row.Err != nil {
			return false, row.Err
		}
		follows := false
		if a.MindsFollow(list, row.Value) {
			r := l.Edges(storage.Forward).Fetch(ctx, []storage.Pair{{From: a.Viewer, To: list.Owner}})[0]
			if r.Err != nil {
				return false, r.Err
			}
			follows = r.Value.Type == storage.Following
		}
		if !a.Opens(list, row.Value, follows) {
			return false, nil
		}
	}
	return true, nil
}

// fetchVisible reads what tells whether both edges between two others may be seen. The
// lists of the first are enough where both are open.
func fetchVisible(ctx context.Context, a *social.Audience, pairs []storage.Pair) {
	var first, second []social.List
	for _, p := range pairs {
		first = append(first, bothLists(p.From)...)
	}
	fetchOpen(ctx, a, first)
	for _, p := range pairs {
		if open, err := isOpen(ctx, bothLists(p.From)...); err == nil && !open {
			second = append(second, bothLists(p.To)...)
		}
	}
	if len(second) > 0 {
		fetchOpen(ctx, a, second)
	}
}

// isBetweenOthers tells whether a relationship's edges have to be asked whether they
// may be seen: those with the viewer always may, and where there are none, there is
// nothing to see.
func isBetweenOthers(ctx context.Context, p storage.Pair) bool {
	viewer, _ := identity.Of(ctx)
	return p.From != viewer.ID && p.To != viewer.ID && p.From != p.To && !isAbsent(ctx, p.From) && !isAbsent(ctx, p.To)
}

// isVisible tells whether both edges between two users may be seen: each lies in the
// followings of one and the fans of the other, and one open list is enough.
func isVisible(ctx context.Context, p storage.Pair) (bool, error) {
	if !isBetweenOthers(ctx, p) {
		return true, nil
	}
	eitherOpen := func(a, b social.List) (bool, error) {
		if open, err := isOpen(ctx, a); err != nil || open {
			return open, err
		}
		return isOpen(ctx, b)
	}
	from, to := bothLists(p.From), bothLists(p.To)
	out, err := eitherOpen(from[storage.Forward], to[storage.Inverse])
	if err != nil || !out {
		return false, err
	}
	return eitherOpen(from[storage.Inverse], to[storage.Forward])
}
