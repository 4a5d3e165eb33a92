package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// Manifest is what is known of a manifest of trusted documents without reading it.
type Manifest struct {
	Name      string // 1 to [MaxManifestName] printable ASCII characters
	Digest    string // SHA-256 of the content, in hexadecimal digits
	Documents int
	Bytes     int            // of the content
	ChangedAt storage.Micros // when it was first stored, or last changed
}

// Bounds of the manifests of a store. They are copied within a second when shard 0, or the store, gets other
// databases.
const (
	MaxManifests     = 1000
	MaxManifestName  = 190
	MaxManifestBytes = 4 << 20  // of the content of one
	MaxAllManifests  = 16 << 20 // of all together
)

var (
	// ErrManifestsChanged: another caller has changed a manifest since they were listed.
	ErrManifestsChanged = errors.New("the manifests have changed meanwhile")

	// ErrManifestTooLarge: a bound would be exceeded.
	ErrManifestTooLarge = errors.New("too large")
)

// Manifests are on the first shard. They are written in transactions that hold its epoch: if another database
// takes the shard's place, no manifest is left behind, see [move.Replace].
const (
	// Served by the primary key.
	sqlManifests = `
SELECT name, digest, documents, bytes, added_at
FROM kith_documents
ORDER BY name /*! FOR UPDATE */`

	// Served by the primary key.
	sqlListManifests = `
SELECT name, digest, documents, bytes, added_at
FROM kith_documents
ORDER BY name`

	// Served by the primary key.
	sqlManifest = `
SELECT value
FROM kith_documents
WHERE name = ?`

	// Served by the primary key.
	sqlRemoveManifest = `
DELETE FROM kith_documents
WHERE name = ?`
)

var sqlPutManifest = db.Text{
	MySQL: `
INSERT INTO kith_documents (name, digest, documents, bytes, added_at, value)
VALUES (?, ?, ?, ?, ?, ?)
ON DUPLICATE KEY UPDATE digest = VALUES(digest), documents = VALUES(documents),
  bytes = VALUES(bytes), added_at = VALUES(added_at), value = VALUES(value)`,
	SQLite: `
INSERT INTO kith_documents (name, digest, documents, bytes, added_at, value)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET digest = excluded.digest, documents = excluded.documents,
  bytes = excluded.bytes, added_at = excluded.added_at, value = excluded.value`,
}

// Manifests lists the manifests of the store by their names, at most [MaxManifests].
func (s *Store) Manifests(ctx context.Context) (list []Manifest, err error) {
	err = s.db.Query(ctx, "manifests", 0, MaxManifests, sqlListManifests, nil, func(rows *sql.Rows) error { return scanManifest(rows, &list) })
	return list, err
}

func scanManifest(rows *sql.Rows, list *[]Manifest) error {
	var m Manifest
	err := rows.Scan(&m.Name, &m.Digest, &m.Documents, &m.Bytes, &m.ChangedAt)
	*list = append(*list, m)
	return err
}

// ManifestContent reads a manifest that [Store.Manifests] has listed. [ErrManifestsChanged] if it has changed
// or has been removed since.
func (s *Store) ManifestContent(ctx context.Context, m Manifest) (content []byte, err error) {
	err = s.db.Query(ctx, "manifest", 0, 1, sqlManifest, []any{m.Name}, func(rows *sql.Rows) error { return rows.Scan(&content) })
	if err == nil && digestOf(content) != m.Digest {
		err = fmt.Errorf("%w: %s", ErrManifestsChanged, m.Name)
	}
	return content, err
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// PutManifest writes a manifest of so many documents, and replaces one of the same name. seen are the manifests
// that the decision to write it was based on: [ErrManifestsChanged] if the store has others.
// [ErrManifestTooLarge].
func (s *Store) PutManifest(ctx context.Context, name string, documents int, content []byte, at storage.Micros, seen []Manifest) error {
	others := 0
	for _, m := range seen {
		if m.Name != name {
			others += m.Bytes
		}
	}
	isNew := !slices.ContainsFunc(seen, func(m Manifest) bool { return m.Name == name })
	switch {
	case len(content) > MaxManifestBytes:
		return fmt.Errorf("%w: a manifest may have %d compressed bytes, and this has %d", ErrManifestTooLarge, MaxManifestBytes, len(content))
	case others+len(content) > MaxAllManifests:
		return fmt.Errorf("%w: all manifests together may have %d compressed bytes; with this they have %d: remove some", ErrManifestTooLarge, MaxAllManifests, others+len(content))
	case isNew && len(seen) >= MaxManifests:
		return fmt.Errorf("%w: there may be %d manifests: remove some", ErrManifestTooLarge, MaxManifests)
	}
	err := s.transactOn(ctx, "manifests", 0, func(w *writer) error {
		var now []Manifest
		if err := w.Read(MaxManifests, sqlManifests, nil, func(rows *sql.Rows) error { return scanManifest(rows, &now) }); err != nil {
			return err
		}
		if !slices.Equal(now, seen) {
			return ErrManifestsChanged
		}
		_, err := w.Exec(1, s.sql.Text(sqlPutManifest), name, digestOf(content), documents, len(content), int64(at), content)
		return err
	})
	if err != nil {
		err = fmt.Errorf("write manifest %s: %w", name, err)
	}
	return err
}

// RemoveManifest removes a manifest, and reports whether there was one of this name.
func (s *Store) RemoveManifest(ctx context.Context, name string) (found bool, err error) {
	err = s.transactOn(ctx, "manifests", 0, func(w *writer) error {
		n, err := w.Exec(1, sqlRemoveManifest, name)
		found = n > 0
		return err
	})
	if err != nil {
		err = fmt.Errorf("remove manifest %s: %w", name, err)
	}
	return found, err
}
