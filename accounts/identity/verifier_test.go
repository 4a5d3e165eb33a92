package identity

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"kith/graph/apierr"
	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

func TestVerify(t *testing.T) {
	t.Parallel()
	v := verifier(t, Config{Secrets: secrets})
	exp := time.Now().Add(time.Hour).Truncate(time.Second)
	for name, c := range map[string]struct {
		changes []any
		want    Viewer
	}{
		"text":           {nil, Viewer{ID: 42}},
		"number":         {[]any{"sub", 42}, Viewer{ID: 42}},
		"greatest text":  {[]any{"sub", "4611686018427387903"}, Viewer{ID: storage.MaxUserID}},
		"greatest":       {[]any{"sub", int64(storage.MaxUserID)}, Viewer{ID: storage.MaxUserID}},
		"scope":          {[]any{"scope", "openid act-as  admin"}, Viewer{ID: 42, Scopes: []string{"openid", "act-as", "admin"}}},
		"scope, list":    {[]any{"scope", []string{"admin"}}, Viewer{ID: 42, Scopes: []string{"admin"}}},
		"scp":            {[]any{"scp", []string{"act-as", "admin"}}, Viewer{ID: 42, Scopes: []string{"act-as", "admin"}}},
		"scp, text":      {[]any{"scp", "act-as admin"}, Viewer{ID: 42, Scopes: []string{"act-as", "admin"}}},
		"service":        {[]any{"sub", nil, "scope", "act-as"}, Viewer{Scopes: []string{"act-as"}}},
		"client":         {[]any{"sub", "bff@clients", "scope", "act-as"}, Viewer{Scopes: []string{"act-as"}}},
		"client, UUID":   {[]any{"sub", "7f1c9a0e-0b61-4c7f-9d4b-2f3f0a8a3c11", "scope", "admin"}, Viewer{Scopes: []string{"admin"}}},
		"client, digits": {[]any{"sub", "112233445566778899001", "scope", "admin"}, Viewer{Scopes: []string{"admin"}}},
		"client, null":   {[]any{"sub", json.RawMessage("null"), "scope", "act-as"}, Viewer{Scopes: []string{"act-as"}}},
		"clocks differ":  {[]any{"nbf", time.Now().Unix() + 55, "iat", time.Now().Unix() + 55}, Viewer{ID: 42}},
		"other audience": {[]any{"aud", "none asks for one"}, Viewer{ID: 42}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := v.Verify(t.Context(), hs256(t, append([]any{"exp", exp.Unix()}, c.changes...)...))
			must.OK(t, err)
			if got.ID != c.want.ID || got.Actor != c.want.ID || strings.Join(got.Scopes, " ") != strings.Join(c.want.Scopes, " ") || !got.Expires.Equal(exp) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestUserClaim(t *testing.T) {
	t.Parallel()
	provider := provide(fileOf(t, providerJWKS(t)))
	provider[0].UserClaim = "kith_id"
	v, k := verifier(t, Config{Providers: provider}), providerKeys()
	got, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodES256, k.ec, "e", claims("sub", "auth0|x", "kith_id", "7")))
	check.That(t, err == nil && got.ID == 7, "%+v, %v", got, err)
	_, err = v.Verify(t.Context(), sign(t, jwt.SigningMethodES256, k.ec, "e", claims()))
	check.That(t, codeOf(err) == apierr.CodeUnauthenticated, "a token that has sub only: %v", err)
}

// TestRefusedClaims: each of these tokens has a valid signature.
func TestRefusedClaims(t *testing.T) {
	t.Parallel()
	provider := provide(fileOf(t, providerJWKS(t)))
	provider[0].Audience = append(provider[0].Audience, "kith-staging")
	v, now := verifier(t, Config{Secrets: secrets, Providers: provider}), time.Now().Unix()
	es256 := func(changes ...any) string {
		return sign(t, jwt.SigningMethodES256, providerKeys().ec, "e", claims(changes...))
	}
	for _, audience := range []any{"kith", "kith-staging", []string{"x", "kith"}} {
		_, err := v.Verify(t.Context(), es256("aud", audience))
		must.OK(t, err)
	}
	for name, changes := range map[string][]any{
		"no exp":                {"exp", nil},
		"exp as text":           {"exp", "tomorrow"},
		"exp as digits":         {"exp", "9999999999"},
		"exp null":              {"exp", json.RawMessage("null")},
		"exp 0":                 {"exp", 0},
		"exp negative":          {"exp", -1},
		"exp beyond reason":     {"exp", json.RawMessage("1e300")},
		"exp beyond numbers":    {"exp", json.RawMessage("1e999")},
		"expired":               {"exp", now - 1},
		"expired within leeway": {"exp", now - 20},
		"expired long ago":      {"exp", 1},
		"future nbf":            {"nbf", now + 300},
		"nbf as text":           {"nbf", "0"},
		"nbf beyond reason":     {"nbf", json.RawMessage("1e300")},
		"future iat":            {"iat", now + 300},
		"iat beyond reason":     {"iat", json.RawMessage("1e300")},
		"wrong iss":             {"iss", "https://evil.example.org"},
		"iss in capitals":       {"iss", "https://ID.example.org"},
		"no iss":                {"iss", nil},
		"iss a list":            {"iss", []string{"https://id.example.org"}},
		"wrong aud":             {"aud", "other"},
		"part of aud":           {"aud", "kit"},
		"no aud":                {"aud", nil},
		"empty aud":             {"aud", ""},
		"empty auds":            {"aud", []string{}},
		"aud an object":         {"aud", map[string]any{"kith": true}},
		"no sub":                {"sub", nil},
		"no sub, other scope":   {"sub", nil, "scope", "read"},
		"sub null":              {"sub", json.RawMessage("null")},
		"sub empty":             {"sub", ""},
		"sub a name":            {"sub", "ann"},
		"sub with letters":      {"sub", "42abc"},
		"sub 0":                 {"sub", "0"},
		"sub number 0":          {"sub", 0},
		"sub negative":          {"sub", "-42"},
		"sub number negative":   {"sub", -42},
		"sub with sign":         {"sub", "+42"},
		"sub with zero":         {"sub", "042"},
		"sub with blank":        {"sub", " 42"},
		"sub with newline":      {"sub", "42\n"},
		"sub fraction":          {"sub", 42.5},
		"sub whole fraction":    {"sub", json.RawMessage("42.0")},
		"sub exponent":          {"sub", json.RawMessage("42e0")},
		"sub too great":         {"sub", "9223372036854775808"},
		"sub number too great":  {"sub", json.RawMessage("9223372036854775808")},
		"sub other digits":      {"sub", "４２"},
		"sub hexadecimal":       {"sub", "0x2a"},
		"sub true":              {"sub", true},
		"sub a list":            {"sub", []string{"42"}},
		"sub an object":         {"sub", map[string]any{"id": "42"}},
		"scope a number":        {"scope", 1},
		"scope mixed":           {"scope", []any{"admin", 1}},
		"scp an object":         {"scp", map[string]any{"admin": true}},
	} {
		t.Run(name, func(t *testing.T) {
			viewer, err := v.Verify(t.Context(), es256(changes...))
			check.That(t, codeOf(err) == apierr.CodeUnauthenticated, "%+v, %v", viewer, err)
			says := map[string]string{"no exp": "lacks exp", "nbf as text": "nbf", "sub a name": "by an id"}[name]
			check.That(t, strings.Contains(err.Error(), says), "the error does not say %q: %v", says, err)
			viewer, err = v.Verify(t.Context(), hs256(t, changes...))
			ofProviders := changes[0] == "iss" || changes[0] == "aud"
			check.That(t, ofProviders == (err == nil), "signed with the secret: %+v, %v", viewer, err)
		})
	}
}

// TestForgedTokens: none of these tokens is signed with the right key.
func TestForgedTokens(t *testing.T) {
	t.Parallel()
	k := providerKeys()
	der, err := x509.MarshalPKIXPublicKey(k.rsa.Public())
	must.OK(t, err)
	publicPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	good := hs256(t)
	parts := strings.Split(good, ".")
	fromProvider := sign(t, jwt.SigningMethodRS256, k.rsa, "r", claims())

	withHeader := func(method jwt.SigningMethod, key any, header map[string]any) string {
		token := jwt.NewWithClaims(method, claims())
		for name, value := range header {
			token.Header[name] = value
		}
		text, err := token.SignedString(key)
		must.OK(t, err)
		return text
	}
	raw := func(header, payload string) string {
		return base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(payload))
	}
	ownKey, err := json.Marshal(publicKey("own", k.other))
	must.OK(t, err)
	unsigned := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + parts[1] + "."

	tokens := map[string]string{
		"empty":                    "",
		"one part":                 "abc",
		"two parts":                parts[0] + "." + parts[1],
		"four parts":               good + ".x",
		"no base64":                "%%%.%%%.%%%",
		"padding":                  parts[0] + "=." + parts[1] + "." + parts[2],
		"blank before":             " " + good,
		"newline behind":           good + "\n",
		"header no JSON":           raw("{", "{}") + "." + parts[2],
		"header a list":            raw("[]", "{}") + "." + parts[2],
		"header null":              raw("null", "{}") + "." + parts[2],
		"claims no JSON":           parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte("{")) + "." + parts[2],
		"alg missing":              raw(`{"typ":"JWT"}`, "{}") + "." + parts[2],
		"alg a number":             raw(`{"alg":1}`, "{}") + "." + parts[2],
		"alg a list":               raw(`{"alg":["HS256"]}`, "{}") + "." + parts[2],
		"alg unknown":              raw(`{"alg":"HS1"}`, "{}") + "." + parts[2],
		"too long":                 good + strings.Repeat("A", maxToken),
		"none":                     unsigned,
		"none with a signature":    unsigned + parts[2],
		"none, by the library":     sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "", claims()),
		"None":                     raw(`{"alg":"None"}`, "{}") + ".",
		"nOnE":                     raw(`{"alg":"nOnE"}`, "{}") + ".",
		"no signature":             parts[0] + "." + parts[1] + ".",
		"half a signature":         parts[0] + "." + parts[1] + "." + parts[2][:len(parts[2])/2],
		"another secret":           sign(t, jwt.SigningMethodHS256, []byte("another secret of thirty-two bytes!"), "", claims()),
		"empty secret":             sign(t, jwt.SigningMethodHS256, []byte{}, "", claims()),
		"HS384":                    sign(t, jwt.SigningMethodHS384, secret, "", claims()),
		"HS512":                    sign(t, jwt.SigningMethodHS512, secret, "", claims()),
		"HS256 by a public key":    sign(t, jwt.SigningMethodHS256, publicPEM, "r", claims()),
		"HS256 by its DER":         sign(t, jwt.SigningMethodHS256, der, "r", claims()),
		"HS256 by its modulus":     sign(t, jwt.SigningMethodHS256, k.rsa.N.Bytes(), "r", claims()),
		"HS256 by the Ed25519 key": sign(t, jwt.SigningMethodHS256, []byte(k.ed[32:]), "d", claims()),
		"RS384":                    sign(t, jwt.SigningMethodRS384, k.rsa, "r", claims()),
		"PS256":                    sign(t, jwt.SigningMethodPS256, k.rsa, "r", claims()),
		"ES384":                    sign(t, jwt.SigningMethodES384, k.wide, "e", claims()),
		"ES256 by another":         sign(t, jwt.SigningMethodES256, k.other, "e", claims()),
		"ES256 with RSA's kid":     sign(t, jwt.SigningMethodES256, k.ec, "r", claims()),
		"RS256 with EC's kid":      sign(t, jwt.SigningMethodRS256, k.rsa, "e", claims()),
		"EdDSA with EC's kid":      sign(t, jwt.SigningMethodEdDSA, k.ed, "e", claims()),
		"unknown kid":              sign(t, jwt.SigningMethodRS256, k.rsa, "x", claims()),
		"kid a path":               sign(t, jwt.SigningMethodES256, k.other, "../../dev/null", claims()),
		"kid a number":             withHeader(jwt.SigningMethodRS256, k.rsa, map[string]any{"kid": 1}),
		"kid a list":               withHeader(jwt.SigningMethodRS256, k.rsa, map[string]any{"kid": []string{"r"}}),
		"brings its key":           withHeader(jwt.SigningMethodES256, k.other, map[string]any{"jwk": json.RawMessage(ownKey), "kid": "own"}),
		"brings its key's URL":     withHeader(jwt.SigningMethodES256, k.other, map[string]any{"jku": "https://evil.example.org/jwks.json", "kid": "own"}),
		"crit":                     withHeader(jwt.SigningMethodRS256, k.rsa, map[string]any{"kid": "r", "crit": []string{"b64"}, "b64": false}),
		"crit, secret":             withHeader(jwt.SigningMethodHS256, secret, map[string]any{"crit": []string{"exp"}}),
		"ES256, signature of 0":    zeroSignature(t, k.ec),
		"other claims":             strings.Split(hs256(t, "sub", "43"), ".")[0] + "." + strings.Split(hs256(t, "sub", "43"), ".")[1] + "." + parts[2],
		"other header":             strings.Split(fromProvider, ".")[0] + "." + parts[1] + "." + parts[2],
	}
	for i := range len(parts[2]) { // every other spelling of the signature
		if changed := []byte(parts[2]); i == len(changed)-1 {
			for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") {
				if changed[i] = c; string(changed) != parts[2] {
					tokens["signature ending with "+string(c)] = parts[0] + "." + parts[1] + "." + string(changed)
				}
			}
		}
	}

	file := fileOf(t, providerJWKS(t))
	both := verifier(t, Config{Secrets: secrets, Providers: provide(file)})
	verifiers := map[string]*Verifier{
		"both":   both,
		"secret": verifier(t, Config{Secrets: secrets}),
		"keys":   verifier(t, Config{Providers: provide(file)}),
	}
	for _, token := range []string{good, fromProvider} {
		_, err := both.Verify(t.Context(), token)
		must.OK(t, err)
	}
	_, err = verifiers["keys"].Verify(t.Context(), good)
	check.That(t, codeOf(err) == apierr.CodeUnauthenticated, "a secret's token without a secret: %v", err)
	_, err = verifiers["secret"].Verify(t.Context(), fromProvider)
	check.That(t, codeOf(err) == apierr.CodeUnauthenticated, "a provider's token without its keys: %v", err)
	for name, token := range tokens {
		for kind, v := range verifiers {
			t.Run(name+"/"+kind, func(t *testing.T) {
				viewer, err := v.Verify(t.Context(), token)
				must.That(t, codeOf(err) == apierr.CodeUnauthenticated, "%+v, %v", viewer, err)
				check.That(t, len(err.Error()) <= 100, "the message is too long: %v", err)
			})
		}
	}
}

