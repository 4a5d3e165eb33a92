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
// values in their cursors: never reuse one. 6, 7, 13 and 27 have been used.
type Kind byte

const (
	Followings       Kind = 1
	Followers        Kind = 2
	Friends          Kind = 3
	CommonFollowings Kind = 4
	CommonFollowers  Kind = 5

	NotFollowingBack       Kind = 8
	NotFollowedBack        Kind = 9
	RecentCommonFollowings Kind = 10
	RecentCommonFollowers  Kind = 11
	People                 Kind = 12
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
	Lists                  Kind = 34
	Activity               Kind = 35 // the last
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
	_, err := s.read(kind, text, numbers)
	return err
}

// Decode reads the numbers of a cursor of a kind, open or sealed, into the given variables.
// Anything that Encode has not made is refused with BAD_USER_INPUT.
func (s *Sealer) Decode(kind Kind, text string, numbers ...*int64) error {
	isOpen, err := s.read(kind, text, numbers)
	if err != nil || !isOpen { // the bytes behind the numbers of a sealed one are padding
		return err
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

// read reads numbers from the front of a cursor.
func (s *Sealer) read(kind Kind, text string, numbers []*int64) (isOpen bool, err error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) == 0 {
		return false, notCursor(text)
	}
	isOpen = Kind(b[0]) == kind
	switch of := Kind(b[0]) &^ sealed; {
	case isOpen:
		b = b[1:]
	case of == 0 || of > Activity:
		return false, notCursor(text)
	case of != kind:
		return false, apierr.CursorForeign.Error("the cursor %q belongs to another field", apierr.Shortened(text, maxShown))
	case len(b) != sealLength:
		return false, notCursor(text)
	default:
		if b, err = s.aead.Open(nil, b[1:1+nonceLength], b[1+nonceLength:], b[:1]); err != nil {
			return false, notCursor(text)
		}
	}
	for _, n := range numbers {
		v, size := binary.Uvarint(b)
		if size <= 0 || v > 1<<63-1 {
			return false, notCursor(text)
		}
		*n, b = int64(v), b[size:]
	}
	return isOpen, nil
}

// maxShown is how many bytes of an invalid cursor an error shows.
const maxShown = 60

func notCursor(text string) error {
	return apierr.CursorMalformed.Error("%q is not a cursor", apierr.Shortened(text, maxShown))
}
