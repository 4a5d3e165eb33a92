package identity

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"kith/graph/apierr"
	"kith/internal/check"
	"kith/storage"
)

// subjects are the subjects of one provider, with their users.
type subjects map[string]storage.UserID

func (s subjects) UserOf(_ context.Context, id storage.Identity) (storage.UserID, error) {
	if s == nil {
		return 0, errors.New("no answer")
	}
	if id.Issuer != "https://a.example" {
		return 0, nil
	}
	return s[id.Subject], nil
}

// several is a verifier of a secret and of two providers, the first of which has subjects of its own.
func several(t *testing.T) *Verifier {
	k := providerKeys()
	v := verifier(t, Config{Secrets: secrets, Providers: []Provider{
		{Issuer: "https://a.example", Audience: []string{"kith"}, JWKS: fileOf(t, jwksOf(t, publicKey("1", k.ec))), Subjects: SubjectsAreMapped, Scopes: []string{ScopeActAs}},
		{Issuer: "https://b.example", Audience: []string{"other"}, JWKS: fileOf(t, jwksOf(t, publicKey("1", k.other))), UserClaim: "uid"},
	}})
	v.UseRevocations(changed{42: storage.MicrosOf(time.Now().Add(-time.Minute))}, subjects{"auth0|5f": 42, "112233445566778899001": 43})
	return v
}

// TestSeveralProviders: providers are distinguished by iss, and none can sign for another.
func TestSeveralProviders(t *testing.T) {
	t.Parallel()
	v, k := several(t), providerKeys()
	now := time.Now().Unix()
	for name, c := range map[string]struct {
		key    any
		claims []any
		id     storage.UserID // 0 if the token is refused
	}{
		"a":                     {k.ec, []any{"iss", "https://a.example", "sub", "auth0|5f", "iat", now}, 42},
		"a, digits":             {k.ec, []any{"iss", "https://a.example", "sub", "112233445566778899001"}, 43},
		"a, by a claim of b":    {k.ec, []any{"iss", "https://a.example", "sub", nil, "uid", "42"}, 0},
		"b":                     {k.other, []any{"iss", "https://b.example", "aud", "other", "sub", "x", "uid", "7"}, 7},
		"b, subject":            {k.other, []any{"iss", "https://b.example", "aud", "other", "sub", "7"}, 0},
		"b's key, a's iss":      {k.other, []any{"iss", "https://a.example", "sub", "auth0|5f"}, 0},
		"a's key, b's iss":      {k.ec, []any{"iss", "https://b.example", "aud", "other", "uid", "7"}, 0},
		"b, audience of a":      {k.other, []any{"iss", "https://b.example", "uid", "7"}, 0},
		"no iss":                {k.ec, []any{"sub", "auth0|5f"}, 0},
		"another iss":           {k.ec, []any{"iss", "https://c.example", "sub", "auth0|5f"}, 0},
		"iss in another case":   {k.other, []any{"ISS", "https://b.example", "iss", "https://a.example", "aud", "other", "uid", "7"}, 0},
		"iss of another s":      {k.ec, []any{"iss", "https://a.example", "iſs", "https://b.example", "sub", "auth0|5f"}, 42},
		"signed out since":      {k.ec, []any{"iss", "https://a.example", "sub", "auth0|5f", "iat", now - 90}, 0},
		"without iat":           {k.ec, []any{"iss", "https://a.example", "sub", "auth0|5f"}, 42},
		"pwd of its own":        {k.ec, []any{"iss", "https://a.example", "sub", "auth0|5f", "iat", now, "pwd", 0}, 42},
		"pwd that covers iat":   {k.ec, []any{"iss", "https://a.example", "sub", "auth0|5f", "iat", now - 90, "pwd", now * 2e6}, 0},
		"a service of any name": {k.ec, []any{"iss", "https://a.example", "sub", "112233445566778899001", "scope", "admin"}, 43},
	} {
		viewer, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodES256, c.key, "1", claims(c.claims...)))
		if viewer.ID != c.id || c.id == 0 && err == nil && !viewer.Unknown() || c.id != 0 && err != nil {
			t.Errorf("%s: %+v, %v; want user %d", name, viewer, err, c.id)
		}
	}
	viewer, err := v.Verify(t.Context(), hs256(t))
	check.That(t, err == nil && viewer.ID == 42 && viewer.Name() == "42", "a token of our own: %+v, %v", viewer, err)
}

