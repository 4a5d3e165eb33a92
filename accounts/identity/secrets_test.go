package identity

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"kith/graph/apierr"
	"kith/internal/check"
	"kith/internal/logged"
	"kith/internal/must"
)

// TestTwoSecrets: both verify during a change, and the first of them signs.
func TestTwoSecrets(t *testing.T) {
	t.Parallel()
	next, other := []byte("the next secret of at least 32 bytes"), []byte("some other secret of at least 32 bytes")
	both := NewSecrets(next, secret)
	v := verifier(t, Config{Secrets: both})
	for _, c := range []struct {
		key  []byte
		code apierr.Code
	}{{secret, ""}, {next, ""}, {other, apierr.CodeUnauthenticated}} {
		_, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodHS256, c.key, "", claims()))
		check.That(t, codeOf(err) == c.code, "signed with %q: %v", c.key, err)
	}
	issuer, err := NewIssuer(IssuerConfig{Secrets: both})
	must.OK(t, err)
	token, _, err := issuer.Issue(7, 0)
	must.OK(t, err)
	_, err = verifier(t, Config{Secrets: NewSecrets(next)}).Verify(t.Context(), token)
	check.Is(t, "the first does not sign", err, nil)
}

// TestSecretsThatCanBeGuessed are refused, with the line that makes a good one; random ones are not.
func TestSecretsThatCanBeGuessed(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		strings.Repeat("0", 64), strings.Repeat("changeme", 4), strings.Repeat("geheim-", 5), "12345678901234567890123456789012",
		strings.Repeat("0", 63) + "1", strings.Repeat("0", 57) + "1234567", "abcdefghijklmnopqrstuvwxyz0123456789", "zyxwvutsrqponmlkjihgfedcba987654", "a-string-secret-at-least-256-bits-long", "<openssl rand -hex 32>",
	} {
		s := Settings{SecretFlags: SecretFlags{JWTSecret: Secret(text)}, TokenTTL: time.Hour}
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), "`openssl rand -hex 32`") || strings.Contains(err.Error(), text) && !strings.HasPrefix(text, "<") {
			t.Errorf("%s: %v", text, err)
		}
		_, err := readSecrets(fileOf(t, []byte(text+"\n")))
		check.That(t, err != nil, "%s is taken from a file", text)
	}
	for range 2_000 {
		random := make([]byte, MinSecret/2)
		rand.Read(random)
		err := checkSecrets([][]byte{[]byte(hex.EncodeToString(random))})
		check.That(t, err == nil, "%x: %v", random, err)
	}
}

// TestASecretIsTheSameHoweverItIsGiven: a Secret made by echo and base64 ends with a newline, and a file written on Windows has \r\n.
func TestASecretIsTheSameHoweverItIsGiven(t *testing.T) {
	const text = "3f1c9a77b2e84d05a6c1f0e2b9d84731c5e6f7a8"
	for i, with := range []func(*Settings){
		func(s *Settings) { s.JWTSecret = text },
		func(s *Settings) { s.JWTSecret = text + "\n" },
		func(s *Settings) { s.JWTSecret = text + "\r" },
		func(s *Settings) { s.JWTSecretFile = fileOf(t, []byte(text+"\r\n")) },
	} {
		var s Settings
		with(&s)
		secrets, err := s.secrets()
		must.OK(t, err)
		check.Equal(t, fmt.Sprint("secret ", i), string(secrets.signing()), text)
	}
}

// TestSecretFile: it is read again while the gateway runs. A file that cannot be read changes nothing.
func TestSecretFile(t *testing.T) {
	t.Parallel()
	next := []byte("the next secret of at least 32 bytes")
	file := fileOf(t, append([]byte("\n  "), append(secret, " \r\n"...)...))
	lines, err := readSecrets(file)
	must.That(t, err == nil && len(lines) == 1 && bytes.Equal(lines[0], secret), "%q, %v", lines, err)
	s := NewSecrets(lines...)
	var log logged.Text
	done := make(chan struct{})
	t.Cleanup(func() { <-done })
	go func() {
		defer close(done)
		s.follow(t.Context(), file, time.Millisecond, slog.New(slog.NewTextHandler(&log, nil)))
	}()
	write := func(text []byte) {
		t.Helper()
		must.OK(t, os.WriteFile(file+"+", text, 0o600))
		must.OK(t, os.Rename(file+"+", file))
	}
	write(bytes.Join([][]byte{next, secret}, []byte("\n")))
	must.Soon(t, "both are known", func() bool { return len(s.all()) == 2 && bytes.Equal(s.signing(), next) })
	write(secret[:31])
	must.Soon(t, "the short one is reported", func() bool { return strings.Contains(log.String(), "at least 32 bytes") })
	check.That(t, bytes.Equal(s.signing(), next), "a short secret is used")
	write(next)
	must.Soon(t, "the old one is gone", func() bool { return len(s.all()) == 1 })
	text := log.String()
	check.That(t, !strings.Contains(text, "thirty-two") && !strings.Contains(text, "next secret"), "the log shows a secret: %s", text)
	check.Equal(t, "reports of the same failure", strings.Count(log.String(), "cannot read the secrets"), 1)
}
