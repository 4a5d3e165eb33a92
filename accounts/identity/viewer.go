// Package identity finds out who sends a request: it verifies and issues tokens, hashes
// passwords, bounds attempts, and keeps the viewer in the
// context of a request.
package identity

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/apierr"
	"kith/storage"
)

// Scopes that mean something to Kith. A token may have others.
const (
	ScopeActAs = "act-as" // may ask on behalf of any user, by the header Kith-Viewer
	ScopeAdmin = "admin"  // may make users with an id of its choice, and ask for plans
)

// Identify returns what puts the viewer of each request into its context, and its [Proxies.ClientOf]. A request without a token has no
// viewer. A request with a token that is not valid is refused, even if it asks for what everybody may see, because the client assumes that
// it is signed in. The error says why, and the header of the answer how to do better (RFC 6750 §3):
//
//	UNAUTHENTICATED  the token is not valid, or Kith-Viewer comes without one
//	FORBIDDEN        Kith-Viewer, and the token may not act for others
//	BAD_USER_INPUT   Kith-Viewer is no user's id
//	UNAVAILABLE      the user of a provider's token cannot be looked up
func Identify(v *Verifier, proxies Proxies) func(answer http.Header, r *http.Request) (context.Context, error) {
	return func(answer http.Header, r *http.Request) (context.Context, error) {
		ctx := WithAddress(r.Context(), proxies.ClientOf(r))
		authorization, viewer := r.Header.Values(headerAuthorization), r.Header.Values(headerViewer)
		if len(authorization)+len(viewer) == 0 {
			return ctx, nil
		}
		ctx, err := v.identify(ctx, authorization, viewer)
		if err != nil {
			challenge(answer, r, err)
		}
		return ctx, err
	}
}

// challenge names the error only to clients that sent a token.
func challenge(answer http.Header, r *http.Request, err error) {
	how := `Bearer realm="kith"`
	switch known, ok := apierr.Of(err); {
	case ok && known.Code == apierr.CodeForbidden:
		how += `, error="insufficient_scope", scope="` + ScopeActAs + `"`
	case !ok || known.Code != apierr.CodeUnauthenticated:
		return
	case r.Header.Get(headerAuthorization) != "":
		how += `, error="invalid_token"`
	}
	answer.Set("WWW-Authenticate", how)
}

// Viewer is the content of a valid token.
type Viewer struct {
	ID      storage.UserID // for whom the answer is made; 0: a service of its own, with no user
	Actor   storage.UserID // the token's own user; differs from ID if it acts for another user; 0 for a service
	Scopes  []string
	Expires time.Time // the token's exp: from then on the token is refused, and connections opened with it end

	// Subject is `sub` of the token, and `iss` if a provider has made it, see [Viewer.Name].
	Subject storage.Identity

	// Identity is what a provider whose subjects are mapped calls the sender of the token; zero for all
	// other tokens.
	Identity storage.Identity

	passwordAt     storage.Micros // the token ends when the Actor changes the password or signs out after that,
	endsByPassword bool           // if it ends in that way at all
	token          string         // as it was sent, if there is an Identity
	session        session        // of a token of an [Issuer] without scopes
}

// Unknown reports whether a provider has signed the caller in, but no user is known for that
// identity. The caller can only register.
func (v Viewer) Unknown() bool {
	return v.ID == 0 && v.Identity != storage.Identity{} && !v.Has(ScopeActAs) && !v.Has(ScopeAdmin)
}

// Token is the token as it was sent, if there is an Identity: registering answers with it.
func (v Viewer) Token() string { return v.token }

// ErrUnknown answers everything that a caller who is [Viewer.Unknown] asks, except registering.
var ErrUnknown = apierr.NotRegistered.Error("no user is known for this identity: register first, by the mutation register(handle, name) with this token")

// Name is the subject as a log keeps it, behind its issuer and a blank; "" if there is none that can be kept.
func (v Viewer) Name() string {
	if !(storage.Identity{Issuer: cmp.Or(v.Subject.Issuer, "-"), Subject: v.Subject.Subject}).Valid() {
		return ""
	}
	return strings.TrimPrefix(v.Subject.Issuer+" "+v.Subject.Subject, " ")
}

// Has reports whether the token has a scope.
func (v Viewer) Has(scope string) bool { return slices.Contains(v.Scopes, scope) }

type viewerKey struct{}

// With returns a context that has a viewer.
func With(ctx context.Context, v Viewer) context.Context {
	return context.WithValue(ctx, viewerKey{}, v)
}

