package identity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"kith/graph/apierr"
	"kith/storage"
)

// Config says which tokens are valid. At least one of Secrets and JWKS is
// required; with both, either kind of token is.
type Config struct {
	// Secrets verify tokens signed with HS256. Defaults to none: HS256 is refused.
	Secrets *Secrets

	// JWKS is where the keys of an identity provider are, a file or an http(s)
	// URL; they verify tokens signed with RS256, ES256 and EdDSA. Defaults to none.
	JWKS string

	// Issuer is what `iss` must be. Defaults to anything.
	Issuer string

	// Audience is what `aud` must name at least one of. Required with JWKS: a
	// provider signs tokens for other services with the same keys. Defaults to
	// anything.
	Audience []string

	// UserClaim holds the user's id, as text or number. Defaults to "sub".
	UserClaim string

	// Leeway is how far `nbf` and `iat` may lie in the future, for clocks that
	// differ. `exp` has none, so that a token and the connections that it opened
	// end together. Defaults to 30 s.
	Leeway time.Duration

	// RefreshEvery is how often the keys are read again. Defaults to 15 min.
	RefreshEvery time.Duration

	// RefreshGap is how far apart, on average, the reads are that tokens of unknown
	// keys provoke. Defaults to 10 s.
	RefreshGap time.Duration

	// Client reads a URL. Defaults to one with a timeout of 5 s.
	Client *http.Client

	// Logger gets errors of reading keys. Defaults to [slog.Default].
	Logger *slog.Logger

	// Now is the clock. Defaults to [time.Now].
	Now func() time.Time
}

// MinSecret is how long a secret must be, in bytes: as long as what HS256 makes of
// it (RFC 7518 §3.2).
const MinSecret = 32

// maxToken is how long a token may be. Longer ones are not parsed.
const maxToken = 16 << 10

const methodHS256 = "HS256"

// reservedClaims have a meaning of their own and cannot hold a user's id.
var reservedClaims = []string{"iss", "aud", "exp", "nbf", "iat", "jti", "scope", "scp", claimPassword}

// claimPassword is when the user's password had last been changed, in microseconds
// since 1970, 0 for never. Tokens of an [Issuer] have it.
const claimPassword = "pwd"

// PasswordTimes report when users have last changed their passwords.
type PasswordTimes interface {
	// ChangedAt is 0 for a user who has never changed the password.
	ChangedAt(id storage.UserID) storage.Micros
	// Watch calls end, once and soon, if the password changes or has changed after a time.
	// The function that it returns calls that off.
	Watch(id storage.UserID, since storage.Micros, end func()) (callOff func())
}

func (c Config) withDefaults() Config {
	if c.UserClaim == "" {
		c.UserClaim = "sub"
	}
	if c.Leeway == 0 {
		c.Leeway = 30 * time.Second
	}
	if c.RefreshEvery == 0 {
		c.RefreshEvery = 15 * time.Minute
	}
	if c.RefreshGap == 0 {
		c.RefreshGap = 10 * time.Second
	}
	if c.Client == nil {
		c.Client = newClient()
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func (c Config) check() error {
	switch {
	case c.Secrets == nil && c.JWKS == "":
		return errors.New("neither a secret nor keys to verify tokens with")
	case c.Secrets != nil && checkSecrets(c.Secrets.all()) != nil:
		return checkSecrets(c.Secrets.all())
	case c.JWKS != "" && !named(c.Audience):
		return errNoAudience
	case slices.Contains(reservedClaims, c.UserClaim):
		return fmt.Errorf("claim %q cannot hold the user's id", c.UserClaim)
	}
	return nil
}

var errNoAudience = errors.New("with keys of an identity provider the audience must be set: it signs tokens for other services, too")

// named reports whether there is at least one audience, and no empty one.
func named(audience []string) bool {
	return len(audience) > 0 && !slices.Contains(audience, "")
}

// Verifier checks tokens. It is safe for concurrent use.
type Verifier struct {
	cfg       Config
	parser    *jwt.Parser
	keys      *jwks         // nil without JWKS
	passwords PasswordTimes // nil before Heed
}

// Heed makes tokens end when the password of their user changes. It is called before the
// first token is verified.
func (v *Verifier) Heed(passwords PasswordTimes) { v.passwords = passwords }

// NewVerifier reads the keys, if any, and keeps reading them in the background
// until Close. It refuses unsafe settings: a short secret, keys without an
// audience, keys that cannot be read.
func NewVerifier(ctx context.Context, cfg Config) (*Verifier, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	v := &Verifier{cfg: cfg}
	var methods []string
	if cfg.Secrets != nil {
		methods = append(methods, methodHS256)
	}
	if cfg.JWKS != "" {
		keys, err := openJWKS(ctx, cfg)
		if err != nil {
			return nil, err
		}
		v.keys = keys
		methods = append(methods, keyMethods...)
	}
	v.parser = newParser(cfg, methods)
	return v, nil
}

// newParser sets the library up: by itself it accepts any method that the key
// fits, tokens without exp, and any issuer and audience.
func newParser(cfg Config, methods []string) *jwt.Parser {
	options := []jwt.ParserOption{
		jwt.WithValidMethods(methods),
		jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(),
		jwt.WithLeeway(cfg.Leeway),
		jwt.WithTimeFunc(cfg.Now),
		jwt.WithStrictDecoding(), // one token has one spelling
		jwt.WithJSONNumber(),     // an id as a number has 63 bits
	}
	if cfg.Issuer != "" {
		options = append(options, jwt.WithIssuer(cfg.Issuer))
	}
	if len(cfg.Audience) > 0 {
		options = append(options, jwt.WithAudience(cfg.Audience...))
	}
	return jwt.NewParser(options...)
}

// Close stops reading keys. The verifier keeps using the present ones.
func (v *Verifier) Close() {
	if v.keys != nil {
		v.keys.close()
	}
}

// Verify returns the viewer of a token. The error is an [apierr.Error] with the code
// UNAUTHENTICATED and a sentence that reveals nothing of the token.
func (v *Verifier) Verify(ctx context.Context, token string) (Viewer, error) {
	// encoding/base64 passes over line ends, even when it is strict.
	if len(token) > maxToken || strings.ContainsAny(token, "\r\n") {
		return Viewer{}, errMalformed
	}
	claims := jwt.MapClaims{}
	parsed, err := v.parser.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) { return v.key(ctx, t) })
	if err != nil {
		return Viewer{}, explain(err)
	}
	viewer, err := v.viewer(claims)
	if err != nil {
		return Viewer{}, err
	}
	// Passwords are Kith's: tokens of an identity provider do not depend on them.
	if parsed.Method.Alg() == methodHS256 && viewer.Actor != 0 {
		if viewer.passwordAt, viewer.endsByPassword, err = passwordOf(claims); err != nil {
			return Viewer{}, err
		}
	}
	if v.passwords != nil && viewer.endsByPassword && v.passwords.ChangedAt(viewer.Actor) > viewer.passwordAt {
		return Viewer{}, errReplaced
	}
	return viewer, nil
}

