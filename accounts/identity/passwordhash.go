package identity

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
)

// Lengths in bytes of new hashes and salts (RFC 9106 §3.1).
const (
	saltLength = 16
	keyLength  = 32
)

// cost is what hashing one password takes.
type cost struct {
	memory  uint32 // in KiB
	time    uint32 // passes
	threads uint8
}

// The most that a stored hash may ask for. Without a bound, one damaged row could take the server's
// memory.
var maxCost = cost{memory: 1 << 20, time: 64, threads: 16}

// passwordHash is a hash in parts. Its text is
//
//	$argon2id$v=19$m=19456,t=2,p=1$<salt>$<key>
//
// as https://github.com/P-H-C/phc-string-format says.
type passwordHash struct {
	cost cost
	salt []byte
	key  []byte
}

var phcBase64 = base64.RawStdEncoding.Strict()

func (h passwordHash) String() string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version,
		h.cost.memory, h.cost.time, h.cost.threads, phcBase64.EncodeToString(h.salt), phcBase64.EncodeToString(h.key))
}

// isOf reports whether the hash has the cost c.
func (h passwordHash) isOf(c cost) bool {
	return h.cost == c && len(h.salt) == saltLength && len(h.key) == keyLength
}

// errHash does not repeat the hash, which must not get into a log.
var errHash = errors.New("a stored password hash cannot be read")

func parseHash(text string) (passwordHash, error) {
	var h passwordHash
	var version int
	var rest string
	_, err := fmt.Sscanf(text, "$argon2id$v=%d$m=%d,t=%d,p=%d$%s", &version, &h.cost.memory, &h.cost.time, &h.cost.threads, &rest)
	salt, key, _ := strings.Cut(rest, "$")
	var errSalt, errKey error
	h.salt, errSalt = phcBase64.DecodeString(salt)
	h.key, errKey = phcBase64.DecodeString(key)
	switch {
	case errors.Join(err, errSalt, errKey) != nil, h.String() != text, // such as a number with a sign
		!between(len(h.salt), 8, 64), !between(len(h.key), 16, 64), !h.cost.isWithin(maxCost):
		return passwordHash{}, errHash
	}
	return h, nil
}

func (c cost) isWithin(most cost) bool {
	return min(c.memory, c.time, uint32(c.threads)) > 0 && c.memory <= most.memory && c.time <= most.time && c.threads <= most.threads
}

func between(n, least, most int) bool { return n >= least && n <= most }
