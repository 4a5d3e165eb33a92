package move

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// explaining explains statements instead of running them.
type explaining struct {
	side
	t     *testing.T
	plans []string // each with its statement
}

func (e *explaining) read(ctx context.Context, text string, args []any, _ func(*sql.Rows) error) error {
	how := "EXPLAIN FORMAT=TRADITIONAL "
	switch {
	case e.db.IsSQLite():
		how = "EXPLAIN QUERY PLAN "
	case testenv.Engine() != "mysql":
		how = "EXPLAIN " // MariaDB does not know the word
	}
	plan := text + "\n"
	err := e.side.read(ctx, how+text, args, func(rows *sql.Rows) error {
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		err = rows.Scan(into...)
		for i, v := range values {
			plan += fmt.Sprintf("%s=%s ", columns[i], v.String)
		}
		return err
	})
	e.plans = append(e.plans, plan)
	return err
}

// Spans are read in the order of the primary key, from their beginning, and nothing is sorted.
func TestSpansAreReadByTheKey(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { explainSpans(t, openShard(t)) })
	t.Run(testenv.Engine(), func(t *testing.T) {
		testenv.NotOn(t, "a store on TiDB does not move", "tidb")
		dsn := testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0]
		d, err := db.Open(t.Context(), db.Config{Location: "mysql:" + dsn, StatementTimeout: time.Minute})
		must.OK(t, err)
		defer d.Close()
		explainSpans(t, d)
	})
}

func explainSpans(t *testing.T, d *db.DB) {
	t.Helper()
	few := &storage.BucketRange{First: 0, Last: 1023}
	texts := fill(t, d)
	for _, table := range slices.Concat(tables, packedTables) {
		e := &explaining{side: side{d, 0}, t: t}
		var last row
		for _, key := range table.Keys {
			if slices.Contains(texts, key) {
				last = append(last, "5")
			} else {
				last = append(last, int64(5))
			}
		}
		upTo := any(int64(9))
		if table.Kind.ByText() {
			last, upTo = row{"a"}, "b"
		}
		for _, s := range []span{{}, {after: last}, {after: last, upTo: upTo, of: few}, {after: last[:1], of: few}, {upTo: upTo, of: few}} {
			_, err := table.page(t.Context(), e, d.IsSQLite(), s, 10)
			must.OK(t, err)
		}
		for _, after := range []row{nil, last} {
			_, err := table.bound(t.Context(), e, d.IsSQLite(), after, 10)
			must.OK(t, err)
		}
		for _, plan := range e.plans {
			byKey := strings.Contains(plan, "key=PRIMARY") || strings.Contains(plan, "PRIMARY KEY") ||
				strings.Contains(plan, "autoindex_"+table.Name+"_1") || strings.Contains(plan, "SCAN "+table.Name+" ")
			begins := !strings.Contains(plan, "> ?") || testenv.Engine() == "mysql" && strings.HasPrefix(table.Name, "packed_") || // these are empty, and MySQL reads them from their beginning
				strings.Contains(plan, "type=range") || strings.Contains(plan, "SEARCH "+table.Name)
			check.That(t, byKey && begins && !strings.Contains(plan, "filesort") && !strings.Contains(plan, "TEMP B-TREE"), "%s", plan)
		}
	}
}

// fill puts rows into the tables. Without rows MySQL does not care where it begins to read.
func fill(t *testing.T, d *db.DB) (texts []string) {
	t.Helper()
	like := openShard(t)
	for _, table := range tables {
		_, texts = appendColumns(t, like, table, texts)
		names := slices.Concat(table.Keys, table.Columns)
		var rows []row
		for i := range int64(300) {
			r := make(row, len(names))
			for k, name := range names {
				switch {
				case slices.Contains(texts, name):
					r[k] = fmt.Sprint(i)
				case name == "kind":
					r[k] = i % 100 // it may be a byte
				case k < len(table.Keys):
					r[k] = i
				default:
					r[k] = int64(1)
				}
			}
			rows = append(rows, r)
		}
		err := d.Exclusive(t.Context(), "move", 0, func(tx *db.Tx) error { return table.write(tx, rows) })
		if err == nil && !d.IsSQLite() {
			_, err = d.Shard(0).Write.ExecContext(t.Context(), "ANALYZE TABLE "+table.Name)
		}
		must.OK(t, err)
	}
	return texts
}
