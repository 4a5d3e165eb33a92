package sqlstore

import (
	"context"
	"database/sql"
	"strings"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// A tally counts a LIMITed stretch of a table's list index, so that it costs what it may
// count at most, however long the list is. Left to itself, MariaDB reads all rows of an
// owner with few of them.
const (
	sqlTally = `
SELECT ? AS query, COUNT(*)
FROM (SELECT 1 FROM {table}{by list} WHERE {owner} = ? AND type = ?`
	sqlTallySince = ` AND update_time > ?`
	sqlTallyLimit = ` LIMIT ?) AS counted`
)

var tally = db.Spelled(sqlTally)

// Tally implements [storage.RelationReader].
func (s *Store) Tally(ctx context.Context, side storage.Side, queries []storage.TallyQuery) []storage.Result[int] {
	shardOf := func(q storage.TallyQuery) int { return s.place.Of(q.Owner) }
	return db.LookUp(s.db, queries, s.sql.MaxPages, shardOf, func(shard int, queries []storage.TallyQuery, found func(storage.TallyQuery, int)) error {
		text, args := s.tallyStatement(side, queries)
		return s.db.Query(ctx, "tally."+side.String(), shard, len(queries), text, args, func(rows *sql.Rows) error {
			var i, n int
			err := rows.Scan(&i, &n)
			found(queries[i], n)
			return err
		})
	})
}

func (s *Store) tallyStatement(side storage.Side, queries []storage.TallyQuery) (string, []any) {
	selects := make([]string, len(queries))
	args := make([]any, 0, 5*len(queries))
	begin := strings.Replace(tally[side], "{by list}", s.sql.By("idx_"+side.String()+"_list"), 1)
	for i, q := range queries {
		selects[i] = begin
		args = append(args, i, int64(q.Owner), int64(max(q.Type, storage.Following)))
		if q.Since != 0 {
			selects[i] += sqlTallySince
			args = append(args, int64(q.Since))
		}
		selects[i] += sqlTallyLimit
		args = append(args, q.Limit)
	}
	return strings.Join(selects, "\nUNION ALL"), args
}
