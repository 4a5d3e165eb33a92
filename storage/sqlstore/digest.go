package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"math"
	"strings"

	"kith/storage"
	"kith/storage/sides"
	"kith/storage/sqlstore/internal/db"
)

// Served by the primary key.
const sqlNextOwner = `
SELECT user_id
FROM user_counts
WHERE user_id > ?
ORDER BY user_id LIMIT 1 OFFSET ?`

var (
	// Served by the primary key, on SQLite also by {list} or idx_favorite_received.
	sqlOwnerOfRow = db.ForSides(`
SELECT {owner}
FROM {table} /*! FORCE INDEX (PRIMARY) */
WHERE {owner} > ?
ORDER BY {owner} LIMIT 1 OFFSET ?`, storage.AllSides[:]...)

	// Served by the primary key.
	sqlPeerOfRow = db.ForSides(`
SELECT {peer}
FROM {table} /*! FORCE INDEX (PRIMARY) */
WHERE {owner} = ? AND {peer} >= ?
ORDER BY {peer} LIMIT 1 OFFSET ?`, storage.AllSides[:]...)
)

// NextOwner implements [sides.Comparer].
func (s *Store) NextOwner(ctx context.Context, shard int, after storage.UserID, users int) (storage.UserID, bool, error) {
	return idOfRow(ctx, s.scan(shard), sqlNextOwner, int64(after), users-1)
}

// OwnerOfRow implements [sides.Comparer].
func (s *Store) OwnerOfRow(ctx context.Context, side storage.Side, shard int, after storage.UserID, rows int) (storage.UserID, bool, error) {
	return idOfRow(ctx, s.scan(shard), sqlOwnerOfRow[side], int64(after), rows-1)
}

// A scan runs a SELECT of a scan, on one shard.
type scan func(ctx context.Context, what, text string, args []any, each func(*sql.Rows) error) error

func (s *Store) scan(shard int) scan {
	return func(ctx context.Context, what, text string, args []any, each func(*sql.Rows) error) error {
		return s.db.Scan(ctx, what, shard, text, args, each)
	}
}

// idOfRow reads an id, if there is one.
func idOfRow(ctx context.Context, read scan, text string, args ...any) (id storage.UserID, ok bool, err error) {
	err = read(ctx, "reconcile.owners", text, args, func(rows *sql.Rows) error {
		ok = true
		return rows.Scan(&id)
	})
	return id, ok, err
}

// rowsOfOwner is how many rows of one owner a statement reads. Of all at once, a hundred million, it would take longer than a statement may.
const rowsOfOwner = 1_000_000

var (
	ofOwners = db.ForSides("WHERE {owner} > ? AND {owner} <= ?", storage.AllSides[:]...)
	ofPeers  = db.ForSides("WHERE {owner} = ? AND {peer} BETWEEN ? AND ?", storage.AllSides[:]...)
)

// eachPart runs a statement about a range of owners. A range of one owner is read by some peers at a time. run gets the statement,
// and the arguments for what stood as [ofOwners] in it.
func (s *Store) eachPart(ctx context.Context, read scan, side storage.Side, owners sides.OwnerRange, text string, run func(text string, args []any) error) error {
	if owners.UpTo-owners.After > 1 {
		return run(text, []any{int64(owners.After), int64(owners.UpTo)})
	}
	text = strings.Replace(text, ofOwners[side], ofPeers[side], 1)
	first := storage.UserID(math.MinInt64) // a damaged row may have any id
	for {
		last, more, err := idOfRow(ctx, read, sqlPeerOfRow[side], int64(owners.UpTo), int64(first), s.rowsOfOwner-1)
		if !more {
			last = math.MaxInt64
		}
		if err == nil {
			err = run(text, []any{int64(owners.UpTo), int64(first), int64(last)})
		}
		if first = last + 1; err != nil || last == math.MaxInt64 {
			return err
		}
	}
}