// zeroSignature is the signature that Java accepted for everything (CVE-2022-21449).
func zeroSignature(t *testing.T, key *ecdsa.PrivateKey) string {
	t.Helper()
	parts := strings.Split(sign(t, jwt.SigningMethodES256, key, "e", claims()), ".")
	return parts[0] + "." + parts[1] + "." + base64.RawURLEncoding.EncodeToString(make([]byte, 64))
}

func TestConfigRefused(t *testing.T) {
	t.Parallel()
	file := fileOf(t, providerJWKS(t))
	for name, cfg := range map[string]Config{
		"nothing":             {},
		"short secret":        {Secrets: NewSecrets(secret[:31])},
		"short second secret": {Secrets: NewSecrets(secret, secret[:31])},
		"three secrets":       {Secrets: NewSecrets(secret, secret, secret)},
		"none of secrets":     {Secrets: NewSecrets()},
		"no issuer":           {Providers: []Provider{{JWKS: file, Audience: []string{"kith"}}}},
		"no keys' place":      {Providers: []Provider{{Issuer: "a", Audience: []string{"kith"}}}},
		"no audience":         {Providers: []Provider{{Issuer: "a", JWKS: file}}},
		"empty audience":      {Providers: []Provider{{Issuer: "a", JWKS: file, Audience: []string{""}}}},
		"no audience, secret": {Secrets: secrets, Providers: []Provider{{Issuer: "a", JWKS: file}}},
		"claim of a provider": {Providers: []Provider{{Issuer: "a", JWKS: file, Audience: []string{"kith"}, UserClaim: "aud"}}},
		"one issuer twice":    {Providers: append(provide(file), provide(file)...)},
		"no file":             {Providers: provide(file + "x")},
		"no keys":             {Providers: provide(fileOf(t, []byte(`{"keys":[]}`)))},
		"no JWKS":             {Providers: provide(fileOf(t, []byte(`-----BEGIN PUBLIC KEY-----`)))},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := NewVerifier(t.Context(), cfg)
			if err == nil {
				v.Close()
				t.Error("it is accepted")
			} else if strings.Contains(err.Error(), "thirty-two") {
				t.Errorf("%v shows the secret", err)
			}
		})
	}
	if v, err := NewVerifier(t.Context(), Config{Secrets: NewSecrets(secret[:32])}); err != nil {
		t.Error(err)
	} else {
		v.Close()
	}
}

