package binlog

import (
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

// twoColumns is a table with a user_id, signed, a column that is not needed, and a version, unsigned.
func twoColumns() *mapped {
	m := &mapped{event: &replication.TableMapEvent{
		ColumnCount:      3,
		ColumnType:       []byte{mysql.MYSQL_TYPE_INT24, mysql.MYSQL_TYPE_SHORT, mysql.MYSQL_TYPE_LONGLONG},
		ColumnName:       [][]byte{[]byte("user_id"), []byte("note"), []byte("version")},
		SignednessBitmap: []byte{0b0010_0000}, // the highest bit is that of the first column
	}}
	m.measure()
	return m
}

func image(nulls byte, user int32, version uint64) []byte {
	b := []byte{nulls}
	if nulls&1 == 0 {
		b = append(b, byte(user), byte(user>>8), byte(user>>16))
	}
	b = append(b, 7, 7)
	return binary.LittleEndian.AppendUint64(b, version)
}

func TestRowsOfIntegers(t *testing.T) {
	m := twoColumns()
	header := []byte{1, 0, 0, 0, 0, 0, 1, 0}
	insert := slices.Concat(header, []byte{3, 0b111}, image(0, -2, math.MaxUint64), image(1, 0, 5))
	extra := slices.Concat(header, []byte{4, 0, 9, 9, 3, 0b111}, image(0, 70_000, 1))
	update := slices.Concat(header, []byte{3, 0b111, 0b111}, image(0, 3, 1), image(0, 3, 2))
	for name, c := range map[string]struct {
		kind replication.EventType
		body []byte
		rows [][]any // nil if the table is left to the parser
	}{
		"insert":          {replication.WRITE_ROWS_EVENTv1, insert, [][]any{{int64(-2), nil, uint64(math.MaxUint64)}, {nil, nil, uint64(5)}}},
		"version 2":       {replication.WRITE_ROWS_EVENTv2, extra, [][]any{{int64(70_000), nil, uint64(1)}}},
		"update":          {replication.UPDATE_ROWS_EVENTv1, update, [][]any{{int64(3), nil, uint64(1)}, {int64(3), nil, uint64(2)}}},
		"cut off":         {replication.WRITE_ROWS_EVENTv1, insert[:len(insert)-1], nil},
		"one image":       {replication.UPDATE_ROWS_EVENTv1, update[:len(update)-14], nil},
		"no body":         {replication.DELETE_ROWS_EVENTv2, header, nil},
		"columns missing": {replication.WRITE_ROWS_EVENTv1, slices.Concat(header, []byte{3, 0b011}, image(0, 3, 1)), nil},
		"others missing": {replication.UPDATE_ROWS_EVENTv1, slices.Concat(header, []byte{3, 0b101, 0b1111_1101}, []byte{0, 3, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, []byte{0b10, 3, 0, 0}),
			[][]any{{int64(3), nil, uint64(1)}, {int64(3), nil, nil}}},
		"other columns": {replication.WRITE_ROWS_EVENTv1, slices.Concat(header, []byte{4, 0b1111}, image(0, 3, 1)), nil},
		"compressed":    {replication.MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1, insert, nil},
	} {
		e, ok := m.read(c.kind, c.body)
		if ok != (c.rows != nil) || ok && !reflect.DeepEqual(e.Rows, c.rows) {
			t.Errorf("%s: %v %+v", name, ok, e)
		}
	}
}

// A table with text is left to the parser, and so is a table whose columns have no names.
func TestOtherTablesAreParsed(t *testing.T) {
	text, nameless := twoColumns(), twoColumns()
	text.event.ColumnType[1] = mysql.MYSQL_TYPE_VARCHAR
	nameless.event.ColumnName = nil
	for _, m := range []*mapped{text, nameless} {
		m.ints = nil
		if m.measure(); m.ints != nil {
			t.Errorf("%q %v is read without the parser", m.event.ColumnName, m.event.ColumnType)
		}
	}
}
