package identity

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"

	"kith/graph/apierr"
	"kith/internal/check"
	"kith/internal/logged"
	"kith/internal/must"
)

// provided is a verifier with a provider's keys, which are not read again unless
// the configuration says so.
func provided(t *testing.T, location string, cfg Config) *Verifier {
	t.Helper()
	cfg.Providers = provide(location)
	if cfg.RefreshEvery == 0 {
		cfg.RefreshEvery = time.Hour
	}
	if cfg.RefreshGap == 0 {
		cfg.RefreshGap = time.Hour
	}
	return verifier(t, cfg)
}

func valid(t *testing.T, v *Verifier, token string) bool {
	t.Helper()
	viewer, err := v.Verify(t.Context(), token)
	must.That(t, err == nil || codeOf(err) == apierr.CodeUnauthenticated, "%v", err)
	return err == nil && viewer.ID == 42
}

func TestKeysOfAProvider(t *testing.T) {
	t.Parallel()
	k := providerKeys()
	p := newProvider(t, providerJWKS(t))
	for where, v := range map[string]*Verifier{
		"file": provided(t, fileOf(t, providerJWKS(t)), Config{}),
		"URL":  provided(t, p.URL+"/jwks.json", Config{}),
	} {
		for name, token := range map[string]string{
			"RS256":            sign(t, jwt.SigningMethodRS256, k.rsa, "r", claims()),
			"ES256":            sign(t, jwt.SigningMethodES256, k.ec, "e", claims()),
			"EdDSA":            sign(t, jwt.SigningMethodEdDSA, k.ed, "d", claims()),
			"only one it fits": sign(t, jwt.SigningMethodEdDSA, k.ed, "", claims()),
		} {
			check.That(t, valid(t, v, token), "%s by %s is refused", name, where)
		}
	}
	check.Equal(t, "reads of the keys", p.requests(), 1)
}

// TestKeysPassedOver: keys that cannot verify tokens are skipped, and do not affect the others.
func TestKeysPassedOver(t *testing.T) {
	t.Parallel()
	k := providerKeys()
	encrypt := publicKey("encrypt", k.ec)
	encrypt.Use = "enc"
	otherMethod := publicKey("ps", k.rsa)
	otherMethod.Algorithm = "PS256"
	text := jwksOf(t, publicKey("small", k.small), publicKey("wide", k.wide), encrypt, otherMethod,
		jose.JSONWebKey{Key: []byte("a symmetric key in a public place"), KeyID: "oct"},
		jose.JSONWebKey{Key: k.other, KeyID: "private"},
		publicKey("e", k.ec))
	odd := `{"kty":"???","kid":"odd"},{"kty":"EC","crv":"P-256","x":"AA","y":"AA","kid":"off"},7,` +
		strings.Replace(mustJSON(t, publicKey("ops", k.other)), "{", `{"key_ops":["sign"],`, 1) + ","
	text = bytes.Replace(text, []byte(`"keys":[`), []byte(`"keys":[`+odd), 1)
	v := provided(t, fileOf(t, text), Config{})
	check.That(t, valid(t, v, sign(t, jwt.SigningMethodES256, k.ec, "e", claims())), "the good key does not verify")
	for name, token := range map[string]string{
		"RSA of 1024 bits": sign(t, jwt.SigningMethodRS256, k.small, "small", claims()),
		"P-384":            sign(t, jwt.SigningMethodES384, k.wide, "wide", claims()),
		"for encryption":   sign(t, jwt.SigningMethodES256, k.ec, "encrypt", claims()),
		"for PS256":        sign(t, jwt.SigningMethodRS256, k.rsa, "ps", claims()),
		"symmetric":        sign(t, jwt.SigningMethodHS256, []byte("a symmetric key in a public place"), "oct", claims()),
		"private":          sign(t, jwt.SigningMethodES256, k.other, "private", claims()),
		"for signing only": sign(t, jwt.SigningMethodES256, k.other, "ops", claims()),
	} {
		check.That(t, !valid(t, v, token), "a key is used that is %s", name)
	}
}

func mustJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	must.OK(t, err)
	return string(text)
}

// TestAmbiguousKey: a token without kid is not checked with one key after another.
func TestAmbiguousKey(t *testing.T) {
	t.Parallel()
	k := providerKeys()
	v := provided(t, fileOf(t, jwksOf(t, publicKey("a", k.ec), publicKey("b", k.other))), Config{})
	check.That(t, !valid(t, v, sign(t, jwt.SigningMethodES256, k.ec, "", claims())), "a token without kid is accepted by one of two keys")
}

// TestNewKey: a key that the provider has begun to use is read when the first token that it signed comes.
// Everybody who comes in between waits for this one reading.
func TestNewKey(t *testing.T) {
	t.Parallel()
	k := providerKeys()
	p := newProvider(t, jwksOf(t, publicKey("old", k.rsa)))
	v := provided(t, p.URL, Config{})
	gate := make(chan struct{})
	text := jwksOf(t, publicKey("old", k.rsa), publicKey("new", k.ec))
	p.handle(func(w http.ResponseWriter, _ *http.Request) {
		<-gate
		w.Write(text)
	})
	token := sign(t, jwt.SigningMethodES256, k.ec, "new", claims())
	var running sync.WaitGroup
	for range maxWaiting {
		running.Go(func() { check.That(t, valid(t, v, token), "the new key's token is refused") })
	}
	keys := v.providers[0].keys
	must.Soon(t, "the keys are asked for, by as many as may wait", func() bool { return p.requests() == 2 && keys.waiting.Load() == maxWaiting })
	check.That(t, !valid(t, v, token), "one more waits")
	check.That(t, valid(t, v, sign(t, jwt.SigningMethodRS256, k.rsa, "old", claims())), "the old key's token is refused")
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := v.Verify(impatient, token)
	check.That(t, codeOf(err) == apierr.CodeUnauthenticated, "a request that was cancelled: %v", err)
	close(gate)
	running.Wait()
	n := p.requests()
	check.That(t, n <= 3, "the keys were read %d times", n) // a request that came late may have asked again
}

// TestMadeUpKeys: tokens with keys that do not exist do not make us ask the provider as often as they
// come.
func TestMadeUpKeys(t *testing.T) {
	t.Parallel()
	k := providerKeys()
	p := newProvider(t, providerJWKS(t))
	v := provided(t, p.URL, Config{})
	for i := range 200 {
		must.That(t, !valid(t, v, sign(t, jwt.SigningMethodES256, k.other, fmt.Sprint("made up ", i), claims())), "it is accepted")
	}
	check.Equal(t, "questions to the provider", p.requests(), 1+demandBurst)
}

