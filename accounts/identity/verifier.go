package identity

import (
	"cmp"
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

// Config says which tokens are valid. At least one of Secrets and Providers is required; with both,
// either kind of token is valid.
type Config struct {
	// Secrets verify tokens signed with HS256. Defaults to none: HS256 is refused.
	Secrets *Secrets

	// Issuer is what `iss` of a token of HS256 must be. Defaults to anything.
	Issuer string

	// Audience is what `aud` of a token of HS256 must name at least one of. Defaults to anything.
	Audience []string

	// UserClaim holds the user's id in tokens of HS256, as text or number. Defaults to "sub".
	UserClaim string

	// Providers are those whose tokens are accepted. Defaults to none.
	Providers []Provider

	// Leeway is how far `nbf` and `iat` may be in the future, for clocks that differ. `exp` has
	// none, so that a token and the connections that it opened end together. Defaults to 30 s.
	Leeway time.Duration

	// RefreshEvery is how often the keys are read again. Defaults to 15 min.
	RefreshEvery time.Duration

	// RefreshGap is the average time between reads that are caused by tokens of unknown keys.
	// Defaults to 10 s.
	RefreshGap time.Duration

	// Client reads a URL. Defaults to one with a timeout of 5 s.
	Client *http.Client

	// Logger gets errors of reading keys. Defaults to [slog.Default].
	Logger *slog.Logger

	// Now is the clock. Defaults to [time.Now].
	Now func() time.Time
}

// MinSecret is how long a secret must be, in bytes: as long as the output of HS256 (RFC 7518 §3.2).
const MinSecret = 32

// maxToken is how long a token may be. Longer ones are not parsed.
const maxToken = 16 << 10

const methodHS256 = "HS256"

// reservedClaims have their own meanings and cannot hold a user's id.
var reservedClaims = []string{"iss", "aud", "exp", "nbf", "iat", "jti", "scope", "scp", claimPassword, claimSignedIn}

// claimPassword is when the user had last changed the password or signed out everywhere, in microseconds
// since 1970, 0 for never. Tokens of an [Issuer] have it.
const claimPassword = "pwd"

// claimSignedIn is when the user signed in, in seconds since 1970 (OpenID Connect Core §2). Tokens of an
// [Issuer] have it.
const claimSignedIn = "auth_time"

// PasswordTimes report when users have last changed their passwords, or signed out everywhere.
type PasswordTimes interface {
	// ChangedAt is when a user last changed the password or signed out everywhere; 0 for never.
	ChangedAt(id storage.UserID) storage.Micros
	// Watch calls end, once and soon, if that time is later than since, or becomes later. The
	// function that it returns cancels that.
	Watch(id storage.UserID, since storage.Micros, end func()) (callOff func())
}

func (c Config) withDefaults() Config {
	c.UserClaim = cmp.Or(c.UserClaim, "sub")
	c.Providers = slices.Clone(c.Providers)
	for i := range c.Providers {
		c.Providers[i].UserClaim = cmp.Or(c.Providers[i].UserClaim, "sub")
	}
	c.Leeway = cmp.Or(c.Leeway, 30*time.Second)
	c.RefreshEvery = cmp.Or(c.RefreshEvery, 15*time.Minute)
	c.RefreshGap = cmp.Or(c.RefreshGap, 10*time.Second)
	c.Client = cmp.Or(c.Client, newClient())
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func (c Config) check() error {
	switch {
	case c.Secrets == nil && len(c.Providers) == 0:
		return errors.New("neither a secret nor keys to verify tokens with")
	case c.Secrets != nil && checkSecrets(c.Secrets.all()) != nil:
		return checkSecrets(c.Secrets.all())
	case slices.Contains(reservedClaims, c.UserClaim):
		return fmt.Errorf("claim %q cannot hold the user's id", c.UserClaim)
	}
	for _, p := range c.Providers {
		if err := p.check(); err != nil {
			return err
		}
	}
	return checkApart(c.Providers)
}

var errNoAudience = errors.New("with keys of an identity provider the audience must be set: it signs tokens for other services, too")

// named reports whether there is at least one audience, and no empty one.
func named(audience []string) bool {
	return len(audience) > 0 && !slices.Contains(audience, "")
}

// Verifier checks tokens. It is safe for concurrent use.
type Verifier struct {
	cfg        Config
	own        *source // nil without Secrets
	providers  []*source
	passwords  PasswordTimes // nil before UseRevocations
	identities Identities    // nil before UseRevocations
}

// UseRevocations makes tokens end when their user changes the password or signs out, and makes subjects of
// providers stand for users. It is called before the first token is verified.
func (v *Verifier) UseRevocations(passwords PasswordTimes, identities Identities) {
	v.passwords, v.identities = passwords, identities
}

// NewVerifier reads the keys, if any, and keeps reading them in the background
// until Close. It refuses unsafe settings: a short secret, keys without an
// audience, keys that cannot be read.
func NewVerifier(ctx context.Context, cfg Config) (*Verifier, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	v := &Verifier{cfg: cfg}
	if cfg.Secrets != nil {
		v.own = &source{
			userClaim: cfg.UserClaim, secrets: cfg.Secrets,
			parser: newParser(cfg, []string{methodHS256}, cfg.Issuer, cfg.Audience),
		}
	}
	var err error
	v.providers, err = openProviders(ctx, cfg)
	return v, err
}

// newParser sets the library up: by itself it accepts any method that the key
// fits, tokens without exp, and any issuer and audience.
func newParser(cfg Config, methods []string, issuer string, audience []string) *jwt.Parser {
	options := []jwt.ParserOption{
		jwt.WithValidMethods(methods),
		jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(),
		jwt.WithLeeway(cfg.Leeway),
		jwt.WithTimeFunc(cfg.Now),
		jwt.WithStrictDecoding(), // a token can be written in one way only
		jwt.WithJSONNumber(),     // an id as a number has 63 bits
	}
	if issuer != "" {
		options = append(options, jwt.WithIssuer(issuer))
	}
	if len(audience) > 0 {
		options = append(options, jwt.WithAudience(audience...))
	}
	return jwt.NewParser(options...)
}

// Close stops reading keys. The verifier keeps using the present ones.
func (v *Verifier) Close() {
	for _, s := range v.providers {
		s.keys.close()
	}
}

// Verify returns the viewer of a token. The error is an [apierr.Error] with the code UNAUTHENTICATED
// and a sentence that reveals nothing of the token, or UNAVAILABLE if it cannot be found out now for
// whom its subject stands.
func (v *Verifier) Verify(ctx context.Context, token string) (Viewer, error) {
	// encoding/base64 ignores line ends, even when it is strict.
	if len(token) > maxToken || strings.ContainsAny(token, "\r\n") {
		return Viewer{}, errMalformed
	}
	from := v.sourceOf(token)
	claims := jwt.MapClaims{}
	_, err := from.parser.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) { return from.key(ctx, t) })
	if err != nil {
		return Viewer{}, explain(err)
	}
	viewer, err := v.viewer(ctx, from, claims)
	if err != nil {
		return Viewer{}, err
	}
	if from.mapped {
		viewer.token = token
	}
	if viewer.Actor != 0 {
		if viewer.passwordAt, viewer.endsByPassword, err = from.passwordOf(claims); err != nil {
			return Viewer{}, err
		}
		if len(viewer.Scopes) == 0 {
			viewer.session = session{viewer.Actor, viewer.passwordAt, from.signedInAt(claims)}
		}
	}
	if v.passwords != nil && viewer.endsByPassword && v.passwords.ChangedAt(viewer.Actor) > viewer.passwordAt {
		return Viewer{}, errReplaced
	}
	return viewer, nil
}

