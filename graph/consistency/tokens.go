// Package consistency lets clients read their own writes, even if these are
// replicated with a delay.
//
// A write returns a token: the versions that the inverse rows of its edges will
// have. A read with the token waits, for a bounded time, until the rows have
// these versions. Tokens are signed, so that a client cannot learn from a wait what others have
// done. Several tokens that are sent together are merged.
package consistency

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"kith/graph/defaults"
	"kith/storage"
)

// A Mark is one write: the forward row, and the time that its inverse row has at least.
// If Pair.To is 0, it stands for many writes: all followings of Pair.From, and requests for them, that
// were written from Since to Version.
type Mark struct {
	Side    storage.Side // one of [storage.Truths]
	Pair    storage.Pair
	Version storage.Micros // 0: no row is waited for, something of Pair.From alone has changed
	Since   storage.Micros // 0 unless Pair.To is 0
}

func (m Mark) isSpan() bool { return m.Pair.To == 0 }

// A Token is marks in any order.
type Token []Mark

// The first number of a mark is its kind.
const (
	markFollowing = 1 // from, to, version in following, follower
	markRequest   = 2 // from, to, version in friend_request, friend_request_inbox
	markSpan      = 3 // from, since, version: followings, and requests for them
	markFavorite  = 4 // from, to, version, post in favorite, favorite_inbox
	markRelation  = 5 // from, to, version, kind in relation, relation_inbox
)

// markKinds are the kinds of marks of single writes.
var markKinds = map[storage.Side]byte{
	storage.Forward: markFollowing, storage.Requests: markRequest, storage.Favorites: markFavorite, storage.Relations: markRelation,
}

func hasItem(kind byte) bool { return kind == markFavorite || kind == markRelation }

// The bounds of the tokens of one read.
const (
	// MaxBytes is how long all tokens may be together: [MaxMarks] of the longest fit.
	MaxBytes = 48 << 10
	// MaxMarks is how many single writes they may stand for.
	MaxMarks = 1000
	// maxSpans is how many of the marks may stand for many writes.
	maxSpans = 64
)

// ErrMalformed reports that a text is not a token of this store.
var ErrMalformed = errors.New("not a consistency token")

// appendMarks writes marks.
func appendMarks(b []byte, t Token) []byte {
	for _, m := range t {
		kind, numbers := markKinds[m.Side.Truth()], []int64{int64(m.Pair.From), int64(m.Pair.To), int64(m.Version)}
		if m.isSpan() {
			kind, numbers[1] = markSpan, int64(m.Since)
		} else if hasItem(kind) {
			numbers = append(numbers, m.Pair.Item)
		}
		b = append(b, kind)
		for _, n := range numbers {
			b = binary.AppendUvarint(b, uint64(n))
		}
	}
	return b
}

func parseMarks(b []byte) (t Token, err error) {
	for len(b) > 0 {
		var m Mark
		if m, b, err = parseMark(b); err != nil {
			return nil, err
		}
		t = append(t, m)
	}
	return t, nil
}

func parseMark(b []byte) (Mark, []byte, error) {
	kind := b[0]
	b = b[1:]
	numbers := make([]int64, 3, 4)
	if hasItem(kind) {
		numbers = numbers[:4]
	}
	for i := range numbers {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > 1<<63-1 {
			return Mark{}, nil, ErrMalformed
		}
		numbers[i] = int64(n)
		b = b[size:]
	}
	m := Mark{Pair: storage.Pair{From: storage.UserID(numbers[0])}, Version: storage.Micros(numbers[2])}
	if kind == markSpan {
		m.Side, m.Since = storage.Forward, storage.Micros(numbers[1])
		return m, b, nil
	}
	m.Pair.To = storage.UserID(numbers[1])
	known := false
	for side, of := range markKinds {
		if of == kind {
			m.Side, known = side, true
		}
	}
	if hasItem(kind) {
		m.Pair.Item = numbers[3]
	}
	if !known || m.Pair.From == 0 || m.Pair.To == 0 || hasItem(kind) && m.Pair.Item == 0 {
		return Mark{}, nil, ErrMalformed
	}
	return m, b, nil
}

const (
	// fewMarks is how many follows of one user are named one by one.
	fewMarks = 32
	// spanGap is how far apart in time two successive follows of one span may be.
	spanGap storage.Micros = 300_000_000
	// spanAge is the age up to which a long token covers a follow: if the inverse side is an hour
	// behind, the gateway's readiness page shows that, and tokens do not.
	spanAge storage.Micros = 3_600_000_000
)

func markOf(e storage.Edge) Mark {
	return Mark{Side: storage.Forward, Pair: e.Pair(), Version: e.UpdateTime}
}

// Beside is the token of what only one user's own side has: notes on follows, members of lists.
func Beside(user storage.UserID) Token {
	return Token{{Side: storage.Relations, Pair: storage.Pair{From: user, To: user, Item: 1}}}
}

// Followings is the token of many follows of one user, or requests for them, each with the time at which it was written,
// now or before. If there are more than a few, the token names spans of time instead of users, so
// that it fits in a header of 4 kB: for 500 follows at most 13 spans, mostly one.
func Followings(follows []storage.Edge) Token {
	if len(follows) <= fewMarks {
		return storage.Each(follows, markOf)
	}
	follows = slices.Clone(follows)
	slices.SortFunc(follows, func(a, b storage.Edge) int { return int(b.UpdateTime - a.UpdateTime) })
	newest := follows[0].UpdateTime
	var t Token
	for _, e := range follows {
		if newest-e.UpdateTime > spanAge {
			break
		}
		if n := len(t); n > 0 && t[n-1].Since-e.UpdateTime <= spanGap {
			t[n-1].Since = e.UpdateTime
			continue
		}
		t = append(t, Mark{Side: storage.Forward, Pair: storage.Pair{From: e.From}, Version: e.UpdateTime, Since: e.UpdateTime})
	}
	return t
}

