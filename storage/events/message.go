package events

import (
	"encoding/binary"

	"kith/storage"
	"kith/storage/wire"
)

// A message is what one gateway sends to the others: some events, and a number by which the others
// notice that a message came twice or is missing.
//
//	version  byte
//	sender   8 bytes, drawn when the gateway starts
//	number   uvarint, from 1, greater by 1 with each message
//	events   to the end: kind byte, then an edge, a favorite, an id, or the author, number and time of a post,
//	         or the author and number of a comment
//
// A reader that does not know a kind yet cannot read the message, which counts as a gap: while a
// deployment is being upgraded, older gateways read again more often.
type message struct {
	sender uint64
	number uint64
	events []Event
}

// maxMessage is how many events a message holds at most.
const maxMessage = 1000

func (m message) encode() []byte {
	to := make([]byte, 0, 32+24*len(m.events))
	to = append(to, wire.Version)
	to = binary.BigEndian.AppendUint64(to, m.sender)
	to = binary.AppendUvarint(to, m.number)
	for _, e := range m.events {
		to = append(to, byte(e.Kind))
		switch e.Kind {
		case EdgeChanged, RequestChanged:
			to = wire.AppendEdge(to, e.Edge)
		case FavoriteChanged, RelationChanged:
			to = wire.AppendItem(to, e.Edge)
		case UserChanged, CountsChanged, StateChanged, Corrected:
			to = binary.AppendUvarint(to, uint64(e.User))
		case PostPublished, PostDeleted, PostChanged:
			to = binary.AppendUvarint(to, uint64(e.Post.Author))
			to = binary.AppendUvarint(to, uint64(e.Post.Number))
			to = binary.AppendUvarint(to, uint64(e.Post.CreatedAt))
		case CommentAdded:
			to = binary.AppendUvarint(to, uint64(e.Comment.Author))
			to = binary.AppendUvarint(to, uint64(e.Comment.Number))
		case Gap:
		}
	}
	return to
}

// decode reads a message; false if it cannot be fully understood, because it is broken or from a
// newer program.
func decode(text string) (message, bool) {
	const header = 1 + 8
	if len(text) < header || text[0] != wire.Version {
		return message{}, false
	}
	m := message{sender: binary.BigEndian.Uint64([]byte(text[1:header]))}
	r := wire.NewDecoder(text[header:])
	m.number = r.Uvarint()
	for r.More() {
		e := Event{Kind: Kind(r.Byte())}
		switch e.Kind {
		case EdgeChanged, RequestChanged:
			e.Edge = r.Edge()
		case FavoriteChanged, RelationChanged:
			e.Edge = r.Item()
		case UserChanged, CountsChanged, StateChanged, Corrected:
			e.User = r.UserID()
		case PostPublished, PostDeleted, PostChanged:
			e.Post.Author, e.Post.Number, e.Post.CreatedAt = r.UserID(), int64(r.Uvarint()), storage.Micros(r.Uvarint())
		case CommentAdded:
			e.Comment.Author, e.Comment.Number = r.UserID(), int64(r.Uvarint())
		case Gap:
		default:
			return message{}, false
		}
		m.events = append(m.events, e)
	}
	return m, r.End() == nil && m.number > 0
}
