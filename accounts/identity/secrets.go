package identity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"kith/storage/sleep"
)

// Secrets are the secrets with which tokens of HS256 are signed: at most [MaxSecrets], each of at
// least [MinSecret] bytes. The first one signs, and all verify, so that a secret can be changed
// while tokens of the old one are still in use. Secrets are safe for concurrent use.
type Secrets struct{ current atomic.Pointer[[][]byte] }

// MaxSecrets is how many secrets may be valid at once: the one in use, and the one before it or after
// it.
const MaxSecrets = 2

const (
	// maxSecretFile is how long a file of secrets may be, in bytes.
	maxSecretFile = 4 << 10

	// secretEvery is how often a file of secrets is read again.
	secretEvery = 5 * time.Second
)

// NewSecrets keeps secrets that do not change. [NewVerifier] and [NewIssuer] refuse ones that are short or
// can be guessed, and too many.
func NewSecrets(secrets ...[]byte) *Secrets {
	s := &Secrets{}
	s.current.Store(&secrets)
	return s
}

func checkSecrets(secrets [][]byte) error {
	switch {
	case len(secrets) == 0:
		return errNoSecret
	case len(secrets) > MaxSecrets:
		return fmt.Errorf("there are %d secrets, and may be %d: one that signs, and one that verifies besides", len(secrets), MaxSecrets)
	case slices.ContainsFunc(secrets, func(secret []byte) bool { return len(secret) < MinSecret }):
		return errShortSecret
	case slices.ContainsFunc(secrets, isGuessable):
		return errGuessable
	}
	return nil
}

var (
	errNoSecret    = errors.New("there is no secret: `openssl rand -hex 32` makes a good one")
	errShortSecret = fmt.Errorf("the secret must have at least %d bytes: `openssl rand -hex 32` makes a good one", MinSecret)
	errGuessable   = errors.New("the secret can be guessed, it is an example or repeats itself: `openssl rand -hex 32` makes a good one")
)

// minBits is how many bits each byte of a secret must have, by [bitsOf]. Of 2,000,000 random secrets of 32 hexadecimal
// digits none had fewer than 2.7; of as many of 32 decimal digits, 10 had fewer than 2.4.
const minBits = 2.4

// exampleSecret is that of https://jwt.io.
const exampleSecret = "a-string-secret-at-least-256-bits-long"

// isGuessable reports whether a secret is a known example, made of few bytes, a sequence such as abc…, or made of a shorter text.
func isGuessable(secret []byte) bool {
	steps := make([]byte, len(secret)-1)
	for i := range steps {
		steps[i] = secret[i+1] - secret[i]
	}
	if bitsOf(secret) < minBits || bitsOf(steps) < minBits || string(secret) == exampleSecret {
		return true
	}
	for n := 1; n <= len(secret)/2; n++ {
		if bytes.HasPrefix(secret, secret[n:]) { // it begins again every n bytes
			return true
		}
	}
	return false
}

// bitsOf is Shannon's estimate of the bits of information in each byte of a text: 0 for one byte repeated, up to 8.
func bitsOf(text []byte) (bits float64) {
	var count [256]float64
	for _, b := range text {
		count[b]++
	}
	for _, n := range count {
		if p := n / float64(len(text)); n > 0 {
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// signing is the secret that signs.
func (s *Secrets) signing() []byte { return (*s.current.Load())[0] }

// all are the secrets that verify.
func (s *Secrets) all() [][]byte { return *s.current.Load() }

// readSecrets reads a file with a secret on each line. Blanks around them, which editors and
// `kubectl` leave, do not count.
func readSecrets(name string) ([][]byte, error) {
	text, err := readFile(name, maxSecretFile)
	if err != nil {
		return nil, err
	}
	var secrets [][]byte
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			secrets = append(secrets, line)
		}
	}
	return secrets, checkSecrets(secrets)
}

// follow reads a file of secrets again until the context is done. While it cannot be read, the
// secrets at hand stay in use.
func (s *Secrets) follow(ctx context.Context, name string, every time.Duration, logger *slog.Logger) {
	for failed := ""; sleep.For(ctx, every) == nil; {
		secrets, err := readSecrets(name)
		switch {
		case err != nil && err.Error() != failed: // once, not every five seconds
			failed = err.Error()
			logger.Warn("cannot read the secrets for tokens: keeping the previous ones", "file", name, "error", err)
		case err == nil && !slices.EqualFunc(secrets, s.all(), bytes.Equal):
			s.current.Store(&secrets)
			failed = ""
			logger.Info("the secrets for tokens have changed", "file", name, "secrets", len(secrets))
		case err == nil:
			failed = ""
		}
	}
}

// secrets are those of the settings; nil: there are none.
func (s *Settings) secrets() (*Secrets, error) {
	switch {
	case s.JWTSecret != "" && s.JWTSecretFile != "":
		return nil, misset("jwt-secret-file", errors.New("there is --jwt-secret, too: choose one of them"))
	case s.JWTSecret != "":
		secrets := NewSecrets(bytes.TrimSpace([]byte(s.JWTSecret))) // as in a file
		if err := checkSecrets(secrets.all()); err != nil {
			return nil, misset("jwt-secret", err)
		}
		return secrets, nil
	case s.JWTSecretFile != "":
		lines, err := readSecrets(s.JWTSecretFile)
		if err != nil {
			return nil, misset("jwt-secret-file", err)
		}
		return NewSecrets(lines...), nil
	}
	return nil, nil
}
