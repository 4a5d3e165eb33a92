package cursor_test

import (
	"encoding/base64"
	"math"
	"strings"
	"testing"

	"kith/graph/apierr"
	"kith/graph/cursor"
	"kith/internal/check"
)

var (
	sealer = cursor.NewSealer([]byte("secret"))
	open   *cursor.Sealer // writes open cursors
)

func TestRoundTrip(t *testing.T) {
	for _, want := range [][2]int64{{0, 0}, {1, 2}, {math.MaxInt64, 1_790_000_000_000_000}} {
		for _, text := range []string{open.Encode(cursor.Friends, want[0], want[1]), sealer.Encode(cursor.Friends, want[0], want[1])} {
			var a, b int64
			err := sealer.Decode(cursor.Friends, text, &a, &b)
			check.That(t, err == nil && a == want[0] && b == want[1], "%v came back as %d, %d, %v", want, a, b, err)
		}
	}
}

// A sealed cursor reveals nothing, not even by its length. It only shows whether two positions are the same.
func TestSealedPositions(t *testing.T) {
	most := make([]int64, 7)
	for i := range most {
		most[i] = math.MaxInt64
	}
	longest := sealer.Encode(cursor.RankedSuggestions, most...)
	check.Equal(t, "bytes", len(longest), 124)
	const of = 0x7a7a7a7a // "zzzz"
	a, b := sealer.Encode(cursor.People, 1, 1), sealer.Encode(cursor.People, of, of)
	check.That(t, a != b && len(a) == len(b) && len(a) == len(longest), "%s and %s", a, b)
	check.Equal(t, "the same position on another gateway", cursor.NewSealer([]byte("secret")).Encode(cursor.People, 1, 1), a)
	raw, err := base64.RawURLEncoding.DecodeString(b)
	check.That(t, err == nil && !strings.Contains(string(raw), "zz"), "%q shows its position: %v", raw, err)
}

func TestOtherTextsAreRefused(t *testing.T) {
	good := open.Encode(cursor.Friends, 300, 5)
	for name, text := range map[string]string{
		"empty":             "",
		"a word":            "abc",
		"not base64":        "§$%",
		"padded":            good + "=",
		"with a line end":   good[:2] + "\n" + good[2:],
		"of another field":  open.Encode(cursor.Followers, 300, 5),
		"too short":         open.Encode(cursor.Friends, 300),
		"too long":          open.Encode(cursor.Friends, 300, 5, 1),
		"a longer spelling": base64.RawURLEncoding.EncodeToString([]byte{byte(cursor.Friends), 0xac, 0x02, 0x85, 0x00}),
		"beyond 63 bits":    base64.RawURLEncoding.EncodeToString(append([]byte{byte(cursor.Friends)}, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01"...)),
		"long":              strings.Repeat("A", 10_000),
		"of another store":  cursor.NewSealer([]byte("another")).Encode(cursor.Friends, 300, 5),
		"sealed for others": sealer.Encode(cursor.Followers, 300, 5),
		"relabelled":        "g" + sealer.Encode(cursor.Followings, 300, 5)[1:],
		"cut":               sealer.Encode(cursor.Friends, 300, 5)[:120],
		"lengthened":        sealer.Encode(cursor.Friends, 300, 5) + "AAAA",
		"changed":           sealer.Encode(cursor.Friends, 300, 5)[:123] + "_",
		"nothing but a lid": base64.RawURLEncoding.EncodeToString([]byte{byte(cursor.Friends) | 0x80}),
	} {
		var a, b int64
		err := sealer.Decode(cursor.Friends, text, &a, &b)
		known, ok := apierr.Of(err)
		want := apierr.CursorMalformed
		if name == "of another field" || name == "sealed for others" || name == "relabelled" {
			want = apierr.CursorForeign
		}
		check.That(t, ok && known.Code == apierr.CodeBadInput && known.Reason == want && len(known.Message) <= 200, "%s: %v", name, err)
	}
}
