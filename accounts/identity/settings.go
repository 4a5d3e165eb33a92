package identity

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// Settings are the flags about who may ask, each with its variable of the
// environment. The tag bound is what their values have to be, see kith/cli.
type Settings struct {
	SecretFlags

	Identity     string        `basic:"" name:"identity" env:"KITH_IDENTITY" placeholder:"FILE" help:"JSON file of identity providers whose tokens are accepted. Default: none."`
	TokenTTL     time.Duration `bound:"second" name:"token-ttl" default:"24h" env:"KITH_TOKEN_TTL" help:"Lifetime of tokens that login gives. Default: ${default}."`
	SessionTTL   time.Duration `bound:"natural" name:"session-ttl" default:"720h" env:"KITH_SESSION_TTL" help:"How long after a sign-in its tokens can be renewed; 0: never. Default: ${default}."`
	TrustedProxy []string      `basic:"" name:"trusted-proxy" env:"KITH_TRUSTED_PROXY" placeholder:"CIDR" help:"Proxies whose X-Forwarded-For is trusted. Default: none."`
	LoginLimit   int           `bound:"natural" name:"login-limit" default:"10" env:"KITH_LOGIN_LIMIT" placeholder:"N" help:"Password attempts per minute for one handle from one address; ten times as many from all unknown addresses together; 0: no limit. Default: ${default}."`
	AddressLimit int           `bound:"natural" name:"address-limit" default:"60" env:"KITH_ADDRESS_LIMIT" placeholder:"N" help:"Password attempts per minute from one address, and as many registrations; 0: no limit. Default: ${default}."`
	WriteLimit   int           `bound:"natural" name:"write-limit" default:"60" env:"KITH_WRITE_LIMIT" placeholder:"N" help:"Calls per minute of each mutation by one user, per Redis or else per gateway; changing more than ten objects counts once per ten; 0: no limit. Default: ${default}."`
}

// SecretFlags are the flags of what signs tokens: one of the two.
type SecretFlags struct {
	JWTSecret     Secret `name:"jwt-secret" env:"KITH_JWT_SECRET" placeholder:"TEXT" help:"Secret that signs and verifies tokens (HS256): at least 32 random bytes; prefer the variable. Default: made at the start, unless --jwt-secret-file or --identity is set."`
	JWTSecretFile string `basic:"" name:"jwt-secret-file" env:"KITH_JWT_SECRET_FILE" placeholder:"FILE" help:"File of HS256 secrets: line 1 signs, line 2 (if any) only verifies."`
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
