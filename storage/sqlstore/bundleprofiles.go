package sqlstore

import (
	"context"
	"database/sql"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// Users with their counts, by one look-up by key for each. A user without a row in users is asked
// for once more: in counts, or as [Store.Profiles] does. Served by the primary keys.
const sqlBundledProfiles = `
SELECT u.user_id, u.created_at, u.updated_at, u.followings_visibility, u.followers_visibility, u.undiscoverable,
  c.version, c.following_count, c.follower_count, c.friend_count, c.post_count, c.favorite_count, c.total_favorited,
  u.handle, u.name, u.bio, u.avatar_url
FROM users u
LEFT JOIN user_counts c ON c.user_id = u.user_id
WHERE u.user_id IN (?)`

// bundledProfiles answers the users and counts of a bundle, on any shards.
func (s *Store) bundledProfiles(ctx context.Context, b *storage.Bundle) {
	b.People(func(ids []storage.UserID) []storage.Result[storage.Profile] { return s.profilesByKey(ctx, ids) })
	var rest []storage.UserID // those who are not in users
	var at []int
	for i, r := range b.Counts.Results {
		if r.Err == nil && !r.Found {
			rest, at = append(rest, b.Counts.Keys[i]), append(at, i)
		}
	}
	for k, r := range s.Counts(ctx, rest) {
		b.Counts.Results[at[k]] = r
	}
}

func (s *Store) profilesByKey(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	return db.LookUp(s.db, ids, s.sql.MaxKeys, s.shards.Of, func(shard int, ids []storage.UserID, found func(storage.UserID, storage.Profile)) error {
		text, args := db.In(sqlBundledProfiles, ids)
		row := newUserRow(1 + userNumbers + countNumbers)
		return s.db.Query(ctx, "profiles", shard, len(ids), text, args, func(rows *sql.Rows) error {
			row.Scan(rows)
			id := storage.UserID(row.At(0))
			p := storage.Profile{Exists: true, User: row.user(id, 1)}
			if p.Counted = !row.IsNull(1 + userNumbers); p.Counted {
				p.Counts = row.counts(1 + userNumbers)
			}
			found(id, p)
			return row.Err
		})
	})
}
