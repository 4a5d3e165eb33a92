package identity

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"kith/internal/check"
	"kith/internal/must"
)

func parsed(t *testing.T, args ...string) (Settings, error) {
	t.Helper()
	var s Settings
	parser, err := kong.New(&s)
	must.OK(t, err)
	_, err = parser.Parse(args)
	if err == nil {
		err = s.Check()
	}
	return s, err
}

// identityFile is a file of one provider, whose audience is a JSON list.
func identityFile(t *testing.T, audience, jwks string) string {
	t.Helper()
	return fileOf(t, fmt.Appendf(nil, `[{"issuer": %q, "jwks": %q, "audience": %s}]`, issuer, jwks, audience))
}

func TestSettings(t *testing.T) {
	s, err := parsed(t)
	check.That(t, err == nil && s.TokenTTL == 24*time.Hour && s.SessionTTL == 720*time.Hour && s.LoginLimit == 10 && s.AddressLimit == 60, "defaults: %+v, %v", s, err)
	file := identityFile(t, `["kith"]`, fileOf(t, providerJWKS(t)))
	for name, value := range map[string]string{
		"KITH_JWT_SECRET": string(secret), "KITH_IDENTITY": file,
		"KITH_TOKEN_TTL": "90m", "KITH_SESSION_TTL": "0s", "KITH_TRUSTED_PROXY": "10.0.0.0/8,fd00::1",
		"KITH_LOGIN_LIMIT": "0", "KITH_ADDRESS_LIMIT": "7",
	} {
		t.Setenv(name, value)
	}
	s, err = parsed(t)
	must.OK(t, err)
	if string(s.JWTSecret) != string(secret) || s.Identity != file || s.TokenTTL != 90*time.Minute || s.SessionTTL != 0 ||
		strings.Join(s.TrustedProxy, " ") != "10.0.0.0/8 fd00::1" || s.LoginLimit != 0 || s.AddressLimit != 7 {
		t.Errorf("%+v", s)
	}
	service, err := s.Open(t.Context(), slog.New(slog.DiscardHandler))
	must.OK(t, err)
	defer service.Close()
	token, _, err := service.Issuer.Issue(9, 0)
	must.OK(t, err)
	viewer, err := service.Verifier.Verify(t.Context(), token)
	check.That(t, err == nil && viewer.ID == 9 && !service.MadeSecret && len(service.Proxies) == 2 && len(service.Providers) == 1, "%+v, %v", viewer, err)
}

func TestSettingsRefused(t *testing.T) {
	t.Parallel()
	keys := fileOf(t, providerJWKS(t))
	for args, setting := range map[string]string{
		"--jwt-secret=too-short-a-secret":                                        "--jwt-secret (KITH_JWT_SECRET): ",
		"--identity=" + identityFile(t, `["kith"]`, keys+"x"):                    "--identity (KITH_IDENTITY): issuer 1: ",
		"--identity=" + identityFile(t, "[]", keys):                              "--identity (KITH_IDENTITY): issuer 1: ",
		"--identity=" + identityFile(t, `[""]`, keys):                            "--identity (KITH_IDENTITY): issuer 1: ",
		"--identity=" + identityFile(t, `["kith"]`, "ftp://id.example.org/jwks"): "--identity (KITH_IDENTITY): issuer 1: ",
		"--identity=" + identityFile(t, `["kith"]`, "https://"):                  "--identity (KITH_IDENTITY): issuer 1: ",
		"--identity=" + keys + "x":                                               "--identity (KITH_IDENTITY): ",
		"--trusted-proxy=proxy.example.org":                                      "--trusted-proxy (KITH_TRUSTED_PROXY): ",
		"--trusted-proxy=10.0.0.0/8,10.0.0.0/64":                                 "--trusted-proxy (KITH_TRUSTED_PROXY): ",
	} {
		_, err := parsed(t, strings.Fields(args)...)
		if err == nil || !strings.HasPrefix(err.Error(), setting) {
			t.Errorf("%s: %v", args, err)
		} else if strings.Contains(err.Error(), "too-short-a-secret") {
			t.Errorf("%v shows the secret", err)
		}
	}
	s, err := parsed(t, "--identity="+identityFile(t, `["kith"]`, fileOf(t, []byte("{}"))))
	must.OK(t, err)
	_, err = s.Open(t.Context(), slog.New(slog.DiscardHandler))
	check.That(t, err != nil && strings.HasPrefix(err.Error(), "--identity (KITH_IDENTITY): read the keys of "), "a file without keys: %v", err)
}

// TestSecretIsMade if no setting says how to verify tokens, and only then.
func TestSecretIsMade(t *testing.T) {
	t.Parallel()
	open := func(args ...string) *Service {
		s, err := parsed(t, args...)
		must.OK(t, err)
		service, err := s.Open(t.Context(), slog.New(slog.DiscardHandler))
		must.OK(t, err)
		t.Cleanup(service.Close)
		return service
	}
	a, b := open(), open()
	must.That(t, a.MadeSecret && a.Issuer != nil, "there is none")
	token, _, err := a.Issuer.Issue(9, 0)
	must.OK(t, err)
	_, err = a.Verifier.Verify(t.Context(), token)
	check.That(t, err == nil, "%v", err)
	_, err = b.Verifier.Verify(t.Context(), token)
	check.That(t, err != nil, "two runs have the same secret")
	provided := open("--identity=" + identityFile(t, `["kith"]`, fileOf(t, providerJWKS(t))))
	check.That(t, !provided.MadeSecret && provided.Issuer == nil, "one is made where a provider signs")
	_, err = provided.Verifier.Verify(t.Context(), token)
	check.That(t, err != nil, "HS256 is accepted where a provider signs")
}

// TestSecretIsConcealed in whatever way settings are printed.
func TestSecretIsConcealed(t *testing.T) {
	t.Parallel()
	s := Settings{SecretFlags: SecretFlags{JWTSecret: Secret(secret)}}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("settings", "all", s, "one", s.JWTSecret)
	encoded, err := json.Marshal(s)
	must.OK(t, err)
	for _, text := range []string{
		fmt.Sprint(s), fmt.Sprintf("%v %+v %#v", s, s, s), fmt.Sprintf("%s %q %x", s.JWTSecret, s.JWTSecret, s.JWTSecret), string(encoded), log.String(),
	} {
		check.That(t, !strings.Contains(text, "thirty-two") && !strings.Contains(text, fmt.Sprintf("%x", secret)), "%s", text)
	}
}
