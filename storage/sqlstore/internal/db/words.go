package db

import "kith/storage"

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
