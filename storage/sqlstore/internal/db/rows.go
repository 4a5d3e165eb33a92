package db

import (
	"cmp"
	"database/sql"
	"fmt"
	"slices"

	"kith/storage"
)

// Numbers is a row's whole numbers, with NULLs among them. They are scanned as the driver gives
// them, because database/sql uses reflection for every other target. That matters if a list has a
// million rows.
type Numbers struct {
	values []any
	behind []*sql.RawBytes
	into   []any // the numbers, and the columns behind them
	Err    error // why a row could not be read, or a value that was no whole number
}

// NewNumbers is for rows of n numbers, and of other columns behind them.
func NewNumbers(n int, behind ...*sql.RawBytes) *Numbers {
	row := &Numbers{values: make([]any, n), behind: behind, into: make([]any, 0, n+len(behind))}
	for i := range row.values {
		row.into = append(row.into, &row.values[i])
	}
	for _, text := range behind {
		row.into = append(row.into, text)
	}
	return row
}

// Scan reads a row. If it cannot be read, Err says so, and the row is one of NULLs.
func (n *Numbers) Scan(rows *sql.Rows) {
	err := rows.Scan(n.into...)
	if err == nil {
		return
	}
	n.Err = err
	clear(n.values)
	for _, text := range n.behind {
		*text = nil
	}
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
		n.Err = fmt.Errorf("column %d is %v (%T), not a whole number", i, v, v)
	}
	return 0
}

// MaxForeseen bounds the edges that room is made for before they come: a count may be wrong.
const MaxForeseen = 1 << 20

// SortByPeer puts edges of one owner in the order of their peers, in which they mostly come.
func SortByPeer(side storage.Side, edges []storage.Edge) {
	ascending := func(a, b storage.Edge) int { return cmp.Compare(side.Peer(a.Pair()), side.Peer(b.Pair())) }
	if !slices.IsSortedFunc(edges, ascending) {
		slices.SortFunc(edges, ascending)
	}
}
