// Package wire writes edges, users and posts as bytes, and reads them. Edges are in messages between gateways and in entries of
// the stream, where gateways of different versions read them; users and posts are in caches.
//
// An edge takes about twenty bytes: both ids and the time as variable-length integers, the type as
// one byte; of a favorite or a relation also the item. A row is a byte that says which table it is of,
// and then its edge. A reader that does not know a table refuses its rows.
package wire

import (
	"encoding/binary"

	"kith/storage"
)

// Version is the first byte of a message and of an entry. A reader refuses other versions: it cannot
// understand them.
const Version = 2

// AppendEdge writes an edge.
func AppendEdge(to []byte, e storage.Edge) []byte {
	to = binary.AppendUvarint(to, uint64(e.From))
	to = binary.AppendUvarint(to, uint64(e.To))
	to = append(to, byte(e.Type))
	return binary.AppendVarint(to, int64(e.UpdateTime))
}

// AppendRow writes a row.
func AppendRow(to []byte, r storage.Row) []byte {
	to = AppendEdge(append(to, byte(r.Side)), r.Edge)
	if r.Side.HasItem() {
		to = binary.AppendUvarint(to, uint64(r.Edge.Item))
	}
	return to
}

// UserID reads an id, which is 1 … 2^63−1.
func (r *Decoder) UserID() storage.UserID {
	id := storage.UserID(r.Uvarint())
	if id < 1 {
		r.fail()
		return 0
	}
	return id
}

// Edge reads an edge. Types that are not known yet are passed on as they are.
func (r *Decoder) Edge() storage.Edge {
	e := storage.Edge{From: r.UserID(), To: r.UserID(), Type: storage.EdgeType(r.Byte()), UpdateTime: storage.Micros(r.varint())}
	if r.failed {
		return storage.Edge{}
	}
	return e
}

// Row reads a row of a table that is known. The number of an item is 1 … 2^63−1.
func (r *Decoder) Row() storage.Row {
	row := storage.Row{Side: storage.Side(r.Byte())}
	if int(row.Side) >= len(storage.AllSides) {
		r.fail()
		return storage.Row{}
	}
	row.Edge = r.Edge()
	if row.Side.HasItem() {
		row.Edge.Item = int64(r.UserID())
	}
	if r.failed {
		return storage.Row{}
	}
	return row
}
