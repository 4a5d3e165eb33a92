package identity

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"kith/storage"
)

// maxSeconds is the end of the year 9999. The library converts what lies beyond
// without a look at the result.
const maxSeconds = 253402300799

// viewer reads the claims of a token whose signature, issuer and audience are
// right.
func (v *Verifier) viewer(claims jwt.MapClaims) (Viewer, error) {
	for _, name := range []string{"exp", "nbf", "iat"} {
		if !isTime(claims[name]) {
			return Viewer{}, errIncomplete
		}
	}
	exp, err := claims.GetExpirationTime()
	if err != nil || exp == nil {
		return Viewer{}, errIncomplete
	}
	if !v.cfg.Now().Before(exp.Time) { // the library gives it the leeway
		return Viewer{}, errExpired
	}
	scopes, ok := scopesOf(claims)
	if !ok {
		return Viewer{}, errScopes
	}
	viewer := Viewer{Scopes: scopes, Expires: exp.UTC().Truncate(time.Microsecond)}
	// A service may call itself what it likes: tokens of client credentials name the client.
	viewer.ID = userOf(claims, v.cfg.UserClaim)
	if viewer.ID == 0 && !viewer.Has(ScopeActAs) && !viewer.Has(ScopeAdmin) {
		return Viewer{}, errUserless
	}
	viewer.Actor = viewer.ID
	return viewer, nil
}

// passwordOf reads which change of the password ends a token: any after the time that it
// names. Of a token without one, made by another program, its own time is taken. One
// without either does not end by it.
func passwordOf(claims jwt.MapClaims) (at storage.Micros, ends bool, err error) {
	if claim, given := claims[claimPassword]; given {
		number, ok := claim.(json.Number)
		if !ok {
			return 0, false, errIncomplete
		}
		n, err := number.Int64()
		if err != nil || n < 0 {
			return 0, false, errIncomplete
		}
		return storage.Micros(n), true, nil
	}
	issued, err := claims.GetIssuedAt()
	if err != nil || issued == nil {
		return 0, false, nil //nolint:nilerr // a claim that cannot be read is as one that is not there
	}
	return storage.MicrosOf(issued.Time), true, nil
}

// isTime reports whether a claim is absent or a time of the common era.
func isTime(claim any) bool {
	if claim == nil {
		return true
	}
	number, ok := claim.(json.Number)
	if !ok {
		return false
	}
	seconds, err := number.Float64()
	return err == nil && seconds >= 0 && seconds <= maxSeconds
}

// userOf reads the user's id, 0 where the token names none.
func userOf(claims jwt.MapClaims, name string) (id storage.UserID) {
	switch claim := claims[name].(type) {
	case string:
		id, _ = parseUserID(claim)
	case json.Number:
		id, _ = parseUserID(claim.String())
	}
	return id
}

// scopesOf reads `scope` (RFC 8693 §4.2: text, separated by blanks) or, without
// it, `scp`, which some providers write as a list. Either is taken in either form.
func scopesOf(claims jwt.MapClaims) ([]string, bool) {
	claim, given := claims["scope"]
	if !given {
		claim, given = claims["scp"]
	}
	if !given {
		return nil, true
	}
	switch claim := claim.(type) {
	case string:
		return strings.Fields(claim), true
	case []any:
		scopes := make([]string, 0, len(claim))
		for _, item := range claim {
			scope, ok := item.(string)
			if !ok {
				return nil, false
			}
			scopes = append(scopes, scope)
		}
		return scopes, true
	}
	return nil, false
}
