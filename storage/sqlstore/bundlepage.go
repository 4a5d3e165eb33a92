package sqlstore

import (
	"context"
	"database/sql"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// A user, with its counts, and the first page of one of its lists. Every row
// of the page has the user as well. To both engines the user is a constant, so the list index gives
// the rows in order. A LEFT JOIN, which would answer for empty lists, too, is sorted, and a UNION
// ALL takes longer than two statements. TiDB would read the whole list before its first page, so
// there it stays two statements.
//
// Conditions and an order follow, as for a page (pages.go).
//
// Served by {list} and the primary keys of users and user_counts.
var sqlUserPage = db.ForSides(`
SELECT {peer}, update_time, u.created_at, u.updated_at, u.followings_visibility, u.followers_visibility, u.undiscoverable,
  c.version, c.following_count, c.follower_count, c.friend_count, c.post_count, c.favorite_count, c.total_favorited,
  u.handle, u.name, u.bio, u.avatar_url
FROM users u
JOIN user_counts c ON c.user_id = u.user_id
JOIN {table} ON {owner} = ? AND type = ?
WHERE u.user_id = ?`, db.Follows...)

// bundledPage answers a bundle that is one user and one page. It returns false if that is not one
// statement, or if there is no row: whether the user or the edges are missing has to be asked
// separately.
func (s *Store) bundledPage(ctx context.Context, shard int, b *storage.Bundle) bool {
	if s.sql.LimitsBehindJoins {
		return false
	}
	side := storage.Forward
	if asked(b.Pages[side]) == 0 {
		side = storage.Inverse
	}
	q, counted := b.Pages[side].Keys[0], asked(b.Counts)
	if q.Owner != b.Users.Keys[0] || counted > 1 || counted == 1 && b.Counts.Keys[0] != q.Owner || q.Limit > maxUserPage {
		return false
	}
	owner := int64(q.Owner)
	text, args := pageOf(side, q, sqlUserPage[side], []any{owner, int64(kindOf(q)), owner})

	row := newUserRow(2 + userNumbers + countNumbers)
	page := make([]storage.Edge, 0, max(q.Limit, 0))
	var user storage.User
	var counts storage.Counts
	err := s.db.Query(ctx, "userpage."+side.String(), shard, 2+counted, text, args, func(rows *sql.Rows) error {
		row.Scan(rows)
		if len(page) == 0 {
			user, counts = row.user(q.Owner, 2), row.counts(2+userNumbers)
		}
		p := side.Pair(q.Owner, storage.UserID(row.At(0)))
		page = append(page, p.Edge(kindOf(q), storage.Micros(row.At(1))))
		return row.Err
	})
	if err == nil && len(page) == 0 {
		return false
	}
	sortNewestFirst(side, page, q.Backward)
	answer(b.Users, user, err)
	answer(b.Counts, counts, err)
	answer(b.Pages[side], page, err)
	return true
}

// answer answers the one key of a look-up, if it is asked for.
func answer[K, V any](l *storage.Lookup[K, V], value V, err error) {
	if l == nil {
		return
	}
	l.Results = []storage.Result[V]{{Value: value, Found: true}}
	if err != nil {
		l.Fail(err)
	}
}

// maxUserPage bounds the rows that have the user on them.
const maxUserPage = 128
