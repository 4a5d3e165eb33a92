package storage

import "context"

type commitKey struct{}

// BeforeCommit has whatever is written with the context that it returns wait for something
// before it is committed. ready may be called several times, and at once.
func BeforeCommit(ctx context.Context, ready func()) context.Context {
	return context.WithValue(ctx, commitKey{}, ready)
}

// Committing is called by engines before they commit what was written with a context.
func Committing(ctx context.Context) {
	if ready, ok := ctx.Value(commitKey{}).(func()); ok {
		ready()
	}
}

// UserChange is what one transaction has made of a user, for caches.
type UserChange struct {
	User    UserID
	Forward bool // edges that leave it have changed
	Inverse bool // edges that enter it have

	// Counts are the user's counts after it. Version 0: they are not known, and anything about
	// the user may have changed.
	Counts Counts

	// Before is the version that the profile was last known to be right at: nothing but edges,
	// requests, marks and counts has changed between that and Counts.Version.
	Before int64
}

// And is two changes of one user as one. What lies between them may have changed anything.
func (c UserChange) And(d UserChange) UserChange {
	if c.Counts.Version > d.Counts.Version {
		c, d = d, c
	}
	d.Forward, d.Inverse = c.Forward || d.Forward, c.Inverse || d.Inverse
	switch {
	case c.Counts.Version == 0:
		d.Counts, d.Before = Counts{}, 0
	case d.Before <= c.Counts.Version:
		d.Before = min(c.Before, d.Before)
	}
	return d
}

type countedKey struct{}

// OnCounted has a function called, after each commit of what is written with the context that it
// returns, with the counts that the transaction has left, as far as the engine has them at
// hand. It may be called at once by several transactions, and name users of other writes.
func OnCounted(ctx context.Context, counted func([]UserChange)) context.Context {
	return context.WithValue(ctx, countedKey{}, counted)
}

// Counted is called by engines after a commit. Forward and Inverse are not set.
func Counted(ctx context.Context, changes []UserChange) {
	if counted, ok := ctx.Value(countedKey{}).(func([]UserChange)); ok && len(changes) > 0 {
		counted(changes)
	}
}
