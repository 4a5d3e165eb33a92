package move

import (
	"context"
	"database/sql"
	"slices"
	"strconv"

	"kith/storage/sqlstore/internal/db"
)

// Expected is about how much a move copies.
type Expected struct {
	Rows  int64 `json:"rows"`
	Bytes int64 `json:"bytes"` // with indexes, as the shard stores them
}

// Expect estimates a move from the size of the shard's tables and the share of its buckets that goes.
func Expect(ctx context.Context, d *db.DB, p Plan) (Expected, error) {
	owned := 0
	for _, c := range d.Claims()[p.From] {
		if c.State == db.Owned || c.State == db.Leaving || c.State == db.Closed {
			owned += c.Len()
		}
	}
	e, err := sizes(ctx, d, p.From)
	if owned > 0 {
		share := float64(p.Buckets.Len()) / float64(owned)
		e = Expected{int64(float64(e.Rows) * share), int64(float64(e.Bytes) * share)}
	}
	return e, err
}

func sizes(ctx context.Context, d *db.DB, ordinal int) (e Expected, err error) {
	from := side{d, ordinal}
	if !d.IsSQLite() {
		err = from.read(ctx, "SHOW TABLE STATUS", nil, func(rows *sql.Rows) error {
			status, err := statusOf(rows)
			if slices.ContainsFunc(tables, func(t table) bool { return t.name == status["Name"].String }) {
				e.Rows += number(status["Rows"])
				e.Bytes += number(status["Data_length"]) + number(status["Index_length"])
			}
			return err
		})
		return e, err
	}
	for _, t := range tables {
		err := from.read(ctx, "SELECT COUNT(*)\nFROM "+t.name, nil, func(rows *sql.Rows) error {
			var n int64
			err := rows.Scan(&n)
			e.Rows += n
			return err
		})
		if err != nil {
			return e, err
		}
	}
	e.Bytes = 1
	for _, pragma := range []string{"PRAGMA page_count", "PRAGMA page_size"} {
		err := from.read(ctx, pragma, nil, func(rows *sql.Rows) error {
			var n int64
			err := rows.Scan(&n)
			e.Bytes *= n
			return err
		})
		if err != nil {
			return e, err
		}
	}
	return e, nil
}

// statusOf is a row of SHOW TABLE STATUS by the names of its columns, of which there are more in some
// servers.
func statusOf(rows *sql.Rows) (map[string]sql.NullString, error) {
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	err = rows.Scan(into...)
	status := make(map[string]sql.NullString, len(columns))
	for i, c := range columns {
		status[c] = values[i]
	}
	return status, err
}

func number(s sql.NullString) int64 {
	n, err := strconv.ParseInt(s.String, 10, 64)
	if err != nil {
		return 0 // the server does not know
	}
	return n
}
