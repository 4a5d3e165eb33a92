package sqlstore

import (
	"context"
	"database/sql"
	"strings"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// Edges on both sides of a few owners, with users and counts beside them, are one UNION ALL:
// of a SELECT for the users, one for the counts and one for each owner and side. The first column
// of a row says what the row is of: edges of a side, by its number, users or counts. Without the casts, MariaDB would make decimals
// of columns that mix signed and unsigned numbers.

// Served by the primary key.
var sqlBundledEdges = db.ForSides(`
SELECT {side}, {owner}, {peer}, CAST(type AS SIGNED), update_time, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM {table}
WHERE {owner} = ? AND {peer} IN (?)`, db.Follows...)

const (
	// Served by the primary key.
	sqlBundledUsers = `
SELECT 2, user_id, created_at, updated_at, CAST(followings_visibility AS SIGNED), CAST(followers_visibility AS SIGNED), CAST(undiscoverable AS SIGNED), NULL, NULL,
  handle, name, bio, avatar_url
FROM users
WHERE user_id IN (?)`

	// Served by the primary key.
	sqlBundledCounts = `
SELECT 3, user_id, version, following_count, follower_count, friend_count, post_count, favorite_count, total_favorited, NULL, NULL, NULL, NULL
FROM user_counts
WHERE user_id IN (?)`
)

// Kinds of rows that are no edges.
const (
	rowOfUser   = 2
	rowOfCounts = 3
)

// bundleOwners bounds the SELECTs of edges.
const bundleOwners = 8

// bundledEdges answers a bundle without pages; false if that is not one statement.
func (s *Store) bundledEdges(ctx context.Context, shard int, b *storage.Bundle) bool {
	selects, args := make([]string, 0, bundleOwners), make([]any, 0, bundleKeys)
	add := func(text string, more []any) {
		selects, args = append(selects, text), append(args, more...)
	}
	keys := asked(b.Users) + asked(b.Counts)
	if asked(b.Users) > 0 {
		add(db.In(sqlBundledUsers, b.Users.Keys))
	}
	if asked(b.Counts) > 0 {
		add(db.In(sqlBundledCounts, b.Counts.Keys))
	}
	for _, side := range db.Follows {
		if n := asked(b.Edges[side]); n > 0 {
			pairs := b.Edges[side].Keys
			keys += n
			for _, owner := range ownersIn(side, pairs) {
				add(db.In(sqlBundledEdges[side], peersOf(side, owner, pairs), int64(owner)))
			}
		}
	}
	if len(selects) < 2 || len(selects) > bundleOwners {
		return false
	}
	begin(b.Users)
	begin(b.Counts)
	for _, side := range db.Follows {
		begin(b.Edges[side])
	}
	row := newUserRow(2 + countNumbers) // more than users have
	err := s.db.Query(ctx, "bundle", shard, keys, strings.Join(selects, "\nUNION ALL"), args, func(rows *sql.Rows) error {
		row.Scan(rows)
		switch kind, id := row.At(0), storage.UserID(row.At(1)); {
		case row.Err != nil: // the row may be of anything
		case kind == rowOfUser:
			put(b.Users, id, row.user(id, 2))
		case kind == rowOfCounts:
			put(b.Counts, id, row.counts(2))
		default:
			p := storage.Side(kind).Pair(id, storage.UserID(row.At(2)))
			put(b.Edges[kind], p, p.Edge(storage.EdgeType(row.At(3)), storage.Micros(row.At(4))))
		}
		return row.Err
	})
	if err != nil {
		fail(b.Users, err)
		fail(b.Counts, err)
		for _, side := range db.Follows {
			fail(b.Edges[side], err)
		}
	}
	return true
}

// peersOf lists the peers in pairs of one owner.
func peersOf(side storage.Side, owner storage.UserID, pairs []storage.Pair) []storage.UserID {
	peers := make([]storage.UserID, 0, len(pairs))
	for _, p := range pairs {
		if side.Owner(p) == owner {
			peers = append(peers, side.Peer(p))
		}
	}
	return peers
}
