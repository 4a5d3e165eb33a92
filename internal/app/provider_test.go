package app_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"

	"kith/internal/check"
	"kith/internal/must"
)

// provider is an OpenID provider for public clients: it signs in whoever comes, without asking.
type provider struct {
	*httptest.Server
	t   *testing.T
	key *ecdsa.PrivateKey

	mu      sync.Mutex
	subject string              // who comes next
	state   string              // what it answers as state; "": what it was sent
	denies  string              // why it refuses; "": it does not
	away    bool                // it answers 503
	ttl     time.Duration       // of access tokens
	codes   map[string]codeSent // each is good once
	refresh map[string]string   // the subjects of refresh tokens, each of which is good once
	counts  map[string]int      // requests, by path or kind of grant
}

// codeSent is what a code stands for.
type codeSent struct{ subject, challenge, nonce, redirect string }

// clientID is what the provider knows the app as.
const clientID = "kith-app"

func newProvider(t *testing.T) *provider {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.OK(t, err)
	p := &provider{t: t, key: key, ttl: time.Hour, codes: map[string]codeSent{}, refresh: map[string]string{}, counts: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /jwks", func(w http.ResponseWriter, _ *http.Request) {
		p.answer(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "1", Algorithm: "ES256", Use: "sig"}}})
	})
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("GET /end", p.end)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.counts[r.URL.Path]++
		w.Header().Set("Access-Control-Allow-Origin", "*")
		if p.away && r.URL.Path != "/jwks" {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

// now changes what the provider does.
func (p *provider) now(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// count is how often something was asked for.
func (p *provider) count(what string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[what]
}

func (p *provider) answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

func (p *provider) discovery(w http.ResponseWriter, _ *http.Request) {
	p.answer(w, http.StatusOK, map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/jwks", "end_session_endpoint": p.URL + "/end",
		"authorization_response_iss_parameter_supported": true, "id_token_signing_alg_values_supported": []string{"ES256"},
	})
}

func (p *provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != clientID || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("nonce") == "" || q.Get("scope") != "openid offline_access" {
		p.t.Errorf("the app asks for a code by %s", r.URL.RawQuery)
	}
	back := url.Values{"state": {q.Get("state")}, "iss": {p.URL}}
	if p.state != "" {
		back.Set("state", p.state)
	}
	if p.denies != "" {
		back.Set("error", "access_denied")
		back.Set("error_description", p.denies)
	} else {
		code := rand.Text()
		p.codes[code] = codeSent{p.subject, q.Get("code_challenge"), q.Get("nonce"), q.Get("redirect_uri")}
		back.Set("code", code)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	grant := r.PostFormValue("grant_type")
	p.counts[grant]++
	subject, nonce, good := "", "", false
	switch grant {
	case "authorization_code":
		sent := p.codes[r.PostFormValue("code")]
		delete(p.codes, r.PostFormValue("code"))
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		subject, nonce = sent.subject, sent.nonce
		good = sent.challenge == base64.RawURLEncoding.EncodeToString(sum[:]) && sent.redirect == r.PostFormValue("redirect_uri")
	case "refresh_token":
		subject, good = p.refresh[r.PostFormValue("refresh_token")]
		delete(p.refresh, r.PostFormValue("refresh_token"))
	}
	if !good || r.PostFormValue("client_id") != clientID || r.Header.Get("Authorization") != "" {
		p.counts["refused"]++
		p.answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	next := rand.Text()
	p.refresh[next] = subject
	tokens := map[string]any{
		"token_type": "Bearer", "expires_in": int(p.ttl.Seconds()), "refresh_token": next, "access_token": p.sign(jwt.MapClaims{"sub": subject, "aud": "kith"}, p.ttl),
	}
	if grant == "authorization_code" {
		tokens["id_token"] = p.sign(jwt.MapClaims{"sub": subject, "aud": clientID, "nonce": nonce}, time.Hour)
	}
	p.answer(w, http.StatusOK, tokens)
}

func (p *provider) sign(claims jwt.MapClaims, ttl time.Duration) string {
	claims["iss"], claims["iat"], claims["exp"], claims["jti"] = p.URL, time.Now().Unix(), time.Now().Add(ttl).Unix(), rand.Text()
	token := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
	token.Header["kid"] = "1"
	text, err := token.SignedString(p.key)
	check.That(p.t, err == nil, "%v", err)
	return text
}

// end ends the session of the person whom the hint names.
func (p *provider) end(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	check.That(p.t, strings.Count(q.Get("id_token_hint"), ".") == 2 && q.Get("client_id") == clientID, "the app signs out by %s", r.URL.RawQuery)
	http.Redirect(w, r, q.Get("post_logout_redirect_uri"), http.StatusFound)
}

// entry is the provider's entry in the file of --identity.
func (p *provider) entry(more string) string {
	text, err := json.Marshal(map[string]any{"issuer": p.URL, "jwks": p.URL + "/jwks", "audience": []string{"kith"}, "subjects": "mapped"})
	must.OK(p.t, err)
	return "[" + string(slices.Concat(text[:len(text)-1], []byte(more))) + "}]"
}
