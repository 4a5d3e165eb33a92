package sqlstore

import (
	"context"
	"math"
	"slices"

	"kith/storage"
	"kith/storage/reaction"
)

// The indexes have all columns: no row is read. The bounds are written as those of pages.go.
const (
	// Favorites, and mentions. Served by idx_favorite_received.
	sqlFavoritesReceived = `
SELECT ? AS query, update_time, post_id, from_user_id, post_id
FROM favorite_inbox /*! FORCE INDEX (idx_favorite_received) */
WHERE to_user_id = ? AND type = ? AND update_time <= ? AND (update_time < ? OR update_time = ? AND (post_id < ? OR post_id = ? AND from_user_id < ?))
ORDER BY update_time DESC, post_id DESC, from_user_id DESC LIMIT ?`

	// Served by idx_comment_received.
	sqlCommentsReceived = `
SELECT ? AS query, created_at, comment_id, user_id, post_id
FROM comment /*! FORCE INDEX (idx_comment_received) */
WHERE author_id = ? AND created_at <= ? AND (created_at < ? OR created_at = ? AND comment_id < ?)
ORDER BY created_at DESC, comment_id DESC LIMIT ?`
)

// readReactions answers [reaction.Lookups].
func (s *Store) readReactions(ctx context.Context, queries []reaction.Query) []storage.Result[[]reaction.Reaction] {
	return eachPage(ctx, s, "reactions", queries, pagesOf[reaction.Query, reaction.Reaction]{
		owner: func(q reaction.Query) storage.UserID { return q.User },
		text: func(q reaction.Query, args []any) (string, []any) {
			if args = append(args, int64(q.User)); q.Kind == reaction.Comments {
				return sqlCommentsReceived, append(args, behind(q.After.Place, q.Limit)...)
			}
			of := storage.Favorited
			if q.Kind == reaction.Mentions {
				of = storage.Mentioned
			}
			if q.After == (reaction.Reaction{}) {
				q.After.CreatedAt = math.MaxInt64
			}
			at := int64(q.After.CreatedAt)
			return sqlFavoritesReceived, append(args, int64(of), at, at, at, q.After.Number, q.After.Number, int64(q.After.By), q.Limit)
		},
		columns: func(r *reaction.Reaction) []any {
			return []any{&r.CreatedAt, &r.Number, &r.By, &r.Post}
		},
		order: func(_ reaction.Query, page []reaction.Reaction) {
			slices.SortFunc(page, reaction.Reaction.Compare)
		},
	})
}
