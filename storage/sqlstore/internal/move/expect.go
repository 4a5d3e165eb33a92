package move

import (
	"context"
	"database/sql"
	"strings"

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

// sizes are the rows and bytes of the tables of a shard, about.
func sizes(ctx context.Context, d *db.DB, ordinal int) (e Expected, err error) {
	var names, counts []string
	for _, t := range tables {
		names, counts = append(names, "'"+t.Name+"'"), append(counts, "(SELECT COUNT(*) FROM "+t.Name+")")
	}
	// Served by the primary key of the data dictionary: it has a row a table.
	text := "SELECT COALESCE(SUM(table_rows), 0), COALESCE(SUM(data_length + index_length), 0)\nFROM information_schema.tables" +
		"\nWHERE table_schema = DATABASE() AND table_name IN (" + list(names) + ")"
	if d.IsSQLite() {
		text = "SELECT " + strings.Join(counts, " + ") + ", page_count * page_size\nFROM pragma_page_count, pragma_page_size"
	}
	err = side{d, ordinal}.read(ctx, text, nil, func(rows *sql.Rows) error { return rows.Scan(&e.Rows, &e.Bytes) })
	return e, err
}
