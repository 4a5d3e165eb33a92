package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// A page is one LIMITed range of the table's list index, read from its end (newest first) or, backward, from its beginning. The pages of
// several owners are a UNION ALL of one such range each.
//
// A statement is made of a SELECT, of conditions behind it where the page has bounds, and of
// an order. The bounds are written so that the optimisers take them for a range: a tuple
// comparison (update_time, peer) < (?, ?) reads every row of the owner.
//
// Served by {list}.
var sqlPage = db.ForSides(`
SELECT ? AS query, {peer}, update_time
FROM {table}
WHERE {owner} = ? AND type = ?`, storage.Sides[:]...)

var (
	sqlPageAfter  = db.ForSides(` AND update_time <= ? AND (update_time < ? OR {peer} < ?)`, storage.Sides[:]...)
	sqlPageBefore = db.ForSides(` AND update_time >= ? AND (update_time > ? OR {peer} > ?)`, storage.Sides[:]...)
	sqlPageNewest = db.ForSides(` ORDER BY update_time DESC, {peer} DESC LIMIT ?`, storage.Sides[:]...)
	sqlPageOldest = db.ForSides(` ORDER BY update_time, {peer} LIMIT ?`, storage.Sides[:]...)
)

// Pages implements [storage.EdgeReader].
func (s *Store) Pages(ctx context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	shardOf := func(q storage.PageQuery) int { return s.shards.Of(q.Owner) }
	return db.LookUp(s.db, queries, s.sql.MaxPages, shardOf, func(shard int, queries []storage.PageQuery, found func(storage.PageQuery, []storage.Edge)) error {
		text, args := s.pagesStatement(side, queries)
		pages := make([][]storage.Edge, len(queries))
		err := s.db.Query(ctx, "pages."+side.String(), shard, len(queries), text, args, func(rows *sql.Rows) error {
			var i int
			var peer storage.UserID
			var at storage.Micros
			if err := rows.Scan(&i, &peer, &at); err != nil {
				return err
			}
			p := side.Pair(queries[i].Owner, peer)
			pages[i] = append(pages[i], storage.Edge{From: p.From, To: p.To, Type: kindOf(queries[i]), UpdateTime: at})
			return nil
		})
		for i, q := range queries {
			sortNewestFirst(side, pages[i], q.Backward)
			found(q, pages[i])
		}
		return err
	})
}

// kindOf is the type of edges that a page is made of.
func kindOf(q storage.PageQuery) storage.EdgeType {
	if q.Type == 0 {
		return storage.Following // or Pending, which is the same
	}
	return q.Type
}

func (s *Store) pagesStatement(side storage.Side, queries []storage.PageQuery) (string, []any) {
	selects := make([]string, len(queries))
	args := make([]any, 0, 4*len(queries))
	for i, q := range queries {
		selects[i], args = pageOf(side, q, sqlPage[side], append(args, i, int64(q.Owner), int64(kindOf(q))))
	}
	return s.unionAll(selects), args
}

// pageOf ends the SELECT of a page behind `type = ?`.
func pageOf(side storage.Side, q storage.PageQuery, head string, args []any) (string, []any) {
	var text strings.Builder
	text.WriteString(head)
	if q.After != (storage.Position{}) {
		text.WriteString(sqlPageAfter[side])
		args = append(args, int64(q.After.UpdateTime), int64(q.After.UpdateTime), int64(q.After.Peer))
	}
	if q.Before != (storage.Position{}) {
		text.WriteString(sqlPageBefore[side])
		args = append(args, int64(q.Before.UpdateTime), int64(q.Before.UpdateTime), int64(q.Before.Peer))
	}
	if q.Backward {
		text.WriteString(sqlPageOldest[side])
	} else {
		text.WriteString(sqlPageNewest[side])
	}
	return text.String(), append(args, q.Limit)
}

// unionAll joins ordered and limited SELECTs.
func (s *Store) unionAll(selects []string) string {
	if len(selects) == 1 {
		return selects[0]
	}
	for i, text := range selects {
		selects[i] = fmt.Sprintf(s.sql.Limited, text)
	}
	return strings.Join(selects, "\nUNION ALL\n")
}

// sortNewestFirst turns a page that was read backward around. It sorts only if
// the rows of a UNION ALL came out of order, which SQL allows and no engine does.
func sortNewestFirst(side storage.Side, page []storage.Edge, backward bool) {
	if backward {
		slices.Reverse(page)
	}
	newerFirst := func(a, b storage.Edge) int {
		return storage.PositionOf(side, a).Compare(storage.PositionOf(side, b))
	}
	if !slices.IsSortedFunc(page, newerFirst) {
		slices.SortFunc(page, newerFirst)
	}
}
