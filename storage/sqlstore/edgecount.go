package sqlstore

import (
	"context"
	"database/sql"
	"strings"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// CountEdges counts a LIMITed stretch of a table's list index, so that it costs what it may
// count at most, however long the list is. Left to itself, MariaDB reads all rows of an
// owner with few of them.
const (
	sqlEdgeCount = `
SELECT ? AS query, COUNT(*)
FROM (SELECT 1 FROM {table}{by list} WHERE {owner} = ? AND type = ?`
	sqlEdgeCountSince = ` AND update_time > ?`
	sqlEdgeCountLimit = ` LIMIT ?) AS counted`
)

var count = db.Spelled(sqlEdgeCount)

// CountEdges implements [storage.RelationReader].
func (s *Store) CountEdges(ctx context.Context, side storage.Side, queries []storage.EdgeCountQuery) []storage.Result[int] {
	shardOf := func(q storage.EdgeCountQuery) int { return s.place.Of(q.Owner) }
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
	begin := strings.Replace(count[side], "{by list}", s.sql.By("idx_"+side.String()+"_list"), 1)
	for i, q := range queries {
		selects[i] = begin
		args = append(args, i, int64(q.Owner), int64(max(q.Type, storage.Following)))
		if q.Since != 0 {
			selects[i] += sqlEdgeCountSince
			args = append(args, int64(q.Since))
		}
		selects[i] += sqlEdgeCountLimit
		args = append(args, q.Limit)
	}
	return strings.Join(selects, "\nUNION ALL"), args
}
