// Package wire defines how edges are written where gateways of different versions read them: in
// messages between gateways and in entries of the stream.
//
// An edge takes about twenty bytes: both ids and the time as variable-length integers, the type as
// one byte; of a favorite also the number of the post. A row is a byte that says which table it is of,
// and then its edge. A reader that does not know a table refuses its rows.
package wire

import (
	"encoding/binary"

	"kith/storage"
)

// Version is the first byte of everything written. A reader refuses other versions: it cannot
// understand them.
const Version = 2

// AppendEdge writes an edge.
func AppendEdge(to []byte, e storage.Edge) []byte {
	to = binary.AppendUvarint(to, uint64(e.From))
	to = binary.AppendUvarint(to, uint64(e.To))
	to = append(to, byte(e.Type))
	return binary.AppendVarint(to, int64(e.UpdateTime))
}

// AppendFavorite writes an edge that names a post.
func AppendFavorite(to []byte, e storage.Edge) []byte {
	return binary.AppendUvarint(AppendEdge(to, e), uint64(e.Post))
}

// AppendRow writes a row.
func AppendRow(to []byte, r storage.Row) []byte {
	if r.Side.OfPosts() {
		return AppendFavorite(append(to, byte(r.Side)), r.Edge)
	}
	return AppendEdge(append(to, byte(r.Side)), r.Edge)
}

// Decoder takes values off the front of a text. After the first value that is missing or invalid, OK
// is false and every value is zero.
type Decoder struct {
	rest   []byte
	failed bool
}

// NewDecoder reads a text.
func NewDecoder(text []byte) *Decoder { return &Decoder{rest: text} }

// OK reports whether everything could be read so far.
func (r *Decoder) OK() bool { return !r.failed }

// Done reports whether everything could be read and nothing is left.
func (r *Decoder) Done() bool { return !r.failed && len(r.rest) == 0 }

// Byte reads one byte.
func (r *Decoder) Byte() byte {
	if len(r.rest) == 0 {
		r.fail()
	}
	if r.failed {
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

// Uvarint reads a number that is not negative.
func (r *Decoder) Uvarint() uint64 {
	value, n := binary.Uvarint(r.rest)
	if !r.advance(n) {
		return 0
	}
	return value
}

// UserID reads an id, which is 1 … 2^63−1.
func (r *Decoder) UserID() storage.UserID {
	id := storage.UserID(r.Uvarint())
	if id < 1 {
		r.fail()
	}
	if r.failed {
		return 0
	}
	return id
}

// Edge reads an edge. Types that are not known yet are passed on as they are.
func (r *Decoder) Edge() storage.Edge {
	e := storage.Edge{From: r.UserID(), To: r.UserID(), Type: storage.EdgeType(r.Byte())}
	value, n := binary.Varint(r.rest)
	if !r.advance(n) {
		return storage.Edge{}
	}
	e.UpdateTime = storage.Micros(value)
	return e
}

// Favorite reads an edge that names a post, whose number is 1 … 2^63−1.
func (r *Decoder) Favorite() storage.Edge {
	e := r.Edge()
	if e.Post = int64(r.UserID()); r.failed {
		return storage.Edge{}
	}
	return e
}

// Row reads a row of a table that is known.
func (r *Decoder) Row() storage.Row {
	side := storage.Side(r.Byte())
	if int(side) >= len(storage.AllSides) {
		r.fail()
	}
	read := r.Edge
	if side.OfPosts() {
		read = r.Favorite
	}
	e := read()
	if r.failed {
		return storage.Row{}
	}
	return storage.Row{Side: side, Edge: e}
}

func (r *Decoder) advance(n int) bool {
	if n <= 0 {
		r.fail()
	}
	if r.failed {
		return false
	}
	r.rest = r.rest[n:]
	return true
}

func (r *Decoder) fail() { r.failed, r.rest = true, nil }
