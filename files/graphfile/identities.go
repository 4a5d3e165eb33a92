package graphfile

import (
	"fmt"

	"kith/storage"
)

// Identities is the kind of files that say as whom people sign in by identity providers.
const Identities Kind = "identities"

var errIdentity = fmt.Errorf("issuer and subject have 1 to %d bytes each, and no control characters", storage.MaxIdentityText)

// IdentityFormat is the format of identities. Issuer and subject are taken as they are, blanks included.
var IdentityFormat = Format[storage.LinkedIdentity]{Identities, func(l *storage.LinkedIdentity) []column {
	subject := plain(&l.Subject)
	subject.write = func() (string, bool) { return l.Subject, l.Valid() }
	return []column{id(&l.User), plain(&l.Issuer), subject, moment(&l.At)}
}, func(l *storage.LinkedIdentity) error {
	if !l.Valid() {
		return errIdentity
	}
	return nil
}}
