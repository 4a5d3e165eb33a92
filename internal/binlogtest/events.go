// Package binlogtest makes events of binlogs, byte by byte, for tests in which unusual ones have to come in a known order.
package binlogtest

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
)

var le = binary.LittleEndian

// Event is an event with its header. Its statement began 100 seconds after the epoch, on server 7.
func Event(kind byte, body ...[]byte) []byte {
	all := slices.Concat(body...)
	raw := append(le.AppendUint32(nil, 100), kind)
	raw = le.AppendUint32(raw, 7)
	raw = le.AppendUint32(raw, uint32(19+len(all)))
	raw = append(raw, 0, 0, 0, 0, 0, 0)
	return append(raw, all...)
}

// Summed is the event with its checksum.
func Summed(event []byte) []byte {
	event = slices.Clone(event)
	le.PutUint32(event[9:], uint32(len(event)+4))
	return le.AppendUint32(event, crc32.ChecksumIEEE(event))
}

// Format begins a file whose events have checksums, or not.
func Format(sums bool) []byte {
	body := append([]byte{4, 0}, make([]byte, 50+4)...)
	body = append(body, 19)
	body = append(body, make([]byte, 42)...) // lengths by kind
	if sums {
		return Summed(Event(15, append(body, 1)))
	}
	return Event(15, append(body, 0, 0, 0, 0, 0))
}

// GTID begins a transaction of MySQL, which was written first at 7 s and here at 9 s after the epoch.
func GTID(source [16]byte, number int64) []byte {
	body := append([]byte{0}, source[:]...)
	body = le.AppendUint64(body, uint64(number))
	body = append(body, 2)
	body = append(body, make([]byte, 16)...)
	body = append(body, le.AppendUint64(nil, 9_000_000|1<<55)[:7]...)
	return Event(33, append(body, le.AppendUint64(nil, 7_000_000)[:7]...))
}

// MariaGTID begins a transaction of MariaDB.
func MariaGTID(domain uint32, number uint64, flags byte) []byte {
	return Event(162, le.AppendUint32(le.AppendUint64(nil, number), domain), []byte{flags}, make([]byte, 6))
}

// Query is a statement as text, run in the database kith.
func Query(text string) []byte {
	const variables = "\x00\x00\x00\x00\x00"
	return Event(2, make([]byte, 8), []byte{4, 0, 0, byte(len(variables)), 0}, []byte(variables+"kith\x00"+text))
}

// XID is a commit.
func XID() []byte { return Event(16, make([]byte, 8)) }

// Column is a column of a table.
type Column struct {
	Name     string
	Type     byte
	Meta     []byte
	Unsigned bool
}

// Table is the map of a table of the database kith; without names if nameless.
func Table(id byte, name string, nameless bool, columns ...Column) []byte {
	body := []byte{id, 0, 0, 0, 0, 0, 1, 0, 4}
	body = append(body, "kith\x00"...)
	body = append(append(append(body, byte(len(name))), name...), 0)
	body = append(body, byte(len(columns)))
	var meta, names, signs []byte
	numbers := 0
	for _, c := range columns {
		body, meta = append(body, c.Type), append(meta, c.Meta...)
		names = append(append(names, byte(len(c.Name))), c.Name...)
		if slices.Contains([]byte{1, 2, 3, 4, 5, 8, 9, 13, 246}, c.Type) {
			if numbers%8 == 0 {
				signs = append(signs, 0)
			}
			if c.Unsigned {
				signs[numbers/8] |= 0x80 >> (numbers % 8)
			}
			numbers++
		}
	}
	body = append(append(body, byte(len(meta))), meta...)
	body = append(body, make([]byte, (len(columns)+7)/8)...)
	body = append(append(body, 1, byte(len(signs))), signs...)
	if !nameless {
		body = append(append(body, 4, byte(len(names))), names...)
	}
	return Event(19, body)
}

// Rows is an event about rows, of version 1 or, from kind 30 on, 2. The columns that the images have are given as bits, those of
// both images for updates.
func Rows(kind, id byte, columns int, shown [][]byte, images ...[]byte) []byte {
	body := []byte{id, 0, 0, 0, 0, 0, 1, 0}
	if kind >= 30 && kind < 160 {
		body = append(body, 2, 0)
	}
	body = append(body, byte(columns))
	return Event(kind, slices.Concat(append([][]byte{body}, append(slices.Clone(shown), images...)...)...))
}

// Payload is a transaction that MySQL has compressed, here into blocks that are as they were (RFC 8878, section 3.1.1.2.2).
func Payload(events ...[]byte) []byte {
	all := slices.Concat(events...)
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0x58} // magic; a window of 2 MB
	for block := range slices.Chunk(all, 100_000) {
		head := len(block) << 3
		frame = append(append(frame, byte(head), byte(head>>8), byte(head>>16)), block...)
	}
	return PayloadOf(append(frame, 1, 0, 0), uint32(len(all))) // the last block, empty
}

// PayloadOf is a transaction compressed by zstd.
func PayloadOf(frame []byte, size uint32) []byte {
	number := func(kind byte, n uint32) []byte { return []byte{kind, 4, 0xfd, byte(n), byte(n >> 8), byte(n >> 16)} }
	return Event(40, []byte{2, 1, 0}, number(3, size), number(1, uint32(len(frame))), []byte{0}, frame)
}
