package identity

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/argon2"

	"kith/graph/apierr"
	"kith/internal/check"
	"kith/internal/must"
)

const password = "correct horse battery staple"

// cheap are passwords that cost next to nothing to hash.
func cheap() *Passwords { return newPasswords(cheapest, 1, 100) }

var cheapest = cost{memory: 8, time: 1, threads: 1}

func TestPassword(t *testing.T) {
	t.Parallel()
	p := NewPasswords()
	hash, err := p.Hash(t.Context(), password)
	must.OK(t, err)
	check.That(t, strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$") && len(hash) <= 255, "%q", hash)
	for text, want := range map[string]bool{
		password: true, password + " ": false, strings.ToUpper(password): false, "": false, hash: false, strings.Repeat("x", 100_000): false,
	} {
		ok, rehash, err := p.Verify(t.Context(), text, hash)
		check.That(t, err == nil && ok == want && !rehash, "%.40q: %t, rehash %t, %v", text, ok, rehash, err)
	}
	again, err := p.Hash(t.Context(), password)
	check.That(t, err == nil && again != hash, "the same hash twice, %v", err)
}

// TestKnownHash was made by the reference implementation:
//
//	echo -n password | argon2 somesalt -id -t 2 -m 16 -p 1 -l 32
func TestKnownHash(t *testing.T) {
	t.Parallel()
	const hash = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	ok, rehash, err := NewPasswords().Verify(t.Context(), "password", hash)
	check.That(t, ok && rehash && err == nil, "%t, rehash %t, %v", ok, rehash, err)
}

// TestRehash: a password whose hash was made with other settings is hashed again, once the password is
// known to be right.
func TestRehash(t *testing.T) {
	t.Parallel()
	now := cheap()
	for name, c := range map[string]cost{"memory": {16, 1, 1}, "time": {8, 2, 1}, "threads": {16, 1, 2}} {
		hash, err := newPasswords(c, 1, 1).Hash(t.Context(), password)
		must.OK(t, err)
		ok, rehash, err := now.Verify(t.Context(), password, hash)
		check.That(t, ok && rehash && err == nil, "%s: %t, rehash %t, %v", name, ok, rehash, err)
		ok, rehash, err = now.Verify(t.Context(), "wrong password", hash)
		check.That(t, !ok && !rehash && err == nil, "%s, wrong: %t, rehash %t, %v", name, ok, rehash, err)
	}
}

// However a keyboard composes it, a password is the same. One that was hashed as it was typed, because Unicode did not have one of its
// characters yet, goes on working, and is hashed again.
func TestPasswordsAreNormalised(t *testing.T) {
	t.Parallel()
	p := cheap()
	const composed, decomposed, joined = "p\u00e4sswort lang", "pa\u0308sswort\u00a0lang", "familie \U0001f469\u200d\U0001f4bb"
	before := passwordHash{cost: p.cost, salt: make([]byte, saltLength)}
	before.key = p.derive(decomposed, before.salt, before.cost, keyLength)
	hash := func(password string) string {
		t.Helper()
		text, err := p.Hash(t.Context(), password)
		must.OK(t, err)
		return text
	}
	for name, c := range map[string]struct {
		hash, typed string
		ok, rehash  bool
	}{
		"composed":           {hash(composed), composed, true, false},
		"decomposed":         {hash(composed), decomposed, true, false},
		"made of parts":      {hash(decomposed), composed, true, false},
		"another":            {hash(composed), "passwort lang", false, false},
		"in capitals":        {hash(composed), strings.ToUpper(composed), false, false},
		"not of the RFC":     {hash(joined), joined, true, false},
		"of before":          {before.String(), decomposed, true, true},
		"of before, another": {before.String(), composed, false, false},
	} {
		ok, rehash, err := p.Verify(t.Context(), c.typed, c.hash)
		check.That(t, err == nil && ok == c.ok && rehash == c.rehash, "%s: %v, %v, %v", name, ok, rehash, err)
	}
}

func TestCheckPassword(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"":                       false,
		"1234567":                false,
		"12345678":               true,
		"密码密":                    true, // nine bytes
		"密码":                     false,
		strings.Repeat("x", 200): true,
		strings.Repeat("x", 201): false,
		"with\x00nul in it":      false,
		"\xff\xfe no text":       false,
		"        ":               true,
	} {
		err := CheckPassword(text)
		check.That(t, (err == nil) == ok && (err == nil || codeOf(err) == apierr.CodeBadInput), "%q: %v", text, err)
		check.That(t, err == nil || text == "" || !strings.Contains(err.Error(), text), "%v shows the password", err)
		_, hashErr := cheap().Hash(t.Context(), text)
		check.That(t, (hashErr == nil) == ok, "hash of %q: %v", text, hashErr)
	}
}

// TestUnknownCostsTheSame: a user who is unknown, or has no password, takes the same work as a user who has
// a password.
func TestUnknownCostsTheSame(t *testing.T) {
	t.Parallel()
	p := cheap()
	hash, err := p.Hash(t.Context(), password)
	must.OK(t, err)
	type work struct {
		password string
		salt     int
		cost     cost
		length   uint32
	}
	var done []work
	p.derive = func(password string, salt []byte, c cost, length uint32) []byte {
		done = append(done, work{password, len(salt), c, length})
		return make([]byte, length)
	}
	ok, _, err := p.Verify(t.Context(), "some password", hash)
	must.That(t, !ok && err == nil, "%v %v", ok, err)
	ok, _, err = p.Verify(t.Context(), "some password", "")
	must.That(t, !ok && err == nil, "%v %v", ok, err)
	check.That(t, len(done) == 2 && done[0] == done[1], "%+v", done)
}

