package binlog

import (
	"bytes"
	"encoding/binary"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

// A mapped table is what the last table map of an id says. A server repeats the map in every transaction,
// so it is parsed again only if its bytes differ.
type mapped struct {
	table  table
	raw    []byte                     // the whole event, for the parser
	size   int                        // of it without the checksum
	event  *replication.TableMapEvent // nil for tables of which no rows are read
	widths []int                      // bytes of each column, if all are integers; nil otherwise
	signed []bool                     // of each column
	wanted []bool                     // columns that a layout has
}

// same reports whether an event says the same.
func (m *mapped) same(raw []byte, size int) bool {
	return m != nil && bytes.Equal(m.raw[headerSize:m.size], raw[headerSize:size])
}

var widths = map[byte]int{
	mysql.MYSQL_TYPE_TINY: 1, mysql.MYSQL_TYPE_SHORT: 2, mysql.MYSQL_TYPE_INT24: 3, mysql.MYSQL_TYPE_LONG: 4, mysql.MYSQL_TYPE_LONGLONG: 8,
}

// measure finds out whether the rows can be read without the parser, which makes a map of the columns for each row, and a
// value of each column. All tables that follows write have only integers.
func (m *mapped) measure() {
	n := len(m.event.ColumnType)
	if len(m.event.ColumnName) != n || len(m.event.SignednessBitmap) == 0 {
		return
	}
	list := make([]int, n)
	for i, kind := range m.event.ColumnType {
		width, ok := widths[kind]
		if !ok {
			return
		}
		list[i] = width
	}
	m.widths, m.signed, m.wanted = list, make([]bool, n), make([]bool, n)
	unsigned := m.event.UnsignedMap()
	l := layoutOf(m.event)
	for i := range n {
		m.signed[i] = !unsigned[i]
	}
	for _, i := range l.columns() {
		if i >= 0 {
			m.wanted[i] = true
		}
	}
}

// read reads rows of integers, with the columns that a layout has; the others stay nil. It returns false for events that the
// parser has to read: those in which a column of the layout is missing, and those that are cut off.
func (m *mapped) read(kind replication.EventType, body []byte) (*replication.RowsEvent, bool) {
	at := 8 // id and flags
	switch kind {
	case replication.WRITE_ROWS_EVENTv1, replication.UPDATE_ROWS_EVENTv1, replication.DELETE_ROWS_EVENTv1:
	case replication.WRITE_ROWS_EVENTv2, replication.UPDATE_ROWS_EVENTv2, replication.DELETE_ROWS_EVENTv2:
		if len(body) < 10 {
			return nil, false
		}
		at += int(binary.LittleEndian.Uint16(body[8:])) // its own two bytes among them
	default:
		return nil, false
	}
	n := len(m.widths)
	bitmap := (n + 7) / 8
	images := 1
	if isUpdate(kind) {
		images = 2
	}
	if n > 250 || len(body) < at+1+images*bitmap || int(body[at]) != n {
		return nil, false
	}
	at++
	var shown [2][]byte // the columns that each image has
	var noted [2]int    // bytes of its nulls
	for i := range images {
		shown[i] = body[at : at+bitmap]
		if !m.enough(shown[i]) {
			return nil, false
		}
		noted[i] = (m.count(shown[i]) + 7) / 8
		at += bitmap
	}
	e := &replication.RowsEvent{Table: m.event, ColumnCount: uint64(n), Rows: make([][]any, 0, images)}
	for at < len(body) {
		which := len(e.Rows) % images
		columns, size := shown[which], noted[which]
		if len(body) < at+size {
			return nil, false
		}
		nulls := body[at : at+size]
		at += size
		row, k := make([]any, n), -1
		for i, width := range m.widths {
			if !bit(columns, i) {
				continue
			}
			if k++; bit(nulls, k) {
				continue
			}
			if len(body) < at+width {
				return nil, false
			}
			if m.wanted[i] {
				row[i] = number(body[at:at+width], m.signed[i])
			}
			at += width
		}
		e.Rows = append(e.Rows, row)
	}
	return e, len(e.Rows)%images == 0
}

// number reads an integer, the lowest byte first.
func number(b []byte, signed bool) any {
	var v uint64
	for i, c := range b {
		v |= uint64(c) << (8 * i)
	}
	if !signed {
		return v
	}
	shift := 64 - 8*len(b)
	return int64(v<<shift) >> shift
}

// enough reports whether an image has every column that a layout has. Others may be missing: MariaDB leaves virtual
// columns out of updates since 11.8.9, although binlog_row_image is FULL.
func (m *mapped) enough(columns []byte) bool {
	for i, wanted := range m.wanted {
		if wanted && !bit(columns, i) {
			return false
		}
	}
	return true
}

// count is how many columns an image has. Bits behind the last column mean nothing.
func (m *mapped) count(columns []byte) (n int) {
	for i := range m.widths {
		if bit(columns, i) {
			n++
		}
	}
	return n
}

func bit(b []byte, i int) bool { return b[i/8]&(1<<(i%8)) != 0 }
