package wire

import (
	"encoding/binary"
	"errors"

	"kith/storage"
)

// ErrMalformed: the bytes are not of the expected form, or not complete.
var ErrMalformed = errors.New("malformed bytes")

// Flags of a profile. Visibilities take two bits each.
const (
	flagExists = 1 << iota
	flagCounted
	flagUndiscoverable

	followingsShift = 3
	followersShift  = 5
	flagLocked      = 1 << 7
)

// AppendProfile appends a byte of flags, the times as varints, each text preceded by its
// length and, as the rest, the attributes.
func AppendProfile(to []byte, p storage.Profile) []byte {
	var flags byte
	if p.Exists {
		flags |= flagExists
	}
	if p.Counted {
		flags |= flagCounted
	}
	if p.User.Undiscoverable {
		flags |= flagUndiscoverable
	}
	if p.User.Locked {
		flags |= flagLocked
	}
	flags |= byte(p.User.FollowingsVisibility)<<followingsShift | byte(p.User.FollowersVisibility)<<followersShift
	to = append(to, flags)
	if !p.Exists {
		return to
	}
	to = binary.AppendVarint(to, int64(p.User.CreatedAt))
	to = binary.AppendVarint(to, int64(p.User.UpdatedAt))
	to = appendText(to, p.User.Handle)
	for _, text := range p.User.Texts() {
		to = appendText(to, *text)
	}
	return append(to, p.User.Attributes...)
}

func appendText(to []byte, text string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

// AppendCounts appends the counts of a user as varints, without their version.
func AppendCounts(to []byte, c storage.Counts) []byte {
	for _, n := range [...]int64{c.Following, c.Follower, c.Friend, c.Posts, c.Favorites, c.Favorited} {
		to = binary.AppendVarint(to, n)
	}
	return to
}

// ParseProfile reads what AppendProfile and AppendCounts have written, with the version of the counts. The texts are parts of
// the given one.
func ParseProfile(id storage.UserID, profile, counts string, version int64) (storage.Profile, error) {
	if profile == "" {
		return storage.Profile{}, ErrMalformed
	}
	r := NewDecoder(profile)
	p := r.profile(id)
	if p.Counted {
		c := NewDecoder(counts)
		if p.Counts = c.counts(version); c.End() != nil {
			return storage.Profile{}, ErrMalformed
		}
	}
	return p, r.End()
}

// AppendWhole appends a profile and its counts with their version. [ParseWhole] reads them.
func AppendWhole(to []byte, p storage.Profile) []byte {
	return AppendProfile(AppendCounts(binary.AppendVarint(to, p.Counts.Version), p.Counts), p)
}

// ParseWhole reads what AppendWhole has written. The texts are parts of the given one.
func ParseWhole(id storage.UserID, text string) (storage.Profile, error) {
	r := NewDecoder(text)
	counts := r.counts(r.varint())
	p := r.profile(id)
	if p.Counted {
		p.Counts = counts
	}
	return p, r.End()
}

// AppendUserChange writes what has changed about a user: its id, the aspects, the version before and, after its length, what is known of
// it now.
func AppendUserChange(to []byte, u storage.UserChange) []byte {
	known := storage.Profile{Counts: u.Counts, Counted: u.Counts.Version > 0, Exists: u.Profile != nil}
	if known.Exists {
		known.User = *u.Profile
	}
	to = append(binary.AppendUvarint(to, uint64(u.User)), byte(u.What))
	return appendText(binary.AppendVarint(to, u.Before), string(AppendWhole(nil, known)))
}

// UserChange reads what has changed about a user.
func (r *Decoder) UserChange() storage.UserChange {
	u := storage.UserChange{User: r.UserID(), What: storage.Aspects(r.Byte()), Before: r.varint()}
	known, err := ParseWhole(u.User, r.text())
	if err != nil {
		r.fail()
	}
	if u.Counts = known.Counts; known.Exists {
		u.Profile = &known.User
	}
	return u
}

func (r *Decoder) profile(id storage.UserID) storage.Profile {
	flags := r.Byte()
	p := storage.Profile{Exists: flags&flagExists != 0, Counted: flags&flagCounted != 0}
	if p.Exists {
		p.User = storage.User{
			ID:                   id,
			CreatedAt:            storage.Micros(r.varint()),
			UpdatedAt:            storage.Micros(r.varint()),
			Handle:               r.text(),
			FollowingsVisibility: storage.Visibility(flags >> followingsShift & 3),
			FollowersVisibility:  storage.Visibility(flags >> followersShift & 3),
			Undiscoverable:       flags&flagUndiscoverable != 0,
			Locked:               flags&flagLocked != 0,
		}
		for _, text := range p.User.Texts() {
			*text = r.text()
		}
		p.User.Attributes = r.attributes()
	}
	return p
}

func (r *Decoder) counts(version int64) storage.Counts {
	return storage.Counts{
		Following: r.varint(), Follower: r.varint(), Friend: r.varint(), Posts: r.varint(), Favorites: r.varint(), Favorited: r.varint(), Version: version,
	}
}

// Decoder takes values off the front of a text. After the first value that is missing or invalid, every value is zero, and End
// returns an error.
type Decoder struct {
	left   string
	failed bool
}

// NewDecoder begins to read.
func NewDecoder(text string) *Decoder { return &Decoder{left: text} }

// More reports whether everything could be read so far, and something is left.
func (r *Decoder) More() bool { return r.left != "" }

// End returns an error unless everything could be read and nothing is left.
func (r *Decoder) End() error {
	if r.failed || r.left != "" {
		return ErrMalformed
	}
	return nil
}

func (r *Decoder) fail() { r.failed, r.left = true, "" }

// take takes so many bytes off.
func (r *Decoder) take(n uint64) string {
	if n > uint64(len(r.left)) {
		r.fail()
		return ""
	}
	taken := r.left[:n]
	r.left = r.left[n:]
	return taken
}

// text reads a text, which its length precedes.
func (r *Decoder) text() string { return r.take(r.Uvarint()) }

// attributes reads all that is left: a JSON object, or nothing.
func (r *Decoder) attributes() storage.Attributes {
	text := r.take(uint64(len(r.left)))
	if text != "" && (text[0] != '{' || text[len(text)-1] != '}') {
		r.fail()
	}
	return storage.Attributes(text)
}

// Byte reads one byte.
func (r *Decoder) Byte() byte {
	if b := r.take(1); b != "" {
		return b[0]
	}
	return 0
}

// Uvarint reads a number that is not negative.
func (r *Decoder) Uvarint() uint64 {
	value, n := binary.Uvarint([]byte(r.left)) // not a copy: nothing writes to it
	if n <= 0 {
		r.fail()
		return 0
	}
	r.left = r.left[n:]
	return value
}

func (r *Decoder) varint() int64 {
	u := r.Uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// AppendMark appends a byte that says whether the follow is special, the time of the first one as a varint, the remark after its length and,
// as the rest, the attributes.
func AppendMark(to []byte, m storage.EdgeMark) []byte {
	special := byte(0)
	if m.Special {
		special = 1
	}
	return append(appendText(binary.AppendVarint(append(to, special), int64(m.FirstAt)), m.Remark), m.Attributes...)
}

// ParseMark reads what AppendMark has written in this process.
func ParseMark(data []byte) storage.EdgeMark {
	r := NewDecoder(string(data))
	return storage.EdgeMark{Special: r.Byte() == 1, FirstAt: storage.Micros(r.varint()), Remark: r.text(), Attributes: r.attributes()}
}
