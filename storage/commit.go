package storage

import "context"

// UserChange is what one transaction has changed about a user, for caches.
type UserChange struct {
	User    UserID
	Forward bool // edges that leave it have changed
	Inverse bool // edges that enter it have changed

	// Counts are the user's counts after the transaction. If Version is 0, they are not known, and
	// anything about the user may have changed.
	Counts Counts

	// Before is the last version at which the profile was known to be right: between it and
	// Counts.Version, nothing but edges, requests, marks and counts has changed.
	Before int64

	// Profile is the user as it is at the version of Counts, nil if it is not at hand. Then Before does not matter.
	Profile *User
}

// And combines two changes of one user into one. Anything may have changed between the two, unless the later one
// reports everything since the earlier one.
func (c UserChange) And(d UserChange) UserChange {
	if c.Counts.Version > d.Counts.Version {
		c, d = d, c
	}
	d.Forward, d.Inverse = c.Forward || d.Forward, c.Inverse || d.Inverse
	switch {
	case c.Counts.Version == 0:
		d.Counts, d.Before, d.Profile = Counts{}, 0, nil
	case d.Before <= c.Counts.Version:
		d.Before = min(c.Before, d.Before)
		if d.Profile == nil { // the profile has not changed since
			d.Profile = c.Profile
		}
	}
	return d
}

// PostVersion is a post that a transaction has changed, for caches.
type PostVersion struct {
	PostID        // without a number: any post of the author may have changed
	Version int64 // after the transaction; 0: not known
}

type postsKey struct{}

// OnPosts returns a context for writes: after each commit of what is written with it, the engine
// calls changed with the posts whose versions the transaction has raised, other than by favorites.
// Several transactions may call it at once.
func OnPosts(ctx context.Context, changed func([]PostID)) context.Context {
	return context.WithValue(ctx, postsKey{}, changed)
}

// PostsChanged calls the function of OnPosts. Engines call it after a commit.
func PostsChanged(ctx context.Context, posts []PostID) {
	if changed, ok := ctx.Value(postsKey{}).(func([]PostID)); ok && len(posts) > 0 {
		changed(posts)
	}
}

type countedKey struct{}

// OnCounted returns a context for writes: after each commit of what is written with it, the engine
// calls counted with the counts that the transaction left, as far as it has them at hand. Several
// transactions may call it at once, and a call may name users of other writes.
func OnCounted(ctx context.Context, counted func([]UserChange)) context.Context {
	return context.WithValue(ctx, countedKey{}, counted)
}

// Counted calls the function of OnCounted. Engines call it after a commit. Forward and Inverse are
// not set.
func Counted(ctx context.Context, changes []UserChange) {
	if counted, ok := ctx.Value(countedKey{}).(func([]UserChange)); ok && len(changes) > 0 {
		counted(changes)
	}
}
