package move

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"kith/storage/sqlstore/internal/db"
)

// How far a move has copied a table is recorded with each page, in the transaction that writes it. So another
// mover continues behind the last page: changes made since to the rows before it have been noted. The records
// of a move are forgotten when it begins, before anything is noted, and when it has ended.

const (
	// Served by the primary key.
	sqlCopied = `
SELECT name, up_to
FROM kith_copied
WHERE first_bucket = ?`

	sqlRecordCopied = `
REPLACE INTO kith_copied (first_bucket, name, up_to)
VALUES (?, ?, ?)`

	// Served by the primary key.
	sqlForgetCopied = `
DELETE FROM kith_copied
WHERE first_bucket = ?`
)

// copied is how far the tables have been copied: an empty key is all of a table.
func (m *Mover) copied(ctx context.Context) (map[string]row, error) {
	known := make(map[string]row)
	if m.to != m.db {
		return known, nil // to another store all is copied again
	}
	err := side{m.db, m.plan.To}.read(ctx, sqlCopied, []any{m.plan.Buckets.First}, func(rows *sql.Rows) error {
		var name, upTo string
		err := rows.Scan(&name, &upTo)
		if err == nil {
			known[name], err = parseKey(upTo)
		}
		return err
	})
	return known, err
}

// copyPage writes a page, and records how far the table has been copied with it; nil is all of the table.
// A page without rows is not worth a transaction, unless it is the last one.
func (m *Mover) copyPage(ctx context.Context, t table, rows []row, upTo row) error {
	if m.to != m.db {
		return m.put(ctx, change{t, rows, nil})
	}
	if len(rows) == 0 && upTo != nil {
		return nil
	}
	text, err := spellKey(upTo)
	if err != nil {
		return err
	}
	return m.inPart(ctx, m.plan.To, func(tx *db.Tx) error {
		if err := (change{t, rows, nil}).make(tx); err != nil {
			return err
		}
		_, err := tx.Exec(1, sqlRecordCopied, m.plan.Buckets.First, t.Name, text)
		return err
	})
}

// forgetCopied forgets how far the move of some buckets is.
func forgetCopied(first int) func(*db.Tx) error {
	return func(tx *db.Tx) error {
		_, err := tx.Exec(1, sqlForgetCopied, first)
		return err
	}
}

func spellKey(key row) (string, error) {
	if key == nil {
		return "", nil
	}
	text, err := json.Marshal([]any(key))
	return string(text), err
}

func parseKey(text string) (row, error) {
	if text == "" {
		return row{}, nil
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber() // ids have 63 bits
	var key row
	err := decoder.Decode(&key)
	for i, value := range key {
		if n, ok := value.(json.Number); ok {
			number, numberErr := n.Int64()
			key[i], err = number, errors.Join(err, numberErr)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read how far a move is: %w", err)
	}
	return key, nil
}
