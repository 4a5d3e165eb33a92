package storage

import (
	"context"
	"sync/atomic"
)

// Reads are what engines of SQL have done for the lifetime of a context: how many statements they have run, and how
// many rows these have returned. What several requests wait for counts for the one that asked first.
type Reads struct {
	statements, rows atomic.Int64
}

type readsKey struct{}

// CountReads has engines count what they do under a context.
func CountReads(ctx context.Context) (context.Context, *Reads) {
	r := &Reads{}
	return context.WithValue(ctx, readsKey{}, r), r
}

// ReadsOf returns what a context counts. If [CountReads] was not called, it returns nil, which counts nothing.
func ReadsOf(ctx context.Context) *Reads {
	r, _ := ctx.Value(readsKey{}).(*Reads)
	return r
}

// Note counts a statement and the rows that it has returned.
func (r *Reads) Note(rows int) {
	if r != nil {
		r.statements.Add(1)
		r.rows.Add(int64(rows))
	}
}

// Totals are the statements and the rows so far.
func (r *Reads) Totals() (statements, rows int64) {
	return r.statements.Load(), r.rows.Load()
}
