package replica

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/bits"
)

// Kind is what an event is about. See classmysql_1_1binlog_1_1event_1_1Log__event__type, and
// https://mariadb.com/kb/en/replication-protocol/ for those from 160 on.
type Kind byte

// The kinds that replication asks about.
const (
	QueryEvent           Kind = 2 // a statement as text, BEGIN and COMMIT among them
	RotateEvent          Kind = 4
	FormatEvent          Kind = 15 // the first of each file
	XIDEvent             Kind = 16 // a commit
	LoadEvent            Kind = 18 // LOAD DATA as text
	TableEvent           Kind = 19 // the columns of a table; before its rows
	IncidentEvent        Kind = 26 // the server has lost events
	GTIDEvent            Kind = 33 // the beginning of a transaction of MySQL
	XAPrepareEvent       Kind = 38
	PayloadEvent         Kind = 40 // the rest of a transaction, compressed
	TaggedEvent          Kind = 42 // as GTIDEvent, with a tag
	MariaGTIDEvent       Kind = 162
	MariaGTIDListEvent   Kind = 163 // what is before a file
	compressedQueryEvent Kind = 165
	partialUpdateEvent   Kind = 39
	lastOfMySQL          Kind = 42
	firstOfMariaDB       Kind = 160
	lastOfMariaDB        Kind = 171
)

// An Event is one event of a binlog.
type Event struct {
	Kind   Kind
	Time   uint32 // when its statement began, in seconds since 1970; 0 if the server has made it for this stream
	Server uint32 // on which it was written first
	Raw    []byte // all of it, without its checksum, until the next event is read
}

const headerSize = 19

// ParseEvent reads the header of an event (page_protocol_replication_binlog_event), which has no checksum, or still has it.
func ParseEvent(raw []byte) (Event, error) {
	c := cursor{rest: raw}
	e := Event{Time: uint32(c.number(4)), Kind: Kind(c.number(1)), Server: uint32(c.number(4)), Raw: raw}
	size := c.number(4)
	c.number(4) // where the next is
	flags := c.number(2)
	const ignorable = 0x80
	switch {
	case c.short || size != uint64(len(raw)):
		return e, fmt.Errorf("%w: an event of %d bytes says that it has %d", errBroken, len(raw), size)
	case (e.Kind > lastOfMySQL && e.Kind < firstOfMariaDB || e.Kind > lastOfMariaDB) && flags&ignorable == 0:
		return e, fmt.Errorf("the binlog has an event of kind %d, %w", e.Kind, ErrUnknown)
	}
	return e, nil
}

// Body is the event without its header.
func (e Event) Body() []byte { return e.Raw[headerSize:] }

// checksum is how many bytes the checksum has behind each event of a file, as its first event says (classmysql_1_1binlog_1_1event_1_1Format__description__event).
func (e Event) checksum() (int, error) {
	const size, version = 4, 4
	c := cursor{rest: e.Body()}
	if c.number(2) != version {
		return 0, fmt.Errorf("%w: a binlog of another version than %d", errBroken, version)
	}
	c.bytes(50 + 4) // server, time
	if header := c.number(1); header != headerSize || len(c.rest) <= size {
		return 0, fmt.Errorf("%w: a format with headers of %d bytes", errBroken, header)
	}
	switch c.rest[len(c.rest)-1-size] {
	case 0:
		return 0, nil
	case 1:
		return size, nil
	}
	return 0, fmt.Errorf("%w: checksums of an unknown kind", errBroken)
}

// Begin is the beginning of a transaction.
type Begin struct {
	GTID      GTID
	Committed int64 // where it was written first, in microseconds since 1970; 0 if the server does not say
	XA        bool  // MariaDB: it is being prepared
	Alone     bool  // MariaDB: it ends with its first statement
}

// Begin reads a GTIDEvent, TaggedEvent or MariaGTIDEvent.
func (e Event) Begin() (b Begin, err error) {
	c := cursor{rest: e.Body()}
	switch e.Kind {
	case MariaGTIDEvent: // https://mariadb.com/kb/en/gtid_event/
		const alone, prepared = 1, 64
		b.GTID = GTID{Number: c.number(8), Origin: Origin{Domain: uint32(c.number(4))}, Server: e.Server}
		flags := c.number(1)
		b.Alone, b.XA = flags&alone != 0, flags&prepared != 0
	case TaggedEvent:
		b = c.tagged()
	default: // classmysql_1_1binlog_1_1event_1_1Gtid__event
		c.number(1)
		copy(b.GTID.Source[:], c.bytes(16))
		b.GTID.Number = c.number(8)
		const logicalTime, both = 2, 1 << 55
		if len(c.rest) >= 1+8+8+7 && c.number(1) == logicalTime {
			c.bytes(8 + 8)
			here := c.number(7)
			if b.Committed = int64(here); here&both != 0 {
				b.Committed = int64(c.number(7))
			}
		}
	}
	return b, c.err("the beginning of a transaction")
}

// tagged reads an event in the form of PageLibsMysqlSerialization: a version, sizes, and fields with their numbers before them.
func (c *cursor) tagged() (b Begin) {
	for range 3 {
		c.varied() // version, size, the last field that must be known
	}
	for len(c.rest) > 0 && !c.short {
		switch field := c.varied(); field {
		case 0: // flags
			c.varied()
		case 1:
			for i := range b.GTID.Source {
				b.GTID.Source[i] = byte(c.varied())
			}
		case 2, 4, 5: // number; last and own place in the order of commits: signed, so that the lowest bit is the sign
			if n := c.varied() >> 1; field == 2 {
				b.GTID.Number = n
			}
		case 3:
			b.GTID.Tag = string(c.bytes(c.varied()))
		case 6, 7: // when it was committed here, and where it was written first, if that was elsewhere
			b.Committed = int64(c.varied())
		default: // what follows is not needed
			return b
		}
	}
	return b
}