func TestIssuer(t *testing.T) {
	t.Parallel()
	now := time.Now()
	clock := func() time.Time { return now }
	for name, c := range map[string]IssuerConfig{
		"plain": {Secrets: secrets},
		"short": {Secrets: secrets, TTL: 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			c.Now = clock
			issuer, err := NewIssuer(c)
			must.OK(t, err)
			token, expires, err := issuer.Issue(storage.MaxUserID, 0, "admin", "act-as")
			must.OK(t, err)
			ttl := c.TTL
			if ttl == 0 {
				ttl = 24 * time.Hour
			}
			left := expires.Sub(now)
			check.That(t, left <= ttl && left >= ttl-time.Second, "it expires in %s", left)
			for _, at := range []struct {
				time time.Time
				code apierr.Code
			}{{now, ""}, {expires.Add(-time.Millisecond), ""}, {expires, apierr.CodeUnauthenticated}} {
				v := verifier(t, Config{Secrets: secrets, Now: func() time.Time { return at.time }})
				viewer, err := v.Verify(t.Context(), token)
				must.That(t, codeOf(err) == at.code, "at %s: %v", at.time, err)
				if err == nil && (viewer.ID != storage.MaxUserID || !viewer.Has(ScopeAdmin) || !viewer.Has(ScopeActAs) || !viewer.Expires.Equal(expires)) {
					t.Errorf("%+v", viewer)
				}
			}
			_, _, err = issuer.Issue(0, 0)
			check.That(t, err != nil, "a token for nobody")
		})
	}
	for name, cfg := range map[string]IssuerConfig{
		"short secret": {Secrets: NewSecrets(secret[:31])},
		"negative TTL": {Secrets: secrets, TTL: -time.Hour},
	} {
		_, err := NewIssuer(cfg)
		check.That(t, err != nil, "%s is accepted", name)
	}
	a, b := RandomSecret().signing(), RandomSecret().signing()
	check.That(t, len(a) >= MinSecret && string(a) != string(b), "the random secret is not")
}

