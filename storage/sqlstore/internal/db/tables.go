package db

import (
	"strconv"
	"strings"

	"kith/storage"
)

// MarkSide stands beside the sides for the marks on follows.
const MarkSide = storage.Side(len(storage.Sides))

// Table spells the SQL of one side.
type Table struct {
	Name    string // of the table
	Owner   string // the column it is sharded by
	Peer    string // the other end's column
	Columns string // owner, peer, type, update_time
	Count   string // the column of user_counts that follows from it, if any
	Rows    string // the beginning of a SELECT of its rows, with the number of the side first
}

// TableOf is the table of a side, or that of [MarkSide].
func TableOf(side storage.Side) *Table { return &tables[side] }

var tables = [...]Table{
	storage.Forward:  edges(storage.Forward, "from_user_id", "to_user_id", "following_count"),
	storage.Inverse:  edges(storage.Inverse, "to_user_id", "from_user_id", "follower_count"),
	storage.Requests: edges(storage.Requests, "from_user_id", "to_user_id", ""),
	storage.Inbox:    edges(storage.Inbox, "to_user_id", "from_user_id", ""),
	MarkSide: {
		Name: "edge_marks", Owner: "from_user_id", Peer: "to_user_id",
		Rows: "\nSELECT 4, from_user_id, to_user_id, 0, 0\nFROM edge_marks",
	},
}

func edges(side storage.Side, owner, peer, count string) Table {
	columns := owner + ", " + peer + ", type, update_time"
	rows := "\nSELECT " + strconv.Itoa(int(side)) + ", " + columns + "\nFROM " + side.String()
	return Table{side.String(), owner, peer, columns, count, rows}
}

// Spell fills a statement's names in.
func (t *Table) Spell(text string) string {
	return strings.NewReplacer("{table}", t.Name, "{owner}", t.Owner, "{peer}", t.Peer, "{columns}", t.Columns).Replace(text)
}

// BySide holds something for each of the sides.
type BySide[T any] [len(storage.Sides)]T

// Spelled is a statement in the words of all sides, made once.
func Spelled(text string) (all BySide[string]) {
	for _, side := range storage.Sides {
		all[side] = TableOf(side).Spell(text)
	}
	return all
}
