package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"kith/accounts/identity"
)

// TokenCmd is `kith token`.
type TokenCmd struct {
	Scope []string      `enum:"admin,act-as" placeholder:"SCOPE" help:"What the token may do: admin, or act-as (a backend, for its users)."`
	User  int64         `bound:"natural" placeholder:"ID" help:"User the token is for. Default: none, for a token with a scope."`
	For   time.Duration `bound:"second" default:"5m" help:"Lifetime of the token, at least 1s. Default: ${default}."`
	Demo  string        `placeholder:"URL" help:"Local gateway with --demo that makes the token, such as http://127.0.0.1:8080."`

	identity.SecretFlags `group:"identity"`
}

// Run prints the token, and nothing else.
func (c *TokenCmd) Run(ctx context.Context, k *kong.Context) error {
	if c.User == 0 && len(c.Scope) == 0 {
		return unusable{errors.New("token: write --scope admin, --scope act-as or --user ID")}
	}
	if c.Demo != "" {
		return c.ofDemo(ctx, k)
	}
	who, err := openIssuer(ctx, c.SecretFlags, c.For)
	if err != nil {
		return err
	}
	defer who.Close()
	subject := "kith token"
	if c.User > 0 {
		subject = strconv.FormatInt(c.User, 10)
	}
	token, err := who.Issuer.IssueTo(subject, c.Scope...)
	_, unwritten := fmt.Fprintln(k.Stdout, token)
	return cmp.Or(err, unwritten)
}

// openIssuer opens what signs tokens with the secret of the gateways. The caller closes it.
func openIssuer(ctx context.Context, flags identity.SecretFlags, ttl time.Duration) (*identity.Service, error) {
	settings := identity.Settings{SecretFlags: flags, TokenTTL: ttl}
	if err := settings.Check(); err != nil {
		return nil, unusable{err}
	}
	who, err := settings.Open(ctx, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	if who.MadeSecret || who.Issuer == nil {
		who.Close()
		return nil, unusable{Misset("jwt-secret", errors.New("the secret of the gateways is missing: set it, or --jwt-secret-file; kith token also takes --demo"))}
	}
	return who, nil
}

// ofDemo prints a token that a gateway with --demo has made.
func (c *TokenCmd) ofDemo(ctx context.Context, k *kong.Context) error {
	if len(c.Scope) > 0 {
		return unusable{errors.New("--scope: a demo gives tokens of users only: serve it with a secret, and sign with that instead of --demo")}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("%s/demo/token?user=%d", strings.TrimSuffix(c.Demo, "/"), c.User), nil)
	if err != nil || request.URL.Host == "" {
		return unusable{fmt.Errorf("--demo: %q is no address such as http://127.0.0.1:8080", c.Demo)}
	}
	answer, err := (&http.Client{Timeout: 10 * time.Second}).Do(request)
	if err != nil {
		return fmt.Errorf("ask the demo: %w", err)
	}
	defer answer.Body.Close()
	var made struct{ Token string }
	err = json.NewDecoder(io.LimitReader(answer.Body, 64<<10)).Decode(&made)
	if answer.StatusCode == http.StatusForbidden {
		return unusable{fmt.Errorf("--user: %d is no user of the demo, or the gateway is not on this machine or without --demo", c.User)}
	}
	if answer.StatusCode != http.StatusOK || err != nil || made.Token == "" {
		return fmt.Errorf("the gateway gives no token of user %d: it answers %s", c.User, answer.Status)
	}
	_, err = fmt.Fprintln(k.Stdout, made.Token)
	return err
}
