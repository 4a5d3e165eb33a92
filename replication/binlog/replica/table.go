package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// A Table is what a TableEvent says: which columns the rows that follow have.
type Table struct {
	Schema, Name string
	Named        bool // the columns have their names
	columns      []column
	json         int // how many columns are JSON
}

type column struct {
	columnType
	kind   byte
	about  [2]byte // what the table map says
	name   string
	signed bool
	slot   int // where its values go; −1 if nowhere
}

// Types of columns (field_types.h of MySQL; MariaDB has two of its own, compressed ones) that are named below.
const (
	typeVarchar           = 15
	typeBit               = 16
	typeVarcharCompressed = 141
	typeJSON              = 245
	typeDecimal           = 246
	typeEnum              = 247
	typeSet               = 248
	typeVarString         = 253
	typeString            = 254
)

// columnType says what is in table maps and in rows about columns of a type.
type columnType struct {
	known  bool
	meta   int  // bytes about a column in a table map
	size   int  // bytes of a value, or those that it has at least, if it is a time with fractions; 0 if [column.length] has to look
	number bool // there is a bit for its sign
	whole  bool // it is an integer of size bytes
}

var types = [math.MaxUint8 + 1]columnType{
	1: {true, 0, 1, true, true}, 2: {true, 0, 2, true, true}, 9: {true, 0, 3, true, true}, 3: {true, 0, 4, true, true}, 8: {true, 0, 8, true, true}, // TINYINT to BIGINT
	4: {true, 1, 4, true, false}, 5: {true, 1, 8, true, false}, typeDecimal: {true, 2, 0, true, false}, 13: {true, 0, 1, true, false}, // FLOAT, DOUBLE, DECIMAL, YEAR
	7: {known: true, size: 4}, 10: {known: true, size: 3}, 11: {known: true, size: 3}, 12: {known: true, size: 8}, 14: {known: true, size: 3}, // TIMESTAMP, DATE, TIME, DATETIME as they once were, DATE
	17: {known: true, meta: 1, size: 4}, 18: {known: true, meta: 1, size: 5}, 19: {known: true, meta: 1, size: 3}, // TIMESTAMP, DATETIME, TIME
	140: {known: true, meta: 1}, 242: {known: true, meta: 1}, typeJSON: {known: true, meta: 1}, 255: {known: true, meta: 1}, // compressed BLOB, VECTOR, JSON, GEOMETRY
	249: {known: true, meta: 1}, 250: {known: true, meta: 1}, 251: {known: true, meta: 1}, 252: {known: true, meta: 1}, // TINYBLOB to LONGBLOB
	typeVarchar: {known: true, meta: 2}, typeVarcharCompressed: {known: true, meta: 2}, typeVarString: {known: true, meta: 2}, typeString: {known: true, meta: 2},
	typeBit: {known: true, meta: 2}, typeEnum: {known: true, meta: 2}, typeSet: {known: true, meta: 2},
}

// maxColumns is how many columns a table may have in MySQL and in MariaDB.
const maxColumns = 4096

// TableID is the number by which rows name their table, in a TableEvent and in events of rows.
func (e Event) TableID() (uint64, error) {
	c := cursor{rest: e.Body()}
	return c.number(6), c.err("an event about a table")
}

// ErrUnknown means that a server uses what this program does not know: an event, or a type of columns, whose length in rows is not known then.
var ErrUnknown = errors.New("not known to this program, for which the server may be too new")

