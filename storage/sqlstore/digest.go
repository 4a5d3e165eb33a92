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
	"kith/storage/sqlstore/internal/db"
)

// Digests are computed where the rows are, by the arithmetic of [storage.Cut] and
// [storage.Mix]. Choices come as one text each, of which a row looks at one byte:
// lists of as many numbers MariaDB turns into a table.
const (
	// Served by the primary key.
	sqlDigests = `
SELECT {group} AS edges_group, COUNT(*), {mixed}
FROM {table}
WHERE {owner} > ? AND {owner} <= ? AND (type <> 0 OR update_time <> 0){of classes}
GROUP BY edges_group`

	sqlOfClasses = ` AND SUBSTR(?, {class} + 1, 1) = x'31'`

	// Served by the primary key.
	sqlGroupRows = `
SELECT {columns}
FROM {table}
WHERE {owner} > ? AND {owner} <= ? AND SUBSTR(?, {group} + 1, 1) = x'31'`

	// Served by the primary key.
	sqlNextOwner = `
SELECT user_id
FROM user_counts
WHERE user_id > ?
ORDER BY user_id LIMIT 1 OFFSET ?`

	// How many users own edges, how many of those count them right, and how many users
	// count any: of one moment, because it is one statement. Served by the list index and
	// the primary key.
	sqlCountsAgree = `
SELECT COUNT(*), COALESCE(SUM(c.{count} = e.n), 0), (
  SELECT COUNT(*)
  FROM user_counts
  WHERE user_id > ? AND user_id <= ? AND {count} <> 0
)
FROM (
  SELECT {owner} AS owner, COUNT(*) AS n
  FROM {table}
  WHERE {owner} > ? AND {owner} <= ? AND type = 1
  GROUP BY {owner}
) e
LEFT JOIN user_counts c ON c.user_id = e.owner`

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
func (s *Store) scanned(side storage.Side, text string, cut storage.Cut) string {
	const from, to = "(from_user_id & 9223372036854775807)", "(to_user_id & 9223372036854775807)"
	t := db.TableOf(side)
	class := fmt.Sprintf("%s %% %d", from, storage.Classes)
	group := class
	if parts := cut.Parts; parts > 1 {
		group = fmt.Sprintf("%s * %d + (%s %% %[2]d + %[4]s %% %[2]d) %% %[2]d", class, parts, from, to)
	}
	return t.Spell(strings.NewReplacer("{group}", group, "{class}", class, "{mixed}", s.sql.Mixed, "{count}", t.Count).Replace(text))
}

// ordered spells a statement that joins its tables in the order in which it names them.
func (s *Store) ordered(text string) string {
	return strings.ReplaceAll(text, "{ordered join}", s.sql.OrderedJoin)
}

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
	args := []any{int64(owners.After), int64(owners.UpTo)}
	ofClasses := ""
	if classes != nil {
		ofClasses = sqlOfClasses
		args = append(args, []byte(classes))
	}
	text := s.scanned(side, strings.Replace(sqlDigests, "{of classes}", ofClasses, 1), cut)
	err := s.db.Scan(ctx, "reconcile.digests", shard, text, args, func(rows *sql.Rows) error {
		var group int
		var d storage.Digest
		err := rows.Scan(&group, &d.Rows, &d.Mixed)
		digests[group] = d
		return err
	})
	return digests, err
}

// GroupRows implements [storage.Comparer].
func (s *Store) GroupRows(ctx context.Context, side storage.Side, shard int, owners storage.OwnerRange, cut storage.Cut, groups storage.Choice, row func(storage.Edge)) error {
	args := []any{int64(owners.After), int64(owners.UpTo), []byte(groups)}
	return s.db.Scan(ctx, "reconcile.rows", shard, s.scanned(side, sqlGroupRows, cut), args, func(rows *sql.Rows) error {
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

// WrongCounts implements [storage.Comparer]. Mostly none are, and that is sooner told
// than which.
func (s *Store) WrongCounts(ctx context.Context, side storage.Side, shard int, owners storage.OwnerRange) ([]storage.WrongCount, error) {
	agree, err := s.countsAgree(ctx, side, shard, owners)
	if err != nil || agree {
		return nil, err
	}
	wrong := make(map[storage.UserID]storage.WrongCount)
	each := func(rows *sql.Rows) error {
		var w storage.WrongCount
		err := rows.Scan(&w.User, &w.Have, &w.Are)
		wrong[w.User] = w // the last edge may end between the statements
		return err
	}
	args := []any{int64(owners.After), int64(owners.UpTo)}
	for _, text := range []string{sqlWrongCounts, sqlCountsOfNone} {
		if err := s.db.Scan(ctx, "reconcile.counts", shard, s.scanned(side, text, storage.Cut{}), args, each); err != nil {
			return nil, err
		}
	}
	return slices.SortedFunc(maps.Values(wrong), func(a, b storage.WrongCount) int { return cmp.Compare(a.User, b.User) }), nil
}

func (s *Store) countsAgree(ctx context.Context, side storage.Side, shard int, owners storage.OwnerRange) (bool, error) {
	after, upTo := int64(owners.After), int64(owners.UpTo)
	var own, right, count int64
	text := s.scanned(side, sqlCountsAgree, storage.Cut{})
	err := s.db.Scan(ctx, "reconcile.counts", shard, text, []any{after, upTo, after, upTo}, func(rows *sql.Rows) error {
		return rows.Scan(&own, &right, &count)
	})
	return own == right && own == count, err
}
