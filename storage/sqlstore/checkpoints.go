package sqlstore

import (
	"context"
	"fmt"

	"kith/storage/sqlstore/internal/db"
)

// Checkpoints are on the first shard. They are read, too, in transactions, which refuse a database that is
// being restored, see [db.ErrRestored].
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

var sqlSaveCheckpoint = db.Both(`
INSERT INTO kith_checkpoints (name, value)
VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value`)

// LoadCheckpoint implements [storage.Checkpoints].
func (s *Store) LoadCheckpoint(ctx context.Context, name string) (value []byte, found bool, err error) {
	err = s.transactOn(ctx, "checkpoints", 0, func(w *writer) (err error) {
		value = nil // of a try before this one
		found, err = w.readOne(sqlLoadCheckpoint, []any{name}, &value)
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("load checkpoint %s: %w", name, err)
	}
	return value, found, nil
}

// SaveCheckpoint implements [storage.Checkpoints].
func (s *Store) SaveCheckpoint(ctx context.Context, name string, value []byte) error {
	return s.writeCheckpoint(ctx, "save", s.sql.Text(sqlSaveCheckpoint), name, value)
}

// DeleteCheckpoint implements [storage.Checkpoints].
func (s *Store) DeleteCheckpoint(ctx context.Context, name string) error {
	return s.writeCheckpoint(ctx, "delete", sqlDeleteCheckpoint, name)
}

func (s *Store) writeCheckpoint(ctx context.Context, what, text, name string, more ...any) error {
	err := s.transactOn(ctx, "checkpoints", 0, func(w *writer) error {
		_, err := w.Exec(1, text, append([]any{name}, more...)...)
		return err
	})
	if err != nil {
		err = fmt.Errorf("%s checkpoint %s: %w", what, name, err)
	}
	return err
}
