package consistency

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"
	"sync"
	"time"

	"kith/graph/defaults"
	"kith/storage"
)

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
	made := &t
	made.polls = &polls{missing: made.missing, waiting: map[*waiter]bool{}}
	return made
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
