package sqlstore

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sqlstore/internal/db"
)

// The bounds are written as those of pages.go. Served by idx_favorite_list.
const sqlFavoritePage = `
SELECT ? AS query, from_user_id, to_user_id, update_time, post_id
FROM favorite /*! FORCE INDEX (idx_favorite_list) */
WHERE from_user_id = ? AND type = 1 AND update_time <= ? AND (update_time < ? OR update_time = ? AND post_id < ?)
ORDER BY update_time DESC, post_id DESC LIMIT ?`

// readFavoritePages answers [storage.FavoritePageLookups].
func (s *Store) readFavoritePages(ctx context.Context, queries []storage.PlaceQuery) []storage.Result[[]storage.Edge] {
	return eachPage(ctx, s, "favorites.pages", queries, pagesOf[storage.PlaceQuery, storage.Edge]{
		owner: func(q storage.PlaceQuery) storage.UserID { return q.Of.Author },
		text: func(q storage.PlaceQuery, args []any) (string, []any) {
			return sqlFavoritePage, append(append(args, int64(q.Of.Author)), behind(q.After, q.Limit)...)
		},
		columns: func(e *storage.Edge) []any {
			return []any{&e.From, &e.To, &e.UpdateTime, &e.Item}
		},
		complete: func(_ storage.PlaceQuery, e storage.Edge) storage.Edge {
			e.Type = storage.Favorited
			return e
		},
		order: func(_ storage.PlaceQuery, page []storage.Edge) { inOrder(page, storage.Edge.Place) },
	})
}

// Served by the primary key.
var sqlPostStates = db.Both(`
WITH wanted(a, n) AS (VALUES (?, ?))
SELECT author_id, post_id, state
FROM wanted
CROSS JOIN post ON author_id = a AND post_id = n`)

// lookPosts reads which posts of favorites exist. Their authors' counts are locked; without that lock
// no post is made or deleted.
func (w *writer) lookPosts(j *judge.Judge, pairs []storage.Pair) error {
	if j.Posts == nil {
		j.Posts = make(map[storage.PostID]bool)
	}
	ids := storage.Each(pairs, storage.Pair.PostID)
	slices.SortFunc(ids, storage.PostID.Compare)
	ids = slices.Compact(ids)
	text, args := forPosts(w.store.sql, sqlPostStates, ids)
	return w.Read(len(ids), text, args, db.EachEntry(func(id *storage.PostID, state *int) []any {
		return []any{&id.Author, &id.Number, state}
	}, func(id storage.PostID, state int) { j.Posts[id] = state == 0 }))
}

var sqlCountFavorites = db.Both(`
INSERT INTO post_counts (author_id, post_id, favorite_count)
VALUES (?, ?, ?)
ON CONFLICT (author_id, post_id) DO UPDATE SET favorite_count = favorite_count + excluded.favorite_count, version = version + 1`)

// countFavorites changes the numbers of favorites of posts, whose authors' counts are locked, in key
// order.
func (w *writer) countFavorites(diffs map[storage.PostID]int64) error {
	ids := slices.SortedFunc(maps.Keys(diffs), storage.PostID.Compare)
	_, err := db.WriteRows(w.Tx, w.store.sql.Text(sqlCountFavorites), ids, func(args []any, id storage.PostID) []any {
		w.touchPost(id)
		return append(args, int64(id.Author), id.Number, diffs[id])
	})
	if err != nil {
		return fmt.Errorf("count favorites: %w", err)
	}
	return nil
}
