package db

import "database/sql"

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
