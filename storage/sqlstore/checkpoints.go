package sqlstore

import (
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
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
		found, err = w.ReadOne(sqlLoadCheckpoint, []any{name}, &value)
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

// Secrets are on the first shard.
//
// Served by the primary key.
const sqlReadSecret = `
SELECT value
FROM kith_secrets
WHERE name = 'store'`

var sqlWriteSecret = db.Both(`
INSERT OR IGNORE INTO kith_secrets (name, value)
VALUES ('store', ?)`)

// secretLength is the length of every secret in bytes, as much as SHA-256 makes use of.
const secretLength = 32

// Secret returns 32 bytes that only the gateways of this store know, for one purpose such
// as "consistency tokens": the same on every gateway and after every start. Secrets of
// different purposes reveal nothing about one another (HKDF, RFC 5869). The first call on a
// store makes the secret that all others are derived from.
func (s *Store) Secret(ctx context.Context, purpose string) ([]byte, error) {
	var store []byte
	err := s.transactOn(ctx, "secrets", 0, func(w *writer) error {
		if found, err := w.ReadOne(sqlReadSecret, nil, &store); err != nil || found {
			return err
		}
		made := make([]byte, secretLength)
		_, _ = rand.Read(made) // it never fails
		// If another gateway is faster, its secret is the store's.
		if _, err := w.Exec(1, s.sql.Text(sqlWriteSecret), made); err != nil {
			return err
		}
		_, err := w.ReadOne(sqlReadSecret, nil, &store)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the store's secret: %w", err)
	}
	return hkdf.Key(sha256.New, store, nil, purpose, secretLength)
}
