package identity

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// Settings are the flags about who may ask, each with its variable of the
// environment.
type Settings struct {
	SecretFlags

	Identity     string        `basic:"" name:"identity" env:"KITH_IDENTITY" placeholder:"FILE" help:"Identity providers whose tokens are accepted, as a JSON list of issuer, jwks, audience, userClaim, subjects, scopes and app. Default: none."`
	TokenTTL     time.Duration `name:"token-ttl" default:"24h" env:"KITH_TOKEN_TTL" help:"How long tokens are valid that login gives. Default: ${default}."`
	SessionTTL   time.Duration `name:"session-ttl" default:"720h" env:"KITH_SESSION_TTL" help:"For how long after a sign-in its tokens can be renewed; 0: not at all. Default: ${default}."`
	TrustedProxy []string      `basic:"" name:"trusted-proxy" env:"KITH_TRUSTED_PROXY" placeholder:"CIDR" help:"Proxies whose X-Forwarded-For is believed. Default: none."`
	LoginLimit   int           `name:"login-limit" default:"10" env:"KITH_LOGIN_LIMIT" placeholder:"N" help:"Password attempts a minute for one handle from one address; all unknown addresses together have ten times as many; 0: any number. Default: ${default}."`
	AddressLimit int           `name:"address-limit" default:"60" env:"KITH_ADDRESS_LIMIT" placeholder:"N" help:"Passwords that may be tried, and users registered, from one address in a minute; 0: any number. Default: ${default}."`
	WriteLimit   int           `name:"write-limit" default:"60" env:"KITH_WRITE_LIMIT" placeholder:"N" help:"How often one user may call each mutation in a minute, on all gateways of a Redis together, otherwise on each; what changes more than ten objects counts once for each ten; 0: any number. Default: ${default}."`
}

// SecretFlags are the flags of what signs tokens: one of the two.
type SecretFlags struct {
	JWTSecret     Secret `name:"jwt-secret" env:"KITH_JWT_SECRET" placeholder:"TEXT" help:"Signs and verifies tokens with HS256, at least 32 bytes that cannot be guessed; better given in the environment. Default: one made for this run, unless there is --jwt-secret-file or --identity."`
	JWTSecretFile string `basic:"" name:"jwt-secret-file" env:"KITH_JWT_SECRET_FILE" placeholder:"FILE" help:"A file with one or two secrets for tokens (HS256), each on a line: the first signs, both verify. It is read again every 5s. Default: none."`
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
	if cfg.Secrets, err = s.secrets(); err != nil {
		return cfg, nil, err
	}
	if s.Identity != "" {
		if cfg.Providers, err = readProviders(s.Identity); err != nil {
			return cfg, nil, misset("identity", err)
		}
	}
	if proxies, err = ParseProxies(s.TrustedProxy); err != nil {
		err = misset("trusted-proxy", err)
	}
	return cfg, proxies, err
}

func checkJWKS(location string) error {
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
