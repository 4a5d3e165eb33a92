package move

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// A table is one whose rows move with their buckets, or are removed from where they were.
type table struct{ db.Table }

var tables = storage.Each(db.Tables, func(t db.Table) table { return table{t} })

// packedTables are the tables from which rows that have moved away are only removed.
var packedTables = []table{
	{db.Table{Name: "packed_list", Keys: []string{"owner", "side"}}},
	{db.Table{Name: "packed_change", Keys: []string{"owner", "side", "peer"}}},
	{db.Table{Name: "packed_chunk", Keys: []string{"owner", "side", "first_peer"}}},
	{db.Table{Name: "packed_short", Keys: []string{"owner", "side"}}},
}

// A row is the values of a table's keys and columns, in that order: int64, string or nil.
type row []any

// key is the values of the keys.
func (t table) key(r row) row { return r[:len(t.Keys)] }

// note is what is noted when the row of a key is written.
func (t table) note(key row) db.MovedRow {
	r := db.MovedRow{Kind: t.Kind}
	switch {
	case t.Kind.ByText():
		r.Handle = key[0].(string)
		return r
	case t.Kind != db.UserRows:
		r.Peer = storage.UserID(key[1].(int64))
	}
	r.Owner = storage.UserID(key[0].(int64))
	return r
}

// bucket is the bucket in which a row is.
func (t table) bucket(r row) int {
	if text, ok := r[0].(string); ok {
		return storage.BucketOfHandle(text)
	}
	return storage.UserID(r[0].(int64)).Bucket()
}

// text distinguishes rows.
func (r row) text() string { return fmt.Sprintf("%#v", []any(r)) }

// list is the names of columns, with commas.
func list(columns []string) string { return strings.Join(columns, ", ") }

// reader reads rows: a [side] or, in tests, what explains how they are read.
type reader interface {
	read(ctx context.Context, text string, args []any, each func(*sql.Rows) error) error
}

func (t table) scan(rows *sql.Rows) (row, error) {
	r := make(row, len(t.All()))
	into := make([]any, len(r))
	for i := range r {
		into[i] = &r[i]
	}
	err := rows.Scan(into...)
	for i, value := range r {
		switch value := value.(type) {
		case []byte:
			r[i] = string(value)
		case uint64:
			r[i] = int64(value)
		}
	}
	return r, err
}

func (t table) query(ctx context.Context, from reader, text string, args []any) (rows []row, err error) {
	err = from.read(ctx, text, args, func(each *sql.Rows) error {
		r, err := t.scan(each)
		rows = append(rows, r)
		return err
	})
	return rows, err
}

// hint makes the engines read in the order of the primary key, and not sort an index.
func (t table) hint(sqlite bool) string {
	if len(t.Keys) == 1 {
		return ""
	}
	if sqlite {
		return " INDEXED BY sqlite_autoindex_" + t.Name + "_1"
	}
	return " FORCE INDEX (PRIMARY)"
}

// A span is a part of a table, in the order of the keys.
type span struct {
	after row                  // the rows behind a key, or behind all rows of the first columns of one; nil: from the beginning
	upTo  any                  // of the first column; nil: to the end
	of    *storage.BucketRange // only those of some buckets; nil: of all
}

// ofBuckets is a condition on the first column of a key. No index serves it: the rows of a span are read for
// it, but not sent.
func (t table) ofBuckets() string {
	return fmt.Sprintf("CRC32(%s) %% %d BETWEEN ? AND ?", t.Keys[0], storage.Buckets)
}

