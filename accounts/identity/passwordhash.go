package identity

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
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
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != "v="+strconv.Itoa(argon2.Version) {
		return passwordHash{}, errHash
	}
	var h passwordHash
	var ok bool
	if h.cost, ok = parseCost(parts[3]); !ok {
		return passwordHash{}, errHash
	}
	var errSalt, errKey error
	h.salt, errSalt = phcBase64.DecodeString(parts[4])
	h.key, errKey = phcBase64.DecodeString(parts[5])
	if errSalt != nil || errKey != nil || !between(len(h.salt), 8, 64) || !between(len(h.key), 16, 64) {
		return passwordHash{}, errHash
	}
	return h, nil
}

func parseCost(text string) (cost, bool) {
	parts := strings.Split(text, ",")
	if len(parts) != 3 {
		return cost{}, false
	}
	memory, okMemory := parameter(parts[0], "m=", maxCost.memory)
	time, okTime := parameter(parts[1], "t=", maxCost.time)
	threads, okThreads := parameter(parts[2], "p=", uint32(maxCost.threads))
	return cost{memory, time, uint8(threads)}, okMemory && okTime && okThreads
}

func parameter(text, name string, most uint32) (uint32, bool) {
	digits, ok := strings.CutPrefix(text, name)
	n, err := strconv.ParseUint(digits, 10, 32)
	return uint32(n), ok && err == nil && n >= 1 && n <= uint64(most)
}

func between(n, least, most int) bool { return n >= least && n <= most }
