package cli

import (
	"net/netip"
	"testing"

	"kith/accounts/identity"
	"kith/gateway/quota"
	"kith/internal/check"
)

// Connections count for the address from which they come, and for their user. A backend that acts
// for many users has one address for all of them.
func TestForWhomConnectionsCount(t *testing.T) {
	here := identity.WithAddress(t.Context(), netip.MustParseAddr("2001:db8:1:2:3::4"))
	for name, c := range map[string]struct {
		viewer *identity.Viewer
		want   quota.Party
	}{
		"nobody":             {nil, quota.Party{Address: "2001:db8:1:2::/64", Anonymous: true}},
		"a user":             {&identity.Viewer{ID: 7, Actor: 7}, quota.Party{Address: "2001:db8:1:2::/64", User: 7}},
		"a backend":          {&identity.Viewer{Scopes: []string{identity.ScopeActAs}}, quota.Party{}},
		"a backend for 7":    {&identity.Viewer{ID: 7, Scopes: []string{identity.ScopeActAs}}, quota.Party{User: 7}},
		"a service, no user": {&identity.Viewer{Scopes: []string{identity.ScopeAdmin}}, quota.Party{Address: "2001:db8:1:2::/64"}},
	} {
		ctx := here
		if c.viewer != nil {
			ctx = identity.With(ctx, *c.viewer)
		}
		check.Equal(t, name, party(ctx), c.want)
	}
}
