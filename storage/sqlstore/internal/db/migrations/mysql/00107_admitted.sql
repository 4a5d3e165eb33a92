-- +goose Up
-- Its row says that the database may be written to. Dumps leave the table out, so a restored database is not written to
-- before kith shards readmit has made it again.
CREATE TABLE IF NOT EXISTS kith_admitted (id INTEGER NOT NULL PRIMARY KEY);

REPLACE INTO kith_admitted (id) VALUES (1);
