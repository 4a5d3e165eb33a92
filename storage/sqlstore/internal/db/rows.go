package db

import (
	"cmp"
	"database/sql"
	"fmt"
	"slices"

	"kith/storage"
)

// Numbers is a row's whole numbers, with NULLs among them, and the texts behind them. They are scanned as the driver gives
// them, because database/sql uses reflection for every other target. That matters if a list has a
// million rows.
type Numbers struct {
	values []any
	texts  []sql.RawBytes
	into   []any // the numbers and the texts
	next   int   // the number that [Numbers.Next] returns
	text   int   // and the text
	err    error // why a row could not be read, or a value that was no whole number
}

// NewNumbers is for rows of so many numbers and texts.
func NewNumbers(numbers, texts int) *Numbers {
	row := &Numbers{values: make([]any, numbers), texts: make([]sql.RawBytes, texts), into: make([]any, 0, numbers+texts)}
	for i := range row.values {
		row.into = append(row.into, &row.values[i])
	}
	for i := range row.texts {
		row.into = append(row.into, &row.texts[i])
	}
	return row
}

// Each reads each row, and then has it taken.
func (n *Numbers) Each(take func()) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		n.next, n.text = 0, 0
		if n.err = rows.Scan(n.into...); n.err == nil {
			take()
		}
		return n.err
	}
}

// Next is the next number of the row.
func (n *Numbers) Next() int64 {
	n.next++
	return n.At(n.next - 1)
}

// NextIsNull reports whether the next number is NULL.
func (n *Numbers) NextIsNull() bool { return n.IsNull(n.next) }

// Text is the next text of the row, until the next row is read.
func (n *Numbers) Text() sql.RawBytes {
	n.text++
	return n.texts[n.text-1]
}

func (n *Numbers) IsNull(i int) bool { return n.values[i] == nil }

// At is a value; 0 where it is NULL.
func (n *Numbers) At(i int) int64 {
	switch v := n.values[i].(type) {
	case int64:
		return v
	case uint64:
		return int64(v)
	case nil:
	default:
		n.err = fmt.Errorf("column %d is %v (%T), not a whole number", i, v, v)
	}
	return 0
}

// MaxForeseen bounds the edges that room is made for before they come: a count may be wrong.
const MaxForeseen = 1 << 20

// SortByPeer puts edges of one owner in the order of their peers, in which they mostly come.
func SortByPeer(side storage.Side, edges []storage.Edge) {
	slices.SortFunc(edges, func(a, b storage.Edge) int { return cmp.Compare(side.Peer(a.Pair()), side.Peer(b.Pair())) })
}
