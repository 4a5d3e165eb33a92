package sqlstore

import (
	"bytes"
	"context"
	"database/sql"

	"kith/storage"
)

// Served by the primary key.
const sqlNextOwner = `
SELECT user_id
FROM user_counts
WHERE user_id > ?
ORDER BY user_id LIMIT 1 OFFSET ?`

// NextOwner implements [storage.Comparer].
func (s *Store) NextOwner(ctx context.Context, shard int, after storage.UserID, users int) (id storage.UserID, ok bool, err error) {
	err = s.db.Scan(ctx, "reconcile.owners", shard, sqlNextOwner, []any{int64(after), users - 1}, func(rows *sql.Rows) error {
		ok = true
		return rows.Scan(&id)
	})
	return id, ok, err
}

// Digests implements [storage.Comparer].
func (s *Store) Digests(ctx context.Context, side storage.Side, shard int, owners storage.OwnerRange, cut storage.Cut, classes storage.Choice) (map[int]storage.Digest, error) {
	digests := make(map[int]storage.Digest)
	text, args := sqlDigestsByClass[side], []any{int64(owners.After), int64(owners.UpTo)}
	if cut.Parts > 1 || classes != nil {
		if classes == nil {
			classes = allClasses
		}
		text, args = sqlDigestsByGroup[side], append(append(partsOf(cut), args...), []byte(classes))
	}
	err := s.db.Scan(ctx, "reconcile.digests", shard, s.sql.Text(text), args, func(rows *sql.Rows) error {
		var group int
		var d storage.Digest
		err := rows.Scan(&group, &d.Rows, &d.Mixed)
		digests[group] = d
		return err
	})
	return digests, err
}

var allClasses = storage.Choice(bytes.Repeat([]byte{'1'}, storage.Classes))

// partsOf are the arguments that a statement's groups take.
func partsOf(cut storage.Cut) []any { return []any{cut.Parts, cut.Parts, cut.Parts, cut.Parts} }

// GroupRows implements [storage.Comparer].
func (s *Store) GroupRows(ctx context.Context, side storage.Side, shard int, owners storage.OwnerRange, cut storage.Cut, groups storage.Choice, row func(storage.Edge)) error {
	args := append([]any{int64(owners.After), int64(owners.UpTo), []byte(groups)}, partsOf(cut)...)
	return s.db.Scan(ctx, "reconcile.rows", shard, sqlGroupRows[side], args, func(rows *sql.Rows) error {
		var owner, peer storage.UserID
		var e storage.Edge
		if err := rows.Scan(&owner, &peer, &e.Type, &e.UpdateTime); err != nil {
			return err
		}
		p := side.Pair(owner, peer)
		e.From, e.To = p.From, p.To
		row(e)
		return nil
	})
}