// Watch calls end, once and soon, when the viewer's token is over since the password has
// been changed. The function that it returns calls that off.
func (v *Verifier) Watch(viewer Viewer, end func()) (callOff func()) {
	if v.passwords == nil || !viewer.endsByPassword {
		return func() {}
	}
	return v.passwords.Watch(viewer.Actor, viewer.passwordAt, end)
}

// key finds the key that a token must be signed with. Its kind follows from the method,
// never from the token's contents.
func (v *Verifier) key(ctx context.Context, t *jwt.Token) (any, error) {
	if _, ok := t.Header["crit"]; ok {
		return nil, errors.New("extensions that must be understood are not") // RFC 7515 §4.1.11
	}
	if t.Method.Alg() == methodHS256 {
		var keys jwt.VerificationKeySet
		for _, secret := range v.cfg.Secrets.all() {
			keys.Keys = append(keys.Keys, secret)
		}
		return keys, nil
	}
	kid, isText := t.Header["kid"].(string)
	if _, given := t.Header["kid"]; given && !isText {
		return nil, errors.New("kid is no text")
	}
	keys := v.keys.find(ctx, kid, t.Method.Alg())
	if len(keys) == 0 {
		return nil, errors.New("no such key")
	}
	return jwt.VerificationKeySet{Keys: keys}, nil
}

// The errors that clients see. If a token is not signed by one of our keys, they learn
// no more than that.
var (
	errMalformed    = apierr.Unauthenticated("the token is malformed")
	errNotOurs      = apierr.Unauthenticated("the token is not signed in a way that is accepted here")
	errExpired      = apierr.Unauthenticated("the token has expired")
	errNotYet       = apierr.Unauthenticated("the token is not valid yet")
	errElsewhere    = apierr.Unauthenticated("the token is from another issuer or for another audience")
	errIncomplete   = apierr.Unauthenticated("the token lacks a claim, or has one that cannot be read")
	errReplaced     = apierr.Unauthenticated("the password has been changed since the token was made")
	errUserless     = apierr.Unauthenticated("the token does not name a user")
	errScopes       = apierr.Unauthenticated("the token's scopes cannot be read")
	explainedErrors = []struct{ of, as error }{
		{jwt.ErrTokenMalformed, errMalformed},
		{jwt.ErrTokenSignatureInvalid, errNotOurs},
		{jwt.ErrTokenUnverifiable, errNotOurs},
		{jwt.ErrTokenExpired, errExpired},
		{jwt.ErrTokenNotValidYet, errNotYet},
		{jwt.ErrTokenUsedBeforeIssued, errNotYet},
		{jwt.ErrTokenInvalidIssuer, errElsewhere},
		{jwt.ErrTokenInvalidAudience, errElsewhere},
	}
)

func explain(err error) error {
	for _, e := range explainedErrors {
		if errors.Is(err, e.of) {
			return e.as
		}
	}
	return errIncomplete
}
