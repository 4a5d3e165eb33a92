package identity

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"kith/graph/apierr"
)

// The headers that say who is asking.
const (
	headerAuthorization = "Authorization"
	headerViewer        = "Kith-Viewer" // the user for whom a token with [ScopeActAs] acts
)

// Middleware puts the viewer of each request into its context. A request without a token has no
// viewer. A request with a token that is not valid is not passed on, even if it asks for what
// everybody may see, because the client assumes that it is signed in.
//
//	401 UNAUTHENTICATED  the token is not valid, or Kith-Viewer comes without one
//	403 FORBIDDEN        Kith-Viewer, and the token may not act for others
//	400 BAD_USER_INPUT   Kith-Viewer is no user's id
//	503 UNAVAILABLE      the user of a provider's token cannot be looked up
func Middleware(v *Verifier, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		authorization, viewer := r.Header.Values(headerAuthorization), r.Header.Values(headerViewer)
		if len(authorization) == 0 && len(viewer) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		ctx, err := v.identify(r.Context(), authorization, viewer)
		if err != nil {
			refuse(w, r, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// FromInit puts the viewer into the context of a WebSocket connection, from the
// payload of its connection_init: `{"Authorization": "Bearer …"}`, in any case of
// letters, and "Kith-Viewer". Without them the viewer of the context stays.
func (v *Verifier) FromInit(ctx context.Context, payload map[string]any) (context.Context, error) {
	authorization, ok := entries(payload, headerAuthorization)
	if !ok {
		return ctx, errHeader
	}
	onBehalf, ok := entries(payload, headerViewer)
	if !ok {
		return ctx, errViewer
	}
	return v.identify(ctx, authorization, onBehalf)
}

// entries returns the values of a name; ok is false if one is not a text. null counts as absent:
// clients without a token send it.
func entries(payload map[string]any, name string) (values []string, ok bool) {
	for key, value := range payload {
		if value == nil || !strings.EqualFold(key, name) {
			continue
		}
		text, isText := value.(string)
		if !isText {
			return nil, false
		}
		values = append(values, text)
	}
	return values, true
}

var (
	errHeader    = apierr.Unauthenticated("the Authorization is not of the form Bearer TOKEN")
	errAnonymous = apierr.Unauthenticated("%s needs a token", headerViewer)
	errActAs     = apierr.Forbidden("the token may not act for others: it lacks the scope %s, or its issuer is not granted it", ScopeActAs)
	errViewer    = apierr.BadInput("%s is not one user's id", headerViewer)
)

// identify returns a context with the viewer that the headers name, or the given context
// if they name nobody.
func (v *Verifier) identify(ctx context.Context, authorization, onBehalf []string) (context.Context, error) {
	if len(authorization) == 0 && len(onBehalf) == 0 {
		return ctx, nil
	}
	caller, known := Caller(ctx)
	if len(authorization) > 0 {
		token, ok := bearer(authorization)
		if !ok {
			return ctx, errHeader
		}
		var err error
		if caller, err = v.Verify(ctx, token); err != nil {
			return ctx, err
		}
	} else if !known {
		return ctx, errAnonymous
	}
	if len(onBehalf) > 0 {
		if !caller.Has(ScopeActAs) {
			return ctx, errActAs
		}
		id, ok := parseUserID(onBehalf[0])
		if !ok || len(onBehalf) > 1 {
			return ctx, errViewer
		}
		caller.ID = id
	}
	return With(ctx, caller), nil
}

// bearer reads the only value that is allowed (RFC 6750 §2.1).
func bearer(values []string) (string, bool) {
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	token = strings.Trim(token, " ")
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != "" && !strings.ContainsAny(token, " \t,")
}

// refuse answers as the gateway does: a GraphQL response with a code.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	known, ok := apierr.Of(err)
	if !ok {
		known, _ = apierr.Of(apierr.Internal("internal error"))
	}
	status := http.StatusInternalServerError
	switch known.Code {
	case apierr.CodeUnauthenticated:
		status = http.StatusUnauthorized
		w.Header().Set("WWW-Authenticate", challenge(r))
	case apierr.CodeForbidden:
		status = http.StatusForbidden
		w.Header().Set("WWW-Authenticate", `Bearer realm="kith", error="insufficient_scope", scope="`+ScopeActAs+`"`)
	case apierr.CodeBadInput:
		status = http.StatusBadRequest
	case apierr.CodeUnavailable:
		status = http.StatusServiceUnavailable
	}
	body, err := json.Marshal(map[string]any{"errors": []any{
		map[string]any{"message": known.Message, "extensions": known.Extensions()},
	}})
	if err != nil {
		panic(err) // texts and booleans
	}
	media := "application/json"
	if strings.Contains(r.Header.Get("Accept"), "application/graphql-response+json") {
		media = "application/graphql-response+json"
	}
	w.Header().Set("Content-Type", media+"; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	w.Write(body)
}

// challenge names the error only to clients that sent a token (RFC 6750 §3.1).
func challenge(r *http.Request) string {
	if len(r.Header.Values(headerAuthorization)) == 0 {
		return `Bearer realm="kith"`
	}
	return `Bearer realm="kith", error="invalid_token"`
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
// at which it has reached the gateway. What a proxy has forwarded is not local, whatever it says about its client.
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

// Addressed puts each request's [Proxies.ClientOf] into its context.
func Addressed(proxies Proxies, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(WithAddress(r.Context(), proxies.ClientOf(r))))
	})
}

// WithAddress returns a context that has a client's address.
func WithAddress(ctx context.Context, address netip.Addr) context.Context {
	return context.WithValue(ctx, addressKeyType{}, address)
}

// AddressOf returns the client's address, or an invalid one if it is not known.
func AddressOf(ctx context.Context) netip.Addr {
	address, _ := ctx.Value(addressKeyType{}).(netip.Addr)
	return address
}