// FuzzVerify: whatever text comes, it is refused with one code, unless it is a token that was signed
// here.
func FuzzVerify(f *testing.F) {
	k := providerKeys()
	const exp = 4102444800 // the workers of the fuzzer must make the same tokens
	good := []string{
		sign(f, jwt.SigningMethodHS256, secret, "", claims("exp", exp)),
		sign(f, jwt.SigningMethodRS256, k.rsa, "r", claims("exp", exp)),
		sign(f, jwt.SigningMethodES256, k.ec, "e", claims("exp", exp)),
		sign(f, jwt.SigningMethodEdDSA, k.ed, "d", claims("exp", exp)),
	}
	for _, token := range good {
		f.Add(token)
	}
	f.Add(sign(f, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "", claims()))
	f.Add("..")
	f.Add("eyJhbGciOiJIUzI1NiJ9.e30.")
	v := verifier(f, Config{Secrets: secrets, Providers: provide(fileOf(f, providerJWKS(f))), RefreshGap: time.Hour})
	f.Fuzz(func(t *testing.T, token string) {
		viewer, err := v.Verify(t.Context(), token)
		if err == nil {
			for _, known := range good {
				if token == known {
					return
				}
			}
			t.Fatalf("%q is accepted: %+v", token, viewer)
		}
		must.That(t, codeOf(err) == apierr.CodeUnauthenticated, "%q: %v", token, err)
	})
}

