-- +goose Up
-- The words of names and handles, without case and accents: see storage.WordsOf. Bytes, because spaces at the end would not count in a text. The next migration fills it.
CREATE TABLE IF NOT EXISTS user_words (
  user_id BIGINT        NOT NULL,
  word    VARBINARY(32) NOT NULL,
  PRIMARY KEY (user_id, word),
  KEY idx_user_words (word, user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