// Served implements [sides.Comparer].
func (s *Store) Served(ctx context.Context, shard int) (storage.Served, error) {
	return s.db.Served(ctx, shard)
}

// isOf reports whether an owner is in one of the buckets of a range.
func isOf(r sides.OwnerRange, owner storage.UserID) bool {
	return r.Buckets == nil || r.Buckets.Has(owner.Bucket())
}

// sqlOfBuckets is the condition that a statement of digests gets if a shard has rows of other
// buckets.
var sqlOfBuckets = db.ForSides("\n  AND SUBSTR(?, CRC32({owner}) % 1024 + 1, 1) = x'31'\nGROUP BY", storage.AllSides[:]...)

// Digests implements [sides.Comparer].
func (s *Store) Digests(ctx context.Context, side storage.Side, shard int, owners sides.OwnerRange, cut sides.Cut, classes storage.Choice) (map[int]sides.Digest, error) {
	all := make(map[int]sides.Digest)
	text, byGroup := sqlDigestsByClass[side], cut.Parts > 1 || classes != nil
	if byGroup {
		text = sqlDigestsByGroup[side]
	}
	if classes == nil {
		classes = allClasses
	}
	err := s.eachPart(ctx, s.scan(shard), side, owners, s.sql.Text(text), func(statement string, args []any) error {
		if byGroup {
			args = append(append(partsOf(cut), args...), []byte(classes))
		}
		return digests(ctx, s, statement, side, shard, owners, args, func(group int, d sides.Digest) { all[group] = all[group].Plus(d) })
	})
	return all, err
}

// OwnerDigests implements [sides.Comparer].
func (s *Store) OwnerDigests(ctx context.Context, side storage.Side, shard int, owners sides.OwnerRange) (map[storage.UserID]sides.Digest, error) {
	all := make(map[storage.UserID]sides.Digest)
	err := s.eachPart(ctx, s.scan(shard), side, owners, s.sql.Text(sqlDigestsByOwner[side]), func(statement string, args []any) error {
		return digests(ctx, s, statement, side, shard, owners, args, func(owner storage.UserID, d sides.Digest) { all[owner] = all[owner].Plus(d) })
	})
	return all, err
}

// digests reads digests by what they are of.
func digests[Of ~int | ~int64](ctx context.Context, s *Store, statement string, side storage.Side, shard int, owners sides.OwnerRange, args []any, found func(Of, sides.Digest)) error {
	if owners.Buckets != nil {
		statement = strings.Replace(statement, "\nGROUP BY", sqlOfBuckets[side], 1)
		args = append(args, []byte(owners.Buckets))
	}
	return s.db.Scan(ctx, "reconcile.digests", shard, statement, args, db.EachEntry(func(of *Of, d *sides.Digest) []any {
		return []any{of, &d.Rows, &d.Mixed}
	}, found))
}

var allClasses = storage.Choice(bytes.Repeat([]byte{'1'}, sides.Classes))

// partsOf are the arguments that a statement's groups take.
func partsOf(cut sides.Cut) []any { return []any{cut.Parts, cut.Parts, cut.Parts, cut.Parts} }

// GroupRows implements [sides.Comparer].
func (s *Store) GroupRows(ctx context.Context, side storage.Side, shard int, owners sides.OwnerRange, cut sides.Cut, groups storage.Choice, row func(storage.Edge)) error {
	return s.eachPart(ctx, s.scan(shard), side, owners, sqlGroupRows[side], func(statement string, args []any) error {
		args = append(append(args, []byte(groups)), partsOf(cut)...)
		return s.db.Scan(ctx, "reconcile.rows", shard, statement, args, eachEdge(side, func(e storage.Edge) {
			if isOf(owners, side.Owner(e.Pair())) {
				row(e)
			}
		}))
	})
}

// Digests are computed where the rows are, by the arithmetic of [sides.Cut] and [storage.Edge.Mix];
// the 1021 are the [sides.Classes]. Each choice comes as one text, of which a row looks at one
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
