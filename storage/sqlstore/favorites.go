package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"

	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sqlstore/internal/db"
)

const (
	// The bounds are written as those of pages.go. Served by idx_favorite_list.
	sqlFavoritePage = `
SELECT ? AS query, from_user_id, to_user_id, update_time, post_id
FROM favorite /*! FORCE INDEX (idx_favorite_list) */
WHERE from_user_id = ? AND type = 1 AND update_time <= ? AND (update_time < ? OR post_id < ?)
ORDER BY update_time DESC, post_id DESC LIMIT ?`

	// Served by idx_favorite_inbox_list.
	sqlFavoritedByPage = `
SELECT ? AS query, from_user_id, to_user_id, update_time, post_id
FROM favorite_inbox /*! FORCE INDEX (idx_favorite_inbox_list) */
WHERE to_user_id = ? AND post_id = ? AND type = 1 AND update_time <= ? AND (update_time < ? OR from_user_id < ?)
ORDER BY update_time DESC, from_user_id DESC LIMIT ?`
)

// FavoritePages implements [storage.FavoriteReader].
func (s *Store) FavoritePages(ctx context.Context, queries []storage.FavoritesQuery) []storage.Result[[]storage.Edge] {
	return eachPage(ctx, s, "favorites.pages", queries, pagesOf[storage.FavoritesQuery, storage.Edge]{
		owner: func(q storage.FavoritesQuery) storage.UserID { return q.User },
		text: func(q storage.FavoritesQuery, args []any) (string, []any) {
			return sqlFavoritePage, append(append(args, int64(q.User)), behind(q.After, q.Limit)...)
		},
		scan:  scanFavorite[storage.FavoritesQuery],
		order: func(_ storage.FavoritesQuery, page []storage.Edge) { inOrder(page, placeOfFavorite) },
	})
}

// FavoritedByPages implements [storage.FavoriteReader].
func (s *Store) FavoritedByPages(ctx context.Context, queries []storage.FavoritedByQuery) []storage.Result[[]storage.Edge] {
	return eachPage(ctx, s, "favorites.by", queries, pagesOf[storage.FavoritedByQuery, storage.Edge]{
		owner: func(q storage.FavoritedByQuery) storage.UserID { return q.Post.Author },
		text: func(q storage.FavoritedByQuery, args []any) (string, []any) {
			after := storage.Place{CreatedAt: q.After.UpdateTime, Number: int64(q.After.Peer)}
			return sqlFavoritedByPage, append(append(args, int64(q.Post.Author), q.Post.Number), behind(after, q.Limit)...)
		},
		scan: scanFavorite[storage.FavoritedByQuery],
		order: func(_ storage.FavoritedByQuery, page []storage.Edge) {
			sortNewestFirst(storage.FavoriteInbox, page, false)
		},
	})
}

func scanFavorite[Q any](rows *sql.Rows, _ []Q) (i int, e storage.Edge, err error) {
	e.Type = storage.Favorited
	err = rows.Scan(&i, &e.From, &e.To, &e.UpdateTime, &e.Post)
	return i, e, err
}

func placeOfFavorite(e storage.Edge) storage.Place {
	return storage.Place{CreatedAt: e.UpdateTime, Number: e.Post}
}

// ChangeFavorite implements [storage.FavoriteChanger], in the lock order of [Store.Apply].
func (s *Store) ChangeFavorite(ctx context.Context, user storage.UserID, change storage.FavoriteChange, o storage.ChangeOptions) (storage.Changed, error) {
	var changed storage.Changed
	err := s.transact(ctx, "favorite", s.ownerOf(user), func(w *writer) (err error) {
		changed, err = w.changeFavorite(user, change, o.Inverse)
		return err
	})
	if err != nil {
		return storage.Changed{}, err
	}
	return changed, nil
}

