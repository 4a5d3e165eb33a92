package identity

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"kith/graph/apierr"
	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// seen is what a request has in its context.
type seen struct {
	viewer Viewer
	ok     bool
	caller Viewer
}

func ask(t *testing.T, v *Verifier, header http.Header) (got seen, answer http.Header, err error) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/graphql", nil)
	r.Header, answer = header, http.Header{}
	ctx, err := Identify(v, nil)(answer, r)
	got.viewer, got.ok = Of(ctx)
	got.caller, _ = Caller(ctx)
	return got, answer, err
}

func TestIdentify(t *testing.T) {
	t.Parallel()
	v := verifier(t, Config{Secrets: secrets})
	plain, acting, service := hs256(t), hs256(t, "scope", "act-as"), hs256(t, "sub", nil, "scope", "act-as admin")
	for name, c := range map[string]struct {
		header    http.Header
		id, actor storage.UserID
	}{
		"nobody":            {nil, 0, 0},
		"empty":             {http.Header{"Authorization": {""}}, 0, 0},
		"a user":            {http.Header{"Authorization": {"Bearer " + plain}}, 42, 42},
		"small letters":     {http.Header{"Authorization": {"bearer " + plain}}, 42, 42},
		"blanks":            {http.Header{"Authorization": {"Bearer   " + plain + " "}}, 42, 42},
		"may act":           {http.Header{"Authorization": {"Bearer " + acting}}, 42, 42},
		"acts":              {http.Header{"Authorization": {"Bearer " + acting}, "Kith-Viewer": {"7"}}, 7, 42},
		"service":           {http.Header{"Authorization": {"Bearer " + service}}, 0, 0},
		"service that acts": {http.Header{"Authorization": {"Bearer " + service}, "Kith-Viewer": {"4611686018427387903"}}, 4611686018427387903, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := ask(t, v, c.header)
			must.OK(t, err)
			if got.viewer.ID != c.id && got.ok || got.ok != (c.id != 0) || got.caller.ID != c.id || got.caller.Actor != c.actor {
				t.Errorf("%+v", got)
			}
		})
	}
	got, _, _ := ask(t, v, http.Header{"Authorization": {"Bearer " + service}})
	check.That(t, got.caller.Has(ScopeAdmin) && !got.caller.Has("other"), "%+v", got.caller)
	got, _, _ = ask(t, v, nil)
	check.That(t, !got.caller.Has(ScopeAdmin) && !got.caller.Has(""), "%+v", got.caller)
}

func TestIdentifyRefuses(t *testing.T) {
	t.Parallel()
	v := verifier(t, Config{Secrets: secrets})
	plain, acting := "Bearer "+hs256(t), "Bearer "+hs256(t, "scope", "act-as")
	for name, c := range map[string]struct {
		header    http.Header
		code      apierr.Code
		challenge string
	}{
		"none, acts":         {http.Header{"Authorization": {""}, "Kith-Viewer": {"7"}}, apierr.CodeUnauthenticated, ""},
		"no token":           {http.Header{"Authorization": {"Bearer"}}, apierr.CodeUnauthenticated, "invalid_token"},
		"empty token":        {http.Header{"Authorization": {"Bearer "}}, apierr.CodeUnauthenticated, "invalid_token"},
		"no scheme":          {http.Header{"Authorization": {strings.TrimPrefix(plain, "Bearer ")}}, apierr.CodeUnauthenticated, "invalid_token"},
		"other scheme":       {http.Header{"Authorization": {"Basic YTpi"}}, apierr.CodeUnauthenticated, "invalid_token"},
		"two":                {http.Header{"Authorization": {plain, plain}}, apierr.CodeUnauthenticated, "invalid_token"},
		"two in one":         {http.Header{"Authorization": {plain + ", " + plain}}, apierr.CodeUnauthenticated, "invalid_token"},
		"twice the scheme":   {http.Header{"Authorization": {"Bearer " + plain}}, apierr.CodeUnauthenticated, "invalid_token"},
		"damaged":            {http.Header{"Authorization": {plain + "x"}}, apierr.CodeUnauthenticated, "invalid_token"},
		"expired":            {http.Header{"Authorization": {"Bearer " + hs256(t, "exp", 1)}}, apierr.CodeUnauthenticated, "invalid_token"},
		"damaged, acts":      {http.Header{"Authorization": {plain + "x"}, "Kith-Viewer": {"7"}}, apierr.CodeUnauthenticated, "invalid_token"},
		"acts as nobody":     {http.Header{"Kith-Viewer": {"7"}}, apierr.CodeUnauthenticated, `realm="kith"`},
		"may not act":        {http.Header{"Authorization": {plain}, "Kith-Viewer": {"7"}}, apierr.CodeForbidden, "insufficient_scope"},
		"may not be itself":  {http.Header{"Authorization": {plain}, "Kith-Viewer": {"42"}}, apierr.CodeForbidden, "insufficient_scope"},
		"may not, no id":     {http.Header{"Authorization": {plain}, "Kith-Viewer": {"x"}}, apierr.CodeForbidden, "insufficient_scope"},
		"scope of that sort": {http.Header{"Authorization": {"Bearer " + hs256(t, "scope", "act-as-x act ACT-AS")}, "Kith-Viewer": {"7"}}, apierr.CodeForbidden, ""},
		"for nobody":         {http.Header{"Authorization": {acting}, "Kith-Viewer": {""}}, apierr.CodeBadInput, ""},
		"for a name":         {http.Header{"Authorization": {acting}, "Kith-Viewer": {"ann"}}, apierr.CodeBadInput, ""},
		"for 0":              {http.Header{"Authorization": {acting}, "Kith-Viewer": {"0"}}, apierr.CodeBadInput, ""},
		"for 07":             {http.Header{"Authorization": {acting}, "Kith-Viewer": {"07"}}, apierr.CodeBadInput, ""},
		"for +7":             {http.Header{"Authorization": {acting}, "Kith-Viewer": {"+7"}}, apierr.CodeBadInput, ""},
		"for 7.0":            {http.Header{"Authorization": {acting}, "Kith-Viewer": {"7.0"}}, apierr.CodeBadInput, ""},
		"for two":            {http.Header{"Authorization": {acting}, "Kith-Viewer": {"7", "8"}}, apierr.CodeBadInput, ""},
		"for two in one":     {http.Header{"Authorization": {acting}, "Kith-Viewer": {"7, 8"}}, apierr.CodeBadInput, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, answer, err := ask(t, v, c.header)
			known, _ := apierr.Of(err)
			must.That(t, known != nil && !got.ok, "identified: %t, %v", got.ok, err)
			check.That(t, known.Message != "" && known.Code == c.code && !known.Retryable, "%+v", known)
			challenge := answer.Get("WWW-Authenticate")
			if !strings.Contains(challenge, c.challenge) || strings.HasPrefix(challenge, "Bearer ") != (c.code != apierr.CodeBadInput) {
				t.Errorf("WWW-Authenticate: %s", challenge)
			}
			for _, values := range c.header {
				for _, value := range values {
					check.That(t, len(value) <= 20 || !strings.Contains(err.Error()+challenge, value[10:]), "%v shows what was sent", err)
				}
			}
		})
	}
}