// Tokens writes tokens, reads those that clients send back, and waits for their
// rows. It is safe for concurrent use.
type Tokens struct {
	// Key signs the tokens. All gateways of a store have the same key, and no other process has it.
	Key []byte

	// Store is asked whether rows have arrived. It is the store itself: a cache may not know of
	// them yet.
	Store storage.Answerer

	// MaxWait is how long a read waits. Defaults to 500 ms.
	MaxWait time.Duration

	// Arrived gets rows that have arrived, and the counts of users of whom something beside rows has changed, before a wait for them
	// ends: caches may hold older ones. Defaults to nothing.
	Arrived func(ctx context.Context, what storage.Change)

	polls *polls
}

// New completes tokens with their defaults.
func New(t Tokens) *Tokens {
	t = defaults.For(t, Tokens{MaxWait: 500 * time.Millisecond, Arrived: func(context.Context, storage.Change) {}})
	t.polls = &polls{missing: t.missing, waiting: map[*waiter]bool{}}
	return &t
}

// signatureLength is the length of a signature in bytes: HMAC-SHA-256 cut to 128 bits
// (RFC 2104 §5).
const signatureLength = 16

func (t *Tokens) sign(marks []byte) []byte {
	mac := hmac.New(sha256.New, t.Key)
	mac.Write(marks)
	return mac.Sum(nil)[:signatureLength]
}

// Text writes a token; "" for an empty one.
func (t *Tokens) Text(token Token) string {
	if len(token) == 0 {
		return ""
	}
	b := appendMarks(make([]byte, 0, 32*len(token)+signatureLength), token)
	return base64.RawURLEncoding.EncodeToString(append(b, t.sign(b)...))
}

// Parse reads tokens that are separated by commas or blanks, and merges them: of marks on
// one row the newest counts. [ErrMalformed] for text that this store has not signed, and beyond
// [MaxBytes] and [MaxMarks].
func (t *Tokens) Parse(text string) (Token, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > MaxBytes {
		return nil, ErrMalformed
	}
	newest := map[Mark]storage.Micros{} // by the mark without its version
	for _, one := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		marks, err := t.verified(one)
		if err != nil {
			return nil, err
		}
		for _, m := range marks {
			row := m
			row.Version = 0
			newest[row] = max(newest[row], m.Version)
		}
	}
	token := make(Token, 0, len(newest))
	for m, version := range newest {
		m.Version = version
		token = append(token, m)
	}
	slices.SortFunc(token, func(a, b Mark) int {
		return cmp.Or(cmp.Compare(a.Pair.To, b.Pair.To), cmp.Compare(a.Pair.From, b.Pair.From), cmp.Compare(a.Side, b.Side), cmp.Compare(a.Pair.Item, b.Pair.Item), cmp.Compare(a.Since, b.Since))
	})
	token = token.joined()
	if n := token.spans(); n > maxSpans || len(token) > MaxMarks {
		return nil, ErrMalformed
	}
	return token, nil
}

// joined merges overlapping spans of one user, so that a client that collects tokens names no row
// twice. The token is sorted: spans come first, those of one user side by side.
func (t Token) joined() Token {
	joined := t[:0]
	for _, m := range t {
		if n := len(joined); n > 0 && m.isSpan() && joined[n-1].Pair == m.Pair && m.Since <= joined[n-1].Version {
			joined[n-1].Version = max(joined[n-1].Version, m.Version)
			continue
		}
		joined = append(joined, m)
	}
	return joined
}

// spans counts the marks that stand for many writes.
func (t Token) spans() (n int) {
	for _, m := range t {
		if m.isSpan() {
			n++
		}
	}
	return n
}

// verified reads one token that this store has signed.
func (t *Tokens) verified(text string) (Token, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) <= signatureLength {
		return nil, ErrMalformed
	}
	marks, signature := b[:len(b)-signatureLength], b[len(b)-signatureLength:]
	if !hmac.Equal(signature, t.sign(marks)) {
		return nil, ErrMalformed
	}
	return parseMarks(marks)
}

// Cost is what looking up the rows of a token costs a query: 1 for each single write, and 100 for
// each mark of many writes.
func (t Token) Cost() uint64 { return uint64(len(t) + 99*t.spans()) }

// Request is the consistency state of one request: the token that it came
// with, its own writes, and whether anything in its answer is stale.
type Request struct {
	mu      sync.Mutex
	written Token
	stale   bool
}

type requestKey struct{}

// Attach gives a request its state.
func Attach(ctx context.Context) (context.Context, *Request) {
	r := &Request{}
	return context.WithValue(ctx, requestKey{}, r), r
}

// For returns the request's state; outside of a request, a state that is not used.
func For(ctx context.Context) *Request {
	if r, ok := ctx.Value(requestKey{}).(*Request); ok {
		return r
	}
	return &Request{}
}

// Wrote adds marks to the request's writes.
func (r *Request) Wrote(t Token) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written = append(r.written, t...)
}

// Stale notes that something in the answer may be older than a write.
func (r *Request) Stale() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stale = true
}

// Result returns the marks of everything that was written, none if nothing was, and whether the
// answer is stale.
func (r *Request) Result() (written Token, stale bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.written, r.stale
}