func (w *writer) changeFavorite(user storage.UserID, ch storage.FavoriteChange, inverse bool) (storage.Changed, error) {
	author := ch.Post.Author
	c := &change{writer: w, user: user}
	c.newJudge(inverse)
	inline := inverse && c.isLocal(author)
	var others []storage.UserID
	if inline {
		others = append(others, author)
	}
	if _, err := c.lock(others); err != nil {
		return storage.Changed{}, err
	}
	if c.uncounted[author] { // counts that do not exist are not locked: they are made when the row is propagated
		c.Inline, inline = nil, false
	}
	state, err := w.lockedState(user)
	if err == nil {
		err = judge.MayPublish(user, state.State)
	}
	if err != nil {
		return storage.Changed{}, err
	}
	pair := storage.Pair{From: user, To: author, Post: ch.Post.Number}
	if err := w.lookFavorites(c.Judge, storage.Favorites, []storage.Pair{pair}); err != nil {
		return storage.Changed{}, err
	}
	if inline {
		if err := w.lookFavorites(c.Judge, storage.FavoriteInbox, []storage.Pair{pair}); err != nil {
			return storage.Changed{}, err
		}
	}
	if ch.Type == storage.Favorited {
		if err := w.look(c.Judge, []storage.Pair{{From: user, To: author}}, storage.Forward, storage.Inverse); err != nil {
			return storage.Changed{}, err
		}
	}
	changed, err := c.Favorite(user, ch)
	if err != nil {
		return storage.Changed{}, err
	}
	if !changed.Changed {
		w.unchanged(nil)
		return changed, nil
	}
	return changed, c.save(user, ch.At)
}

// lookFavorites reads rows of favorites as they are, under the lock of their owners, and on the
// FavoriteInbox side also which of the posts exist.
func (w *writer) lookFavorites(j *judge.Judge, side storage.Side, pairs []storage.Pair) error {
	pairs = slices.SortedFunc(slices.Values(pairs), side.Compare)
	for chunk := range slices.Chunk(slices.Compact(pairs), w.store.maxPairs(side, pairs)) {
		text, args := w.store.edgesStatement(side, chunk)
		scan := scanEdges(side)
		err := w.Read(len(chunk), text, args, func(rows *sql.Rows) error {
			e, err := scan.next(rows)
			j.Know(side, e)
			return err
		})
		if err == nil && side == storage.FavoriteInbox {
			err = w.lookPosts(j, chunk)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Served by the primary key.
var sqlPostStates = db.Text{
	MySQL: `
SELECT author_id, post_id, state
FROM post FORCE INDEX (PRIMARY)
WHERE (author_id, post_id) IN ((?, ?))`,
	SQLite: `
WITH wanted(a, n) AS (VALUES (?, ?))
SELECT author_id, post_id, state
FROM wanted
CROSS JOIN post ON author_id = a AND post_id = n`,
}

// lookPosts reads which posts of favorites exist. Their authors' counts are locked; without that lock
// no post is made or deleted.
func (w *writer) lookPosts(j *judge.Judge, pairs []storage.Pair) error {
	if j.Posts == nil {
		j.Posts = make(map[storage.PostID]bool)
	}
	ids := storage.Each(pairs, storage.Pair.PostID)
	slices.SortFunc(ids, comparePosts)
	ids = slices.Compact(ids)
	text, args := forPosts(w.store.sql, sqlPostStates, ids)
	return w.Read(len(ids), text, args, func(rows *sql.Rows) error {
		var id storage.PostID
		var state int
		err := rows.Scan(&id.Author, &id.Number, &state)
		j.Posts[id] = state == 0
		return err
	})
}

var sqlCountFavorites = db.Both(`
INSERT INTO post_counts (author_id, post_id, favorite_count)
VALUES (?, ?, ?)
ON CONFLICT (author_id, post_id) DO UPDATE SET favorite_count = favorite_count + excluded.favorite_count, version = version + 1`)

// countFavorites changes the numbers of favorites of posts, whose authors' counts are locked, in key
// order.
func (w *writer) countFavorites(diffs map[storage.PostID]int64) error {
	ids := slices.SortedFunc(maps.Keys(diffs), comparePosts)
	for chunk := range slices.Chunk(ids, w.store.sql.MaxRows) {
		var args []any
		for _, id := range chunk {
			w.touchPost(id)
			args = append(args, int64(id.Author), id.Number, diffs[id])
		}
		if _, err := w.Exec(len(chunk), db.Listed(w.store.sql.Text(sqlCountFavorites), len(chunk)), args...); err != nil {
			return fmt.Errorf("count favorites: %w", err)
		}
	}
	return nil
}
