package sqlstore

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// A post and its counts are one row of each of two tables, with the same key, so that a comment does
// not write the text again.

// Served by the primary keys.
var sqlPosts = db.Both(db.WithColumns(`
WITH wanted(a, n) AS (VALUES (?, ?))
SELECT {p.post but client_key, state}, {c.post_counts but author_id, post_id}
FROM wanted
CROSS JOIN post p ON p.author_id = a AND p.post_id = n
JOIN post_counts c ON c.author_id = p.author_id AND c.post_id = p.post_id
WHERE p.state = 0`))

var (
	// The bounds are written as those of pages.go. Served by idx_post_list and the primary key of
	// post_counts.
	sqlPostPage = db.WithColumns(`
SELECT /*! STRAIGHT_JOIN */ ? AS query, {p.post but client_key, state}, {c.post_counts but author_id, post_id}
FROM post p /*! FORCE INDEX (idx_post_list) */
JOIN post_counts c ON c.author_id = p.author_id AND c.post_id = p.post_id
WHERE p.author_id = ? AND p.state = 0 AND p.created_at <= ? AND (p.created_at < ? OR p.created_at = ? AND p.post_id < ?)
ORDER BY p.created_at DESC, p.post_id DESC LIMIT ?`)

	// Served by idx_post_latest and the primary key of post_counts.
	sqlLatestPosts = db.WithColumns(`
SELECT /*+ INL_JOIN(c) */ /*! STRAIGHT_JOIN */ {p.post but client_key, state}, {c.post_counts but author_id, post_id}
FROM post p /*! FORCE INDEX (idx_post_latest) */
JOIN post_counts c ON c.author_id = p.author_id AND c.post_id = p.post_id
WHERE p.state = 0 AND p.created_at <= ? AND (p.created_at < ? OR p.created_at = ? AND p.post_id < ?)
ORDER BY p.created_at DESC, p.post_id DESC LIMIT ?`)
)

// readPosts answers [storage.PostLookups].
func (s *Store) readPosts(ctx context.Context, ids []storage.PostID) []storage.Result[storage.Post] {
	shardOf := func(id storage.PostID) int { return s.shards.Of(id.Author) }
	return db.LookUp(s.db, ids, s.sql.MaxPairs, shardOf, func(shard int, ids []storage.PostID, found func(storage.PostID, storage.Post)) error {
		text, args := forPosts(s.sql, sqlPosts, ids)
		return s.db.Query(ctx, "posts", shard, len(ids), text, args, db.EachRow(wholePostColumns, func(p storage.Post) { found(p.PostID, p) }))
	})
}

// forPosts is a statement about posts, or about what is numbered as they are.
func forPosts[ID storage.PostID | storage.CommentID](dialect *db.Dialect, template db.Text, ids []ID) (text string, args []any) {
	wanted := db.Filled(ids)
	for _, id := range wanted {
		args = append(args, int64(storage.PostID(id).Author), storage.PostID(id).Number)
	}
	return db.Listed(dialect.Text(template), len(wanted)), args
}

// readPostPages answers [storage.PostPageLookups].
func (s *Store) readPostPages(ctx context.Context, queries []storage.PlaceQuery) []storage.Result[[]storage.Post] {
	return eachPage(ctx, s, "posts.pages", queries, pagesOf[storage.PlaceQuery, storage.Post]{
		owner: func(q storage.PlaceQuery) storage.UserID { return q.Of.Author },
		text: func(q storage.PlaceQuery, args []any) (string, []any) {
			return sqlPostPage, append(append(args, int64(q.Of.Author)), behind(q.After, q.Limit)...)
		},
		columns: wholePostColumns,
		order:   func(_ storage.PlaceQuery, page []storage.Post) { inOrder(page, storage.Post.Place) },
	})
}

// readLatestPosts answers [storage.LatestPostLookups].
func (s *Store) readLatestPosts(ctx context.Context, q storage.PlaceQuery) ([]storage.Post, error) {
	authorOf := func(p storage.Post) storage.UserID { return p.Author }
	return newestOf(ctx, s, "posts.latest", sqlLatestPosts, nil, q.After, q.Limit, wholePostColumns, authorOf, storage.Post.Place)
}

// newestOf lists rows of all shards behind a place, newest first. The arguments of the bounds come behind the others.
func newestOf[T any](ctx context.Context, s *Store, what, text string, args []any, after storage.Place, limit int,
	columns func(*T) []any, owner func(T) storage.UserID, place func(T) storage.Place) ([]T, error) {
	return firstOf(s, limit, byPlace(place), func(i, limit int, read []T, owns func(bucket int) bool) ([]T, error) {
		from := after
		if n := len(read); n > 0 {
			from = place(read[n-1])
		}
		return ownPage(limit, func(limit int, own func(T, bool)) error {
			return s.db.Query(ctx, what, i, limit, text, slices.Concat(args, behind(from, limit)), db.EachRow(columns, func(row T) {
				from = place(row)
				own(row, owns(owner(row).Bucket()))
			}))
		})
	})
}

// behind are the arguments of the bounds of a page. The zero place is ahead of all.
func behind(after storage.Place, limit int) []any {
	if after == (storage.Place{}) {
		after = storage.Place{CreatedAt: math.MaxInt64, Number: math.MaxInt64}
	}
	return []any{int64(after.CreatedAt), int64(after.CreatedAt), int64(after.CreatedAt), after.Number, limit}
}

// inOrder sorts a page, as the rows of a UNION ALL may come out of order, which no engine does.
func inOrder[T any](page []T, place func(T) storage.Place) { slices.SortFunc(page, byPlace(place)) }

func byPlace[T any](place func(T) storage.Place) func(a, b T) int {
	return func(a, b T) int { return place(a).Compare(place(b)) }
}

// wholePostColumns are the values of {post but client_key, state} and of {post_counts but author_id, post_id}.
func wholePostColumns(p *storage.Post) []any {
	return []any{&p.Author, &p.Number, &p.Text, (*mediaColumn)(&p.Media), &p.CreatedAt, &p.EditedAt, &p.Attributes, &p.Counts.Comments, &p.Counts.Favorites, &p.Counts.Version}
}

// postColumns are the values of {post}.
func postColumns(p *storage.PostRow) []any {
	return []any{&p.Author, &p.Number, &p.Key, &p.Text, (*mediaColumn)(&p.Media), &p.At, &p.EditedAt, &p.Deleted, &p.Attributes}
}

// mediaColumn is media as they are stored.
type mediaColumn []storage.Media

func (m mediaColumn) Value() (driver.Value, error) {
	return storage.CompactJSON(append([]storage.Media{}, m...)) // never null
}

func (m *mediaColumn) Scan(stored any) error {
	text, isBytes := stored.([]byte)
	if !isBytes {
		text = fmt.Append(nil, stored)
	}
	*m = nil
	if err := json.Unmarshal(text, (*[]storage.Media)(m)); err != nil {
		return fmt.Errorf("read the media of a post: %w", err)
	}
	if len(*m) == 0 {
		*m = nil
	}
	return nil
}
