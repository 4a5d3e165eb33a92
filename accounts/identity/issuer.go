package identity

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"kith/graph/apierr"
	"kith/graph/defaults"
	"kith/storage"
)

// IssuerConfig says how tokens are made. A [Verifier] with the same Secrets accepts them.
type IssuerConfig struct {
	// Secrets sign with HS256, the first of them. Required.
	Secrets *Secrets

	// TTL is how long a token is valid. Defaults to 24 h.
	TTL time.Duration

	// SessionTTL is for how long after signing in a token may be replaced by a new one. Defaults to 0:
	// not at all.
	SessionTTL time.Duration

	// Now is the clock. Defaults to [time.Now].
	Now func() time.Time
}

// Issuer makes tokens for users who have signed in.
type Issuer struct{ cfg IssuerConfig }

// NewIssuer returns an error without a secret, or for a negative TTL.
func NewIssuer(cfg IssuerConfig) (*Issuer, error) {
	cfg = defaults.For(cfg, IssuerConfig{TTL: 24 * time.Hour, Now: time.Now})
	switch {
	case cfg.Secrets == nil:
		return nil, errNoSecret
	case checkSecrets(cfg.Secrets.all()) != nil:
		return nil, checkSecrets(cfg.Secrets.all())
	case cfg.TTL < time.Second:
		return nil, errors.New("tokens must be valid for at least a second")
	case cfg.SessionTTL < 0:
		return nil, errors.New("a session must not end before it begins")
	}
	return &Issuer{cfg}, nil
}

// Issue makes a token for a user whose password was last changed at passwordAt, 0 for never,
// with scopes if any, and returns when it expires. A later change of the password ends it.
func (i *Issuer) Issue(id storage.UserID, passwordAt storage.Micros, scopes ...string) (token string, expires time.Time, err error) {
	if id < 1 {
		return "", time.Time{}, fmt.Errorf("issue a token for %d: it is no user's id", id)
	}
	now := i.cfg.Now().UTC().Truncate(time.Second)
	return i.issue(session{id, passwordAt, now}, now, now.Add(i.cfg.TTL).Truncate(time.Second), scopes...)
}

// Renew makes a new token from the one that a viewer has sent. The new token lasts as long as one from
// signing in, but no longer than the session, and no shorter than the token sent; it ends for the same
// reasons. The errors are FORBIDDEN: the token sent is not one from signing in, or the session has
// reached its limit.
func (i *Issuer) Renew(v Viewer) (token string, expires time.Time, err error) {
	now := i.cfg.Now().UTC().Truncate(time.Second)
	end := v.session.signedInAt.Add(i.cfg.SessionTTL)
	switch {
	case i.cfg.SessionTTL == 0:
		return "", time.Time{}, errNotRenewed
	case v.session.signedInAt.IsZero():
		return "", time.Time{}, errNotOfLogin
	case !now.Before(end):
		return "", time.Time{}, errSessionOver
	}
	if expires = now.Add(i.cfg.TTL); expires.After(end) {
		expires = end
	}
	if expires.Before(v.Expires) {
		expires = v.Expires
	}
	return i.issue(v.session, now, expires.Truncate(time.Second))
}

var (
	errNotRenewed  = apierr.TokenNotRenewed.Error("this server does not renew tokens: sign in again")
	errNotOfLogin  = apierr.TokenNotRenewed.Error("only tokens of register and login are renewed here: ask whoever issued this one")
	errSessionOver = apierr.SessionOver.Error("the session has lasted as long as it may: sign in again")
)

// session is what tokens of one sign-in have in common.
type session struct {
	user       storage.UserID
	passwordAt storage.Micros
	signedInAt time.Time
}

func (i *Issuer) issue(s session, now, expires time.Time, scopes ...string) (string, time.Time, error) {
	claims := jwt.MapClaims{
		claimUser: s.user.String(), "iat": now.Unix(), "exp": expires.Unix(),
		claimPassword: int64(s.passwordAt), claimSignedIn: s.signedInAt.Unix(),
	}
	return i.sign(claims, expires, scopes)
}

// IssueTo makes a token as another program with the secret would: of the user with an id, or of a service with another name.
// It is not renewed.
func (i *Issuer) IssueTo(subject string, scopes ...string) (token string, err error) {
	now := i.cfg.Now().UTC().Truncate(time.Second)
	expires := now.Add(i.cfg.TTL).Truncate(time.Second)
	token, _, err = i.sign(jwt.MapClaims{claimUser: subject, "iat": now.Unix(), "exp": expires.Unix()}, expires, scopes)
	return token, err
}

func (i *Issuer) sign(claims jwt.MapClaims, expires time.Time, scopes []string) (string, time.Time, error) {
	if len(scopes) > 0 {
		claims["scope"] = strings.Join(scopes, " ")
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(i.cfg.Secrets.signing())
	if err != nil {
		return "", time.Time{}, fmt.Errorf("issue a token for %v: %w", claims[claimUser], err)
	}
	return token, expires, nil
}

// RandomSecret makes a secret for this run. Tokens signed with it are not valid at another gateway,
// or after a restart.
func RandomSecret() *Secrets {
	secret := make([]byte, MinSecret)
	rand.Read(secret) // it never fails: see its documentation
	return NewSecrets(secret)
}
