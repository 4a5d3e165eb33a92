package graphfile

import (
	"errors"
	"fmt"

	"kith/storage"
)

// Identities is the kind of files that say as whom people sign in by identity providers.
const Identities Kind = "identities"

var errIdentity = fmt.Errorf("issuer and subject have 1 to %d bytes each, and no control characters", storage.MaxIdentityText)

// ParseIdentity reads a record. Issuer and subject are taken as they are, blanks included.
func ParseIdentity(record []string) (l storage.LinkedIdentity, err error) {
	f := fieldsOf(Identities, record)
	l.User, l.Identity = f.id(0), storage.Identity{Issuer: f.record[1], Subject: f.record[2]}
	if !l.Valid() {
		f.check(errIdentity)
	}
	l.At = f.time(3)
	return l, f.err
}

// IdentityRecord is the record of an identity, which [ParseIdentity] reads as the same.
func IdentityRecord(l storage.LinkedIdentity) ([]string, error) {
	if l.User <= 0 || !l.Valid() || !writableTime(l.At) {
		return nil, errors.New("an identity of user " + l.User.String() + " is damaged: no file can hold it")
	}
	return []string{l.User.String(), l.Issuer, l.Subject, timeText(l.At)}, nil
}
