package db

import (
	"database/sql"
	"slices"
)

// EachEntry reads rows, whose columns are a key and a value.
func EachEntry[K, V any](columns func(*K, *V) []any, take func(K, V)) func(*sql.Rows) error {
	var key K
	var value V
	into := columns(&key, &value)
	return func(rows *sql.Rows) error {
		key, value = *new(K), *new(V)
		if err := rows.Scan(into...); err != nil {
			return err
		}
		take(key, value)
		return nil
	}
}

// EachRow reads rows, whose columns are values of T.
func EachRow[T any](columns func(*T) []any, take func(T)) func(*sql.Rows) error {
	return EachEntry(func(row *T, _ *struct{}) []any { return columns(row) }, func(row T, _ struct{}) { take(row) })
}

// AppendTo reads rows, whose columns are values of T, into a list.
func AppendTo[T any](list *[]T, columns func(*T) []any) func(*sql.Rows) error {
	return EachRow(columns, func(row T) { *list = append(*list, row) })
}

// OneColumn is for rows that are one value.
func OneColumn[T any](value *T) []any { return []any{value} }

// TwoColumns are for rows that are a key and a value.
func TwoColumns[K, V any](key *K, value *V) []any { return []any{key, value} }

// ReadOne reads the one row that a look-up finds, if it finds one.
func (t *Tx) ReadOne(text string, args []any, into ...any) (found bool, err error) {
	err = t.Read(1, text, args, func(rows *sql.Rows) error {
		found = true
		return rows.Scan(into...)
	})
	return found, err
}

// ReadChunks runs a look-up of keys, at most so many at a time.
func ReadChunks[K any](t *Tx, keys []K, atMost int, statement func([]K) (text string, args []any), each func(*sql.Rows) error) error {
	for chunk := range slices.Chunk(keys, atMost) {
		text, args := statement(chunk)
		if err := t.Read(len(chunk), text, args, each); err != nil {
			return err
		}
	}
	return nil
}

// WriteRows runs a statement that writes a list of rows, as often as it takes, and returns how many rows it changed.
func WriteRows[T any](t *Tx, text string, rows []T, arguments func(args []any, row T) []any) (changed int, err error) {
	for chunk := range slices.Chunk(rows, t.DB.Dialect.MaxRows) {
		var args []any
		for _, row := range chunk {
			args = arguments(args, row)
		}
		n, err := t.Exec(len(chunk), Listed(text, len(chunk)), args...)
		if err != nil {
			return changed, err
		}
		changed += n
	}
	return changed, nil
}
