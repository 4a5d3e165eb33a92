package sqlstore

import (
	"context"
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
// comparison (update_time, peer) < (?, ?) reads every row of the owner, and without `update_time = ?` all rows of that time are read:
// they may be millions, where times are days, or one for all edges of an import.
//
// Of sides whose edges name an item, a page is of one item. Favorites are listed as [Store.FavoritePages].
var pagedSides = slices.DeleteFunc(slices.Clone(storage.AllSides[:]), func(s storage.Side) bool { return s == storage.Favorites })

// Served by {list}.
var sqlPage = db.ForSides(`
SELECT ? AS query, {peer}, update_time
FROM {table}
WHERE {owner} = ?{ AND post_id = ?} AND type = ?`, pagedSides...)

var (
	sqlPageAfter  = db.ForSides(` AND update_time <= ? AND (update_time < ? OR update_time = ? AND {peer} < ?)`, pagedSides...)
	sqlPageBefore = db.ForSides(` AND update_time >= ? AND (update_time > ? OR update_time = ? AND {peer} > ?)`, pagedSides...)
	sqlPageNewest = db.ForSides(` ORDER BY update_time DESC, {peer} DESC LIMIT ?`, pagedSides...)
	sqlPageOldest = db.ForSides(` ORDER BY update_time, {peer} LIMIT ?`, pagedSides...)
)

// readPages answers [storage.PageLookups].
func (s *Store) readPages(ctx context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	return eachPage(ctx, s, "pages."+side.String(), queries, pagesOf[storage.PageQuery, storage.Edge]{
		owner: func(q storage.PageQuery) storage.UserID { return q.Owner },
		text: func(q storage.PageQuery, args []any) (string, []any) {
			if args = append(args, int64(q.Owner)); side.HasItem() {
				args = append(args, q.Item)
			}
			return pageOf(side, q, sqlPage[side], append(args, int64(kindOf(q))))
		},
		columns: func(e *storage.Edge) []any { return []any{&e.To, &e.UpdateTime} },
		complete: func(q storage.PageQuery, e storage.Edge) storage.Edge {
			e = side.Pair(q.Owner, e.To).Edge(kindOf(q), e.UpdateTime)
			e.Item = q.Item
			return e
		},
		order: func(q storage.PageQuery, page []storage.Edge) { sortNewestFirst(side, page, q.Backward) },
	})
}

// pagesOf says how queries are answered by a SELECT each.
type pagesOf[Q comparable, T any] struct {
	owner func(Q) storage.UserID
	text  func(Q, []any) (text string, args []any) // the SELECT, and its arguments behind the number of the query

	columns  func(*T) []any // behind the number of the query
	complete func(Q, T) T   // nil: a row has all columns
	order    func(Q, []T)   // SQL promises no order of a UNION ALL
}

// eachPage answers queries: those of a shard by one UNION ALL. The first column of a row is the number of its query.
func eachPage[Q comparable, T any](ctx context.Context, s *Store, what string, queries []Q, of pagesOf[Q, T]) []storage.Result[[]T] {
	shardOf := func(q Q) int { return s.shards.Of(of.owner(q)) }
	return db.LookUp(s.db, queries, s.sql.MaxPages, shardOf, func(shard int, queries []Q, found func(Q, []T)) error {
		selects, args, pages := make([]string, len(queries)), make([]any, 0, 7*len(queries)), make([][]T, len(queries))
		for i, q := range queries {
			selects[i], args = of.text(q, append(args, i))
		}
		err := s.db.Query(ctx, what, shard, len(queries), s.unionAll(selects), args, db.EachEntry(func(i *int, row *T) []any {
			return append([]any{i}, of.columns(row)...)
		}, func(i int, row T) {
			if of.complete != nil {
				row = of.complete(queries[i], row)
			}
			pages[i] = append(pages[i], row)
		}))
		for i, q := range queries {
			of.order(q, pages[i])
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

// pageOf ends the SELECT of a page behind `type = ?`.
func pageOf(side storage.Side, q storage.PageQuery, head string, args []any) (string, []any) {
	var text strings.Builder
	text.WriteString(head)
	if q.After != (storage.Position{}) {
		text.WriteString(sqlPageAfter[side])
		args = append(args, int64(q.After.UpdateTime), int64(q.After.UpdateTime), int64(q.After.UpdateTime), int64(q.After.Peer))
	}
	if q.Before != (storage.Position{}) {
		text.WriteString(sqlPageBefore[side])
		args = append(args, int64(q.Before.UpdateTime), int64(q.Before.UpdateTime), int64(q.Before.UpdateTime), int64(q.Before.Peer))
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

// sortNewestFirst turns a page that was read backward around. The rows of a UNION ALL
// may come out of order, which SQL allows and no engine does.
func sortNewestFirst(side storage.Side, page []storage.Edge, backward bool) {
	if backward {
		slices.Reverse(page)
	}
	slices.SortFunc(page, func(a, b storage.Edge) int {
		return side.Position(a).Compare(side.Position(b))
	})
}

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

// readCountEdges answers [storage.EdgeCountLookups].
func (s *Store) readCountEdges(ctx context.Context, side storage.Side, queries []storage.EdgeCountQuery) []storage.Result[int] {
	shardOf := func(q storage.EdgeCountQuery) int { return s.shards.Of(q.Owner) }
	return db.LookUp(s.db, queries, s.sql.MaxPages, shardOf, func(shard int, queries []storage.EdgeCountQuery, found func(storage.EdgeCountQuery, int)) error {
		text, args := s.edgeCountStatement(side, queries)
		return s.db.Query(ctx, "count."+side.String(), shard, len(queries), text, args, db.EachEntry(db.TwoColumns, func(i, n int) { found(queries[i], n) }))
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
