package sqlstore

import (
	"context"
	"fmt"
	"slices"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

var (
	// Served by the primary key.
	sqlImports = db.WithColumns(`
SELECT {import_part but content}
FROM import_part
WHERE owner = ?`)

	// Served by the primary key.
	sqlRefusedLines = db.WithColumns(`
SELECT {import_part}
FROM import_part
WHERE owner = ? AND number = ? AND part BETWEEN ? AND ? AND done = 1 AND refused > 0
ORDER BY part`)

	// Served by idx_import_due.
	sqlDueImports = db.WithColumns(`
SELECT {import_part}
FROM import_part
WHERE due_at >= ? AND due_at <= ? AND (due_at > ? OR owner > ? OR owner = ? AND (number > ? OR number = ? AND part > ?))
ORDER BY due_at, owner, number, part LIMIT ?`)

	// The imports there are, newest first, and which are done. Served by the primary key.
	sqlImportsHeld = `
SELECT number, MIN(done)
FROM import_part
WHERE owner = ?
GROUP BY number
ORDER BY number DESC`

	sqlAddImport = db.WithColumns(`
INSERT INTO import_part ({import_part})
VALUES ({?})`)

	// Served by the primary key.
	sqlFinishImport = `
UPDATE import_part
SET made = ?, refused = ?, done = ?, content = ?, due_at = ?
WHERE owner = ? AND number = ? AND part = ? AND done = 0`

	// Served by the primary key.
	sqlDeferImports = `
UPDATE import_part
SET due_at = ?
WHERE owner = ? AND done = 0 AND due_at < ?`

	// Served by the primary key.
	sqlRemoveImport = `
DELETE FROM import_part
WHERE owner = ? AND number = ?`
)

// importColumns are the values of {import_part}.
func importColumns(p *storage.ImportPart) []any {
	return []any{&p.Owner, &p.Number, &p.Part, &p.Kind, &p.Line, &p.Size, &p.Made, &p.Refused, &p.Done, &p.DueAt, &p.Lines}
}

// readImports answers [storage.ImportLookups].
func (s *Store) readImports(ctx context.Context, owner storage.UserID) (parts []storage.ImportPart, err error) {
	err = s.db.Query(ctx, "imports", s.shards.Of(owner), 1, sqlImports, []any{int64(owner)}, db.AppendTo(&parts, func(p *storage.ImportPart) []any {
		columns := importColumns(p)
		return columns[:len(columns)-1]
	}))
	slices.SortFunc(parts, storage.ImportPart.Compare)
	return parts, err
}

// readRefused answers [storage.RefusedLookups].
func (s *Store) readRefused(ctx context.Context, q storage.RefusedQuery) (parts []storage.ImportPart, err error) {
	args := []any{int64(q.Owner), q.Number, q.From, q.To}
	err = s.db.Query(ctx, "imports.refused", s.shards.Of(q.Owner), 1, sqlRefusedLines, args, db.AppendTo(&parts, importColumns))
	return parts, err
}

// readDueImports answers [storage.DueImportLookups].
func (s *Store) readDueImports(ctx context.Context, q storage.ShardQuery[storage.ImportPart]) ([]storage.ImportPart, error) {
	after := q.After
	return ownPage(q.Limit, func(limit int, own func(storage.ImportPart, bool)) error {
		at, owner := int64(after.DueAt), int64(after.Owner)
		args := []any{at, int64(q.Until), at, owner, owner, after.Number, after.Number, after.Part, limit}
		return s.db.Query(ctx, "imports.due", q.Shard, limit, sqlDueImports, args, db.EachRow(importColumns, func(p storage.ImportPart) {
			own(p, s.shards.Of(p.Owner) == q.Shard)
			after = p
		}))
	})
}

// AddImport implements [storage.Store].
func (s *Store) AddImport(ctx context.Context, parts []storage.ImportPart) (storage.ImportID, error) {
	id := parts[0].ImportID
	added, _, err := made(ctx, s.changeOwned, "import.add", id.Owner, func(w *writer) (storage.ImportID, bool, error) {
		id := id
		var held, oldest int64 // the oldest one that is done
		err := w.Read(1, sqlImportsHeld, []any{int64(id.Owner)}, db.EachEntry(db.TwoColumns, func(number int64, done bool) {
			if held++; done {
				oldest = number
			}
			id.Number = max(id.Number, number+1)
		}))
		switch {
		case err != nil || held < storage.MaxImports:
		case oldest == 0:
			err = fmt.Errorf("%w: %d imports of user %s are not done", storage.ErrLimitReached, held, id.Owner)
		default:
			_, err = w.Exec(1, sqlRemoveImport, int64(id.Owner), oldest)
		}
		for chunk := range slices.Chunk(parts, importsAtOnce) {
			if err != nil {
				break
			}
			var args []any
			for _, p := range chunk {
				p.ImportID = id
				args = append(args, importColumns(&p)...)
			}
			_, err = w.Exec(len(chunk), db.Listed(sqlAddImport, len(chunk)), args...)
		}
		return id, true, err
	})
	return added, err
}

// importsAtOnce is how many parts one statement adds, each with up to some 20 kB.
const importsAtOnce = 20

// FinishImport implements [storage.Store].
func (s *Store) FinishImport(ctx context.Context, p storage.ImportPart) (bool, error) {
	return s.changeImports(ctx, p.Owner, sqlFinishImport, p.Made, p.Refused, p.Done, p.Lines, int64(p.DueAt), int64(p.Owner), p.Number, p.Part)
}

// DeferImports implements [storage.Store].
func (s *Store) DeferImports(ctx context.Context, owner storage.UserID, until storage.Micros) error {
	_, err := s.changeImports(ctx, owner, sqlDeferImports, int64(until), int64(owner), int64(until))
	return err
}

// RemoveImport implements [storage.Store].
func (s *Store) RemoveImport(ctx context.Context, id storage.ImportID) (bool, error) {
	return s.changeImports(ctx, id.Owner, sqlRemoveImport, int64(id.Owner), id.Number)
}

func (s *Store) changeImports(ctx context.Context, owner storage.UserID, text string, args ...any) (changed bool, err error) {
	return changes(ctx, s.transactFor, "import", owner, func(w *writer) (bool, error) {
		w.touchUser(owner)
		n, err := w.Exec(1, text, args...)
		return n > 0, err
	})
}
