package inbox

import (
	"embed"
	"encoding/binary"
	"strconv"

	"kith/storage"
	"kith/storage/epoch"
)

// What Redis does atomically.
var (
	//go:embed lua
	lua embed.FS

	round = epoch.Script(lua, "round")
	step  = epoch.Script(lua, "step")
	begin = epoch.Script(lua, "begin")
	add   = epoch.Script(lua, "add")
	read  = epoch.Script(lua, "read")
)

// The keys that a script changes are in one slot of a cluster, which the part in braces determines.

func (b *Boxes) stateKey() string { return b.Clock.Prefix + ":inbox:{state}" }
func (b *Boxes) hotKey() string   { return b.Clock.Prefix + ":inbox:{state}:hot" }
func (b *Boxes) leaseKey() string { return b.Clock.Prefix + ":inbox:{state}:lease" }

// boxKey is a sorted set: an inbox's posts by time and, before them, its head: number, build, floor and digest, - while it is built.
func (b *Boxes) boxKey(user storage.UserID) string {
	return b.Clock.Prefix + ":inbox:{" + user.String() + "}"
}

// fansKey is a hash with users and builds as fields. Its values are empty: sets take more room in Redis 7.0.
func (b *Boxes) fansKey(author storage.UserID) string { return b.fansPrefix() + author.String() }
func (b *Boxes) fansPrefix() string                   { return b.Clock.Prefix + ":inbox:fans:" }

// numberOf is a number that Redis has made, or a script has taken for one.
func numberOf(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// build is what the head of an inbox begins with.
func (s *State) build(number int64) string {
	return strconv.FormatInt(s.number, 10) + " " + strconv.FormatInt(number, 10)
}

// pair is a fan, or the number and author of a post: of posts of the same time, Redis returns the greatest first, as pages do.
func pair(a, b int64) string {
	var both [16]byte
	binary.BigEndian.PutUint64(both[:8], uint64(a))
	binary.BigEndian.PutUint64(both[8:], uint64(b))
	return string(both[:])
}

// unpair is 0, 0 for what is no pair.
func unpair(s string) (a, b int64) {
	if len(s) != 16 {
		return 0, 0
	}
	return int64(binary.BigEndian.Uint64([]byte(s[:8]))), int64(binary.BigEndian.Uint64([]byte(s[8:])))
}

// digest stands for followings, in any order. An author counts otherwise after each turn: inboxes from before it was hot lack the
// posts of that time. A user who finds two lists of followings with the same digest harms only its own feed.
func (s *State) digest(followings []storage.UserID) string {
	var sum uint64
	for _, id := range followings {
		sum += storage.Edge{From: id, To: storage.UserID(s.turns[id]), UpdateTime: storage.Micros(s.number)}.Mix()
	}
	return strconv.FormatUint(sum, 36)
}