// TestProviderDown: the known keys stay in use, whatever the provider answers, and a new key is read once
// the provider is back.
func TestProviderDown(t *testing.T) {
	t.Parallel()
	k := providerKeys()
	long := append(jwksOf(t, publicKey("new", k.other)), bytes.Repeat([]byte(" "), maxJWKS)...)
	for name, serve := range map[string]http.HandlerFunc{
		"error":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"no JSON":  func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") },
		"no keys":  func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"keys":[]}`) },
		"too long": func(w http.ResponseWriter, _ *http.Request) { w.Write(long) },
		"cut short": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "999")
			io.WriteString(w, `{"keys":[`)
		},
		"no end":     func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"redirects":  func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"x", http.StatusFound) },
		"other data": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `[1,2]`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, providerJWKS(t))
			client := newClient()
			if name == "no end" {
				client.Timeout = time.Second // the other answers end by themselves, on a busy machine later
			}
			v := provided(t, p.URL, Config{Client: client, RefreshEvery: 20 * time.Millisecond, RefreshGap: time.Millisecond})
			p.handle(serve)
			before := p.requests()
			must.Soon(t, "three more readings", func() bool { return p.requests() > before+3 })
			check.That(t, valid(t, v, sign(t, jwt.SigningMethodES256, k.ec, "e", claims())), "a key at hand is out of use")
			check.That(t, !valid(t, v, sign(t, jwt.SigningMethodES256, k.other, "new", claims())), "a key that there is not is in use")
			p.answer(jwksOf(t, publicKey("new", k.other)))
			must.Soon(t, "the new key is known", func() bool { return valid(t, v, sign(t, jwt.SigningMethodES256, k.other, "new", claims())) })
			check.That(t, !valid(t, v, sign(t, jwt.SigningMethodES256, k.ec, "e", claims())), "a key that the provider took away is in use")
		})
	}
}

// TestReadInTheBackground: it is noticed that a key was removed even if no token comes, also in
// files.
func TestReadInTheBackground(t *testing.T) {
	t.Parallel()
	k := providerKeys()
	name := fileOf(t, providerJWKS(t))
	v := provided(t, name, Config{RefreshEvery: 10 * time.Millisecond})
	token := sign(t, jwt.SigningMethodES256, k.ec, "e", claims())
	must.That(t, valid(t, v, token), "it is refused")
	must.OK(t, os.WriteFile(name, jwksOf(t, publicKey("e", k.other)), 0o600))
	must.Soon(t, "the other key is used", func() bool { return !valid(t, v, token) })
	v.Close()
	v.Close()
}

// TestCloseEndsReading, even a reading that hangs.
func TestCloseEndsReading(t *testing.T) {
	t.Parallel()
	p := newProvider(t, providerJWKS(t))
	v := provided(t, p.URL, Config{RefreshEvery: 10 * time.Millisecond})
	p.handle(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	before := p.requests()
	must.Soon(t, "a reading hangs", func() bool { return p.requests() > before })
	began := time.Now()
	v.Close()
	check.Most(t, "closing took", time.Since(began), 20*time.Second)
}

// TestNoTLSGivenUp: keys that came over plain HTTP, after a redirect, could be anybody's.
func TestNoTLSGivenUp(t *testing.T) {
	t.Parallel()
	plain := newProvider(t, providerJWKS(t))
	secure := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	defer secure.Close()
	client := newClient()
	client.Transport = secure.Client().Transport
	v, err := NewVerifier(t.Context(), Config{Providers: provide(secure.URL), Client: client})
	if err == nil {
		v.Close()
		t.Fatal("it is followed")
	}
	check.That(t, plain.requests() == 0, "the other address was asked")
}

// TestSecretsOfTheURL: neither the error nor the log shows the secrets.
func TestSecretsOfTheURL(t *testing.T) {
	t.Parallel()
	p := newProvider(t, providerJWKS(t))
	location := strings.Replace(p.URL, "http://", "http://app:hush-1@", 1) + "/keys?token=hush-2"
	var log logged.Text
	v := provided(t, location, Config{RefreshEvery: 10 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	p.Server.Close()
	must.Soon(t, "the failure is logged", func() bool { return log.String() != "" })
	v.Close()
	_, err := NewVerifier(t.Context(), Config{Providers: provide(location)})
	must.That(t, err != nil, "the provider is gone")
	for _, text := range []string{err.Error(), log.String()} {
		check.That(t, !strings.Contains(text, "hush") && strings.Contains(text, "/keys"), "%q", text)
	}
}

// FuzzKeys: whatever a provider sends, the keys that are read from it can be used.
func FuzzKeys(f *testing.F) {
	f.Add(providerJWKS(f))
	f.Add([]byte(`{"keys":[{"kty":"RSA","n":"AQ","e":"AQAB"},{"kty":"OKP","crv":"Ed25519","x":"AA"}]}`))
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	must.OK(f, err)
	f.Add(jwksOf(f, publicKey("s", small)))
	f.Fuzz(func(t *testing.T, text []byte) {
		set, err := parseKeys(text)
		must.That(t, (err == nil) == (len(set) > 0), "%d keys, %v", len(set), err)
		for _, k := range set {
			must.That(t, jwt.GetSigningMethod(k.method).Verify("x.y", []byte("no signature"), k.key) != nil, "%s key of %q fits anything", k.method, text)
		}
	})
}
