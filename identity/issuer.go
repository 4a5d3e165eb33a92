package identity

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"kith/storage"
)

// IssuerConfig says what tokens are made like, so that a [Verifier] of the same
// Secrets, Issuer, Audience and UserClaim takes them.
type IssuerConfig struct {
	// Secrets sign with HS256, the first of them. Required.
	Secrets *Secrets

	// Issuer becomes `iss`. Defaults to none.
	Issuer string

	// Audience becomes `aud`. Defaults to none.
	Audience []string

	// UserClaim holds the user's id. Defaults to "sub".
	UserClaim string

	// TTL is how long a token is valid. Defaults to 24 h.
	TTL time.Duration

	// Now is the clock. Defaults to [time.Now].
	Now func() time.Time
}

// Issuer makes tokens for users who have signed in.
type Issuer struct{ cfg IssuerConfig }

// NewIssuer refuses to do without a secret, and a negative TTL.
func NewIssuer(cfg IssuerConfig) (*Issuer, error) {
	if cfg.UserClaim == "" {
		cfg.UserClaim = "sub"
	}
	if cfg.TTL == 0 {
		cfg.TTL = 24 * time.Hour
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	switch {
	case cfg.Secrets == nil:
		return nil, errNoSecret
	case checkSecrets(cfg.Secrets.all()) != nil:
		return nil, checkSecrets(cfg.Secrets.all())
	case cfg.TTL < time.Second:
		return nil, errors.New("tokens must be valid for at least a second")
	case slices.Contains(reservedClaims, cfg.UserClaim):
		return nil, fmt.Errorf("claim %q cannot hold the user's id", cfg.UserClaim)
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
	expires = now.Add(i.cfg.TTL).Truncate(time.Second)
	claims := jwt.MapClaims{i.cfg.UserClaim: id.String(), "iat": now.Unix(), "exp": expires.Unix(), claimPassword: int64(passwordAt)}
	if i.cfg.Issuer != "" {
		claims["iss"] = i.cfg.Issuer
	}
	if len(i.cfg.Audience) > 0 {
		claims["aud"] = i.cfg.Audience
	}
	if len(scopes) > 0 {
		claims["scope"] = strings.Join(scopes, " ")
	}
	token, err = jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(i.cfg.Secrets.signing())
	if err != nil {
		return "", time.Time{}, fmt.Errorf("issue a token for user %d: %w", id, err)
	}
	return token, expires, nil
}

// RandomSecret makes a secret for this run. Tokens signed with it are worth
// nothing to another gateway and after a restart.
func RandomSecret() *Secrets {
	secret := make([]byte, MinSecret)
	rand.Read(secret) // it never fails: see its documentation
	return NewSecrets(secret)
}
