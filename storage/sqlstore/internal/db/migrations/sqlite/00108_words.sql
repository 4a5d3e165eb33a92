-- +goose Up
-- The words of names and handles, without case and accents: see storage.WordsOf. The next migration fills it.
CREATE TABLE IF NOT EXISTS user_words (
  user_id INTEGER NOT NULL,
  word    TEXT    NOT NULL,
  PRIMARY KEY (user_id, word)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS idx_user_words
ON user_words (word, user_id);
