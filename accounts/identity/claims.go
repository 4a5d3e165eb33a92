package identity

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"kith/storage"
)

// maxSeconds is the end of the year 9999. The library converts later times without checking the
// result.
const maxSeconds = 253402300799

// viewer reads the claims of a token whose signature, issuer and audience are
// right.
func (v *Verifier) viewer(ctx context.Context, from *source, claims jwt.MapClaims) (Viewer, error) {
	for _, name := range []string{"exp", "nbf", "iat"} {
		if !isTime(claims[name]) {
			return Viewer{}, errIncomplete
		}
	}
	exp, err := claims.GetExpirationTime()
	if err != nil || exp == nil {
		return Viewer{}, errIncomplete
	}
	if !v.cfg.Now().Before(exp.Time) { // the library would allow the leeway
		return Viewer{}, errExpired
	}
	scopes, ok := scopesOf(claims)
	if !ok {
		return Viewer{}, errScopes
	}
	if from.secrets == nil {
		scopes = slices.DeleteFunc(scopes, func(scope string) bool { return !slices.Contains(from.scopes, scope) })
	}
	viewer := Viewer{
		Scopes: scopes, Expires: exp.UTC().Truncate(time.Microsecond),
		Subject: storage.Identity{Issuer: from.issuer, Subject: subjectOf(claims, from.userClaim)},
	}
	// A service may have any name: tokens of client credentials name the client.
	isService := viewer.Has(ScopeActAs) || viewer.Has(ScopeAdmin)
	if from.mapped {
		viewer.Identity = viewer.Subject
		viewer.ID, err = v.mapped(ctx, viewer.Identity)
	} else {
		viewer.ID, _ = parseUserID(viewer.Subject.Subject) // 0 if the token names nobody
	}
	switch {
	case err != nil && !isService:
		return Viewer{}, err
	case viewer.ID == 0 && !isService && !viewer.Identity.Valid():
		return Viewer{}, errUserless
	}
	viewer.Actor = viewer.ID
	return viewer, nil
}

// mapped is the user for whom an identity stands, 0 if there is none.
func (v *Verifier) mapped(ctx context.Context, id storage.Identity) (storage.UserID, error) {
	if v.identities == nil || !id.Valid() {
		return 0, nil
	}
	user, err := v.identities.UserOf(ctx, id)
	if err != nil {
		v.cfg.Logger.WarnContext(ctx, "cannot look up the user of a token", "error", err)
		return 0, errUnmapped
	}
	return user, nil
}

// passwordOf reads which changes of the password, or sign-outs, end a token: any after the time that the
// token names for this. If it names none, because a provider or another program made it, the time of the
// token itself counts. A token without either time does not end in this way.
func (s *source) passwordOf(claims jwt.MapClaims) (at storage.Micros, ends bool, err error) {
	if claim, given := claims[claimPassword]; given && s.secrets != nil { // a provider may mean something else by this claim
		number, _ := claim.(json.Number)
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

// signedInAt is when the user signed in, if an [Issuer] made the token; zero for all others.
func (s *source) signedInAt(claims jwt.MapClaims) time.Time {
	number, ok := claims[claimSignedIn].(json.Number)
	if _, given := claims[claimPassword]; !given || !ok || s.secrets == nil || !isTime(number) {
		return time.Time{}
	}
	seconds, err := number.Int64()
	if err != nil {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
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

// subjectOf reads a provider's name for the user, as it is written; "" if there is none.
func subjectOf(claims jwt.MapClaims, name string) string {
	switch claim := claims[name].(type) {
	case string:
		return claim
	case json.Number:
		return claim.String()
	}
	return ""
}

// scopesOf reads `scope` (RFC 8693 §4.2: text, separated by blanks) or, without
// it, `scp`, which some providers write as a list. Either claim is accepted in either form.
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
