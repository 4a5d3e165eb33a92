package identity

import (
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"kith/graph/apierr"
	"kith/internal/check"
	"kith/internal/must"
)

// A session continues with new tokens until its longest duration. Each token ends when its password changes.
func TestRenew(t *testing.T) {
	t.Parallel()
	began := time.Now().UTC().Truncate(time.Second)
	now := began
	clock := func() time.Time { return now }
	issuer, err := NewIssuer(IssuerConfig{Secrets: secrets, TTL: 24 * time.Hour, SessionTTL: 60 * time.Hour, Now: clock})
	must.OK(t, err)
	ended := changed{}
	v := verifier(t, Config{Secrets: secrets, Now: clock})
	v.UseRevocations(ended, nil)
	token, _, err := issuer.Issue(42, 7)
	must.OK(t, err)
	first := token
	hours := func(n int) time.Time { return began.Add(time.Duration(n) * time.Hour) }
	for _, step := range []struct{ at, until int }{{0, 24}, {20, 44}, {43, 60}, {59, 60}} {
		now = hours(step.at)
		viewer, err := v.Verify(t.Context(), token)
		must.That(t, err == nil, "after %d hours: %v", step.at, err)
		var expires time.Time
		token, expires, err = issuer.Renew(viewer)
		check.That(t, err == nil && expires == hours(step.until), "after %d hours: until %s, %v; want %d", step.at, expires.Sub(began), err, step.until)
	}
	_, err = v.Verify(t.Context(), first)
	check.That(t, codeOf(err) == apierr.CodeUnauthenticated, "the first token has not expired: %v", err)
	viewer, err := v.Verify(t.Context(), token)
	check.That(t, err == nil && viewer.ID == 42 && viewer.passwordAt == 7, "the last token: %+v, %v", viewer, err)
	ended[42] = 8
	_, err = v.Verify(t.Context(), token)
	check.That(t, codeOf(err) == apierr.CodeUnauthenticated, "after the password has changed: %v", err)
}

func TestWhatIsNotRenewed(t *testing.T) {
	t.Parallel()
	v := verifier(t, Config{Secrets: secrets})
	renew := func(c IssuerConfig, token string) (time.Time, error) {
		t.Helper()
		c.Secrets = secrets
		issuer, err := NewIssuer(c)
		must.OK(t, err)
		viewer, err := v.Verify(t.Context(), token)
		must.OK(t, err)
		_, expires, err := issuer.Renew(viewer)
		return expires, err
	}
	at, hour := time.Now().Unix()-60, IssuerConfig{SessionTTL: time.Hour}
	_, err := renew(hour, hs256(t, "pwd", 0, "auth_time", at))
	must.OK(t, err)
	for name, changes := range map[string][]any{
		"of another program":      {"auth_time", at},
		"without a time":          {"pwd", 0},
		"with a text as the time": {"pwd", 0, "auth_time", "now"},
		"with half a second":      {"pwd", 0, "auth_time", 1.5},
		"with a time before 1970": {"pwd", 0, "auth_time", -1},
		"with a scope":            {"pwd", 0, "auth_time", at, "scope", "admin"},
		"of a service":            {"sub", nil, "pwd", 0, "auth_time", at, "scope", "act-as"},
		"of an old session":       {"pwd", 0, "auth_time", at - 3600},
	} {
		_, err := renew(hour, hs256(t, changes...))
		check.That(t, codeOf(err) == apierr.CodeForbidden, "%s: %v", name, err)
	}
	_, err = renew(IssuerConfig{}, hs256(t, "pwd", 0, "auth_time", at))
	check.That(t, codeOf(err) == apierr.CodeForbidden, "without sessions: %v", err)
	_, err = NewIssuer(IssuerConfig{Secrets: secrets, SessionTTL: -1})
	check.That(t, err != nil, "a session that ends before it begins")
	// If a token is from a time when tokens lasted longer, it is not replaced by a shorter one.
	end := time.Now().Add(48 * time.Hour).Truncate(time.Second)
	expires, err := renew(IssuerConfig{TTL: time.Minute, SessionTTL: time.Hour}, hs256(t, "pwd", 0, "auth_time", at, "exp", end.Unix()))
	check.That(t, err == nil && expires.Equal(end), "it ends at %s, %v, want %s", expires, err, end)
}

// A provider's token about its own sign-in starts no session here.
func TestAProvidersTokenIsNotRenewed(t *testing.T) {
	t.Parallel()
	v := provided(t, fileOf(t, providerJWKS(t)), Config{Secrets: secrets})
	viewer, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodEdDSA, providerKeys().ed, "d", claims("pwd", 0, "auth_time", time.Now().Unix())))
	must.OK(t, err)
	issuer, err := NewIssuer(IssuerConfig{Secrets: secrets, SessionTTL: time.Hour})
	must.OK(t, err)
	_, _, err = issuer.Renew(viewer)
	check.That(t, codeOf(err) == apierr.CodeForbidden, "%v", err)
}
