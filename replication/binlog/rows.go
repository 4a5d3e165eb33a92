package binlog

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

// A mapped table is what the last table map of an id says. A server repeats the map in every transaction,
// so it is parsed again only if its bytes differ.
type mapped struct {
	table table
	raw   []byte                     // the whole event, for the parser
	size  int                        // of it without the checksum
	event *replication.TableMapEvent // nil for tables of which no rows are read
	ints  []intColumn                // the columns, if all are integers; nil otherwise
}

type intColumn struct {
	width          int // bytes
	signed, wanted bool
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
	list, unsigned, l := make([]intColumn, n), m.event.UnsignedMap(), layoutOf(m.event)
	for i, kind := range m.event.ColumnType {
		width, ok := widths[kind]
		if !ok {
			return
		}
		list[i] = intColumn{width, !unsigned[i], slices.Contains(l[:], i)}
	}
	m.ints = list
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
	n := len(m.ints)
	bitmap := (n + 7) / 8
	images := 1
	if operations[kind] == updated {
		images = 2
	}
	if n > 250 || len(body) < at+1+images*bitmap || int(body[at]) != n {
		return nil, false
	}
	at++
	var shown [2][]int // the columns that each image has
	for i := range images {
		var enough bool
		if shown[i], enough = m.shown(body[at : at+bitmap]); !enough {
			return nil, false
		}
		at += bitmap
	}
	e := &replication.RowsEvent{Table: m.event, ColumnCount: uint64(n), Rows: make([][]any, 0, images)}
	for at < len(body) {
		columns := shown[len(e.Rows)%images]
		size := (len(columns) + 7) / 8
		if len(body) < at+size {
			return nil, false
		}
		nulls, row := body[at:at+size], make([]any, n)
		at += size
		for k, i := range columns {
			if bit(nulls, k) {
				continue
			}
			c := m.ints[i]
			if len(body) < at+c.width {
				return nil, false
			}
			if c.wanted {
				row[i] = number(body[at:at+c.width], c.signed)
			}
			at += c.width
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

// shown lists the columns that an image has, if every column that a layout has is among them. Others may be missing: MariaDB leaves virtual
// columns out of updates since 11.8.9, although binlog_row_image is FULL.
func (m *mapped) shown(bitmap []byte) (columns []int, enough bool) {
	columns = make([]int, 0, len(m.ints))
	for i, c := range m.ints {
		if bit(bitmap, i) {
			columns = append(columns, i)
		} else if c.wanted {
			return nil, false
		}
	}
	return columns, true
}

func bit(b []byte, i int) bool { return b[i/8]&(1<<(i%8)) != 0 }
