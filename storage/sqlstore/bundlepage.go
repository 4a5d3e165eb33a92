package sqlstore

import (
	"context"
	"database/sql"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// A user, with its counts if they are asked for, and the first page of one of its lists. Every row
// of the page has the user as well. To both engines the user is a constant, so the list index gives
// the rows in order. A LEFT JOIN, which would answer for empty lists, too, is sorted, and a UNION
// ALL takes longer than two statements. TiDB would read the whole list before its first page, so
// there it stays two statements.
//
// Conditions and an order follow, as for a page (pages.go).
//
// Served by {list} and the primary key of users.
var sqlUserPage = db.ForSides(`
SELECT {peer}, update_time, u.created_at, u.updated_at, u.followings_visibility, u.followers_visibility, u.undiscoverable,
  u.handle, u.name, u.bio, u.avatar_url
FROM users u
JOIN {table} ON {owner} = ? AND type = ?
WHERE u.user_id = ?`, db.Follows...)

// The same with the counts. Served by {list} and the primary keys of users and user_counts.
var sqlUserPageWithCounts = db.ForSides(`
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
	head := sqlUserPage[side]
	if counted == 1 {
		head = sqlUserPageWithCounts[side]
	}
	text, args := pageOf(side, q, head, []any{owner, int64(kindOf(q)), owner})

	row := newUserRow(2 + userNumbers + countNumbers*counted)
	page := make([]storage.Edge, 0, max(q.Limit, 0))
	var user storage.User
	var counts storage.Counts
	err := s.db.Query(ctx, "userpage."+side.String(), shard, 2+counted, text, args, func(rows *sql.Rows) error {
		row.Scan(rows)
		if len(page) == 0 {
			user = row.user(q.Owner, 2)
			if counted == 1 {
				counts = row.counts(2 + userNumbers)
			}
		}
		p := side.Pair(q.Owner, storage.UserID(row.At(0)))
		page = append(page, storage.Edge{From: p.From, To: p.To, Type: kindOf(q), UpdateTime: storage.Micros(row.At(1))})
		return row.Err
	})
	if err == nil && len(page) == 0 {
		return false
	}
	if err != nil {
		fail(b.Users, err)
		fail(b.Counts, err)
		fail(b.Pages[side], err)
		return true
	}
	sortNewestFirst(side, page, q.Backward)
	b.Users.Results = []storage.Result[storage.User]{{Value: user, Found: true}}
	b.Pages[side].Results = []storage.Result[[]storage.Edge]{{Value: page, Found: true}}
	if counted == 1 {
		b.Counts.Results = []storage.Result[storage.Counts]{{Value: counts, Found: true}}
	}
	return true
}

// maxUserPage bounds the rows that have the user on them.
const maxUserPage = 128
