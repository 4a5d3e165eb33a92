package events

import (
	"encoding/binary"

	"kith/storage"
	"kith/storage/wire"
)

// A message is what one gateway sends to the others: some events, and a number by which the others
// notice that a message came twice or is missing.
//
//	version  byte: form
//	sender   8 bytes, drawn when the gateway starts
//	number   uvarint, from 1, greater by 1 with each message
//	events   to the end: kind byte, then a row, a user with its counts, or the news, author, number, time and comment of a post
//
// A reader that does not know a version or a kind yet cannot read the message, which counts as a gap: while a
// deployment is being upgraded, older gateways read again more often. A change that gives bytes another meaning raises
// form.
type message struct {
	sender uint64
	number uint64
	events []Event
	beat   bool // it has no events, and stands for none that were lost; not sent
}

// form is the version of messages.
const form = 3

// maxMessage is how many events a message holds at most.
const maxMessage = 1000

func (m message) encode() []byte {
	to := make([]byte, 0, 32+32*len(m.events))
	to = append(to, form)
	to = binary.BigEndian.AppendUint64(to, m.sender)
	to = binary.AppendUvarint(to, m.number)
	for _, e := range m.events {
		to = append(to, byte(e.Kind))
		switch e.Kind {
		case RowChanged:
			to = wire.AppendRow(to, e.Row)
		case UserChanged:
			to = wire.AppendUserChange(to, *e.User)
		case PostChanged:
			to = append(to, byte(e.Post.News))
			for _, n := range [...]int64{int64(e.Post.Author), e.Post.Number, int64(e.Post.CreatedAt), e.Post.Comment} {
				to = binary.AppendUvarint(to, uint64(n))
			}
		case Gap:
		}
	}
	return to
}

// decode reads a message; false if it cannot be fully understood, because it is broken or from a
// newer program.
func decode(text string) (message, bool) {
	const header = 1 + 8
	if len(text) < header || text[0] != form {
		return message{}, false
	}
	m := message{sender: binary.BigEndian.Uint64([]byte(text[1:header]))}
	r := wire.NewDecoder(text[header:])
	m.number = r.Uvarint()
	for r.More() {
		e := Event{Kind: Kind(r.Byte())}
		switch e.Kind {
		case RowChanged:
			e.Row = r.Row()
		case UserChanged:
			u := r.UserChange()
			e.User = &u
		case PostChanged:
			e.Post.News, e.Post.Author, e.Post.Number = storage.PostNews(r.Byte()), r.UserID(), int64(r.Uvarint())
			e.Post.CreatedAt, e.Post.Comment = storage.Micros(r.Uvarint()), int64(r.Uvarint())
		case Gap:
		default:
			return message{}, false
		}
		m.events = append(m.events, e)
	}
	return m, r.End() == nil && m.number > 0
}
