package sqlstore

import (
	"context"
	"database/sql"
	"slices"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// A block is on the shards of both users: in following for the one who blocks, in follower for the
// one who is blocked. So one statement on a user's own shard finds all blocks.
//
// Served by idx_following_list and idx_follower_list, by order: blocks are few, and most
// rows of a user are not.
const sqlBlocks = `
SELECT from_user_id, to_user_id
FROM following /*! FORCE INDEX (idx_following_list) */
WHERE type = 2 AND from_user_id IN (?)
UNION ALL
SELECT to_user_id, from_user_id
FROM follower /*! FORCE INDEX (idx_follower_list) */
WHERE type = 2 AND to_user_id IN (?)`

// Blocks implements [storage.RelationReader].
func (s *Store) Blocks(ctx context.Context, users []storage.UserID) []storage.Result[[]storage.UserID] {
	return db.LookUp(s.db, users, s.sql.MaxKeys, s.shards.Of, func(shard int, users []storage.UserID, found func(storage.UserID, []storage.UserID)) error {
		ids := db.Arguments(users)
		return s.readLists(ctx, "blocks", shard, users, db.Listed(sqlBlocks, len(users)), append(ids, ids...), found)
	})
}

// readLists runs a look-up whose rows are (user, member) and gives every user its
// members, ascending, each once.
func (s *Store) readLists(ctx context.Context, lookup string, shard int, users []storage.UserID, text string, args []any, found func(storage.UserID, []storage.UserID)) error {
	lists := make(map[storage.UserID][]storage.UserID, len(users))
	err := s.db.Query(ctx, lookup, shard, len(users), text, args, func(rows *sql.Rows) error {
		var user, member storage.UserID
		err := rows.Scan(&user, &member)
		lists[user] = append(lists[user], member)
		return err
	})
	for _, user := range users {
		list := lists[user]
		slices.Sort(list)
		found(user, slices.Compact(list))
	}
	return err
}
