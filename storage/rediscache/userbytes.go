package rediscache

import (
	"encoding/binary"
	"errors"
	"strconv"

	"kith/storage"
)

// A user is a hash:
//
//	v  the version of user_counts, as decimal text
//	p  the profile, see appendProfile; absent while only the version is known
//	c  the counts: following, follower, friend, posts, favorites, favorited as varints
//	l  the token of who is filling it
//
// p, c and v are of one moment. A user that does not exist is kept, too, with version 0.

var errMalformed = errors.New("malformed value in Redis")

// Flags of a profile. Visibilities take two bits each.
const (
	flagExists = 1 << iota
	flagCounted
	flagUndiscoverable

	followingsShift = 3
	followersShift  = 5
)

// appendProfile appends a byte of flags, the times as varints, and each text preceded by its
// length.
func appendProfile(to []byte, p storage.Profile) []byte {
	var flags byte
	for flag, set := range map[byte]bool{flagExists: p.Exists, flagCounted: p.Counted, flagUndiscoverable: p.User.Undiscoverable} {
		if set {
			flags |= flag
		}
	}
	flags |= byte(p.User.FollowingsVisibility)<<followingsShift | byte(p.User.FollowersVisibility)<<followersShift
	to = append(to, flags)
	if !p.Exists {
		return to
	}
	to = binary.AppendVarint(to, int64(p.User.CreatedAt))
	to = binary.AppendVarint(to, int64(p.User.UpdatedAt))
	for _, text := range [...]string{p.User.Handle, p.User.Name, p.User.Bio, p.User.AvatarURL} {
		to = appendText(to, text)
	}
	return to
}

func appendText(to []byte, text string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

func appendCounts(to []byte, c storage.Counts) []byte {
	to = binary.AppendVarint(to, c.Following)
	to = binary.AppendVarint(to, c.Follower)
	to = binary.AppendVarint(to, c.Friend)
	to = binary.AppendVarint(to, c.Posts)
	to = binary.AppendVarint(to, c.Favorites)
	return binary.AppendVarint(to, c.Favorited)
}

// parseUser reads the fields of a user's hash.
func parseUser(id storage.UserID, profile, version, counts string) (storage.Profile, error) {
	if profile == "" {
		return storage.Profile{}, errMalformed
	}
	r := decoder{left: profile}
	flags := r.byte()
	p := storage.Profile{Exists: flags&flagExists != 0, Counted: flags&flagCounted != 0}
	if p.Exists {
		p.User = storage.User{
			ID:                   id,
			CreatedAt:            storage.Micros(r.varint()),
			UpdatedAt:            storage.Micros(r.varint()),
			Handle:               r.text(),
			Name:                 r.text(),
			Bio:                  r.text(),
			AvatarURL:            r.text(),
			FollowingsVisibility: storage.Visibility(flags >> followingsShift & 3),
			FollowersVisibility:  storage.Visibility(flags >> followersShift & 3),
			Undiscoverable:       flags&flagUndiscoverable != 0,
		}
	}
	if p.Counted {
		c := decoder{left: counts}
		p.Counts = storage.Counts{Following: c.varint(), Follower: c.varint(), Friend: c.varint(), Posts: c.varint(), Favorites: c.varint(), Favorited: c.varint()}
		var err error
		if p.Counts.Version, err = strconv.ParseInt(version, 10, 64); err != nil || c.end() != nil {
			return storage.Profile{}, errMalformed
		}
	}
	return p, r.end()
}

// decoder reads a binary form. If bytes are missing, everything after that is 0 and end fails.
type decoder struct {
	left   string
	broken bool
}

func (r *decoder) take(n uint64) string {
	if n > uint64(len(r.left)) {
		r.left, r.broken = "", true
		return ""
	}
	taken := r.left[:n]
	r.left = r.left[n:]
	return taken
}

func (r *decoder) byte() byte {
	if b := r.take(1); b != "" {
		return b[0]
	}
	return 0
}

func (r *decoder) uvarint() uint64 {
	var value uint64
	for shift := 0; shift < 64; shift += 7 {
		b := r.byte()
		value |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return value
		}
	}
	r.broken = true
	return 0
}

func (r *decoder) varint() int64 {
	u := r.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

func (r *decoder) text() string { return r.take(r.uvarint()) }

func (r *decoder) end() error {
	if r.broken || r.left != "" {
		return errMalformed
	}
	return nil
}