func TestFromInit(t *testing.T) {
	t.Parallel()
	v := verifier(t, Config{Secrets: secrets})
	plain, acting := "Bearer "+hs256(t), "Bearer "+hs256(t, "scope", "act-as")
	upgraded := With(t.Context(), Viewer{ID: 5, Actor: 5, Scopes: []string{ScopeActAs}})
	for name, c := range map[string]struct {
		ctx     context.Context
		payload map[string]any
		id      storage.UserID
		code    apierr.Code
	}{
		"nothing":            {t.Context(), nil, 0, ""},
		"other things":       {t.Context(), map[string]any{"x": 1}, 0, ""},
		"null":               {t.Context(), map[string]any{"Authorization": nil}, 0, ""},
		"empty":              {upgraded, map[string]any{"Authorization": " "}, 5, ""},
		"a user":             {t.Context(), map[string]any{"Authorization": plain}, 42, ""},
		"small letters":      {t.Context(), map[string]any{"authorization": plain}, 42, ""},
		"acts":               {t.Context(), map[string]any{"Authorization": acting, "kith-viewer": "7"}, 7, ""},
		"upgrade's":          {upgraded, nil, 5, ""},
		"over the upgrade's": {upgraded, map[string]any{"Authorization": plain}, 42, ""},
		"upgrade's acts":     {upgraded, map[string]any{"Kith-Viewer": "7"}, 7, ""},
		"bare token":         {t.Context(), map[string]any{"Authorization": strings.TrimPrefix(plain, "Bearer ")}, 0, apierr.CodeUnauthenticated},
		"a number":           {t.Context(), map[string]any{"Authorization": 1.0}, 0, apierr.CodeUnauthenticated},
		"a list":             {t.Context(), map[string]any{"Authorization": []any{plain}}, 0, apierr.CodeUnauthenticated},
		"twice":              {t.Context(), map[string]any{"Authorization": plain, "authorization": plain}, 0, apierr.CodeUnauthenticated},
		"damaged":            {upgraded, map[string]any{"Authorization": plain + "x"}, 0, apierr.CodeUnauthenticated},
		"nobody acts":        {t.Context(), map[string]any{"Kith-Viewer": "7"}, 0, apierr.CodeUnauthenticated},
		"may not act":        {upgraded, map[string]any{"Authorization": plain, "Kith-Viewer": "7"}, 0, apierr.CodeForbidden},
		"acts for a number":  {t.Context(), map[string]any{"Authorization": acting, "Kith-Viewer": 7.0}, 0, apierr.CodeBadInput},
		"acts for a bad id":  {t.Context(), map[string]any{"Authorization": acting, "Kith-Viewer": "07"}, 0, apierr.CodeBadInput},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, err := v.FromInit(c.ctx, c.payload)
			must.That(t, codeOf(err) == c.code && (err == nil) == (c.code == ""), "%v", err)
			viewer, ok := Of(ctx)
			check.That(t, err != nil || viewer.ID == c.id && ok == (c.id != 0), "%+v, %t", viewer, ok)
		})
	}
}