// varied reads an integer of 1 to 9 bytes: the ones at the end of the first say how many others there are.
func (c *cursor) varied() uint64 {
	if len(c.rest) == 0 {
		c.short = true
		return 0
	}
	more := bits.TrailingZeros8(^c.rest[0])
	if more == 8 {
		c.number(1)
		return c.number(8)
	}
	return c.number(uint64(more)+1) >> (more + 1)
}

// Query is a statement that was logged as text, and the database it was run in.
func (e Event) Query() (schema string, text []byte, err error) {
	c := cursor{rest: e.Body()} // classmysql_1_1binlog_1_1event_1_1Query__event
	c.bytes(4 + 4)              // connection, seconds
	name := c.number(1)
	c.bytes(2) // error
	variables := c.number(2)
	if e.Kind == LoadEvent {
		c.bytes(4 + 4 + 4 + 1) // where the file's name is in the text
	}
	c.bytes(variables)
	schema = string(c.bytes(name))
	c.bytes(1)
	if text, err = c.rest, c.err("a statement"); err == nil && e.Kind == compressedQueryEvent {
		text, err = inflate(text)
	}
	return schema, text, err
}

// IsQuery reports whether the event has a statement as text.
func (e Event) IsQuery() bool {
	return e.Kind == QueryEvent || e.Kind == LoadEvent || e.Kind == compressedQueryEvent
}

// Last reads a MariaGTIDListEvent (https://mariadb.com/kb/en/gtid_list_event/): the last transactions before a file.
func (e Event) Last() (Set, error) {
	c, set := cursor{rest: e.Body()}, Set{}
	const count = 1<<28 - 1 // the other bits are flags
	for range c.number(4) & count {
		g := GTID{Origin: Origin{Domain: uint32(c.number(4))}, Server: uint32(c.number(4)), Number: c.number(8)}
		if c.short {
			break
		}
		if len(set[g.Origin]) == 0 || set[g.Origin][0].Last < g.Number { // one for each server that has written
			set.Add(g)
		}
	}
	return set, c.err("a list of transactions")
}

// inflate reads what MariaDB has compressed: a byte with the number of bytes of the size, the size, and a stream of zlib.
func inflate(b []byte) ([]byte, error) {
	c := cursor{rest: b}
	head := c.number(1)
	var size uint64
	for _, b := range c.bytes(head & 7) {
		size = size<<8 | uint64(b)
	}
	if c.short || head&0x70 != 0 || size > maxPacket {
		return nil, fmt.Errorf("%w: %d compressed bytes", errBroken, len(b))
	}
	z, err := zlib.NewReader(bytes.NewReader(c.rest))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(z, int64(size)+1))
	if err == nil && uint64(len(text)) != size {
		err = fmt.Errorf("%w: what is compressed has %d bytes, not %d", errBroken, len(text), size)
	}
	return text, err
}

// Payload yields the events of a transaction that MySQL has compressed (classmysql_1_1binlog_1_1event_1_1Transaction__payload__event).
func (e Event) Payload() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		const end, algorithm, zstd, none = 0, 2, 0, 255
		c, by := cursor{rest: e.Body()}, uint64(zstd)
		for field := c.packed(); field != end && !c.short; field = c.packed() {
			if value := (cursor{rest: c.bytes(c.packed())}); field == algorithm {
				by = value.packed()
			}
		}
		err := c.err("a compressed transaction")
		var from io.Reader = bytes.NewReader(c.rest)
		switch {
		case err != nil || by == none:
		case by == zstd:
			from, err = unzstd(c.rest)
		default:
			err = fmt.Errorf("%w: a transaction compressed by algorithm %d", errBroken, by)
		}
		var raw bytes.Buffer
		for ; err == nil; raw.Reset() {
			if _, err = io.CopyN(&raw, from, headerSize); errors.Is(err, io.EOF) && raw.Len() == 0 {
				return
			}
			var inner Event
			if err == nil {
				rest := int64(binary.LittleEndian.Uint32(raw.Bytes()[9:])) - headerSize
				if _, err = io.CopyN(&raw, from, min(rest, maxPacket)); err == nil {
					inner, err = ParseEvent(raw.Bytes())
				}
			}
			if err == nil && !yield(inner, nil) {
				return
			}
		}
		yield(Event{}, fmt.Errorf("read a compressed transaction: %w", err))
	}
}

// unzstd reads what was compressed by zstd. The standard library can, but shows it only to readers of ELF files, the sections of which may be
// compressed so. Hence the bytes become a section of such a file. (The other way is a module of 40 MB.) Matches that
// are further than 8 MB back, of the highest levels only, are an error.
func unzstd(compressed []byte) (io.Reader, error) {
	const header, section, before = 64, 64, 24
	var file bytes.Buffer
	for _, part := range []any{
		elf.Header64{Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
			Version: uint32(elf.EV_CURRENT), Shoff: header, Shentsize: section, Shnum: 2, Shstrndx: 1},
		elf.Section64{Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_COMPRESSED), Off: header + 2*section, Size: before + uint64(len(compressed))},
		elf.Section64{Type: uint32(elf.SHT_STRTAB), Off: header, Size: 1}, // names
		elf.Chdr64{Type: uint32(elf.COMPRESS_ZSTD), Addralign: 1},
		compressed,
	} {
		if err := binary.Write(&file, binary.LittleEndian, part); err != nil {
			return nil, err
		}
	}
	f, err := elf.NewFile(bytes.NewReader(file.Bytes()))
	if err != nil {
		return nil, err
	}
	return f.Sections[0].Open(), nil
}
