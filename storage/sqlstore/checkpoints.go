package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"kith/storage/sqlstore/internal/db"
)

// Checkpoints lie on the first shard.
const (
	// Served by the primary key.
	sqlLoadCheckpoint = `
SELECT value
FROM kith_checkpoints
WHERE name = ?`

	// Served by the primary key.
	sqlDeleteCheckpoint = `
DELETE FROM kith_checkpoints
WHERE name = ?`
)

var sqlSaveCheckpoint = db.Text{
	MySQL: `
INSERT INTO kith_checkpoints (name, value)
VALUES (?, ?)
ON DUPLICATE KEY UPDATE value = VALUES(value)`,
	SQLite: `
INSERT INTO kith_checkpoints (name, value)
VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
}

// LoadCheckpoint implements [storage.Checkpoints].
func (s *Store) LoadCheckpoint(ctx context.Context, name string) ([]byte, bool, error) {
	var value []byte
	err := s.db.Shard(0).Write.QueryRowContext(ctx, sqlLoadCheckpoint, name).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("load checkpoint %s: %w", name, s.sql.StorageError(ctx, err))
	}
	return value, true, nil
}

// SaveCheckpoint implements [storage.Checkpoints].
func (s *Store) SaveCheckpoint(ctx context.Context, name string, value []byte) error {
	if _, err := s.db.Shard(0).Write.ExecContext(ctx, s.sql.Text(sqlSaveCheckpoint), name, value); err != nil {
		return fmt.Errorf("save checkpoint %s: %w", name, s.sql.StorageError(ctx, err))
	}
	return nil
}

// DeleteCheckpoint implements [storage.Checkpoints].
func (s *Store) DeleteCheckpoint(ctx context.Context, name string) error {
	if _, err := s.db.Shard(0).Write.ExecContext(ctx, sqlDeleteCheckpoint, name); err != nil {
		return fmt.Errorf("delete checkpoint %s: %w", name, s.sql.StorageError(ctx, err))
	}
	return nil
}
