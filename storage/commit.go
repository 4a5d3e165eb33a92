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