// Of returns the viewer of a context. There is none if nobody is signed in, or if a service asks
// for itself; see [Caller].
func Of(ctx context.Context) (Viewer, bool) {
	v, ok := Caller(ctx)
	return v, ok && v.ID != 0
}

// Caller returns the sender of the token, a user or a service whose ID is 0.
// Without a token, the Viewer is empty and has no scope.
func Caller(ctx context.Context) (Viewer, bool) {
	v, ok := ctx.Value(viewerKey{}).(Viewer)
	return v, ok
}

// MayAsk refuses everything except registering to a caller whom a provider has signed in and for
// whom no user is known.
func MayAsk(ctx context.Context, op *ast.OperationDefinition) error {
	if caller, _ := Caller(ctx); !caller.Unknown() {
		return nil
	}
	for _, selection := range op.SelectionSet {
		if field, ok := selection.(*ast.Field); !ok || op.Operation != ast.Mutation || field.Name != "register" {
			return ErrUnknown
		}
	}
	return nil
}

// IsAdmin reports whether a token with [ScopeAdmin] was sent.
func IsAdmin(ctx context.Context) bool {
	caller, _ := Caller(ctx)
	return caller.Has(ScopeAdmin)
}

// Expires is when the caller's token expires, and with it connections opened with it; zero without a token.
func Expires(ctx context.Context) time.Time {
	caller, _ := Caller(ctx)
	return caller.Expires
}

// parseUserID takes the canonical decimal text of an id only.
func parseUserID(text string) (storage.UserID, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || storage.UserID(n) > storage.MaxUserID || strconv.FormatInt(n, 10) != text {
		return 0, false
	}
	return storage.UserID(n), true
}

// Proxies are the addresses whose X-Forwarded-For is believed.
type Proxies []netip.Prefix

// ParseProxies reads addresses ("10.0.0.7") and ranges ("10.0.0.0/8", "fd00::/8").
func ParseProxies(texts []string) (Proxies, error) {
	var proxies Proxies
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			address, errAddress := netip.ParseAddr(text)
			if errAddress != nil || address.Zone() != "" {
				return nil, fmt.Errorf("%q is no address and no range such as 10.0.0.0/8", text)
			}
			prefix = netip.PrefixFrom(address, address.BitLen())
		}
		if prefix.Addr().Is4In6() {
			return nil, fmt.Errorf("%q is written as IPv6: write it as IPv4", text)
		}
		proxies = append(proxies, prefix.Masked())
	}
	return proxies, nil
}

func (p Proxies) trusts(address netip.Addr) bool {
	return slices.ContainsFunc(p, func(prefix netip.Prefix) bool { return prefix.Contains(address) })
}

// ClientOf returns the address of a request's client: the last address on its way
// that is not a trusted proxy's. The addresses before it in X-Forwarded-For may be forged. The
// address is invalid if the connection has none, as over a Unix socket.
func (p Proxies) ClientOf(r *http.Request) netip.Addr {
	client := parseAddress(r.RemoteAddr)
	if !p.trusts(client) {
		return client
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		next := parseAddress(strings.TrimSpace(hop))
		if !next.IsValid() {
			break
		}
		client = next
		if !p.trusts(client) {
			break
		}
	}
	return client
}

// IsLocal reports whether a request's connection comes from this machine: from a loopback address, or from the one
// at which it has reached the gateway. A request that a proxy forwards is not local, whatever the proxy says about
// its client.
func IsLocal(r *http.Request) bool {
	for _, header := range []string{"X-Forwarded-For", "Forwarded", "X-Real-Ip", "Via"} {
		if len(r.Header.Values(header)) > 0 {
			return false
		}
	}
	client := parseAddress(r.RemoteAddr)
	own, known := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return client.IsLoopback() || known && client.IsValid() && client == parseAddress(own.String())
}

// parseAddress takes an address with or without a port; some proxies add it.
func parseAddress(text string) netip.Addr {
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return withPort.Addr().Unmap().WithZone("")
	}
	text = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	address, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}
	}
	return address.Unmap().WithZone("")
}

type addressKeyType struct{}

// WithAddress returns a context that has a client's address.
func WithAddress(ctx context.Context, address netip.Addr) context.Context {
	return context.WithValue(ctx, addressKeyType{}, address)
}

// AddressOf returns the client's address, or an invalid one if it is not known.
func AddressOf(ctx context.Context) netip.Addr {
	address, _ := ctx.Value(addressKeyType{}).(netip.Addr)
	return address
}
