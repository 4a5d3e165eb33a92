package db

import "kith/storage"

// MarkSide is one more number beside the sides: it stands for the marks on follows.
const MarkSide = storage.Side(len(storage.AllSides))

// BySide is a statement for each of the sides of users, written out.
type BySide[T Text | string] [len(storage.Sides)]T

// ByTable is a statement for each of all sides, written out.
type ByTable[T Text | string] [len(storage.AllSides)]T

// OfFollows is a statement for the two sides of follows.
type OfFollows[T Text | string] [storage.Inverse + 1]T

// Text is a statement that the dialects write differently. Where only the MySQL family takes
// a word (`FORCE INDEX`, `FOR UPDATE`), the statement is one string, with that word in an
// executable comment, `/*! … */`: SQLite skips it. What only TiDB takes is in `/*T! … */`.
type Text struct{ MySQL, SQLite string }

// Text is a statement in this dialect.
func (d *Dialect) Text(t Text) string {
	if d == sqliteDialect {
		return t.SQLite
	}
	return t.MySQL
}
