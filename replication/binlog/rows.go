package binlog

import (
	"bytes"
	"encoding/binary"
	"math/bits"

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
// parser has to read: those in which columns are missing, and those that are cut off.
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
	for range images {
		if ones(body[at:at+bitmap]) < n {
			return nil, false
		}
		at += bitmap
	}
	e := &replication.RowsEvent{Table: m.event, ColumnCount: uint64(n), Rows: make([][]any, 0, images)}
	for at < len(body) {
		if len(body) < at+bitmap {
			return nil, false
		}
		nulls := body[at : at+bitmap]
		at += bitmap
		row := make([]any, n)
		for i, width := range m.widths {
			if nulls[i/8]&(1<<(i%8)) != 0 {
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

func ones(b []byte) (n int) {
	for _, c := range b {
		n += bits.OnesCount8(c)
	}
	return n
}
