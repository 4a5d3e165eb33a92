// Package cursor encodes positions in lists for clients: a kind, which
// binds a cursor to its field, and some numbers. To clients cursors are opaque. Cursors of
// shown users are not encrypted, because they reveal no more than the answer; for other
// positions see [Sealer].
package cursor

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"kith/graph/apierr"
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
	FollowersYouKnow Kind = 6 // by id, before those came first whom the viewer knows best
	Suggestions      Kind = 7 // before there were orders

	NotFollowingBack       Kind = 8
	NotFollowedBack        Kind = 9
	RecentCommonFollowings Kind = 10
	RecentCommonFollowers  Kind = 11
	People                 Kind = 12
	Search                 Kind = 13 // by handle, before names were searched
	Blocked                Kind = 14
	Requests               Kind = 15
	RankedSuggestions      Kind = 16
	Posts                  Kind = 17
	LatestPosts            Kind = 18
	Comments               Kind = 19
	Feed                   Kind = 20
	Favorites              Kind = 21
	FavoritedBy            Kind = 22
	Selected               Kind = 23
	RankedSearch           Kind = 24
	Dismissed              Kind = 25
	Edges                  Kind = 30
	Moderation             Kind = 26
	BestSuggestions        Kind = 32
	Similar                Kind = 33
	FollowRequests         Kind = 27 // before the list of requests had a kind
	Lists                  Kind = 34
	Activity               Kind = 35
)

// A Sealer encrypts positions of users who were not shown: an answer that ends at its budget continues
// behind a user who may be hidden, and whose id an open cursor would reveal.
// Only the gateways of the store can read a sealed cursor. The same position gives the
// same cursor.
type Sealer struct {
	aead     cipher.AEAD
	nonceKey []byte
}

// sealed marks the kind of a sealed cursor.
const sealed Kind = 0x80

// Lengths in bytes. Plain texts are padded to one length, because their lengths would reveal something
// of the position.
const (
	plainLength = 64 // at least the bytes of every kind's numbers
	nonceLength = 12
	tagLength   = 16
	sealLength  = 1 + nonceLength + plainLength + tagLength
)

// NewSealer makes a sealer from a secret that all gateways of a store have. It panics if the secret
// is empty.
func NewSealer(secret []byte) *Sealer {
	if len(secret) == 0 {
		panic("cursor: no secret")
	}
	derive := func(purpose string) []byte {
		key, err := hkdf.Key(sha256.New, secret, nil, purpose, sha256.Size)
		if err != nil {
			panic(err) // only if the length is too great, which it is not
		}
		return key
	}
	block, err := aes.NewCipher(derive("cursor seal"))
	if err != nil {
		panic(err) // only if AES does not take a key of this length
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // only if GCM does not take a block of this size
	}
	return &Sealer{aead: aead, nonceKey: derive("cursor nonce")}
}

// Encode writes a cursor of a position, open without a sealer: nil, and otherwise sealed. The numbers must not be negative.
func (s *Sealer) Encode(kind Kind, numbers ...int64) string {
	if s != nil {
		return s.seal(kind, numbers)
	}
	var raw, text [64]byte // room for all but the longest cursors, off the heap: pages are full of cursors
	b := append(raw[:0], byte(kind))
	for _, n := range numbers {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return string(base64.RawURLEncoding.AppendEncode(text[:0], b))
}

// seal is Encode for a position at which nobody was shown. AES-GCM must not use one nonce for two
// texts, so the nonce is a MAC of the text.
func (s *Sealer) seal(kind Kind, numbers []int64) string {
	plain := make([]byte, 0, plainLength)
	for _, n := range numbers {
		plain = binary.AppendUvarint(plain, uint64(n))
	}
	plain = append(plain, make([]byte, plainLength-len(plain))...)
	head := byte(kind | sealed)
	mac := hmac.New(sha256.New, s.nonceKey)
	mac.Write(plain)
	mac.Write([]byte{head})
	nonce := mac.Sum(nil)[:nonceLength]
	text := append(make([]byte, 0, sealLength), head)
	text = append(text, nonce...)
	text = s.aead.Seal(text, nonce, plain, []byte{head})
	return base64.RawURLEncoding.EncodeToString(text)
}

// Begin reads the first numbers of a cursor of a kind, as Decode does. Those behind them may be wrong.
func (s *Sealer) Begin(kind Kind, text string, numbers ...*int64) error {
	b, _, err := s.open(kind, text)
	if err == nil && !readNumbers(b, numbers) {
		err = notCursor(text)
	}
	return err
}

// Decode reads the numbers of a cursor of a kind, open or sealed, into the given variables.
// Anything that Encode has not made is refused with BAD_USER_INPUT.
func (s *Sealer) Decode(kind Kind, text string, numbers ...*int64) error {
	b, isOpen, err := s.open(kind, text)
	switch {
	case err != nil:
		return err
	case isOpen:
		return decode(kind, text, b, numbers)
	case !readNumbers(b, numbers): // the bytes behind the numbers are padding
		return notCursor(text)
	}
	return nil
}

// open returns the bytes behind the kind.
func (s *Sealer) open(kind Kind, text string) (b []byte, isOpen bool, err error) {
	b, err = base64.RawURLEncoding.Strict().DecodeString(text)
	switch {
	case err != nil || len(b) == 0:
		return nil, false, notCursor(text)
	case Kind(b[0])&^sealed != kind:
		return nil, false, apierr.CursorForeign.Error("the cursor %q belongs to another field", apierr.Shortened(text, maxShown))
	case Kind(b[0]) == kind:
		return b[1:], true, nil
	case len(b) != sealLength:
		return nil, false, notCursor(text)
	}
	if b, err = s.aead.Open(nil, b[1:1+nonceLength], b[1+nonceLength:], b[:1]); err != nil {
		return nil, false, notCursor(text)
	}
	return b, false, nil
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
	if (*Sealer)(nil).Encode(kind, values...) != text { // it has more bytes, or is written in another way
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

// maxShown is how many bytes of an invalid cursor an error shows.
const maxShown = 60

func notCursor(text string) error {
	return apierr.CursorMalformed.Error("%q is not a cursor", apierr.Shortened(text, maxShown))
}