// FuzzClaims: whatever one of our signers puts into a token, the viewer is valid.
func FuzzClaims(f *testing.F) {
	f.Add([]byte(`{"sub":"42","exp":9999999999}`))
	f.Add([]byte(`{"sub":42,"exp":9999999999.5,"nbf":0,"iat":0,"scope":"admin","scp":["act-as"]}`))
	f.Add([]byte(`{"scope":["act-as"],"exp":1e11}`))
	f.Add([]byte(`{"sub":"042","exp":1e300,"nbf":-1e300}`))
	f.Add([]byte(`null`))
	f.Add([]byte(`{"exp":9999999999}{"sub":"1"}`))
	v := verifier(f, Config{Secrets: secrets})
	f.Fuzz(func(t *testing.T, payload []byte) {
		text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256"}`)) + "." + base64.RawURLEncoding.EncodeToString(payload)
		signature, err := jwt.SigningMethodHS256.Sign(text, secret)
		must.OK(t, err)
		viewer, err := v.Verify(t.Context(), text+"."+base64.RawURLEncoding.EncodeToString(signature))
		if err != nil {
			must.That(t, codeOf(err) == apierr.CodeUnauthenticated, "%v", err)
			return
		}
		switch {
		case viewer.ID < 0 || viewer.Actor != viewer.ID:
			err = errors.New("an odd id")
		case viewer.ID == 0 && !viewer.Has(ScopeActAs) && !viewer.Has(ScopeAdmin):
			err = errors.New("nobody")
		case viewer.ID != 0 && !strings.Contains(string(payload), viewer.ID.String()) && !strings.Contains(string(payload), `\u`):
			err = errors.New("an id that is not in the token")
		case !viewer.Expires.After(time.Now()) || viewer.Expires.Unix() > maxSeconds:
			err = errors.New("an odd time")
		}
		must.That(t, err == nil, "%v: %+v of %q", err, viewer, payload)
	})
}

