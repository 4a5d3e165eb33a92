package sqlstore

import (
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"fmt"

	"kith/storage/sqlstore/internal/db"
)

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
		if found, err := w.readOne(sqlReadSecret, nil, &store); err != nil || found {
			return err
		}
		made := make([]byte, secretLength)
		_, _ = rand.Read(made) // it never fails
		// If another gateway is faster, its secret is the store's.
		if _, err := w.Exec(1, s.sql.Text(sqlWriteSecret), made); err != nil {
			return err
		}
		_, err := w.readOne(sqlReadSecret, nil, &store)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the store's secret: %w", err)
	}
	return hkdf.Key(sha256.New, store, nil, purpose, secretLength)
}
