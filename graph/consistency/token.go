// Package consistency lets clients read their own writes, even if these are
// replicated with a delay.
//
// A write returns a token: the versions that the inverse rows of its edges will
// have. A read with the token waits, for a bounded time, until the rows have
// these versions. Tokens are signed, so that a client cannot learn from a wait what others have
// done. Several tokens that are sent together are merged.
package consistency

import (
	"encoding/binary"
	"errors"
	"slices"

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