// changed maps users to the times when they changed their passwords.
type changed map[storage.UserID]storage.Micros

func (c changed) ChangedAt(id storage.UserID) storage.Micros { return c[id] }

func (c changed) Watch(id storage.UserID, since storage.Micros, end func()) func() {
	if c[id] > since {
		end()
	}
	return func() {}
}

// TestPasswordsEndTokens: tokens that Kith signs, by the time that they name or their own.
func TestPasswordsEndTokens(t *testing.T) {
	t.Parallel()
	at := storage.MicrosOf(time.Now().Truncate(time.Second)) + 300_000
	second := int64(at / 1_000_000)
	v := verifier(t, Config{Secrets: secrets})
	v.UseRevocations(changed{42: at}, nil)
	for name, c := range map[string]struct {
		changes []any
		good    bool
	}{
		"from before":                   {[]any{"pwd", int64(at - 1), "iat", second}, false},
		"of a password never changed":   {[]any{"pwd", 0, "iat", second}, false},
		"of that password":              {[]any{"pwd", int64(at), "iat", second}, true},
		"of a later one":                {[]any{"pwd", int64(at + 1), "iat", second}, true},
		"of another user":               {[]any{"sub", "43", "pwd", 0}, true},
		"of another program, before":    {[]any{"iat", second - 1}, false},
		"of another program, that time": {[]any{"iat", second}, false},
		"of another program, after":     {[]any{"iat", second + 1}, true},
		"without a time":                {[]any{"iat", nil}, true},
		"of a service":                  {[]any{"sub", nil, "scope", "act-as", "iat", second - 1}, true},
		"with a scope":                  {[]any{"scope", "admin", "iat", second - 1}, false},
		"with no number":                {[]any{"pwd", "0"}, false},
		"with a fraction":               {[]any{"pwd", 1.5}, false},
		"with less than 0":              {[]any{"pwd", -1}, false},
	} {
		viewer, err := v.Verify(t.Context(), hs256(t, c.changes...))
		check.That(t, (err == nil) == c.good && (err == nil || codeOf(err) == apierr.CodeUnauthenticated), "%s: %v", name, err)
		if err == nil {
			v.Watch(With(t.Context(), viewer), func() { t.Errorf("%s: its connection is over", name) })
		}
	}
}
