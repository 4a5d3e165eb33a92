package identity

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// Settings are the flags about who may ask, each with its variable of the
// environment.
type Settings struct {
	JWTSecret     Secret        `name:"jwt-secret" env:"KITH_JWT_SECRET" placeholder:"TEXT" help:"Signs and verifies tokens with HS256, at least 32 bytes that cannot be guessed; better given in the environment. Default: one made for this run, unless there is --jwt-secret-file, --jwks or --jwt-issuers."`
	JWTSecretFile string        `basic:"" name:"jwt-secret-file" env:"KITH_JWT_SECRET_FILE" placeholder:"FILE" help:"A file with one or two secrets for tokens (HS256), each on a line: the first signs, both verify. It is read again every 5s. Default: none."`
	JWKS          string        `basic:"" name:"jwks" env:"KITH_JWKS" placeholder:"FILE|URL" help:"Keys of an identity provider, which verify tokens signed with RS256, ES256 or EdDSA. Default: none."`
	JWTIssuer     string        `name:"jwt-issuer" env:"KITH_JWT_ISSUER" placeholder:"ISS" help:"Whose tokens are accepted. Default: any issuer with a valid signature."`
	JWTAudience   []string      `name:"jwt-audience" env:"KITH_JWT_AUDIENCE" placeholder:"AUD" help:"For whom accepted tokens are made; required with --jwks. Default: any."`
	JWTUserClaim  string        `name:"jwt-user-claim" default:"sub" env:"KITH_JWT_USER_CLAIM" placeholder:"CLAIM" help:"The claim that holds the user's id. Default: ${default}."`
	JWTSubjects   string        `name:"jwt-subjects" default:"ids" enum:"ids,mapped" env:"KITH_JWT_SUBJECTS" placeholder:"WAY" help:"What that claim is in tokens of --jwks: ids of users, or subjects of the provider that are mapped to users. Default: ${default}."`
	JWTIssuers    string        `name:"jwt-issuers" env:"KITH_JWT_ISSUERS" placeholder:"FILE" help:"More identity providers, as a JSON list of issuer, jwks, audience, userClaim, subjects and scopes. Default: none."`
	TokenTTL      time.Duration `name:"token-ttl" default:"24h" env:"KITH_TOKEN_TTL" help:"How long tokens are valid that login gives. Default: ${default}."`
	SessionTTL    time.Duration `name:"session-ttl" default:"720h" env:"KITH_SESSION_TTL" help:"For how long after a sign-in its tokens can be renewed; 0: not at all. Default: ${default}."`
	TrustedProxy  []string      `basic:"" name:"trusted-proxy" env:"KITH_TRUSTED_PROXY" placeholder:"CIDR" help:"Proxies whose X-Forwarded-For is believed. Default: none."`
	LoginLimit    int           `name:"login-limit" default:"10" env:"KITH_LOGIN_LIMIT" placeholder:"N" help:"Password attempts a minute for one handle from one address; all unknown addresses together have ten times as many; 0: any number. Default: ${default}."`
	AddressLimit  int           `name:"address-limit" default:"60" env:"KITH_ADDRESS_LIMIT" placeholder:"N" help:"Passwords that may be tried, and users registered, from one address in a minute; 0: any number. Default: ${default}."`
	WriteLimit    int           `name:"write-limit" default:"60" env:"KITH_WRITE_LIMIT" placeholder:"N" help:"How often one user may call each mutation in a minute, on all gateways of a Redis together, otherwise on each; what changes more than ten objects counts once for each ten; 0: any number. Default: ${default}."`
}

// A Secret is a text that does not get into messages and logs.
type Secret string

const concealed = "[secret]"

// String conceals it.
func (s Secret) String() string { return concealed }

// GoString conceals it.
func (s Secret) GoString() string { return concealed }

// LogValue conceals it.
func (s Secret) LogValue() slog.Value { return slog.StringValue(concealed) }

// MarshalText conceals it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(concealed), nil }

// Check refuses settings that cannot be right, before anything is opened. Errors name the flag and
// the variable.
func (s *Settings) Check() error {
	positive, notNegative := errors.New("it must be at least 1s"), errors.New("it must not be negative")
	switch {
	case s.JWKS != "" && !named(s.JWTAudience):
		return misset("jwt-audience", errNoAudience)
	case s.JWTSubjects == SubjectsAreMapped && s.JWKS == "":
		return misset("jwt-subjects", errors.New("it is about the provider of --jwks, of which there is none"))
	case s.JWTSubjects == SubjectsAreMapped && s.JWTIssuer == "":
		return misset("jwt-subjects", fmt.Errorf("%w: by --jwt-issuer", errIssuerless))
	case slices.Contains(s.JWTAudience, ""):
		return misset("jwt-audience", errors.New("it must not be empty"))
	case s.JWTUserClaim == "" || slices.Contains(reservedClaims, s.JWTUserClaim):
		return misset("jwt-user-claim", fmt.Errorf("claim %q cannot hold the user's id", s.JWTUserClaim))
	case s.TokenTTL < time.Second:
		return misset("token-ttl", positive)
	case s.SessionTTL < 0:
		return misset("session-ttl", notNegative)
	case s.LoginLimit < 0:
		return misset("login-limit", notNegative)
	case s.WriteLimit < 0:
		return misset("write-limit", notNegative)
	case s.AddressLimit < 0:
		return misset("address-limit", notNegative)
	}
	_, _, err := s.read()
	return err
}

// read makes of the settings what tokens are verified by, and the addresses of proxies.
func (s *Settings) read() (cfg Config, proxies Proxies, err error) {
	cfg = Config{Issuer: s.JWTIssuer, Audience: s.JWTAudience, UserClaim: s.JWTUserClaim}
	if cfg.Secrets, err = s.secrets(); err != nil {
		return cfg, nil, err
	}
	if cfg.Providers, err = s.providers(); err != nil {
		return cfg, nil, err
	}
	if err = checkJWKS(s.JWKS); err != nil {
		return cfg, nil, misset("jwks", err)
	}
	if proxies, err = ParseProxies(s.TrustedProxy); err != nil {
		err = misset("trusted-proxy", err)
	}
	return cfg, proxies, err
}

// providers are those of the flags and of the file.
func (s *Settings) providers() (list []Provider, err error) {
	if s.JWTIssuers != "" {
		if list, err = readProviders(s.JWTIssuers, s.JWKS != ""); err != nil {
			return nil, misset("jwt-issuers", err)
		}
	}
	if s.JWKS != "" {
		list = append(list, Provider{s.JWTIssuer, s.JWKS, s.JWTAudience, s.JWTUserClaim, s.JWTSubjects == SubjectsAreMapped, nil})
	}
	if err := checkApart(list); err != nil {
		return nil, misset("jwt-issuers", err)
	}
	return list, nil
}

func checkJWKS(location string) error {
	if location == "" {
		return nil
	}
	if _, isURL := asURL(location); isURL {
		return nil
	}
	if strings.Contains(location, "://") {
		return errors.New("it is neither a file nor a URL such as https://id.example.org/jwks.json")
	}
	return checkFile(location)
}

// misset adds to an error which setting caused it, by flag and variable.
func misset(flag string, err error) error {
	return fmt.Errorf("--%s (KITH_%s): %w", flag, strings.ToUpper(strings.ReplaceAll(flag, "-", "_")), err)
}
