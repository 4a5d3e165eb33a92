package sqlstore

import (
	"cmp"
	"context"
	"strings"

	"kith/storage"
	"kith/storage/finding"
	"kith/storage/sqlstore/internal/db"
)

// A user's words are rows on the user's shard, so every shard is asked. A prefix is one range of an index on every engine: the full-text indexes of the engines
// differ in what a word is and have no bound on what a prefix reads (ADR 65).

const (
	// The bounds are written as those of pages.go. Served by idx_user_words.
	sqlWithWord = `
SELECT word, user_id
FROM user_words /*! FORCE INDEX (idx_user_words) */
WHERE word >= ? AND word < ? AND (word > ? OR user_id > ?)
ORDER BY word, user_id LIMIT ?`

	// A range for each user. Served by the primary key.
	sqlHaveWord = `
SELECT user_id
FROM user_words /*! FORCE INDEX (PRIMARY) */
WHERE user_id IN (?) AND word >= ? AND word < ?`

	// Served by the primary key.
	sqlRemoveWords = `
DELETE FROM user_words
WHERE user_id IN (?)`
)

var sqlInsertWords = db.Both(`
INSERT OR IGNORE INTO user_words (user_id, word)
VALUES (?, ?)`)

// behindWords comes behind every character of a word.
const behindWords = "\U0010FFFF"

// readWords answers [finding.WordLookups].
func (s *Store) readWords(ctx context.Context, q finding.WordQuery) ([]storage.UserID, error) {
	if q.Prefix == "" {
		return nil, ctx.Err()
	}
	type row struct {
		word string
		user storage.UserID
	}
	byWord := func(a, b row) int { return cmp.Or(strings.Compare(a.word, b.word), cmp.Compare(a.user, b.user)) }
	first, err := firstOf(s, q.Limit, byWord, func(i, limit int, behind []row, owns func(bucket int) bool) ([]row, error) {
		last := row{word: q.Prefix}
		if n := len(behind); n > 0 {
			last = behind[n-1]
		}
		return ownPage(limit, func(limit int, own func(row, bool)) error {
			args := []any{last.word, q.Prefix + behindWords, last.word, int64(last.user), limit}
			return s.db.Query(ctx, "words", i, limit, sqlWithWord, args, db.EachEntry(db.TwoColumns, func(word string, user storage.UserID) {
				last = row{word, user}
				own(last, owns(user.Bucket()))
			}))
		})
	})
	return storage.Each(first, func(r row) storage.UserID { return r.user }), err
}

// readUserWords answers [finding.UserWordLookups].
func (s *Store) readUserWords(ctx context.Context, q finding.UserWord) (have []storage.UserID, err error) {
	all := db.LookUp(s.db, q.Users, s.sql.MaxKeys, s.shards.Of, func(shard int, ids []storage.UserID, found func(storage.UserID, bool)) error {
		if q.Prefix == "" {
			return ctx.Err()
		}
		args := append(db.Arguments(ids), q.Prefix, q.Prefix+behindWords)
		return s.db.Query(ctx, "words.have", shard, len(ids), db.Listed(sqlHaveWord, len(ids)), args, db.EachRow(db.OneColumn, func(id storage.UserID) { found(id, true) }))
	})
	for i, r := range all {
		if err = cmp.Or(err, r.Err); r.Found {
			have = append(have, q.Users[i])
		}
	}
	return have, err
}

// writeWords adds the words of users.
func (w *writer) writeWords(users ...storage.User) error {
	type row struct {
		user storage.UserID
		word string
	}
	var rows []row
	for _, u := range users {
		for _, word := range finding.Words(u) {
			rows = append(rows, row{u.ID, word})
		}
	}
	_, err := db.WriteRows(w.Tx, w.store.sql.Text(sqlInsertWords), rows, func(args []any, r row) []any { return append(args, int64(r.user), r.word) })
	return err
}

// renameWords replaces the words of users.
func (w *writer) renameWords(users []storage.User) error {
	if len(users) == 0 {
		return nil
	}
	ids := storage.Each(users, func(u storage.User) storage.UserID { return u.ID })
	if _, err := w.Exec(len(ids), db.Listed(sqlRemoveWords, len(ids)), db.Arguments(ids)...); err != nil {
		return err
	}
	return w.writeWords(users...)
}
