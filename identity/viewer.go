// Package identity finds out who sends a request: it verifies and issues tokens, hashes
// passwords, bounds attempts, and keeps the viewer in the
// context of a request.
package identity

import (
	"context"
	"slices"
	"strconv"
	"time"

	"kith/storage"
)

// Scopes that mean something to Kith. A token may have others.
const (
	ScopeActAs = "act-as" // may ask on behalf of any user, by the header Kith-Viewer
	ScopeAdmin = "admin"  // may make users with an id of its choice
)

// Viewer is the content of a valid token.
type Viewer struct {
	ID      storage.UserID // for whom the answer is made; 0: a service of its own, with no user
	Actor   storage.UserID // the token's own user; differs from ID if it acts for another user, 0 if a service
	Scopes  []string
	Expires time.Time // the token's exp: from then on the token is refused, and connections opened with it end

	passwordAt     storage.Micros // the token is over when the Actor's password changes after that,
	endsByPassword bool           // if it ends by passwords at all
}

// Has reports whether the token has a scope.
func (v Viewer) Has(scope string) bool { return slices.Contains(v.Scopes, scope) }

type viewerKey struct{}

// With returns a context that has a viewer.
func With(ctx context.Context, v Viewer) context.Context {
	return context.WithValue(ctx, viewerKey{}, v)
}

// Of returns the viewer of a context. There is none where nobody is signed in,
// and none where a service asks that acts for nobody; see [Caller].
func Of(ctx context.Context) (Viewer, bool) {
	v, ok := Caller(ctx)
	return v, ok && v.ID != 0
}

// Caller returns the sender of the token, a user or a service whose ID is 0.
// Without a token, the Viewer is empty and has no scope.
func Caller(ctx context.Context) (Viewer, bool) {
	v, ok := ctx.Value(viewerKey{}).(Viewer)
	return v, ok
}

// parseUserID takes the canonical decimal text of an id only.
func parseUserID(text string) (storage.UserID, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || strconv.FormatInt(n, 10) != text {
		return 0, false
	}
	return storage.UserID(n), true
}