func TestIsLocal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		remote      string
		header, hop string
		want        bool
	}{
		{"127.0.0.1:5", "", "", true},
		{"[::1]:5", "", "", true},
		{"[::ffff:127.0.0.1]:5", "", "", true},
		{"198.51.100.1:5", "", "", true}, // the gateway's own address
		{"198.51.100.2:5", "", "", false},
		{"", "", "", false},
		{"198.51.100.2:5", "X-Forwarded-For", "127.0.0.1", false},
		{"10.0.0.1:5", "X-Forwarded-For", "127.0.0.1", false}, // from a trusted proxy, too
		{"127.0.0.1:5", "X-Forwarded-For", "198.51.100.2", false},
		{"127.0.0.1:5", "X-Forwarded-For", "127.0.0.1", false},
		{"127.0.0.1:5", "X-Forwarded-For", "", false},
		{"127.0.0.1:5", "Forwarded", "for=198.51.100.2", false},
		{"127.0.0.1:5", "X-Real-Ip", "198.51.100.2", false},
		{"127.0.0.1:5", "Via", "1.1 proxy", false},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(198, 51, 100, 1), Port: 8080})))
		r.RemoteAddr, r.Host = c.remote, "localhost"
		if c.header != "" {
			r.Header.Set(c.header, c.hop)
		}
		check.Equal(t, fmt.Sprint(c), IsLocal(r), c.want)
	}
}

func TestClientOf(t *testing.T) {
	t.Parallel()
	proxies, err := ParseProxies([]string{"10.0.0.0/8", "192.0.2.9", "fd00::/8"})
	must.OK(t, err)
	for name, c := range map[string]struct {
		remote    string
		forwarded []string
		want      string
	}{
		"direct":                 {"203.0.113.5:1234", nil, "203.0.113.5"},
		"direct, pretends":       {"203.0.113.5:1234", []string{"198.51.100.1"}, "203.0.113.5"},
		"IPv6":                   {"[2001:db8::1]:1234", nil, "2001:db8::1"},
		"IPv6 with zone":         {"[fe80::1%eth0]:1234", nil, "fe80::1"},
		"IPv4 as IPv6":           {"[::ffff:10.0.0.1]:1234", []string{"198.51.100.1"}, "198.51.100.1"},
		"by a proxy":             {"10.0.0.1:1234", []string{"198.51.100.1"}, "198.51.100.1"},
		"by a proxy's address":   {"192.0.2.9:1234", []string{"198.51.100.1"}, "198.51.100.1"},
		"by an IPv6 proxy":       {"[fd00::1]:1234", []string{"2001:db8::2"}, "2001:db8::2"},
		"by two proxies":         {"10.0.0.1:1234", []string{"198.51.100.1, 10.0.0.2"}, "198.51.100.1"},
		"in two lines":           {"10.0.0.1:1234", []string{"198.51.100.1", "10.0.0.2"}, "198.51.100.1"},
		"pretends by a proxy":    {"10.0.0.1:1234", []string{"1.1.1.1, 198.51.100.1"}, "198.51.100.1"},
		"pretends to be a proxy": {"10.0.0.1:1234", []string{"10.0.0.7, 198.51.100.1"}, "198.51.100.1"},
		"all proxies":            {"10.0.0.1:1234", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		"nothing forwarded":      {"10.0.0.1:1234", nil, "10.0.0.1"},
		"nonsense":               {"10.0.0.1:1234", []string{"unknown"}, "10.0.0.1"},
		"nonsense on the way":    {"10.0.0.1:1234", []string{"198.51.100.1, x, 10.0.0.2"}, "10.0.0.2"},
		"empty":                  {"10.0.0.1:1234", []string{""}, "10.0.0.1"},
		"with ports":             {"10.0.0.1:1234", []string{"198.51.100.1:99"}, "198.51.100.1"},
		"IPv6 with port":         {"10.0.0.1:1234", []string{"[2001:db8::2]:99"}, "2001:db8::2"},
		"IPv6 in brackets":       {"10.0.0.1:1234", []string{"[2001:db8::2]"}, "2001:db8::2"},
		"no address":             {"@", []string{"198.51.100.1"}, "invalid IP"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			r.RemoteAddr = c.remote
			r.Header["X-Forwarded-For"] = c.forwarded
			ctx, err := Identify(nil, proxies)(http.Header{}, r)
			got := AddressOf(ctx)
			check.That(t, got.String() == c.want && err == nil, "%s, %v, want %s", got, err, c.want)
		})
	}
	check.That(t, !AddressOf(t.Context()).IsValid(), "an address of no request")
	for _, text := range []string{"", "x", "10.0.0.0/33", "10.0.0", "::ffff:10.0.0.0/104", "fe80::1%eth0", "10.0.0.1:80", "example.org"} {
		p, err := ParseProxies([]string{text})
		check.That(t, err != nil, "%q is %v", text, p)
	}
}
