package identity

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	"github.com/golang-jwt/jwt/v5"

	"kith/graph/apierr"
)

// Verifier checks tokens. It is safe for concurrent use.
type Verifier struct {
	cfg        Config
	own        *source // nil without Secrets
	providers  []*source
	passwords  PasswordTimes // nil before UseRevocations
	identities Identities    // nil before UseRevocations
}

// UseRevocations makes tokens end when their user changes the password or signs out, and makes subjects of
// providers stand for users. It is called before the first token is verified.
func (v *Verifier) UseRevocations(passwords PasswordTimes, identities Identities) {
	v.passwords, v.identities = passwords, identities
}

// NewVerifier reads the keys, if any, and keeps reading them in the background
// until Close. It refuses unsafe settings: a short secret, keys without an
// audience, keys that cannot be read.
func NewVerifier(ctx context.Context, cfg Config) (*Verifier, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	v := &Verifier{cfg: cfg}
	if cfg.Secrets != nil {
		v.own = &source{
			userClaim: claimUser, secrets: cfg.Secrets,
			parser: newParser(cfg, []string{methodHS256}),
		}
	}
	var err error
	v.providers, err = openProviders(ctx, cfg)
	return v, err
}

// newParser sets the library up: by itself it accepts any method that the key
// fits, tokens without exp, and any issuer and audience.
func newParser(cfg Config, methods []string, more ...jwt.ParserOption) *jwt.Parser {
	return jwt.NewParser(append(more,
		jwt.WithValidMethods(methods),
		jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(),
		jwt.WithLeeway(cfg.Leeway),
		jwt.WithTimeFunc(cfg.Now),
		jwt.WithStrictDecoding(), // a token can be written in one way only
		jwt.WithJSONNumber(),     // an id as a number has 63 bits
	)...)
}

// Close stops reading keys. The verifier keeps using the present ones.
func (v *Verifier) Close() {
	for _, s := range v.providers {
		s.keys.close()
	}
}

// The headers that say who is asking.
const (
	headerAuthorization = "Authorization"
	headerViewer        = "Kith-Viewer" // the user for whom a token with [ScopeActAs] acts
)

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
	errHeader    = apierr.TokenInvalid.Error("the Authorization is not of the form Bearer TOKEN")
	errAnonymous = apierr.NotSignedIn.Error("%s needs a token", headerViewer)
	errActAs     = apierr.ScopeMissing.Error("the token may not act for others: it lacks the scope %s, or its issuer is not granted it", ScopeActAs)
	errViewer    = apierr.IDMalformed.Error("%s is not one user's id", headerViewer)
)

// identify returns a context with the viewer that the headers name, or the given context
// if they name nobody.
func (v *Verifier) identify(ctx context.Context, authorization, onBehalf []string) (context.Context, error) {
	if len(authorization) == 1 && strings.TrimSpace(authorization[0]) == "" { // as of clients whose token is "" when there is none
		authorization = nil
	}
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

// Verify returns the viewer of a token. The error is an [apierr.Error] with the code UNAUTHENTICATED
// and a sentence that reveals nothing of the token, or UNAVAILABLE if it cannot be found out now for
// whom its subject stands.
func (v *Verifier) Verify(ctx context.Context, token string) (Viewer, error) {
	// encoding/base64 ignores line ends, even when it is strict.
	if len(token) > maxToken || strings.ContainsAny(token, "\r\n") {
		return Viewer{}, errMalformed
	}
	from := v.sourceOf(token)
	claims := jwt.MapClaims{}
	_, err := from.parser.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) { return from.key(ctx, t) })
	if err != nil {
		return Viewer{}, explain(err)
	}
	viewer, err := v.viewer(ctx, from, claims)
	if err != nil {
		return Viewer{}, err
	}
	if from.mapped {
		viewer.token = token
	}
	if viewer.Actor != 0 {
		if viewer.passwordAt, viewer.endsByPassword, err = from.passwordOf(claims); err != nil {
			return Viewer{}, err
		}
		if len(viewer.Scopes) == 0 {
			viewer.session = session{viewer.Actor, viewer.passwordAt, from.signedInAt(claims)}
		}
	}
	if v.passwords != nil && viewer.endsByPassword && v.passwords.ChangedAt(viewer.Actor) > viewer.passwordAt {
		return Viewer{}, errReplaced
	}
	return viewer, nil
}