// Table reads a TableEvent (classmysql_1_1binlog_1_1event_1_1Table__map__event). slot says where the values of a column go, −1 if it is not
// needed. With ErrUnknown there is a table, of which no rows can be read.
func (e Event) Table(slot func(name string) int) (*Table, error) {
	c, t := cursor{rest: e.Body()}, &Table{}
	c.bytes(6 + 2) // number, flags
	t.Schema = string(c.bytes(c.number(1)))
	c.bytes(1)
	t.Name = string(c.bytes(c.number(1)))
	c.bytes(1)
	kinds := c.bytes(min(c.packed(), maxColumns+1))
	meta := cursor{rest: c.bytes(c.packed())}
	c.bytes(uint64(len(kinds)+7) / 8) // which may be NULL
	t.columns = make([]column, len(kinds))
	var unknown *column
	for i, kind := range kinds {
		col := &t.columns[i]
		*col = column{columnType: types[kind], kind: kind, signed: true, slot: -1}
		if !col.known && unknown == nil {
			unknown = col
		}
		copy(col.about[:], meta.bytes(uint64(col.meta)))
		if kind == typeJSON {
			t.json++
		}
	}
	const signs, names = 1, 4
	for len(c.rest) > 0 && !c.short {
		switch kind, value := c.number(1), (cursor{rest: c.bytes(c.packed())}); kind {
		case signs: // a bit for each number, the highest first
			n := 0
			for i := range t.columns {
				if t.columns[i].number {
					t.columns[i].signed = n/8 < len(value.rest) && value.rest[n/8]&(0x80>>(n%8)) == 0
					n++
				}
			}
		case names:
			for i := range t.columns {
				t.columns[i].name = string(value.bytes(value.packed()))
				t.columns[i].slot = slot(t.columns[i].name)
			}
			t.Named, c.short = true, c.short || value.short
		}
	}
	switch {
	case c.short, meta.short && unknown == nil, len(kinds) > maxColumns:
		return nil, fmt.Errorf("%w: the columns of %s.%s", errBroken, t.Schema, t.Name)
	case unknown != nil:
		return t, fmt.Errorf("column %s of %s.%s has type %d, %w", unknown.name, t.Schema, t.Name, unknown.kind, ErrUnknown)
	}
	return t, nil
}

// An Operation is what an event about rows says has been done to them; 0 for other events.
type Operation uint8

// Operations.
const (
	Inserted Operation = iota + 1
	Updated
	Deleted
)

// rowEvents are the kinds of events about rows: two versions, and MariaDB's compressed ones.
var rowEvents = [math.MaxUint8 + 1]struct {
	Operation
	extra, compressed bool
}{
	23: {Inserted, false, false}, 24: {Updated, false, false}, 25: {Deleted, false, false},
	30: {Inserted, true, false}, 31: {Updated, true, false}, 32: {Deleted, true, false}, partialUpdateEvent: {Updated, true, false},
	166: {Inserted, false, true}, 167: {Updated, false, true}, 168: {Deleted, false, true},
	169: {Inserted, true, true}, 170: {Updated, true, true}, 171: {Deleted, true, true},
}

// Operation is what has been done to the rows of the event.
func (e Event) Operation() Operation { return rowEvents[e.Kind].Operation }

// Rows are the rows of an event.
type Rows struct {
	Kind    Operation
	table   *Table
	partial bool // images after updates may say only what has changed in JSON
	rest    []byte
	shown   [2][]byte // the columns, a bit each, of the images before updates and of the others
	count   [2]int    // how many those are
}

// Rows reads an event about rows of the table (classmysql_1_1binlog_1_1event_1_1Rows__event).
func (t *Table) Rows(e Event) (Rows, error) {
	kind := rowEvents[e.Kind]
	r := Rows{Kind: kind.Operation, table: t, partial: e.Kind == partialUpdateEvent}
	c := cursor{rest: e.Body()}
	c.bytes(6 + 2) // table, flags
	if kind.extra {
		const own = 2 // the size counts itself
		c.bytes(max(own, c.number(own)) - own)
	}
	if n := c.packed(); n != uint64(len(t.columns)) && !c.short {
		return r, fmt.Errorf("%w: rows of %d columns, and a table of %d", errBroken, n, len(t.columns))
	}
	bitmap := uint64(len(t.columns)+7) / 8
	r.shown[1] = c.bytes(bitmap)
	if r.shown[0] = r.shown[1]; r.Kind == Updated {
		r.shown[1] = c.bytes(bitmap)
	}
	if err := c.err("an event of rows"); err != nil {
		return r, err
	}
	for image, shown := range r.shown {
		for i := range t.columns {
			if bit(shown, i) {
				r.count[image]++
			}
		}
	}
	r.rest = c.rest
	if !kind.compressed {
		return r, nil
	}
	var err error
	r.rest, err = inflate(c.rest)
	return r, err
}