// TestDamagedHashes: they are refused before any hashing, and are not shown.
func TestDamagedHashes(t *testing.T) {
	t.Parallel()
	p := cheap()
	p.derive = func(string, []byte, cost, uint32) []byte { t.Error("it is worked on"); return nil }
	const salt, key = "c29tZXNhbHRzb21lc2FsdA", "CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	for _, hash := range []string{
		"x", "$", "$$$$$", password,
		"$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy",
		"$argon2i$v=19$m=8,t=1,p=1$" + salt + "$" + key,
		"$argon2id$v=16$m=8,t=1,p=1$" + salt + "$" + key,
		"$argon2id$m=8,t=1,p=1$" + salt + "$" + key,
		"$argon2id$v=19$m=8,t=1$" + salt + "$" + key,
		"$argon2id$v=19$t=1,m=8,p=1$" + salt + "$" + key,
		"$argon2id$v=19$m=0,t=1,p=1$" + salt + "$" + key,
		"$argon2id$v=19$m=8,t=0,p=1$" + salt + "$" + key,
		"$argon2id$v=19$m=8,t=1,p=0$" + salt + "$" + key,
		"$argon2id$v=19$m=8,t=1,p=257$" + salt + "$" + key,
		"$argon2id$v=19$m=-8,t=1,p=1$" + salt + "$" + key,
		"$argon2id$v=19$m=4294967295,t=1,p=1$" + salt + "$" + key,
		"$argon2id$v=19$m=8,t=4294967295,p=1$" + salt + "$" + key,
		"$argon2id$v=19$m=8,t=1,p=1$$" + key,
		"$argon2id$v=19$m=8,t=1,p=1$" + salt + "$",
		"$argon2id$v=19$m=8,t=1,p=1$" + salt + "$AAAA",
		"$argon2id$v=19$m=8,t=1,p=1$%%%$" + key,
		"$argon2id$v=19$m=8,t=1,p=1$" + salt + "=$" + key,
		"$argon2id$v=19$m=8,t=1,p=1$" + salt + "$" + key + "$",
	} {
		ok, _, err := p.Verify(t.Context(), password, hash)
		check.That(t, !ok && err != nil && !strings.Contains(err.Error(), "argon2id$"), "%q: %t, %v", hash, ok, err)
	}
}

func FuzzParseHash(f *testing.F) {
	f.Add("$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHRzb21lc2FsdA$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc")
	f.Add("$argon2id$v=19$m=08,t=+1,p=1$$")
	f.Fuzz(func(t *testing.T, text string) {
		h, err := parseHash(text)
		if err != nil {
			return
		}
		again, err := parseHash(h.String())
		if err != nil || again.cost != h.cost || string(again.key) != string(h.key) || h.cost.memory > maxCost.memory || h.cost.time > maxCost.time {
			t.Errorf("%q: %+v, %v", text, h, err)
		}
	})
}

// TestConcurrencyIsBounded: no more passwords are hashed at once than allowed, callers who wait can give up,
// and callers beyond those who may wait are refused.
func TestConcurrencyIsBounded(t *testing.T) {
	t.Parallel()
	const concurrent, waiting = 3, 5
	p := newPasswords(cheapest, concurrent, waiting)
	var at, most atomic.Int64
	gate := make(chan struct{})
	p.derive = func(password string, salt []byte, c cost, length uint32) []byte {
		if n := at.Add(1); n > most.Load() {
			most.Store(n)
		}
		<-gate
		defer at.Add(-1)
		return argon2.IDKey([]byte(password), salt, c.time, c.memory, c.threads, length)
	}
	var running sync.WaitGroup
	for range concurrent + waiting {
		running.Go(func() {
			_, _, err := p.Verify(t.Context(), password, "")
			check.That(t, err == nil, "%v", err)
		})
	}
	must.Soon(t, "all have come", func() bool { return p.waiting.Load() == concurrent+waiting && at.Load() == concurrent })
	_, _, err := p.Verify(t.Context(), password, "")
	check.That(t, codeOf(err) == apierr.CodeRateLimited, "one too many: %v", err)
	close(gate)
	running.Wait()
	check.That(t, most.Load() == concurrent, "%d at once", most.Load())

	blocked := newPasswords(cheapest, 1, 100)
	hold := make(chan struct{})
	blocked.derive = func(string, []byte, cost, uint32) []byte { <-hold; return nil }
	running.Go(func() { blocked.Verify(context.Background(), password, "") })
	must.Soon(t, "it is held", func() bool { return blocked.waiting.Load() == 1 })
	ctx, cancel := context.WithCancel(t.Context())
	running.Go(func() {
		_, _, err := blocked.Verify(ctx, password, "")
		check.Is(t, "one who goes", err, context.Canceled)
	})
	must.Soon(t, "one waits", func() bool { return blocked.waiting.Load() == 2 })
	cancel()
	must.Soon(t, "it is gone", func() bool { return blocked.waiting.Load() == 1 })
	close(hold)
	running.Wait()
}