// page reads the first rows of a span, at most so many. No engine takes a condition on several columns of a key
// for a range of its index, so there is a statement for each: first for what is left of the last key but one.
func (t table) page(ctx context.Context, from reader, sqlite bool, s span, limit int) (rows []row, err error) {
	for fixed := max(0, len(s.after)-1); fixed >= 0; fixed-- {
		var conditions []string
		var args []any
		if fixed > 0 && s.of != nil && !s.of.Contains(t.bucket(s.after)) {
			continue
		}
		for i, value := range s.after[:min(fixed+1, len(s.after))] {
			how := " = ?"
			if i == fixed {
				how = " > ?"
			}
			conditions, args = append(conditions, t.Keys[i]+how), append(args, value)
		}
		if fixed == 0 && s.upTo != nil {
			conditions, args = append(conditions, t.Keys[0]+" <= ?"), append(args, s.upTo)
		}
		if fixed == 0 && s.of != nil {
			conditions, args = append(conditions, t.ofBuckets()), append(args, s.of.First, s.of.Last)
		}
		where := ""
		if len(conditions) > 0 {
			where = "WHERE " + strings.Join(conditions, " AND ") + "\n"
		}
		text := fmt.Sprintf("SELECT %s\nFROM %s%s\n%sORDER BY %s LIMIT ?", list(t.All()), t.Name, t.hint(sqlite), where, list(t.Keys[fixed:]))
		more, err := t.query(ctx, from, text, append(args, limit-len(rows)))
		if rows = append(rows, more...); err != nil || len(rows) == limit {
			return rows, err
		}
	}
	return rows, nil
}

// bound is the first column of the key that is so many rows behind another; nil if there are fewer.
func (t table) bound(ctx context.Context, from reader, sqlite bool, after row, rows int) (upTo any, err error) {
	where, args := "", row{}
	if after != nil {
		where, args = fmt.Sprintf("WHERE %s > ?\n", t.Keys[0]), slices.Clone(after[:1])
	}
	text := fmt.Sprintf("SELECT %s\nFROM %s%s\n%sORDER BY %s LIMIT 1 OFFSET ?", t.Keys[0], t.Name, t.hint(sqlite), where, t.Keys[0])
	first := table{db.Table{Name: t.Name, Keys: t.Keys[:1]}}
	found, err := first.query(ctx, from, text, append(args, rows-1))
	if len(found) > 0 {
		upTo = found[0][0]
	}
	return upTo, err
}

// condition is for rows by their keys, or, if of is 1, by the first one alone.
func (t table) condition(of int) string {
	if of == 1 {
		return fmt.Sprintf("WHERE %s IN (?)", t.Keys[0])
	}
	return fmt.Sprintf("WHERE (%s) IN ((%s))", list(t.Keys[:of]), strings.TrimSuffix(strings.Repeat("?, ", of), ", "))
}

// find reads rows by their keys.
func (t table) find(ctx context.Context, from reader, keys []row) (found []row, err error) {
	for keys := range slices.Chunk(keys, atOnce) {
		text := fmt.Sprintf("SELECT %s\nFROM %s\n%s", list(t.All()), t.Name, t.condition(len(keys[0])))
		rows, err := t.query(ctx, from, db.Listed(text, len(keys)), slices.Concat(keys...))
		if err != nil {
			return nil, err
		}
		found = append(found, rows...)
	}
	return found, nil
}

// remove deletes rows by their keys.
func (t table) remove(to *db.Tx, keys []row) error {
	for keys := range slices.Chunk(keys, atOnce) {
		text := fmt.Sprintf("DELETE FROM %s\n%s", t.Name, t.condition(len(keys[0])))
		if _, err := to.Exec(len(keys), db.Listed(text, len(keys)), slices.Concat(keys...)...); err != nil {
			return err
		}
	}
	return nil
}

// write puts rows in, in the place of those with the same keys.
func (t table) write(to *db.Tx, rows []row) error {
	for rows := range slices.Chunk(rows, atOnce) {
		text := fmt.Sprintf("REPLACE INTO %s (%s)\nVALUES (%s)", t.Name, list(t.All()), strings.TrimSuffix(strings.Repeat("?, ", len(rows[0])), ", "))
		if _, err := to.Exec(len(rows), db.Listed(text, len(rows)), slices.Concat(rows...)...); err != nil {
			return err
		}
	}
	return nil
}
