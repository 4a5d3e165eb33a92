package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"strings"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
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

// Served implements [storage.Comparer].
func (s *Store) Served(ctx context.Context, shard int) (storage.Served, error) {
	return s.db.Served(ctx, shard)
}

// isOf reports whether an owner is in one of the buckets of a range.
func isOf(r storage.OwnerRange, owner storage.UserID) bool {
	return r.Buckets == nil || r.Buckets.Has(owner.Bucket())
}

// sqlOfBuckets is the condition that a statement of digests gets if a shard has rows of other
// buckets.
var sqlOfBuckets = db.ForSides("\n  AND SUBSTR(?, CRC32({owner}) % 1024 + 1, 1) = x'31'\nGROUP BY", storage.AllSides[:]...)

// Digests implements [storage.Comparer].
func (s *Store) Digests(ctx context.Context, side storage.Side, shard int, owners storage.OwnerRange, cut storage.Cut, classes storage.Choice) (map[int]storage.Digest, error) {
	text, args := sqlDigestsByClass[side], []any{int64(owners.After), int64(owners.UpTo)}
	if cut.Parts > 1 || classes != nil {
		if classes == nil {
			classes = allClasses
		}
		text, args = sqlDigestsByGroup[side], append(append(partsOf(cut), args...), []byte(classes))
	}
	return digests[int](ctx, s, text, side, shard, owners, args)
}

// OwnerDigests implements [storage.Comparer].
func (s *Store) OwnerDigests(ctx context.Context, side storage.Side, shard int, owners storage.OwnerRange) (map[storage.UserID]storage.Digest, error) {
	return digests[storage.UserID](ctx, s, sqlDigestsByOwner[side], side, shard, owners, []any{int64(owners.After), int64(owners.UpTo)})
}

// digests reads digests by what they are of.
func digests[Of ~int | ~int64](ctx context.Context, s *Store, text db.Text, side storage.Side, shard int, owners storage.OwnerRange, args []any) (map[Of]storage.Digest, error) {
	all := make(map[Of]storage.Digest)
	statement := s.sql.Text(text)
	if owners.Buckets != nil {
		statement = strings.Replace(statement, "\nGROUP BY", sqlOfBuckets[side], 1)
		args = append(args, []byte(owners.Buckets))
	}
	err := s.db.Scan(ctx, "reconcile.digests", shard, statement, args, db.EachEntry(func(of *Of, d *storage.Digest) []any {
		return []any{of, &d.Rows, &d.Mixed}
	}, func(of Of, d storage.Digest) { all[of] = d }))
	return all, err
}

var allClasses = storage.Choice(bytes.Repeat([]byte{'1'}, storage.Classes))

// partsOf are the arguments that a statement's groups take.
func partsOf(cut storage.Cut) []any { return []any{cut.Parts, cut.Parts, cut.Parts, cut.Parts} }

// GroupRows implements [storage.Comparer].
func (s *Store) GroupRows(ctx context.Context, side storage.Side, shard int, owners storage.OwnerRange, cut storage.Cut, groups storage.Choice, row func(storage.Edge)) error {
	args := append([]any{int64(owners.After), int64(owners.UpTo), []byte(groups)}, partsOf(cut)...)
	return s.db.Scan(ctx, "reconcile.rows", shard, sqlGroupRows[side], args, eachEdge(side, func(e storage.Edge) {
		if isOf(owners, side.Owner(e.Pair())) {
			row(e)
		}
	}))
}

// Digests are computed where the rows are, by the arithmetic of [storage.Cut] and [storage.Edge.Mix];
// the 1021 are the [storage.Classes]. Each choice comes as one text, of which a row looks at one
// byte: MariaDB turns a list of as many numbers into a table. MariaDB mixes rows as integers, and
// takes BIT_XOR of them: CRC32 of a row's text takes three times as long, and SUM adds decimals.
// SQLite has neither an exclusive or nor an aggregate of it, so it gets a function of ours.

// By class, of all classes. Served by the primary key, on SQLite by the list index, which has all columns: {list}.
var sqlDigestsByClass = db.Both(`
SELECT (from_user_id & 9223372036854775807) % 1021 AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time{, post_id})
FROM {table}
WHERE {owner} > ? AND {owner} <= ? AND (type <> 0 OR update_time <> 0)
GROUP BY edges_group`).ForSides(storage.AllSides[:]...)

// By group, of some classes. The first four arguments are the parts of the cut. Served by the primary key, on SQLite by the list
// index, which has all columns: {list}.
var sqlDigestsByGroup = db.Both(`
SELECT (from_user_id & 9223372036854775807) % 1021 * ? +
  ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time{, post_id})
FROM {table}
WHERE {owner} > ? AND {owner} <= ? AND (type <> 0 OR update_time <> 0)
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 + 1, 1) = x'31'
GROUP BY edges_group`).ForSides(storage.AllSides[:]...)

// By owner. Served by the primary key, on SQLite by the list index, which has all columns: {list}.
var sqlDigestsByOwner = db.Both(`
SELECT {owner},
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time{, post_id})
FROM {table}
WHERE {owner} > ? AND {owner} <= ? AND type <> 0
GROUP BY {owner}`).ForSides(storage.AllSides[:]...)

// The rows of some groups. The four arguments behind the choice are the parts of the cut. Served by the primary key, on SQLite by
// the list index, which has all columns: {list}.
var sqlGroupRows = db.ForSides(`
SELECT {owner}, {peer}, type, update_time{, post_id}
FROM {table}
WHERE {owner} > ? AND {owner} <= ?
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 * ? +
    ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? + 1, 1) = x'31'`, storage.AllSides[:]...)