// TestUnknownSubjects: they can register, and services need no user.
func TestUnknownSubjects(t *testing.T) {
	t.Parallel()
	v, k := several(t), providerKeys()
	token := sign(t, jwt.SigningMethodES256, k.ec, "1", claims("iss", "https://a.example", "sub", "new"))
	viewer, err := v.Verify(t.Context(), token)
	if err != nil || !viewer.Unknown() || viewer.Token() != token || viewer.Identity != (storage.Identity{Issuer: "https://a.example", Subject: "new"}) {
		t.Errorf("%+v, %v", viewer, err)
	}
	for name, c := range map[string][]any{
		"none": {"sub", nil}, "empty": {"sub", ""}, "long": {"sub", strings.Repeat("x", storage.MaxIdentityText+1)}, "a list": {"sub", []string{"x"}},
	} {
		_, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodES256, k.ec, "1", claims(append(c, "iss", "https://a.example")...)))
		check.That(t, codeOf(err) == apierr.CodeUnauthenticated, "subject %s: %v", name, err)
	}
	service := sign(t, jwt.SigningMethodES256, k.ec, "1", claims("iss", "https://a.example", "sub", "bff@clients", "scope", "act-as"))
	viewer, err = v.Verify(t.Context(), service)
	check.That(t, err == nil && !viewer.Unknown() && viewer.ID == 0, "a service: %+v, %v", viewer, err)
	for sub, want := range map[string]string{"bff@clients": "https://a.example bff@clients", strings.Repeat("x", storage.MaxIdentityText+1): "", "a\nb": ""} {
		viewer, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodES256, k.ec, "1", claims("iss", "https://a.example", "sub", sub, "scope", "act-as")))
		check.That(t, err == nil && viewer.Name() == want, "subject %q of %.20q, %v; want %q", viewer.Name(), sub, err, want)
	}
	v.UseRevocations(nil, subjects(nil))
	_, err = v.Verify(t.Context(), token)
	check.That(t, codeOf(err) == apierr.CodeUnavailable, "the store does not answer: %v", err)
	_, err = v.Verify(t.Context(), service)
	check.Is(t, "the store does not answer a service", err, nil)
}

// A token has those of its scopes that are granted to its issuer, whatever the provider writes.
func TestScopesAreGrantedToIssuers(t *testing.T) {
	t.Parallel()
	v, k := several(t), providerKeys()
	for name, c := range map[string]struct {
		key    any
		claims []any
		want   string // scopes, or the code
	}{
		"granted one":       {k.ec, []any{"iss", "https://a.example", "sub", "auth0|5f", "scope", "openid act-as admin"}, "[act-as]"},
		"a service of it":   {k.ec, []any{"iss", "https://a.example", "sub", "bff", "scp", []string{"act-as"}}, "[act-as]"},
		"granted none":      {k.other, []any{"iss", "https://b.example", "aud", "other", "uid", "7", "scope", "act-as admin"}, "[]"},
		"by a list":         {k.other, []any{"iss", "https://b.example", "aud", "other", "uid", "7", "scp", []string{"act-as", "admin"}}, "[]"},
		"a service of none": {k.other, []any{"iss", "https://b.example", "aud", "other", "sub", "bff", "scope", "act-as"}, "UNAUTHENTICATED"},
	} {
		viewer, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodES256, c.key, "1", claims(c.claims...)))
		got := fmt.Sprint(viewer.Scopes)
		if err != nil {
			got = string(codeOf(err))
		}
		check.Equal(t, name, got, c.want)
	}
	viewer, err := v.Verify(t.Context(), hs256(t, "scope", "act-as admin"))
	check.That(t, err == nil && viewer.Has(ScopeAdmin) && viewer.Has(ScopeActAs), "our own token has lost its scopes: %+v, %v", viewer, err)
}

