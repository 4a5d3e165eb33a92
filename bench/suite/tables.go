package suite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"kith/bench"
	"kith/bench/report"
	"kith/storage"
	"kith/storage/sqlstore"
)

// measureTables reports the size of a new store, then inserts follows in random order, packs the longest
// lists, and reports again.
func (r *run) measureTables(ctx context.Context, made madeStore, graph *bench.Graph, into *report.Store) error {
	into.Imported, into.ImportPerSecond = made.edges, float64(made.edges)/made.took.Seconds()
	if !r.wants(PartBytes) {
		return nil
	}
	imported, err := r.tableBytes(ctx, made.location)
	if err != nil {
		return err
	}
	store, err := sqlstore.Open(ctx, sqlstore.Config{Location: made.location})
	if err != nil {
		return err
	}
	if into.Inserted = int(float64(made.edges) * r.Inserts); into.Inserted > 0 {
		began := time.Now()
		err = insert(ctx, store, graph, into.Inserted)
		into.InsertPerSecond = float64(into.Inserted) / time.Since(began).Seconds()
	}
	if err == nil {
		err = packCelebrities(ctx, store, graph)
	}
	if err := errors.Join(err, store.Close()); err != nil {
		return err
	}
	if err := r.analyze(ctx, made.location); err != nil {
		return err
	}
	inserted, err := r.tableBytes(ctx, made.location)
	if err != nil {
		return err
	}
	for _, name := range []string{"following", "follower", "users", "handles", "user_counts"} {
		into.Tables = append(into.Tables, report.Table{Name: name, Imported: imported[name], Inserted: inserted[name]})
	}
	if into.Packed, err = r.packedBytes(ctx, made.location); err != nil {
		return err
	}
	r.Log("%s: %d follows in random order, %.0f/s", into.Engine, into.Inserted, into.InsertPerSecond)
	return nil
}

// insert writes follows in random order to both sides, by the rules of single follows but many in a
// transaction: which pages of the tables are split depends on the order alone.
func insert(ctx context.Context, store *sqlstore.Store, graph *bench.Graph, count int) error {
	const atOnce = 1000
	edges := make([]storage.Edge, 0, atOnce)
	write := func() error {
		for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
			for _, written := range store.Apply(ctx, side, edges, storage.IfNewer) {
				if written.Err != nil {
					return written.Err
				}
			}
		}
		edges = edges[:0]
		return nil
	}
	for e := range graph.MoreEdges(count) {
		if edges = append(edges, e); len(edges) == atOnce {
			if err := write(); err != nil {
				return err
			}
		}
	}
	return write()
}

// packCelebrities packs the followers of the celebrities.
func packCelebrities(ctx context.Context, store *sqlstore.Store, graph *bench.Graph) error {
	for n := 1; n <= bench.Celebrities; n++ {
		if err := store.Pack(ctx, storage.Inverse, graph.ID(n)); err != nil {
			return fmt.Errorf("pack the followers of celebrity %d: %w", n, err)
		}
	}
	return nil
}

// The bytes of tables with their indexes: of all pages that they have.
const (
	sqlMariaDBTables = `
SELECT table_name, SUM(data_length + index_length)
FROM information_schema.tables
WHERE table_schema = DATABASE()
GROUP BY table_name`
	sqlSQLiteTables = `
SELECT s.tbl_name, SUM(d.pgsize)
FROM dbstat AS d
JOIN sqlite_schema AS s ON s.name = d.name
GROUP BY s.tbl_name`
	sqlPacked = `
SELECT COALESCE(SUM(LENGTH(data)), 0), COUNT(DISTINCT owner)
FROM packed_chunk`
	sqlPackedEntries = `
SELECT COALESCE(SUM(follower_count), 0)
FROM user_counts
WHERE user_id IN (SELECT owner FROM packed_chunk)`
)

// tableBytes are the bytes of each table, of all shards together.
func (r *run) tableBytes(ctx context.Context, location string) (map[string]int64, error) {
	scheme, addresses := addressesOf(location)
	text := sqlMariaDBTables
	if scheme == "sqlite" {
		text = sqlSQLiteTables
	}
	bytes := map[string]int64{}
	for _, address := range addresses {
		err := r.query(ctx, address, text, func(scan func(...any) error) error {
			var name string
			var n int64
			err := scan(&name, &n)
			bytes[name] += n
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return bytes, nil
}

func (r *run) packedBytes(ctx context.Context, location string) (*report.Packed, error) {
	packed := &report.Packed{} // short lists are not packed
	_, addresses := addressesOf(location)
	for _, address := range addresses {
		var bytes, entries int64
		var lists int
		err := r.query(ctx, address, sqlPacked, func(scan func(...any) error) error { return scan(&bytes, &lists) })
		if err == nil {
			err = r.query(ctx, address, sqlPackedEntries, func(scan func(...any) error) error { return scan(&entries) })
		}
		if err != nil {
			return nil, err
		}
		packed.Bytes, packed.Lists, packed.Entries = packed.Bytes+bytes, packed.Lists+lists, packed.Entries+entries
	}
	return packed, nil
}

// query reads rows of a database, a DSN or a file, over a connection of its own.
func (r *run) query(ctx context.Context, address, text string, each func(scan func(...any) error) error) error {
	driver := "mysql"
	if strings.HasSuffix(address, ".db") {
		driver, address = "sqlite", "file:"+address
	}
	db, err := sql.Open(driver, address)
	if err != nil {
		return err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, text)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
