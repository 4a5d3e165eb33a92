package storage

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"unicode/utf8"
)

// Identity is who a user is at an identity provider: `iss` and `sub` of its tokens (OpenID Connect
// Core §2), which are compared byte by byte.
type Identity struct{ Issuer, Subject string }

// MaxIdentityText bounds an issuer and a subject each, in bytes: as long as a `sub` may be.
const MaxIdentityText = 255

// Valid reports whether there may be such an identity.
func (i Identity) Valid() bool {
	for _, text := range []string{i.Issuer, i.Subject} {
		if text == "" || len(text) > MaxIdentityText || !utf8.ValidString(text) {
			return false
		}
	}
	return true
}

// Digest stands for the identity: 176 bits of SHA-256 as 30 characters, by which it is found, and
// sharded as a handle is.
func (i Identity) Digest() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s%s", len(i.Issuer), i.Issuer, i.Subject))
	return base64.RawURLEncoding.EncodeToString(sum[:22])
}

// IdentityStore keeps for which users identities of providers stand.
type IdentityStore interface {
	// UsersOfIdentities looks up for whom identities stand. What cannot be an identity (see
	// [Identity.Valid]) is not found, and does not affect the others.
	UsersOfIdentities(ctx context.Context, identities []Identity) []Result[UserID]

	// LinkIdentity makes a valid identity stand for a user. Doing it again changes nothing. Whether
	// there is such a user is not asked: somebody who registers is linked first. A user may have
	// several identities; [StateStore.Erase] removes them all. [ErrIdentityTaken] if the identity
	// stands for another user.
	LinkIdentity(ctx context.Context, identity Identity, user UserID, at Micros) error
}
