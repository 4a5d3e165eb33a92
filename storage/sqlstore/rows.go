package sqlstore

import "database/sql"

// eachEntry reads rows, whose columns are a key and a value.
func eachEntry[K, V any](columns func(*K, *V) []any, take func(K, V)) func(*sql.Rows) error {
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

// eachRow reads rows, whose columns are values of T.
func eachRow[T any](columns func(*T) []any, take func(T)) func(*sql.Rows) error {
	return eachEntry(func(row *T, _ *struct{}) []any { return columns(row) }, func(row T, _ struct{}) { take(row) })
}

// appendTo reads rows, whose columns are values of T, into a list.
func appendTo[T any](list *[]T, columns func(*T) []any) func(*sql.Rows) error {
	return eachRow(columns, func(row T) { *list = append(*list, row) })
}

// itself are the columns of rows that are one value.
func itself[T any](value *T) []any { return []any{value} }

// both are the columns of rows that are a key and a value.
func both[K, V any](key *K, value *V) []any { return []any{key, value} }
