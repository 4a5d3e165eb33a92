package identity

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/sync/semaphore"
	"golang.org/x/text/secure/precis"

	"kith/graph/apierr"
	"kith/storage"
)

// Lengths of a password, in bytes.
const (
	MinPassword = 8
	MaxPassword = 200
)

// CheckPassword refuses a text that cannot become a password; BAD_USER_INPUT.
func CheckPassword(password string) error {
	switch {
	case len(password) < MinPassword:
		return apierr.PasswordTooShort.Error("the password is shorter than %d bytes", MinPassword).In("password")
	case len(password) > MaxPassword:
		return apierr.PasswordTooLong.Error("the password is longer than %d bytes", MaxPassword).In("password")
	case strings.ContainsRune(password, 0):
		return apierr.PasswordMalformed.Error("the password has a NUL in it").In("password")
	case !utf8.ValidString(password):
		return apierr.PasswordMalformed.Error("the password is not UTF-8").In("password")
	}
	return nil
}

// Passwords hashes passwords with argon2id (RFC 9106). It is safe for concurrent
// use.
type Passwords struct {
	cost       cost
	concurrent *semaphore.Weighted
	waiting    atomic.Int64
	most       int64 // that may wait or be hashed
	derive     func(password string, salt []byte, c cost, length uint32) []byte
}

// NewPasswords makes hashes that take 19 MiB and two passes each, the least that OWASP's cheat sheet on storing
// passwords allows, in one lane, because many users sign in at once. It hashes as many at a time as half of the
// processors, so that logins do not block reads, and lets 500 more wait; further ones are refused with RATE_LIMITED.
func NewPasswords() *Passwords {
	return newPasswords(cost{memory: 19 << 10, time: 2, threads: 1}, max(1, runtime.GOMAXPROCS(0)/2), 500)
}

func newPasswords(c cost, concurrent, waiting int) *Passwords {
	return &Passwords{
		cost:       c,
		concurrent: semaphore.NewWeighted(int64(concurrent)),
		most:       int64(waiting + concurrent),
		derive: func(password string, salt []byte, c cost, length uint32) []byte {
			return argon2.IDKey([]byte(password), salt, c.time, c.memory, c.threads, length)
		},
	}
}

// Hash makes the stored form of a new password: a text in the PHC format, which
// names its cost, so that the cost can change. [CheckPassword] applies.
func (p *Passwords) Hash(ctx context.Context, password string) (string, error) {
	if err := CheckPassword(password); err != nil {
		return "", err
	}
	h := passwordHash{cost: p.cost, salt: make([]byte, saltLength)}
	rand.Read(h.salt) // it never fails: see its documentation
	key, err := p.bounded(ctx, prepared(password), h.salt, h.cost, keyLength)
	if err != nil {
		return "", err
	}
	h.key = key
	return h.String(), nil
}

// prepared makes passwords equal that are typed alike on different systems, such as with ä as one character or
// as two (RFC 8265, OpaqueString). One with characters that the RFC does not allow, such as joined emoji, stays
// as it is.
func prepared(password string) string {
	if equal, err := precis.OpaqueString.String(password); err == nil {
		return equal
	}
	return password
}

// Verify reports whether a password matches a hash, and whether it
// should be hashed again because the cost has changed, or because its text is prepared in another way now. An empty hash is that of a user who
// has no password, or does not exist: no password matches it, and checking it takes as long as any other, so that the time
// does not reveal which handles exist.
func (p *Passwords) Verify(ctx context.Context, password, hash string) (ok, rehash bool, err error) {
	h := passwordHash{cost: p.cost, salt: make([]byte, saltLength)}
	if hash != "" {
		if h, err = parseHash(hash); err != nil {
			return false, false, err
		}
	}
	for _, form := range forms(password) {
		key, err := p.bounded(ctx, form, h.salt, h.cost, uint32(cmp.Or(len(h.key), keyLength)))
		if err != nil {
			return false, false, err
		}
		if subtle.ConstantTimeCompare(key, h.key) == 1 {
			return true, !h.isOf(p.cost) || form != prepared(password), nil
		}
	}
	return false, false, nil
}

// forms are those in which a password may have been hashed: prepared, and as typed, if it had characters that Unicode did not have yet.
func forms(password string) []string { return slices.Compact([]string{prepared(password), password}) }

// bounded derives a key when it is its turn.
func (p *Passwords) bounded(ctx context.Context, password string, salt []byte, c cost, length uint32) ([]byte, error) {
	defer storage.Wait(ctx)()
	defer p.waiting.Add(-1)
	if p.waiting.Add(1) > p.most {
		return nil, apierr.TooManySignIns.Error("too many are signing in at this moment")
	}
	if err := p.concurrent.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("wait for a password's turn: %w", err)
	}
	defer p.concurrent.Release(1)
	return p.derive(password, salt, c, length), nil
}