func TestProviderFile(t *testing.T) {
	t.Parallel()
	jwks := fileOf(t, providerJWKS(t))
	one := func(more string) string {
		return fmt.Sprintf(`{"issuer": "https://a.example", "jwks": %q, "audience": ["kith"]%s}`, jwks, more)
	}
	list, err := readProviders(fileOf(t, []byte("["+one(`, "subjects": "mapped", "userClaim": "oid", "scopes": ["admin", "act-as"], "app": {"clientId": "c", "scopes": ["offline_access"]}`)+"]\n")))
	if err != nil || len(list) != 1 || !list[0].Mapped() || list[0].UserClaim != "oid" || len(list[0].Scopes) != 2 || list[0].JWKS != jwks || list[0].Issuer != "https://a.example" || list[0].App.ClientID != "c" || list[0].App.Scopes[0] != "offline_access" {
		t.Errorf("%+v, %v", list, err)
	}
	said := one(`, "subjects": "ids"`)
	many := "[" + said
	for i := range MaxProviders - 1 {
		many += "," + strings.Replace(said, "a.example", fmt.Sprintf("%d.example", i), 1)
	}
	_, err = readProviders(fileOf(t, []byte(many+"]")))
	check.That(t, err == nil, "%v", err)
	_, err = readProviders(fileOf(t, []byte("["+one("")+"]")))
	check.That(t, err == nil, "%v", err)
	for name, text := range map[string]string{
		"empty": ``, "no list": one(""), "none": `[]`, "too many": many + "," + strings.Replace(said, "a.ex", "b.ex", 1) + "]", "one twice": "[" + said + "," + said + "]", "subjects of a second one": "[" + said + "," + strings.Replace(one(""), "a.ex", "b.ex", 1) + "]", "more behind": "[" + one("") + "] x",
		"unknown key": "[" + one(`, "secret": "x"`) + "]", "odd scope": "[" + one(`, "scopes": ["openid"]`) + "]", "odd subjects": "[" + one(`, "subjects": "some"`) + "]", "odd claim": "[" + one(`, "userClaim": "exp"`) + "]",
		"no issuer":   `[{"jwks": "https://a.example/jwks", "audience": ["kith"]}]`,
		"no audience": `[{"issuer": "a", "jwks": "https://a.example/jwks"}]`, "no keys": `[{"issuer": "a", "audience": ["kith"]}]`,
		"long issuer": `[{"issuer": "` + strings.Repeat("a", 256) + `", "jwks": "https://a.example/jwks", "audience": ["kith"]}]`,
		"no client":   "[" + one(`, "app": {"scopes": ["x"]}`) + "]",
		"long":        "[" + one("") + "]" + strings.Repeat(" ", maxProviderFile),
	} {
		list, err := readProviders(fileOf(t, []byte(text)))
		check.That(t, err != nil, "%s is taken as %+v", name, list)
	}
}

// With an app, browsers go to the issuer, and its origin is in the policy of the pages.
func TestIssuersOfApps(t *testing.T) {
	t.Parallel()
	for issuer, good := range map[string]bool{
		"https://login.example.org/": true, "https://login.example.org:8443/realms/a": true, "http://127.0.0.1:9000": true, "http://localhost:9000/": true,
		"http://login.example.org/": false, "login.example.org": false, "https://": false, "https://a;script-src": false, "https://a, b": false, "javascript:alert(1)": false,
		"https://a/?b": false, "https://a/#b": false, "https://a:b@c": false, "https://*.example.org": false, "https://a'self'": false,
	} {
		p := Provider{Issuer: issuer, JWKS: "https://a.example/jwks", Audience: []string{"kith"}, App: &App{ClientID: "app"}}
		err := p.check()
		check.That(t, (err == nil) == good, "%s: %v", issuer, err)
	}
}
