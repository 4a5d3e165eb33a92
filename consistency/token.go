// Package consistency lets a client read what it has written, also where that is
// replicated with a delay.
//
// A write returns a token: the versions that the inverse rows of its edges will
// have. A read that brings the token waits, for a bounded time, until they have
// them. Tokens are opaque to clients and can be merged by sending several.
package consistency

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"kith/storage"
)

// A Mark is one write: the forward row, and the time that its inverse row has at least.
type Mark struct {
	Side    storage.Side // [storage.Forward] or [storage.Requests]
	Pair    storage.Pair
	Version storage.Micros
}

// A Token is marks in any order.
type Token []Mark

// The first number of a mark says which pair of tables it is about.
const (
	pairFollowing = 1 // following, follower
	pairRequests  = 2 // friend_request, friend_request_inbox
)

// MaxMarks is how many marks a read may bring: one followMany and some more.
const MaxMarks = 1000

// ErrMalformed tells that a text is no token.
var ErrMalformed = errors.New("not a consistency token")

// String spells a token.
func (t Token) String() string {
	if len(t) == 0 {
		return ""
	}
	b := make([]byte, 0, len(t)*16)
	for _, m := range t {
		if m.Side.Truth() == storage.Requests {
			b = append(b, pairRequests)
		} else {
			b = append(b, pairFollowing)
		}
		for _, n := range []int64{int64(m.Pair.From), int64(m.Pair.To), int64(m.Version)} {
			b = binary.AppendUvarint(b, uint64(n))
		}
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// Parse reads tokens that are separated by commas or blanks, and merges them: of
// marks on one row the newest counts.
func Parse(text string) (Token, error) {
	if text == "" {
		return nil, nil
	}
	type row struct {
		side storage.Side
		pair storage.Pair
	}
	newest := map[row]storage.Micros{}
	for _, one := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		b, err := base64.RawURLEncoding.Strict().DecodeString(one)
		if err != nil {
			return nil, ErrMalformed
		}
		for len(b) > 0 {
			var m Mark
			if m, b, err = parseMark(b); err != nil {
				return nil, err
			}
			r := row{m.Side, m.Pair}
			newest[r] = max(newest[r], m.Version)
			if len(newest) > MaxMarks {
				return nil, ErrMalformed
			}
		}
	}
	t := make(Token, 0, len(newest))
	for r, v := range newest {
		t = append(t, Mark{r.side, r.pair, v})
	}
	slices.SortFunc(t, func(a, b Mark) int {
		return cmp.Or(cmp.Compare(a.Pair.To, b.Pair.To), cmp.Compare(a.Pair.From, b.Pair.From), cmp.Compare(a.Side, b.Side))
	})
	return t, nil
}

func parseMark(b []byte) (Mark, []byte, error) {
	m := Mark{Side: storage.Forward}
	switch b[0] {
	case pairFollowing:
	case pairRequests:
		m.Side = storage.Requests
	default:
		return Mark{}, nil, ErrMalformed
	}
	b = b[1:]
	var numbers [3]int64
	for i := range numbers {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > 1<<63-1 {
			return Mark{}, nil, ErrMalformed
		}
		numbers[i] = int64(n)
		b = b[size:]
	}
	if numbers[0] == 0 || numbers[1] == 0 {
		return Mark{}, nil, ErrMalformed
	}
	m.Pair = storage.Pair{From: storage.UserID(numbers[0]), To: storage.UserID(numbers[1])}
	m.Version = storage.Micros(numbers[2])
	return m, b, nil
}
