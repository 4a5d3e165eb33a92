package identity

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"kith/graph/defaults"
	"kith/storage"
)

// Config says which tokens are valid. At least one of Secrets and Providers is required; with both,
// either kind of token is valid.
type Config struct {
	// Secrets verify tokens signed with HS256, whose "sub" is the user's id. `iss` and `aud` do not count: whoever has
	// the secret can write any. Defaults to none: HS256 is refused.
	Secrets *Secrets

	// Providers are those whose tokens are accepted. Defaults to none.
	Providers []Provider

	// Leeway is how far `nbf` and `iat` may be in the future: clocks of gateways may differ by a minute. `exp` has
	// none, so that a token and the connections that it opened end together. Defaults to a minute.
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

// claimUser says who the user is, unless a [Provider] names another claim.
const claimUser = "sub"

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
	c.Providers = slices.Clone(c.Providers)
	for i := range c.Providers {
		c.Providers[i].UserClaim = cmp.Or(c.Providers[i].UserClaim, claimUser)
	}
	return defaults.For(c, Config{
		Leeway: time.Minute, RefreshEvery: 15 * time.Minute, RefreshGap: 10 * time.Second, Client: newClient(), Logger: slog.Default(), Now: time.Now,
	})
}

func (c Config) check() error {
	switch {
	case c.Secrets == nil && len(c.Providers) == 0:
		return errors.New("neither a secret nor keys to verify tokens with")
	case c.Secrets != nil && checkSecrets(c.Secrets.all()) != nil:
		return checkSecrets(c.Secrets.all())
	}
	return checkProviders(c.Providers)
}

var errNoAudience = errors.New("the audience must be set: a provider signs tokens for other services, too")
