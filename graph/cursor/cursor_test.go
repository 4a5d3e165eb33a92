package cursor_test

import (
	"encoding/base64"
	"math"
	"strings"
	"testing"

	"kith/graph/apierr"
	"kith/graph/cursor"
)

func TestRoundTrip(t *testing.T) {
	for _, want := range [][2]int64{{0, 0}, {1, 2}, {math.MaxInt64, 1_790_000_000_000_000}} {
		var a, b int64
		if err := cursor.Decode(cursor.Friends, cursor.Encode(cursor.Friends, want[0], want[1]), &a, &b); err != nil || a != want[0] || b != want[1] {
			t.Errorf("%v came back as %d, %d, %v", want, a, b, err)
		}
	}
}

func TestOtherTextsAreRefused(t *testing.T) {
	good := cursor.Encode(cursor.Friends, 300, 5)
	for name, text := range map[string]string{
		"empty":             "",
		"not base64":        "§$%",
		"padded":            good + "=",
		"with a line end":   good[:2] + "\n" + good[2:],
		"of another field":  cursor.Encode(cursor.Followers, 300, 5),
		"too short":         cursor.Encode(cursor.Friends, 300),
		"too long":          cursor.Encode(cursor.Friends, 300, 5, 1),
		"a longer spelling": base64.RawURLEncoding.EncodeToString([]byte{byte(cursor.Friends), 0xac, 0x02, 0x85, 0x00}),
		"beyond 63 bits":    base64.RawURLEncoding.EncodeToString(append([]byte{byte(cursor.Friends)}, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01"...)),
		"long":              strings.Repeat("A", 10_000),
	} {
		var a, b int64
		err := cursor.Decode(cursor.Friends, text, &a, &b)
		if known, ok := apierr.Of(err); !ok || known.Code != apierr.CodeBadInput || len(known.Message) > 200 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