// Watch calls end, once and soon, when the token of the caller ends because the user has changed the
// password or signed out. The function that it returns cancels that.
func (v *Verifier) Watch(ctx context.Context, end func()) (callOff func()) {
	caller, _ := Caller(ctx)
	if v.passwords == nil || !caller.endsByPassword {
		return func() {}
	}
	return v.passwords.Watch(caller.Actor, caller.passwordAt, end)
}

// source is where tokens come from, the gateways themselves or one provider, and how to read them.
type source struct {
	issuer    string
	userClaim string
	mapped    bool
	scopes    []string // that a provider's tokens may have
	secrets   *Secrets // for tokens of HS256; otherwise
	keys      *jwks
	parser    *jwt.Parser
}

// sourceOf finds the source that a token claims to be of. Nothing in the token is trusted for this:
// the source's parser refuses the token if its method or issuer is different.
func (v *Verifier) sourceOf(token string) *source {
	parts := strings.SplitN(token, ".", 3)
	claimed := map[string]any{} // a struct would take other letters for the same name
	claim(parts[0], &claimed)
	if v.own != nil && (claimed["alg"] == methodHS256 || len(v.providers) == 0) {
		return v.own
	}
	if len(v.providers) > 1 && len(parts) > 1 {
		claim(parts[1], &claimed)
		for _, s := range v.providers {
			if claimed["iss"] == s.issuer {
				return s
			}
		}
	}
	return v.providers[0]
}

// claim decodes a part of a token, as far as possible.
func claim(part string, into any) {
	if text, err := base64.RawURLEncoding.DecodeString(part); err == nil {
		_ = json.Unmarshal(text, into)
	}
}

// key finds the key that a token must be signed with. Its kind follows from the method,
// never from the token's contents.
func (s *source) key(ctx context.Context, t *jwt.Token) (any, error) {
	if _, ok := t.Header["crit"]; ok {
		return nil, errors.New("extensions that must be understood are not") // RFC 7515 §4.1.11
	}
	if s.secrets != nil {
		var keys jwt.VerificationKeySet
		for _, secret := range s.secrets.all() {
			keys.Keys = append(keys.Keys, secret)
		}
		return keys, nil
	}
	kid, isText := t.Header["kid"].(string)
	if _, given := t.Header["kid"]; given && !isText {
		return nil, errors.New("kid is no text")
	}
	keys := s.keys.find(ctx, kid, t.Method.Alg())
	if len(keys) == 0 {
		return nil, errors.New("no such key")
	}
	return jwt.VerificationKeySet{Keys: keys}, nil
}

// The errors that clients see. If a token is not signed by one of our keys, they learn
// no more than that.
var (
	errMalformed    = apierr.TokenInvalid.Error("the token is malformed")
	errNotOurs      = apierr.TokenInvalid.Error("the token is not signed in a way that is accepted here")
	errExpired      = apierr.TokenExpired.Error("the token has expired")
	errNotYet       = apierr.TokenInvalid.Error("the token is not valid yet")
	errElsewhere    = apierr.TokenInvalid.Error("the token is from another issuer or for another audience")
	errIncomplete   = apierr.TokenInvalid.Error("the token lacks exp, or its exp, nbf or iat is no number of seconds")
	errReplaced     = apierr.TokenRevoked.Error("the user has changed the password or signed out everywhere since the token was made")
	errUnmapped     = apierr.Unreachable.Error("the user of the token cannot be looked up for now")
	errUserless     = apierr.TokenInvalid.Error("the token names no user by an id, and has no scope that is granted to its issuer")
	errScopes       = apierr.TokenInvalid.Error("the token's scopes cannot be read")
	explainedErrors = []struct{ of, as error }{
		{jwt.ErrTokenMalformed, errMalformed},
		{jwt.ErrTokenSignatureInvalid, errNotOurs},
		{jwt.ErrTokenUnverifiable, errNotOurs},
		{jwt.ErrTokenExpired, errExpired},
		{jwt.ErrTokenNotValidYet, errNotYet},
		{jwt.ErrTokenUsedBeforeIssued, errNotYet},
		{jwt.ErrTokenInvalidIssuer, errElsewhere},
		{jwt.ErrTokenInvalidAudience, errElsewhere},
	}
)

func explain(err error) error {
	for _, e := range explainedErrors {
		if errors.Is(err, e.of) {
			return e.as
		}
	}
	return errIncomplete
}
