package consistency_test

import (
	"encoding/base64"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"kith/graph/consistency"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

func mark(from, to storage.UserID, version storage.Micros) consistency.Mark {
	return consistency.Mark{Pair: storage.Pair{From: from, To: to}, Version: version}
}

func span(from storage.UserID, since, version storage.Micros) consistency.Mark {
	return consistency.Mark{Pair: storage.Pair{From: from}, Since: since, Version: version}
}

func tokens(store storage.Store) *consistency.Tokens {
	return consistency.New(consistency.Tokens{Key: []byte("a key"), Store: store})
}

func TestTokensRoundTripAndMerge(t *testing.T) {
	k := tokens(nil)
	a := consistency.Token{mark(1, 2, 1_790_000_000_000_000), mark(1, 1<<63-1, 7), span(4, 10, 20)}
	b := consistency.Token{mark(1, 2, 5), mark(9, 3, 8), span(4, 15, 40), span(4, 41, 50), span(5, 1, 60)}
	for _, separator := range []string{",", " ", ", ", ",,"} {
		got, err := k.Parse(k.Text(a) + separator + k.Text(b))
		want := consistency.Token{
			span(4, 10, 40), span(4, 41, 50), span(5, 1, 60),
			mark(1, 2, 1_790_000_000_000_000), mark(9, 3, 8), mark(1, 1<<63-1, 7),
		}
		check.That(t, err == nil && slices.Equal(got, want), "joined by %q: %v, %v; want %v", separator, got, err, want)
		check.Equal(t, "it costs", got.Cost(), 303)
	}
	for _, nothing := range []string{"", ",", " , "} {
		got, err := k.Parse(nothing)
		check.That(t, err == nil && len(got) == 0, "%q is %v, %v", nothing, got, err)
	}
}

// Favorites of two posts of one author are two rows, and neither is a follow.
func TestTokensOfFavorites(t *testing.T) {
	k := tokens(nil)
	favorite := func(post int64, version storage.Micros) consistency.Mark {
		return consistency.Mark{Side: storage.Favorites, Pair: storage.Pair{From: 1, To: 2, Item: post}, Version: version}
	}
	got, err := k.Parse(k.Text(consistency.Token{favorite(1<<63-1, 9), mark(1, 2, 10), favorite(3, 9)}) + "," + k.Text(consistency.Token{favorite(3, 8)}))
	want := (consistency.Token{mark(1, 2, 10), favorite(3, 9), favorite(1<<63-1, 9)})
	check.That(t, err == nil && slices.Equal(got, want), "%v, %v; want %v", got, err, want)
}

// A request for friendship and an edge between the same users are two rows.
func TestTokensOfRequests(t *testing.T) {
	k := tokens(nil)
	request := consistency.Mark{Side: storage.Requests, Pair: storage.Pair{From: 1, To: 2}, Version: 9}
	older := consistency.Mark{Side: storage.Requests, Pair: storage.Pair{From: 1, To: 2}, Version: 8}
	got, err := k.Parse(k.Text(consistency.Token{request, mark(1, 2, 10)}) + "," + k.Text(consistency.Token{older}))
	want := (consistency.Token{mark(1, 2, 10), request})
	check.That(t, err == nil && slices.Equal(got, want), "%v, %v; want %v", got, err, want)
}

// Only gateways of the store can make its tokens. A token that is invented, made from parts of
// others, or made with the key of another store is refused.
func TestForgedTokensAreRefused(t *testing.T) {
	k := tokens(nil)
	good := k.Text(consistency.Token{mark(1, 2, 3), mark(1, 3, 3)})
	raw, _ := base64.RawURLEncoding.DecodeString(good)
	spelled := func(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
	changed := slices.Clone(raw)
	changed[1]++
	for name, text := range map[string]string{
		"not base64": "§", "cut short": good[:len(good)-2], "unsigned": "AQECAw", "no marks": spelled(raw[len(raw)-16:]),
		"one mark of two": spelled(append(slices.Clone(raw[:4]), raw[len(raw)-16:]...)),
		"another user":    spelled(changed),
		"another key":     consistency.New(consistency.Tokens{Key: []byte("another")}).Text(consistency.Token{mark(1, 2, 3)}),
		"one good one":    good + ",AQECAw",
	} {
		got, err := k.Parse(text)
		check.That(t, errors.Is(err, consistency.ErrMalformed), "%s: %v, %v", name, got, err)
	}
}

// A token is bounded in marks, of which each may be as long as there are, spans and bytes: it is accepted at the bound, and refused one above it.
func TestTokensAreBounded(t *testing.T) {
	k := tokens(nil)
	marks := func(n int) string {
		many := make(consistency.Token, n)
		for i := range many {
			pair := storage.Pair{From: storage.MaxUserID, To: storage.MaxUserID - storage.UserID(i), Item: math.MaxInt64}
			many[i] = consistency.Mark{Side: storage.Relations, Pair: pair, Version: 1 << 55}
		}
		return k.Text(many)
	}
	spans := func(n int) string {
		many := make(consistency.Token, n)
		for i := range many {
			many[i] = span(1, storage.Micros(10*i), storage.Micros(10*i+5))
		}
		return k.Text(many)
	}
	one := k.Text(consistency.Token{mark(1, 2, 3)})
	filled := func(n int) string { return one + strings.Repeat(",", n-len(one)) }
	for name, texts := range map[string][2]string{
		"marks": {marks(1000), marks(1001)},
		"spans": {spans(64), spans(65)},
		"bytes": {filled(48 << 10), filled(48<<10 + 1)},
	} {
		_, err := k.Parse(texts[0])
		check.That(t, err == nil, "%s at the bound: %v", name, err)
		_, err = k.Parse(texts[1])
		check.That(t, errors.Is(err, consistency.ErrMalformed), "%s above the bound: %v", name, err)
	}
}

// A followMany of 500, with any mixture of new and existing follows, makes a token that fits in a
// header. Three such tokens fit, too. Each stands for all its follows that are not old.
func TestTokensOfManyFollowsAreShort(t *testing.T) {
	k := tokens(oracle.New())
	const second, now = storage.Micros(1_000_000), storage.Micros(1_790_000_000_000_000)
	for name, gap := range map[string]storage.Micros{"at once": 1, "slowly": second, "over a week": 1200 * second, "as spans begin": 301 * second} {
		follows := make([]storage.Edge, 500)
		for i := range follows {
			follows[i] = storage.Edge{From: 1 << 62, To: storage.UserID(1<<62 + i*12345), Type: storage.Following, UpdateTime: now - storage.Micros(i)*gap}
		}
		token := consistency.Followings(follows)
		text := k.Text(token)
		check.That(t, len(text) <= 1000, "%s: the token has %d characters", name, len(text))
		_, err := k.Parse(strings.Join([]string{text, text, text}, ","))
		check.That(t, err == nil, "%s: three of them: %v", name, err)
		for _, e := range follows {
			held := slices.ContainsFunc(token, func(m consistency.Mark) bool { return m.Since <= e.UpdateTime && e.UpdateTime <= m.Version })
			recent := now-e.UpdateTime <= 3600*second
			must.That(t, held == recent, "%s: a follow of %d s before is in the token: %v", name, (now-e.UpdateTime)/second, held)
		}
	}
	few := make([]storage.Edge, 32)
	for i := range few {
		few[i] = storage.Edge{From: 1, To: storage.UserID(i + 2), UpdateTime: 9}
	}
	got := consistency.Followings(few)
	check.That(t, len(got) == 32 && got[31] == mark(1, 33, 9), "few follows are %v", got)
}
