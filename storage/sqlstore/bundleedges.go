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
// of a row says what the row is of. Without the casts, MariaDB would make decimals of columns that
// mix signed and unsigned numbers.
type edgeBundle struct {
	numbers int  // how many a row has
	texts   bool // of users, behind the numbers

	users, counts string
	edges         [2]string // by side
}

// edgeBundles are the SELECTs, by the width of the rows: without users, and with them. Served by
// the primary keys.
var edgeBundles = [...]edgeBundle{
	{
		numbers: 2 + countNumbers,
		counts: `
SELECT 1, user_id, version, following_count, follower_count, friend_count, post_count, favorite_count, total_favorited
FROM user_counts
WHERE user_id IN (?)`,
		edges: [2]string{
			storage.Forward: `
SELECT 2, from_user_id, to_user_id, CAST(type AS SIGNED), update_time, NULL, NULL, NULL, NULL
FROM following
WHERE from_user_id = ? AND to_user_id IN (?)`,
			storage.Inverse: `
SELECT 3, to_user_id, from_user_id, CAST(type AS SIGNED), update_time, NULL, NULL, NULL, NULL
FROM follower
WHERE to_user_id = ? AND from_user_id IN (?)`,
		},
	},
	{
		numbers: 2 + countNumbers, // more than users have
		texts:   true,
		users: `
SELECT 0, user_id, created_at, updated_at, CAST(followings_visibility AS SIGNED), CAST(followers_visibility AS SIGNED), CAST(undiscoverable AS SIGNED), NULL, NULL,
  handle, name, bio, avatar_url
FROM users
WHERE user_id IN (?)`,
		counts: `
SELECT 1, user_id, version, following_count, follower_count, friend_count, post_count, favorite_count, total_favorited, NULL, NULL, NULL, NULL
FROM user_counts
WHERE user_id IN (?)`,
		edges: [2]string{
			storage.Forward: `
SELECT 2, from_user_id, to_user_id, CAST(type AS SIGNED), update_time, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM following
WHERE from_user_id = ? AND to_user_id IN (?)`,
			storage.Inverse: `
SELECT 3, to_user_id, from_user_id, CAST(type AS SIGNED), update_time, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM follower
WHERE to_user_id = ? AND from_user_id IN (?)`,
		},
	},
}

// Kinds of rows: users, counts, or edges of a side, which is added.
const (
	rowOfUser = iota
	rowOfCounts
	rowOfEdge
)

// bundleOwners bounds the SELECTs of edges.
const bundleOwners = 8

// bundledEdges answers a bundle without pages; false if that is not one statement.
func (s *Store) bundledEdges(ctx context.Context, shard int, b *storage.Bundle) bool {
	of := &edgeBundles[min(asked(b.Users), 1)]
	selects, args := make([]string, 0, bundleOwners), make([]any, 0, bundleKeys)
	add := func(text string, more []any) {
		selects, args = append(selects, text), append(args, more...)
	}
	keys := asked(b.Users) + asked(b.Counts)
	if asked(b.Users) > 0 {
		add(db.In(of.users, b.Users.Keys))
	}
	if asked(b.Counts) > 0 {
		add(db.In(of.counts, b.Counts.Keys))
	}
	for _, side := range [...]storage.Side{storage.Forward, storage.Inverse} {
		if n := asked(b.Edges[side]); n > 0 {
			pairs := b.Edges[side].Keys
			keys += n
			for _, owner := range ownersIn(side, pairs) {
				add(db.In(of.edges[side], peersOf(side, owner, pairs), int64(owner)))
			}
		}
	}
	if len(selects) < 2 || len(selects) > bundleOwners {
		return false
	}
	r := newEdgeBundleRead(b, of)
	if err := s.db.Query(ctx, "bundle", shard, keys, strings.Join(selects, "\nUNION ALL"), args, r.scan); err != nil {
		fail(b.Users, err)
		fail(b.Counts, err)
		fail(b.Edges[storage.Forward], err)
		fail(b.Edges[storage.Inverse], err)
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

// edgeBundleRead is a bundle that is being read.
type edgeBundleRead struct {
	*storage.Bundle

	row *userRow
}

func newEdgeBundleRead(b *storage.Bundle, of *edgeBundle) *edgeBundleRead {
	row := &userRow{Numbers: *db.NewNumbers(of.numbers)}
	if of.texts {
		row = newUserRow(of.numbers)
	}
	r := &edgeBundleRead{Bundle: b, row: row}
	begin(b.Users)
	begin(b.Counts)
	begin(b.Edges[storage.Forward])
	begin(b.Edges[storage.Inverse])
	return r
}

func (r *edgeBundleRead) scan(rows *sql.Rows) error {
	n := r.row
	n.Scan(rows)
	switch kind, id := n.At(0), storage.UserID(n.At(1)); {
	case n.Err != nil: // the row may be of anything
	case kind == rowOfUser:
		put(r.Users, id, n.user(id, 2))
	case kind == rowOfCounts:
		put(r.Counts, id, n.counts(2))
	default:
		side := storage.Side(kind - rowOfEdge)
		p := side.Pair(id, storage.UserID(n.At(2)))
		put(r.Edges[side], p, storage.Edge{
			From: p.From, To: p.To, Type: storage.EdgeType(n.At(3)), UpdateTime: storage.Micros(n.At(4)),
		})
	}
	return n.Err
}
