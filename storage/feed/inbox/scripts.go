package inbox

import (
	"embed"
	"encoding/binary"
	"errors"
	"strconv"

	"kith/storage"
	"kith/storage/epoch"
)

// What Redis does atomically.
var (
	//go:embed lua
	lua embed.FS

	look     = epoch.Script(lua, "look")
	lead     = epoch.Script(lua, "lead")
	begin    = epoch.Script(lua, "begin")
	register = epoch.Script(lua, "register")
	leave    = epoch.Script(lua, "leave")
	fill     = epoch.Script(lua, "fill")
	deliver  = epoch.Script(lua, "deliver")
	read     = epoch.Script(lua, "read")
)

// The keys that a script changes are in one slot of a cluster, which the part in braces determines.

func (b *Boxes) stateKey() string { return b.Clock.Prefix + ":inbox:{state}" }
func (b *Boxes) hotKey() string   { return b.Clock.Prefix + ":inbox:{state}:hot" }
func (b *Boxes) leaseKey() string { return b.Clock.Prefix + ":inbox:{state}:lease" }

func (b *Boxes) boxKey(user storage.UserID) string {
	return b.Clock.Prefix + ":inbox:{" + user.String() + "}"
}

func (b *Boxes) lockKey(user storage.UserID) string { return b.boxKey(user) + ":building" }

// fansKey is a hash: of each user whose inbox the author's posts go to, the number of the build.
func (b *Boxes) fansKey(author storage.UserID) string {
	return b.fansPrefix() + author.String()
}

func (b *Boxes) fansPrefix() string { return b.Clock.Prefix + ":inbox:fans:" }

// memberBytes: of posts of the same time, Redis returns the one with the greatest member first, as pages do by number.
const memberBytes = 16

func memberOf(id storage.PostID) string {
	var member [memberBytes]byte
	binary.BigEndian.PutUint64(member[:8], uint64(id.Number))
	binary.BigEndian.PutUint64(member[8:], uint64(id.Author))
	return string(member[:])
}

func parsePost(member, time string) (p storage.PostAt, err error) {
	if len(member) != memberBytes {
		return p, errors.New("an inbox has what is no post")
	}
	at, err := strconv.ParseInt(time, 10, 64)
	p.CreatedAt = storage.Micros(at)
	p.Number = int64(binary.BigEndian.Uint64([]byte(member[:8])))
	p.Author = storage.UserID(binary.BigEndian.Uint64([]byte(member[8:])))
	return p, err
}

// digest is the sum of the followings who are not hot, each spread over 64 bits: the same in any order. An author who was
// hot counts otherwise than before: inboxes from before lack the posts of that time. A user who finds two lists of
// followings with the same digest harms only its own feed.
func (s *State) digest(followings []storage.UserID) string {
	var sum uint64
	for _, id := range followings {
		if !s.isHot(id) {
			sum += spread(uint64(id) + s.turns[id]*0xD1B54A32D192ED03) // any odd number
		}
	}
	return strconv.FormatUint(sum, 36)
}

// spread is the finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
func spread(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