// Lacks names a column that has a slot, and that an image lacks; none if there is no such column.
func (r *Rows) Lacks() string {
	for i := range r.table.columns {
		if c := &r.table.columns[i]; c.slot >= 0 && !(bit(r.shown[0], i) && bit(r.shown[1], i)) {
			return c.name
		}
	}
	return ""
}

// Count is how many rows there are from here on.
func (r Rows) Count() (n int) {
	for more, err := r.Next(nil, nil); more && err == nil; more, err = r.Next(nil, nil) {
		n++
	}
	return n
}

// A Value is one integer of a row. OK is false if the column is missing, NULL, no integer, or greater than N can be.
type Value struct {
	N  int64
	OK bool
}

// Next reads the next row, and reports whether there was one. The values go into slots: as they were before an update, and as they are, or were when the row
// was deleted. Without slots they are passed over.
func (r *Rows) Next(before, row []Value) (more bool, err error) {
	if len(r.rest) == 0 {
		return false, nil
	}
	c := cursor{rest: r.rest}
	if r.Kind == Updated {
		r.image(&c, 0, before)
		if r.partial && c.packed()&1 != 0 {
			c.bytes(uint64(r.table.json+7) / 8) // which values are partial; those have their lengths before them, too
		}
	}
	r.image(&c, 1, row)
	if r.rest = c.rest; c.short {
		return false, fmt.Errorf("%w: rows of %s.%s are cut off", errBroken, r.table.Schema, r.table.Name)
	}
	return true, nil
}

// image reads one image.
func (r *Rows) image(c *cursor, which int, into []Value) {
	clear(into)
	shown, nulls, k := r.shown[which], c.bytes(uint64(r.count[which]+7)/8), 0
	if len(nulls) == 0 { // also if there are no columns: then nothing would ever be read
		c.short = true
		return
	}
	rest := c.rest
	for i := range r.table.columns {
		if !bit(shown, i) {
			continue
		}
		k++
		if bit(nulls, k-1) {
			continue
		}
		col := &r.table.columns[i]
		size := col.size
		if !col.whole {
			size = col.length(rest)
		}
		if size < 0 || size > len(rest) {
			c.short = true
			return
		}
		if col.whole && uint(col.slot) < uint(len(into)) {
			into[col.slot] = col.value(rest[:size])
		}
		rest = rest[size:]
	}
	c.rest = rest
}

func bit(b []byte, i int) bool { return b[i/8]&(1<<(i%8)) != 0 }

// value reads an integer, the lowest byte first.
func (c *column) value(b []byte) Value {
	var n uint64
	switch len(b) {
	case 8:
		n = binary.LittleEndian.Uint64(b)
	case 4:
		n = uint64(binary.LittleEndian.Uint32(b))
	default:
		for i, part := range b {
			n |= uint64(part) << (8 * i)
		}
	}
	if c.signed {
		shift := 64 - 8*len(b)
		return Value{int64(n<<shift) >> shift, true}
	}
	if n > math.MaxInt64 {
		return Value{}
	}
	return Value{int64(n), true}
}

// length is how many bytes the value at the beginning of b takes; more than b has if it is cut off.
func (c *column) length(b []byte) int {
	prefix, low, high := 0, int(c.about[0]), int(c.about[1]) // bytes that hold a length
	switch c.kind {
	case typeBit:
		return high + (low+7)/8
	case typeEnum, typeSet:
		return high
	case typeDecimal:
		digits := func(n int) int { return n/9*4 + (n%9+1)/2 } // nine digits take four bytes
		return digits(low-high) + digits(high)
	case typeString: // also enums and sets; two bits of a length above 255 are in the first byte, turned round
		if kind := low | 0x30; kind == typeEnum || kind == typeSet {
			return high
		}
		if prefix = 1; low&0x30 != 0x30 {
			prefix = 2
		}
	case typeVarchar, typeVarString, typeVarcharCompressed:
		if prefix = 1; high > 0 {
			prefix = 2
		}
	default:
		switch {
		case c.size > 0 && c.number:
			return c.size
		case c.size > 0: // a time, with some digits of seconds
			return c.size + (low+1)/2
		}
		prefix = low // a blob, or the like
	}
	if prefix > len(b) || prefix > 4 {
		return math.MaxInt
	}
	for i, part := range b[:prefix] {
		prefix += int(part) << (8 * i)
	}
	return prefix
}
