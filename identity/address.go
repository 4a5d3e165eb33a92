package identity

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

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
