package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Checkpoints tell how far something that runs for long has come. They lie on the
// first shard, under names of at most 190 ASCII characters.
const (
	// Served by the primary key.
	sqlLoadCheckpoint = `
SELECT value
FROM kith_checkpoints
WHERE name = ?`

	sqlSaveCheckpoint = `
INSERT INTO kith_checkpoints (name, value)
VALUES (?, ?)`

	sqlDeleteCheckpoint = `
DELETE FROM kith_checkpoints
WHERE name = ?`
)

// LoadCheckpoint returns what was last saved under the name, and whether there is
// such a thing.
func (s *Store) LoadCheckpoint(ctx context.Context, name string) ([]byte, bool, error) {
	var value []byte
	err := s.db.Shards[0].Write.QueryRowContext(ctx, sqlLoadCheckpoint, name).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("load checkpoint %s: %w", name, s.sql.StorageError(ctx, err))
	}
	return value, true, nil
}

// SaveCheckpoint replaces what is kept under the name.
func (s *Store) SaveCheckpoint(ctx context.Context, name string, value []byte) error {
	text := sqlSaveCheckpoint + s.sql.Upsert("name", "value = NEW.value")
	if _, err := s.db.Shards[0].Write.ExecContext(ctx, text, name, value); err != nil {
		return fmt.Errorf("save checkpoint %s: %w", name, s.sql.StorageError(ctx, err))
	}
	return nil
}

// DeleteCheckpoint forgets the name. An unknown one is no error.
func (s *Store) DeleteCheckpoint(ctx context.Context, name string) error {
	if _, err := s.db.Shards[0].Write.ExecContext(ctx, sqlDeleteCheckpoint, name); err != nil {
		return fmt.Errorf("delete checkpoint %s: %w", name, s.sql.StorageError(ctx, err))
	}
	return nil
}
