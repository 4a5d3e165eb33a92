package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"

	"kith/graph/apierr"
	"kith/internal/must"
)

var (
	secret  = []byte("a secret of more than thirty-two bytes")
	secrets = NewSecrets(secret)
)

// claims are valid claims, with changes; nil removes one.
// issuer is that of the claims, and of the provider, unless a test names others.
const issuer = "https://id.example.org"

func claims(changes ...any) jwt.MapClaims {
	c := jwt.MapClaims{"sub": "42", "exp": time.Now().Add(time.Hour).Unix(), "aud": "kith", "iss": issuer}
	for i := 0; i < len(changes); i += 2 {
		name := changes[i].(string)
		if c[name] = changes[i+1]; changes[i+1] == nil {
			delete(c, name)
		}
	}
	return c
}

// sign makes a token; kid "" means that it has none.
func sign(t testing.TB, method jwt.SigningMethod, key any, kid string, c jwt.MapClaims) string {
	t.Helper()
	token := jwt.NewWithClaims(method, c)
	if kid != "" {
		token.Header["kid"] = kid
	}
	text, err := token.SignedString(key)
	must.OK(t, err)
	return text
}

func hs256(t testing.TB, changes ...any) string {
	t.Helper()
	return sign(t, jwt.SigningMethodHS256, secret, "", claims(changes...))
}

func verifier(t testing.TB, cfg Config) *Verifier {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	v, err := NewVerifier(t.Context(), cfg)
	must.OK(t, err)
	t.Cleanup(v.Close)
	return v
}

func codeOf(err error) apierr.Code {
	if known, ok := apierr.Of(err); ok {
		return known.Code
	}
	return ""
}

// Keys of a provider, made once, because making RSA keys takes long.
var providerKeys = sync.OnceValue(func() (k struct {
	rsa, small *rsa.PrivateKey
	ec, other  *ecdsa.PrivateKey
	wide       *ecdsa.PrivateKey
	ed         ed25519.PrivateKey
}) {
	k.rsa, _ = rsa.GenerateKey(rand.Reader, 2048)
	k.small, _ = rsa.GenerateKey(rand.Reader, 1024)
	k.ec, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	k.other, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	k.wide, _ = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	_, k.ed, _ = ed25519.GenerateKey(rand.Reader)
	return k
})

func publicKey(kid string, key crypto.Signer) jose.JSONWebKey {
	return jose.JSONWebKey{Key: key.Public(), KeyID: kid, Use: "sig"}
}

func jwksOf(t testing.TB, keys ...jose.JSONWebKey) []byte {
	t.Helper()
	text, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
	must.OK(t, err)
	return text
}

// providerJWKS has one key of each kind, named r, e and d.
func providerJWKS(t testing.TB) []byte {
	t.Helper()
	k := providerKeys()
	return jwksOf(t, publicKey("r", k.rsa), publicKey("e", k.ec), publicKey("d", k.ed))
}

// provide is a provider with its keys at a location.
func provide(location string) []Provider {
	return []Provider{{Issuer: issuer, JWKS: location, Audience: []string{"kith"}}}
}

func fileOf(t testing.TB, text []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "jwks.json")
	must.OK(t, os.WriteFile(name, text, 0o600))
	return name
}

// provider is an identity provider whose answers can be changed.
type provider struct {
	*httptest.Server
	mu    sync.Mutex
	serve http.HandlerFunc
	asked int
}

func newProvider(t testing.TB, text []byte) *provider {
	t.Helper()
	p := &provider{}
	p.answer(text)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.asked++
		serve := p.serve
		p.mu.Unlock()
		serve(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) handle(serve http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.serve = serve
}

func (p *provider) answer(text []byte) {
	p.handle(func(w http.ResponseWriter, _ *http.Request) { w.Write(text) })
}

func (p *provider) requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}
