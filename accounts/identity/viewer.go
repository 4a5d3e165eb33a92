// Package identity finds out who sends a request: it verifies and issues tokens, hashes
// passwords, bounds attempts, and keeps the viewer in the
// context of a request.
package identity

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/apierr"
	"kith/storage"
)

// Scopes that mean something to Kith. A token may have others.
const (
	ScopeActAs = "act-as" // may ask on behalf of any user, by the header Kith-Viewer
	ScopeAdmin = "admin"  // may make users with an id of its choice, and ask for plans
)

// Viewer is the content of a valid token.
type Viewer struct {
	ID      storage.UserID // for whom the answer is made; 0: a service of its own, with no user
	Actor   storage.UserID // the token's own user; differs from ID if it acts for another user; 0 for a service
	Scopes  []string
	Expires time.Time // the token's exp: from then on the token is refused, and connections opened with it end

	// Identity is what a provider whose subjects are mapped calls the sender of the token; zero for all
	// other tokens.
	Identity storage.Identity

	passwordAt     storage.Micros // the token ends when the Actor changes the password or signs out after that,
	endsByPassword bool           // if it ends in that way at all
	token          string         // as it was sent, if there is an Identity
	session        session        // of a token of an [Issuer] without scopes
}

// Unknown reports whether a provider has signed the caller in, but no user is known for that
// identity. The caller can only register.
func (v Viewer) Unknown() bool {
	return v.ID == 0 && v.Identity != storage.Identity{} && !v.Has(ScopeActAs) && !v.Has(ScopeAdmin)
}

// Token is the token as it was sent, if there is an Identity: registering answers with it.
func (v Viewer) Token() string { return v.token }

// ErrUnknown answers everything that a caller who is [Viewer.Unknown] asks, except registering.
var ErrUnknown = apierr.Unauthenticated("no user is known for this identity: register first, by the mutation register(handle, name) with this token")

// Has reports whether the token has a scope.
func (v Viewer) Has(scope string) bool { return slices.Contains(v.Scopes, scope) }

type viewerKey struct{}

// With returns a context that has a viewer.
func With(ctx context.Context, v Viewer) context.Context {
	return context.WithValue(ctx, viewerKey{}, v)
}

// Of returns the viewer of a context. There is none if nobody is signed in, or if a service asks
// for itself; see [Caller].
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

// MayAsk refuses everything except registering to a caller whom a provider has signed in and for
// whom no user is known.
func MayAsk(ctx context.Context, op *ast.OperationDefinition) error {
	if caller, _ := Caller(ctx); !caller.Unknown() {
		return nil
	}
	for _, selection := range op.SelectionSet {
		if field, ok := selection.(*ast.Field); !ok || op.Operation != ast.Mutation || field.Name != "register" {
			return ErrUnknown
		}
	}
	return nil
}

// IsAdmin reports whether a token with [ScopeAdmin] was sent.
func IsAdmin(ctx context.Context) bool {
	caller, _ := Caller(ctx)
	return caller.Has(ScopeAdmin)
}

// Expires is when the caller's token expires, and with it connections opened with it; zero without a token.
func Expires(ctx context.Context) time.Time {
	caller, _ := Caller(ctx)
	return caller.Expires
}

// parseUserID takes the canonical decimal text of an id only.
func parseUserID(text string) (storage.UserID, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || strconv.FormatInt(n, 10) != text {
		return 0, false
	}
	return storage.UserID(n), true
}
