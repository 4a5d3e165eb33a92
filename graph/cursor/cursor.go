// Package cursor encodes positions in lists for clients: a kind, which
// binds a cursor to its field, and some numbers. To clients cursors are opaque. Cursors of
// shown users are not encrypted, because they reveal no more than the answer; for other
// positions see [Sealer].
package cursor

import (
	"encoding/base64"
	"encoding/binary"
)

// A Kind is the field that a cursor belongs to. Clients keep the
// values in their cursors: never reuse one.
type Kind byte

const (
	Followings       Kind = 1
	Followers        Kind = 2
	Friends          Kind = 3
	CommonFollowings Kind = 4
	CommonFollowers  Kind = 5
	FollowersYouKnow Kind = 6
	Suggestions      Kind = 7 // before there were orders

	NotFollowingBack       Kind = 8
	NotFollowedBack        Kind = 9
	RecentCommonFollowings Kind = 10
	RecentCommonFollowers  Kind = 11
	People                 Kind = 12
	Search                 Kind = 13
	Blocked                Kind = 14
	FriendRequests         Kind = 15
	RankedSuggestions      Kind = 16
	Posts                  Kind = 17
	LatestPosts            Kind = 18
	Comments               Kind = 19
	Feed                   Kind = 20
	Favorites              Kind = 21
	FavoritedBy            Kind = 22
)

// Encode writes a cursor. The numbers must not be negative.
func Encode(kind Kind, numbers ...int64) string {
	var raw, text [64]byte // room for all but the longest cursors, off the heap: pages are full of cursors
	b := append(raw[:0], byte(kind))
	for _, n := range numbers {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return string(base64.RawURLEncoding.AppendEncode(text[:0], b))
}

// decode reads the numbers of an open cursor. b are the bytes behind its kind.
func decode(kind Kind, text string, b []byte, numbers []*int64) error {
	if !readNumbers(b, numbers) {
		return notCursor(text)
	}
	values := make([]int64, len(numbers))
	for i, n := range numbers {
		values[i] = *n
	}
	if Encode(kind, values...) != text { // it has more bytes, or is written in another way
		return notCursor(text)
	}
	return nil
}

// readNumbers reads numbers from the front of b, and reports whether all are there.
func readNumbers(b []byte, numbers []*int64) bool {
	for _, n := range numbers {
		v, size := binary.Uvarint(b)
		if size <= 0 || v > 1<<63-1 {
			return false
		}
		*n = int64(v)
		b = b[size:]
	}
	return true
}

// Pack turns a text of at most 7 × n bytes into n numbers for a cursor. The texts are
// handles: they have no zero bytes.
func Pack(text string, n int) []int64 {
	numbers := make([]int64, n)
	for i := range len(text) {
		numbers[i/7] |= int64(text[i]) << (8 * (i % 7))
	}
	return numbers
}

// Unpack turns the numbers of [Pack] back into the text.
func Unpack(numbers []int64) string {
	var text []byte
	for _, n := range numbers {
		for ; n > 0; n >>= 8 {
			text = append(text, byte(n))
		}
	}
	return string(text)
}
