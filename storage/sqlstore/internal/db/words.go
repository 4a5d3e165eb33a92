package db

import (
	"context"
	"database/sql"

	"github.com/pressly/goose/v3"

	"kith/storage"
)

// InsertWords adds words of users.
var InsertWords = Both(`
INSERT OR IGNORE INTO user_words (user_id, word)
VALUES (?, ?)`)

// WordArguments are what [InsertWords] takes, for so many words.
func WordArguments(users ...storage.User) (args []any, words int) {
	for _, u := range users {
		for _, word := range storage.WordsOf(u.Handle, u.Name) {
			args, words = append(args, int64(u.ID), word), words+1
		}
	}
	return args, words
}

const (
	// How far the fill has come: users are filled in the order of their ids. Served by the primary key.
	sqlLastWords = `
SELECT COALESCE(MAX(user_id), 0)
FROM user_words`

	// Served by the primary key.
	sqlUsersToFill = `
SELECT user_id, handle, name
FROM users
WHERE user_id > ?
ORDER BY user_id LIMIT ?`
)

// usersAtOnce is how many users one statement fills.
const usersAtOnce = 200

// fillWords is the migration that gives the users of an older version their words. On a server each step commits by itself, and one
// that was killed continues behind the last user who has words; on SQLite all is one transaction. A gateway of the version before
// writes no words: a name that it changes meanwhile is found when it is changed again.
func (d *DB) fillWords() *goose.Migration {
	up := &goose.GoFunc{RunDB: func(ctx context.Context, on *sql.DB) error { return d.fillWordsOn(ctx, on) }}
	if d.Dialect == sqliteDialect {
		up = &goose.GoFunc{RunTx: func(ctx context.Context, on *sql.Tx) error { return d.fillWordsOn(ctx, on) }}
	}
	return goose.NewGoMigration(109, up, nil)
}

// execer is a transaction, or a pool whose statements commit by themselves.
type execer interface {
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row
	ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error)
}

func (d *DB) fillWordsOn(ctx context.Context, on execer) error {
	var last storage.UserID
	if err := on.QueryRowContext(ctx, sqlLastWords).Scan(&last); err != nil {
		return err
	}
	for {
		users, err := usersToFill(ctx, on, last)
		if err != nil || len(users) == 0 {
			return err
		}
		args, n := WordArguments(users...)
		if _, err := on.ExecContext(ctx, Listed(d.Dialect.Text(InsertWords), n), args...); err != nil {
			return err
		}
		last = users[len(users)-1].ID
	}
}

func usersToFill(ctx context.Context, on execer, after storage.UserID) (users []storage.User, err error) {
	rows, err := on.QueryContext(ctx, sqlUsersToFill, int64(after), usersAtOnce)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var u storage.User
		if err := rows.Scan(&u.ID, &u.Handle, &u.Name); err != nil {
			return nil, err
		}
		users = append(users, u)
	}
	return users, rows.Err()
}
