package identity

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/sync/errgroup"

	"kith/storage"
)

// Provider is an identity provider whose tokens are accepted.
type Provider struct {
	// Issuer is what `iss` must be. Required.
	Issuer string `json:"issuer"`

	// JWKS is where the provider's keys are, a file or an http(s) URL; the keys verify tokens
	// signed with RS256, ES256 and EdDSA. Required.
	JWKS string `json:"jwks"`

	// Audience is what `aud` must name at least one of. Required: a provider signs tokens for other
	// services with the same keys.
	Audience []string `json:"audience"`

	// UserClaim says who the user is, as text or number. Defaults to "sub".
	UserClaim string `json:"userClaim"`

	// Subjects is [SubjectsAreMapped] if the claim is a subject of the provider, and [Identities] know for which user it
	// stands. Defaults to [SubjectsAreIDs]: the claim is the user's id.
	Subjects string `json:"subjects"`

	// Scopes are those that its tokens may have; others in a token count for nothing. Defaults to none:
	// whoever runs a provider decides what it writes into tokens.
	Scopes []string `json:"scopes"`

	// App lets people sign in to the web app at the provider. Defaults to nil: they cannot.
	App *App `json:"app"`
}

// App is what a provider knows the web app as: a public client, which gets its tokens by a code with PKCE (RFC 7636).
type App struct {
	// ClientID is the client's name. Required.
	ClientID string `json:"clientId"`

	// Scopes are what the app asks for besides "openid", such as "offline_access". Defaults to none.
	Scopes []string `json:"scopes"`
}

// check refuses an issuer that browsers must not send people to, or that would say more than its origin in a
// Content-Security-Policy.
func (a *App) check(issuer string) error {
	u, err := url.Parse(issuer)
	switch {
	case a.ClientID == "":
		return errors.New("app lacks clientId")
	case err != nil || u.Hostname() == "" || strings.ContainsAny(issuer, "?#;,'* ") || u.User != nil:
		return fmt.Errorf("with app, the issuer is a URL such as https://login.example.org/, not %q", issuer)
	case u.Scheme != "https" && (u.Scheme != "http" || u.Hostname() != "localhost" && u.Hostname() != "127.0.0.1"):
		return fmt.Errorf("with app, the issuer %q is https, or http on this machine", issuer)
	}
	return nil
}

// Identities know for which users the subjects of providers stand.
type Identities interface {
	// UserOf returns 0 for an identity that stands for nobody.
	UserOf(ctx context.Context, identity storage.Identity) (storage.UserID, error)
}

const (
	// MaxProviders is how many providers a file may name.
	MaxProviders = 32

	// maxProviderFile is how long such a file may be, in bytes.
	maxProviderFile = 64 << 10
)

// The ways in which a provider names users.
const (
	SubjectsAreIDs    = "ids"    // as Kith does
	SubjectsAreMapped = "mapped" // in its own way
)

// Mapped reports whether the provider names users in its own way.
func (p Provider) Mapped() bool { return p.Subjects == SubjectsAreMapped }

func (p Provider) check() error {
	switch {
	case p.Issuer == "" || p.JWKS == "":
		return errors.New("it lacks issuer or jwks")
	case len(p.Audience) == 0 || slices.Contains(p.Audience, ""):
		return errNoAudience
	case slices.Contains(reservedClaims, p.UserClaim):
		return fmt.Errorf("claim %q cannot hold the user's id", p.UserClaim)
	case p.Subjects != "" && p.Subjects != SubjectsAreIDs && p.Subjects != SubjectsAreMapped:
		return fmt.Errorf("subjects are %q or %q, not %q", SubjectsAreIDs, SubjectsAreMapped, p.Subjects)
	case len(p.Issuer) > storage.MaxIdentityText:
		return fmt.Errorf("the issuer is longer than %d bytes", storage.MaxIdentityText)
	}
	for _, scope := range p.Scopes {
		if scope != ScopeActAs && scope != ScopeAdmin {
			return fmt.Errorf("scopes are %q and %q, not %q", ScopeActAs, ScopeAdmin, scope)
		}
	}
	if p.App != nil {
		if err := p.App.check(p.Issuer); err != nil {
			return err
		}
	}
	return checkJWKS(p.JWKS)
}

// readProviders reads a JSON file with a list of providers. If there are several, each says what its subjects are: a partner
// whose subjects were taken for ids could name any user.
func readProviders(name string) ([]Provider, error) {
	text, err := readFile(name, maxProviderFile)
	if err != nil {
		return nil, err
	}
	var list []Provider
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&list); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			err = fmt.Errorf("no JSON %s may be at byte %d", wrong.Value, wrong.Offset)
		}
		return nil, fmt.Errorf("%s is no list of issuers: %s", name, strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s has something behind its list", name)
	}
	if len(list) == 0 || len(list) > MaxProviders {
		return nil, fmt.Errorf("%s has %d issuers: it may have 1 to %d", name, len(list), MaxProviders)
	}
	for i, p := range list {
		if p.Subjects == "" && len(list) > 1 {
			return nil, fmt.Errorf("issuer %d lacks subjects: %q, or %q for one that may act as any user", i+1, SubjectsAreMapped, SubjectsAreIDs)
		}
	}
	return list, checkProviders(list)
}

// checkProviders refuses providers that cannot be right, and those of which one could take the tokens of another.
func checkProviders(providers []Provider) error {
	seen := make(map[string]bool, len(providers))
	for i, p := range providers {
		if err := p.check(); err != nil {
			return fmt.Errorf("issuer %d: %w", i+1, err)
		}
		if seen[p.Issuer] {
			return fmt.Errorf("the issuer %q is there twice", p.Issuer)
		}
		seen[p.Issuer] = true
	}
	return nil
}

// openProviders reads the keys of all providers at once: a program that cannot start reports that
// soon.
func openProviders(ctx context.Context, cfg Config) ([]*source, error) {
	sources := make([]*source, len(cfg.Providers))
	var all errgroup.Group
	for i, p := range cfg.Providers {
		all.Go(func() error {
			keys, err := openJWKS(ctx, cfg, p.JWKS)
			if err == nil {
				sources[i] = &source{
					issuer: p.Issuer, userClaim: p.UserClaim, mapped: p.Mapped(), scopes: p.Scopes, keys: keys,
					parser: newParser(cfg, keyMethods, jwt.WithIssuer(p.Issuer), jwt.WithAudience(p.Audience...)),
				}
			}
			return err
		})
	}
	err := all.Wait() // only one error: the other providers may fail for the same reason
	if err == nil {
		return sources, nil
	}
	for _, s := range sources {
		if s != nil {
			s.keys.close()
		}
	}
	return nil, err
}
