package storage

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Identity is who a user is at an identity provider: `iss` and `sub` of its tokens (OpenID Connect
// Core §2), which are compared byte by byte.
type Identity struct{ Issuer, Subject string }

// MaxIdentityText bounds an issuer and a subject each, in bytes: as long as a `sub` may be.
const MaxIdentityText = 255

// MaxIdentities is how many identities a user may have.
const MaxIdentities = 32

// Valid reports whether the identity may be stored. It must not contain control characters, so that
// files can hold every identity.
func (i Identity) Valid() bool {
	return isIdentityText(i.Issuer) && isIdentityText(i.Subject)
}

func isIdentityText(text string) bool {
	return text != "" && len(text) <= MaxIdentityText && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// Digest stands for the identity: 176 bits of SHA-256 as 30 characters. The identity is found by
// it, and sharded by it as a handle is.
func (i Identity) Digest() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s%s", len(i.Issuer), i.Issuer, i.Subject))
	return base64.RawURLEncoding.EncodeToString(sum[:22])
}

// LinkedIdentity is an identity with the user for whom it stands, and the time since when.
type LinkedIdentity struct {
	Identity
	User UserID
	At   Micros
}

// Compare orders identities of a user by when they were linked.
func (l LinkedIdentity) Compare(m LinkedIdentity) int {
	return cmp.Or(cmp.Compare(l.At, m.At), strings.Compare(l.Digest(), m.Digest()))
}

// Kinds of look-ups of identities.
var (
	// IdentityLookups reads the users for whom identities stand. An invalid identity (see [Identity.Valid]) is not found, and does not
	// affect the others.
	IdentityLookups = NewKind[Identity, UserID]("identities", nil)

	// LinkLookups reads the identities of users, in the order in which they were linked. It asks every shard. Every user is Found.
	LinkLookups = NewKind[UserID, []LinkedIdentity]("identities.of", nil)
)
