package sqlstore

import (
	"context"
	"database/sql"
	"strings"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// CountEdges counts a LIMITed range of a table's list index, so that its cost is bounded by what it
// may count, however long the list is. Without the hint, MariaDB reads all rows of an owner who has
// few. Served by {list}.
var sqlEdgeCount = db.ForSides(`
SELECT ? AS query, COUNT(*)
FROM (SELECT 1 FROM {table} /*! FORCE INDEX ({list}) */ WHERE {owner} = ? AND type = ? LIMIT ?) AS counted`, storage.Sides[:]...)

// Served by {list}.
var sqlEdgeCountSince = db.ForSides(`
SELECT ? AS query, COUNT(*)
FROM (SELECT 1 FROM {table} /*! FORCE INDEX ({list}) */ WHERE {owner} = ? AND type = ? AND update_time > ? LIMIT ?) AS counted`, storage.Sides[:]...)

// CountEdges implements [storage.RelationReader].
func (s *Store) CountEdges(ctx context.Context, side storage.Side, queries []storage.EdgeCountQuery) []storage.Result[int] {
	shardOf := func(q storage.EdgeCountQuery) int { return s.shards.Of(q.Owner) }
	return db.LookUp(s.db, queries, s.sql.MaxPages, shardOf, func(shard int, queries []storage.EdgeCountQuery, found func(storage.EdgeCountQuery, int)) error {
		text, args := s.edgeCountStatement(side, queries)
		return s.db.Query(ctx, "count."+side.String(), shard, len(queries), text, args, func(rows *sql.Rows) error {
			var i, n int
			err := rows.Scan(&i, &n)
			found(queries[i], n)
			return err
		})
	})
}

func (s *Store) edgeCountStatement(side storage.Side, queries []storage.EdgeCountQuery) (string, []any) {
	selects := make([]string, len(queries))
	args := make([]any, 0, 5*len(queries))
	for i, q := range queries {
		selects[i] = sqlEdgeCount[side]
		args = append(args, i, int64(q.Owner), int64(max(q.Type, storage.Following)))
		if q.Since != 0 {
			selects[i] = sqlEdgeCountSince[side]
			args = append(args, int64(q.Since))
		}
		args = append(args, q.Limit)
	}
	return strings.Join(selects, "\nUNION ALL"), args
}
