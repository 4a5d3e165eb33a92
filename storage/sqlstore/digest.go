package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kith/storage"
	"kith/storage/shard"
)

// Digests are computed where the rows are. {bucket of from} and {shard of to} are a
// row's group, the sums those of checksums of its fields in two orders.
const (
	// Served by the primary key.
	sqlDigests = `
SELECT {bucket of from} AS bucket, {shard of to} AS to_shard, COUNT(*), {sum of crc a}, {sum of crc b}
FROM {table}
WHERE {owner} > ? AND {owner} <= ? AND (type <> 0 OR update_time <> 0)
GROUP BY bucket, to_shard`

	// Served by the primary key.
	sqlGroupRows = `
SELECT {columns}, {shard of to}
FROM {table}
WHERE {owner} > ? AND {owner} <= ? AND {bucket of from} IN (`

	// Served by the primary key.
	sqlNextOwner = `
SELECT user_id
FROM user_counts
WHERE user_id > ?
ORDER BY user_id LIMIT 1 OFFSET ?`

	// Owners of edges whose counts are wrong or missing. Served by the list index.
	sqlWrongCounts = `
SELECT e.owner, COALESCE(c.{count}, 0), e.n
FROM (
  SELECT {owner} AS owner, COUNT(*) AS n
  FROM {table}
  WHERE {owner} > ? AND {owner} <= ? AND type = 1
  GROUP BY {owner}
) e
LEFT JOIN user_counts c ON c.user_id = e.owner
WHERE c.user_id IS NULL OR c.{count} <> e.n`

	// Counts of users who own no edge. Served by the primary key and the list index.
	sqlCountsOfNone = `
SELECT c.user_id, c.{count}, 0
FROM user_counts c
WHERE c.user_id > ? AND c.user_id <= ? AND c.{count} <> 0
  AND NOT EXISTS (SELECT 1 FROM {table} e WHERE e.{owner} = c.user_id AND e.type = 1)`
)

// scanned spells a statement of a scan over one side.
func (s *Store) scanned(side storage.Side, text string) string {
	t := tableOf(side)
	bucket := func(column string) string { return s.sql.crc(s.sql.text(column)) + " % " + fmt.Sprint(shard.Buckets) }
	// The inverse of [shard.Map]'s ranges: the greatest i with ⌊i·1024/S⌋ ≤ bucket.
	toShard := s.sql.quotient(fmt.Sprintf("(%s + 1) * %d - 1", bucket("to_user_id"), len(s.shards)), shard.Buckets)
	return strings.NewReplacer(
		"{bucket of from}", bucket("from_user_id"),
		"{shard of to}", toShard,
		"{sum of crc a}", s.sql.sum(s.sql.crc(s.sql.joined("from_user_id", "to_user_id", "type", "update_time"))),
		"{sum of crc b}", s.sql.sum(s.sql.crc(s.sql.joined("update_time", "type", "to_user_id", "from_user_id"))),
		"{count}", t.count,
	).Replace(t.spell(text))
}

// NextOwner implements [storage.Comparer].
func (s *Store) NextOwner(ctx context.Context, shard int, after storage.UserID, users int) (id storage.UserID, ok bool, err error) {
	err = s.scanShard(ctx, "reconcile.owners", shard, sqlNextOwner, []any{int64(after), users - 1}, func(rows *sql.Rows) error {
		ok = true
		return rows.Scan(&id)
	})
	return id, ok, err
}

// Digests implements [storage.Comparer].
func (s *Store) Digests(ctx context.Context, side storage.Side, shard int, owners storage.OwnerRange) (map[storage.Group]storage.Digest, error) {
	digests := make(map[storage.Group]storage.Digest)
	args := []any{int64(owners.After), int64(owners.UpTo)}
	err := s.scanShard(ctx, "reconcile.digests", shard, s.scanned(side, sqlDigests), args, func(rows *sql.Rows) error {
		var g storage.Group
		var d storage.Digest
		err := rows.Scan(&g.Bucket, &g.ToShard, &d.Rows, &d.SumA, &d.SumB)
		digests[g] = d
		return err
	})
	return digests, err
}

// GroupRows implements [storage.Comparer].
func (s *Store) GroupRows(ctx context.Context, side storage.Side, shard int, owners storage.OwnerRange, groups map[storage.Group]bool, row func(storage.Edge)) error {
	buckets := make(map[int]bool)
	for g := range groups {
		buckets[g.Bucket] = true
	}
	if len(buckets) == 0 {
		return nil
	}
	args := []any{int64(owners.After), int64(owners.UpTo)}
	for b := range buckets {
		args = append(args, b)
	}
	text := s.scanned(side, sqlGroupRows) + marks(len(buckets)) + ")"
	return s.scanShard(ctx, "reconcile.rows", shard, text, args, func(rows *sql.Rows) error {
		var owner, peer storage.UserID
		var e storage.Edge
		var to int
		if err := rows.Scan(&owner, &peer, &e.Type, &e.UpdateTime, &to); err != nil {
			return err
		}
		p := side.Pair(owner, peer)
		e.From, e.To = p.From, p.To
		if groups[storage.Group{Bucket: bucketOf(e.From), ToShard: to}] {
			row(e)
		}
		return nil
	})
}

func bucketOf(id storage.UserID) int { return shard.BucketOf(id) }

// WrongCounts implements [storage.Comparer].
func (s *Store) WrongCounts(ctx context.Context, side storage.Side, shard int, owners storage.OwnerRange) ([]storage.WrongCount, error) {
	wrong := make(map[storage.UserID]storage.WrongCount)
	each := func(rows *sql.Rows) error {
		var w storage.WrongCount
		err := rows.Scan(&w.User, &w.Have, &w.Are)
		wrong[w.User] = w // the last edge may end between the statements
		return err
	}
	args := []any{int64(owners.After), int64(owners.UpTo)}
	for _, text := range []string{sqlWrongCounts, sqlCountsOfNone} {
		if err := s.scanShard(ctx, "reconcile.counts", shard, s.scanned(side, text), args, each); err != nil {
			return nil, err
		}
	}
	return slices.SortedFunc(maps.Values(wrong), func(a, b storage.WrongCount) int { return cmp.Compare(a.User, b.User) }), nil
}

// scanShard runs a statement of a scan, which takes longer than a look-up: under the
// writes' time limit. On a server it goes over the writes' connections, which have
// that limit there as well; SQLite's one such connection it would block.
func (s *Store) scanShard(ctx context.Context, what string, shard int, text string, args []any, each func(*sql.Rows) error) error {
	db := s.shards[shard].write
	if s.sql == sqliteDialect {
		db = s.shards[shard].read
	}
	return s.timed(ctx, what, shard, 0, db, s.cfg.writeTimeout(), text, args, each)
}