// Watch calls end, once and soon, when the viewer's token ends because the user has changed the
// password or signed out. The function that it returns cancels that.
func (v *Verifier) Watch(viewer Viewer, end func()) (callOff func()) {
	if v.passwords == nil || !viewer.endsByPassword {
		return func() {}
	}
	return v.passwords.Watch(viewer.Actor, viewer.passwordAt, end)
}

// key finds the key that a token must be signed with. Its kind follows from the method,
// never from the token's contents.
func (s *source) key(ctx context.Context, t *jwt.Token) (any, error) {
	if _, ok := t.Header["crit"]; ok {
		return nil, errors.New("extensions that must be understood are not") // RFC 7515 §4.1.11
	}
	if s.secrets != nil {
		var keys jwt.VerificationKeySet
		for _, secret := range s.secrets.all() {
			keys.Keys = append(keys.Keys, secret)
		}
		return keys, nil
	}
	kid, isText := t.Header["kid"].(string)
	if _, given := t.Header["kid"]; given && !isText {
		return nil, errors.New("kid is no text")
	}
	keys := s.keys.find(ctx, kid, t.Method.Alg())
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
	errReplaced     = apierr.Unauthenticated("the user has changed the password or signed out everywhere since the token was made")
	errUnmapped     = apierr.Unavailable("the user of the token cannot be looked up for now")
	errUserless     = apierr.Unauthenticated("the token names no user, and has no scope that is granted to its issuer")
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
