package move

import (
	"database/sql"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage/sqlstore/internal/db"
)

// notCopied are columns whose values are made where the rows are.
var notCopied = map[string][]string{
	"user_counts": {"packed", "packed_version", "follower_class"},
}

// The listed columns of each table are the columns it has.
func TestTablesAreAsTheyAreMade(t *testing.T) {
	d := openShard(t)
	for _, table := range append(slices.Concat(tables, packedTables), secrets) {
		columns, _ := appendColumns(t, d, table, nil)
		slices.Sort(columns)
		if table.Columns != nil && !slices.Equal(slices.Sorted(slices.Values(table.All())), columns) {
			t.Errorf("%s has the columns %v, not %v", table.Name, columns, table.All())
		}
	}
}

// appendColumns reads which columns a table has, and appends those that are no numbers.
func appendColumns(t *testing.T, d *db.DB, of table, texts []string) (columns, all []string) {
	t.Helper()
	err := side{d, 0}.read(t.Context(), "SELECT name, type FROM pragma_table_xinfo('"+of.Name+"')", nil, func(rows *sql.Rows) error {
		var name, kind string
		err := rows.Scan(&name, &kind)
		if slices.Contains(notCopied[of.Name], name) {
			return err
		}
		if columns = append(columns, name); kind != "INTEGER" {
			texts = append(texts, name)
		}
		return err
	})
	must.OK(t, err)
	return columns, texts
}

// openShard is a store of one shard on SQLite.
func openShard(t *testing.T) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), db.Config{Location: "sqlite:" + filepath.Join(t.TempDir(), "a.db"), StatementTimeout: time.Minute})
	must.OK(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

// Pages of a table follow one another, however many columns its key has.
func TestPagesOfKeysOfThreeColumns(t *testing.T) {
	d := openShard(t)
	const rows = 7
	err := d.Exclusive(t.Context(), "test", 0, func(tx *db.Tx) error {
		for owner := range 3 {
			for side := range 2 {
				for peer := range rows {
					if _, err := tx.Exec(1, "INSERT INTO packed_change (owner, side, peer, type, update_time)\nVALUES (?, ?, ?, 1, 1)", owner+1, side, peer+1); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
	must.OK(t, err)
	i := slices.IndexFunc(packedTables, func(t table) bool { return t.Name == "packed_change" })
	for _, limit := range []int{1, 4, rows, 1000} {
		var all []row
		var after row
		for len(all) <= 6*rows {
			page, err := packedTables[i].page(t.Context(), side{d, 0}, true, span{after: after}, limit)
			must.OK(t, err)
			all = append(all, page...)
			if len(page) < limit {
				break
			}
			after = packedTables[i].key(page[len(page)-1])
		}
		check.That(t, len(all) == 6*rows && slices.IsSortedFunc(all, func(a, b row) int { return compareKeys(a[:3], b[:3]) }), "%d rows a page: %v", limit, all)
	}
}
