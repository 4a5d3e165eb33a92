package sqlstore

import (
	"context"
	"database/sql"
	"slices"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// Served by the primary keys, which have the peers in order. Naming an index saves MariaDB the time
// to choose one, which is a fifth of the time of many short lists; SQLite chooses the list index:
// idx_following_list, idx_follower_list, idx_friend_request_list or idx_friend_request_inbox_list.
// A list comes as one text: a row for each of its edges takes the driver, and the server, several
// times as long.
var sqlNeighbours = db.BySide[string]{
	storage.Forward: `
SELECT from_user_id, COUNT(*), GROUP_CONCAT(to_user_id)
FROM following /*! FORCE INDEX (PRIMARY) */
WHERE type = 1 AND from_user_id IN (?)
GROUP BY from_user_id`,
	storage.Inverse: `
SELECT to_user_id, COUNT(*), GROUP_CONCAT(from_user_id)
FROM follower /*! FORCE INDEX (PRIMARY) */
WHERE type = 1 AND to_user_id IN (?)
GROUP BY to_user_id`,
	storage.Requests: `
SELECT from_user_id, COUNT(*), GROUP_CONCAT(to_user_id)
FROM friend_request /*! FORCE INDEX (PRIMARY) */
WHERE type = 1 AND from_user_id IN (?)
GROUP BY from_user_id`,
	storage.Inbox: `
SELECT to_user_id, COUNT(*), GROUP_CONCAT(from_user_id)
FROM friend_request_inbox /*! FORCE INDEX (PRIMARY) */
WHERE type = 1 AND to_user_id IN (?)
GROUP BY to_user_id`,
}

var sqlNeighboursByRow = db.BySide[string]{
	// Served by idx_following_list or the primary key.
	storage.Forward: `
SELECT to_user_id
FROM following
WHERE from_user_id = ? AND type = 1`,
	// Served by idx_follower_list or the primary key.
	storage.Inverse: `
SELECT from_user_id
FROM follower
WHERE to_user_id = ? AND type = 1`,
	// Served by idx_friend_request_list or the primary key.
	storage.Requests: `
SELECT to_user_id
FROM friend_request
WHERE from_user_id = ? AND type = 1`,
	// Served by idx_friend_request_inbox_list or the primary key.
	storage.Inbox: `
SELECT from_user_id
FROM friend_request_inbox
WHERE to_user_id = ? AND type = 1`,
}

// Neighbours implements [storage.EdgeReader].
func (s *Store) Neighbours(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	return db.LookUp(s.db, owners, s.sql.MaxKeys, s.shards.Of, func(shard int, owners []storage.UserID, found func(storage.UserID, []storage.UserID)) error {
		lists := make(map[storage.UserID][]storage.UserID, len(owners))
		var cut []storage.UserID
		text, args := db.In(sqlNeighbours[side], owners)
		err := s.db.Query(ctx, "neighbours."+side.String(), shard, len(owners), text, args, func(rows *sql.Rows) error {
			var owner storage.UserID
			var length int
			var peers sql.RawBytes
			if err := rows.Scan(&owner, &length, &peers); err != nil {
				return err
			}
			list, whole := parseIDs(peers, length)
			if lists[owner] = list; !whole {
				cut = append(cut, owner)
			}
			return nil
		})
		for _, owner := range cut {
			if err == nil {
				lists[owner], err = s.neighboursByRow(ctx, shard, side, owner)
			}
		}
		for _, owner := range owners {
			list := lists[owner]
			if !slices.IsSorted(list) { // the engine has taken another index
				slices.Sort(list)
			}
			found(owner, list)
		}
		return err
	})
}

// neighboursByRow reads a list that is longer than a server puts into one text
// (group_concat_max_len, max_allowed_packet).
func (s *Store) neighboursByRow(ctx context.Context, shard int, side storage.Side, owner storage.UserID) (list []storage.UserID, err error) {
	err = s.db.Query(ctx, "neighbours."+side.String(), shard, 1, sqlNeighboursByRow[side], []any{int64(owner)}, func(rows *sql.Rows) error {
		var peer storage.UserID
		err := rows.Scan(&peer)
		list = append(list, peer)
		return err
	})
	return list, err
}

// parseIDs reads ids that are separated by commas. It returns false if there are not as many as
// length: then the end of the text is missing.
func parseIDs(text []byte, length int) ([]storage.UserID, bool) {
	list := make([]storage.UserID, 0, length)
	var id storage.UserID
	for _, c := range text {
		if c == ',' {
			list, id = append(list, id), 0
			continue
		}
		id = id*10 + storage.UserID(c-'0')
	}
	if len(text) > 0 {
		list = append(list, id)
	}
	// If the text was cut, its last id may be cut as well, and the number of ids may still be
	// right.
	return list, len(list) == length && len(text) < db.MaxText
}
