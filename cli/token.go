package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/alecthomas/kong"

	"kith/accounts/identity"
)

// TokenCmd is `kith token`.
type TokenCmd struct {
	Scope []string      `enum:"admin,act-as" placeholder:"SCOPE" help:"What the token may do: admin, or act-as (a backend, for its users)."`
	User  int64         `bound:"natural" placeholder:"ID" help:"User the token is for. Default: none, for a token with a scope."`
	For   time.Duration `default:"5m" help:"Lifetime of the token, at least 1s. Default: ${default}."`

	identity.SecretFlags `group:"identity"`
}

// Run prints the token, and nothing else.
func (c *TokenCmd) Run(ctx context.Context, k *kong.Context) error {
	switch {
	case c.For < time.Second:
		return unusable{errors.New("--for: it must be at least 1s")}
	case c.User == 0 && len(c.Scope) == 0:
		return unusable{errors.New("token: write --scope admin, --scope act-as or --user ID")}
	}
	settings := identity.Settings{SecretFlags: c.SecretFlags, TokenTTL: c.For}
	if err := settings.Check(); err != nil {
		return unusable{err}
	}
	who, err := settings.Open(ctx, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer who.Close()
	if who.MadeSecret || who.Issuer == nil {
		return unusable{Misset("jwt-secret", errors.New("the secret of the gateways is missing: set it, or --jwt-secret-file"))}
	}
	subject := "kith token"
	if c.User > 0 {
		subject = strconv.FormatInt(c.User, 10)
	}
	token, err := who.Issuer.IssueTo(subject, c.Scope...)
	_, unwritten := fmt.Fprintln(k.Stdout, token)
	return cmp.Or(err, unwritten)
}
