package sqlstore

import (
	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// Digests are computed where the rows are, by the arithmetic of [storage.Cut] and [storage.Mix];
// the 1021 are the [storage.Classes]. Each choice comes as one text, of which a row looks at one
// byte: MariaDB turns a list of as many numbers into a table. MariaDB mixes rows as integers, and
// takes BIT_XOR of them: CRC32 of a row's text takes three times as long, and SUM adds decimals.
// SQLite has neither an exclusive or nor an aggregate of it, so it gets a function of ours.

// By class, of all classes. Served by the primary keys, on SQLite by the
// list indexes, which have all columns: idx_following_list, idx_follower_list,
// idx_friend_request_list, idx_friend_request_inbox_list,
// idx_favorite_list, idx_favorite_inbox_list.
var sqlDigestsByClass = db.ByTable[db.Text]{
	storage.Forward: {
		MySQL: `
SELECT (from_user_id & 9223372036854775807) % 1021 AS edges_group,
  COUNT(*),
  BIT_XOR(
    ((from_user_id ^ (to_user_id << 21) ^ update_time ^ 7640891576956012809) % 4093082899) *
    ((to_user_id ^ (from_user_id << 13) ^ (update_time << 7) ^ (type << 50)) % 3367900313))
FROM following
WHERE from_user_id > ? AND from_user_id <= ? AND (type <> 0 OR update_time <> 0)
GROUP BY edges_group`,
		SQLite: `
SELECT (from_user_id & 9223372036854775807) % 1021 AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time)
FROM following
WHERE from_user_id > ? AND from_user_id <= ? AND (type <> 0 OR update_time <> 0)
GROUP BY edges_group`,
	},
	storage.Inverse: {
		MySQL: `
SELECT (from_user_id & 9223372036854775807) % 1021 AS edges_group,
  COUNT(*),
  BIT_XOR(
    ((from_user_id ^ (to_user_id << 21) ^ update_time ^ 7640891576956012809) % 4093082899) *
    ((to_user_id ^ (from_user_id << 13) ^ (update_time << 7) ^ (type << 50)) % 3367900313))
FROM follower
WHERE to_user_id > ? AND to_user_id <= ? AND (type <> 0 OR update_time <> 0)
GROUP BY edges_group`,
		SQLite: `
SELECT (from_user_id & 9223372036854775807) % 1021 AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time)
FROM follower
WHERE to_user_id > ? AND to_user_id <= ? AND (type <> 0 OR update_time <> 0)
GROUP BY edges_group`,
	},
	storage.Requests: {
		MySQL: `
SELECT (from_user_id & 9223372036854775807) % 1021 AS edges_group,
  COUNT(*),
  BIT_XOR(
    ((from_user_id ^ (to_user_id << 21) ^ update_time ^ 7640891576956012809) % 4093082899) *
    ((to_user_id ^ (from_user_id << 13) ^ (update_time << 7) ^ (type << 50)) % 3367900313))
FROM friend_request
WHERE from_user_id > ? AND from_user_id <= ? AND (type <> 0 OR update_time <> 0)
GROUP BY edges_group`,
		SQLite: `
SELECT (from_user_id & 9223372036854775807) % 1021 AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time)
FROM friend_request
WHERE from_user_id > ? AND from_user_id <= ? AND (type <> 0 OR update_time <> 0)
GROUP BY edges_group`,
	},
	storage.Inbox: {
		MySQL: `
SELECT (from_user_id & 9223372036854775807) % 1021 AS edges_group,
  COUNT(*),
  BIT_XOR(
    ((from_user_id ^ (to_user_id << 21) ^ update_time ^ 7640891576956012809) % 4093082899) *
    ((to_user_id ^ (from_user_id << 13) ^ (update_time << 7) ^ (type << 50)) % 3367900313))
FROM friend_request_inbox
WHERE to_user_id > ? AND to_user_id <= ? AND (type <> 0 OR update_time <> 0)
GROUP BY edges_group`,
		SQLite: `
SELECT (from_user_id & 9223372036854775807) % 1021 AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time)
FROM friend_request_inbox
WHERE to_user_id > ? AND to_user_id <= ? AND (type <> 0 OR update_time <> 0)
GROUP BY edges_group`,
	},
	storage.Favorites: {
		MySQL: `
SELECT (from_user_id & 9223372036854775807) % 1021 AS edges_group,
  COUNT(*),
  BIT_XOR(
    ((from_user_id ^ (to_user_id << 21) ^ (post_id << 32) ^ (post_id >> 32) ^ update_time ^ 7640891576956012809) % 4093082899) *
    ((to_user_id ^ (from_user_id << 13) ^ post_id ^ (update_time << 7) ^ (type << 50)) % 3367900313))
FROM favorite
WHERE from_user_id > ? AND from_user_id <= ? AND (type <> 0 OR update_time <> 0)
GROUP BY edges_group`,
		SQLite: `
SELECT (from_user_id & 9223372036854775807) % 1021 AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time, post_id)
FROM favorite
WHERE from_user_id > ? AND from_user_id <= ? AND (type <> 0 OR update_time <> 0)
GROUP BY edges_group`,
	},
	storage.FavoriteInbox: {
		MySQL: `
SELECT (from_user_id & 9223372036854775807) % 1021 AS edges_group,
  COUNT(*),
  BIT_XOR(
    ((from_user_id ^ (to_user_id << 21) ^ (post_id << 32) ^ (post_id >> 32) ^ update_time ^ 7640891576956012809) % 4093082899) *
    ((to_user_id ^ (from_user_id << 13) ^ post_id ^ (update_time << 7) ^ (type << 50)) % 3367900313))
FROM favorite_inbox
WHERE to_user_id > ? AND to_user_id <= ? AND (type <> 0 OR update_time <> 0)
GROUP BY edges_group`,
		SQLite: `
SELECT (from_user_id & 9223372036854775807) % 1021 AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time, post_id)
FROM favorite_inbox
WHERE to_user_id > ? AND to_user_id <= ? AND (type <> 0 OR update_time <> 0)
GROUP BY edges_group`,
	},
}

// By group, of some classes. The first four arguments are the parts of the cut. Served by the
// primary keys, on SQLite by the
// list indexes, which have all columns: idx_following_list, idx_follower_list,
// idx_friend_request_list, idx_friend_request_inbox_list,
// idx_favorite_list, idx_favorite_inbox_list.
var sqlDigestsByGroup = db.ByTable[db.Text]{
	storage.Forward: {
		MySQL: `
SELECT (from_user_id & 9223372036854775807) % 1021 * ? +
  ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? AS edges_group,
  COUNT(*),
  BIT_XOR(
    ((from_user_id ^ (to_user_id << 21) ^ update_time ^ 7640891576956012809) % 4093082899) *
    ((to_user_id ^ (from_user_id << 13) ^ (update_time << 7) ^ (type << 50)) % 3367900313))
FROM following
WHERE from_user_id > ? AND from_user_id <= ? AND (type <> 0 OR update_time <> 0)
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 + 1, 1) = x'31'
GROUP BY edges_group`,
		SQLite: `
SELECT (from_user_id & 9223372036854775807) % 1021 * ? +
  ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time)
FROM following
WHERE from_user_id > ? AND from_user_id <= ? AND (type <> 0 OR update_time <> 0)
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 + 1, 1) = x'31'
GROUP BY edges_group`,
	},
	storage.Inverse: {
		MySQL: `
SELECT (from_user_id & 9223372036854775807) % 1021 * ? +
  ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? AS edges_group,
  COUNT(*),
  BIT_XOR(
    ((from_user_id ^ (to_user_id << 21) ^ update_time ^ 7640891576956012809) % 4093082899) *
    ((to_user_id ^ (from_user_id << 13) ^ (update_time << 7) ^ (type << 50)) % 3367900313))
FROM follower
WHERE to_user_id > ? AND to_user_id <= ? AND (type <> 0 OR update_time <> 0)
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 + 1, 1) = x'31'
GROUP BY edges_group`,
		SQLite: `
SELECT (from_user_id & 9223372036854775807) % 1021 * ? +
  ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time)
FROM follower
WHERE to_user_id > ? AND to_user_id <= ? AND (type <> 0 OR update_time <> 0)
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 + 1, 1) = x'31'
GROUP BY edges_group`,
	},
	storage.Requests: {
		MySQL: `
SELECT (from_user_id & 9223372036854775807) % 1021 * ? +
  ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? AS edges_group,
  COUNT(*),
  BIT_XOR(
    ((from_user_id ^ (to_user_id << 21) ^ update_time ^ 7640891576956012809) % 4093082899) *
    ((to_user_id ^ (from_user_id << 13) ^ (update_time << 7) ^ (type << 50)) % 3367900313))
FROM friend_request
WHERE from_user_id > ? AND from_user_id <= ? AND (type <> 0 OR update_time <> 0)
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 + 1, 1) = x'31'
GROUP BY edges_group`,
		SQLite: `
SELECT (from_user_id & 9223372036854775807) % 1021 * ? +
  ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time)
FROM friend_request
WHERE from_user_id > ? AND from_user_id <= ? AND (type <> 0 OR update_time <> 0)
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 + 1, 1) = x'31'
GROUP BY edges_group`,
	},
	storage.Inbox: {
		MySQL: `
SELECT (from_user_id & 9223372036854775807) % 1021 * ? +
  ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? AS edges_group,
  COUNT(*),
  BIT_XOR(
    ((from_user_id ^ (to_user_id << 21) ^ update_time ^ 7640891576956012809) % 4093082899) *
    ((to_user_id ^ (from_user_id << 13) ^ (update_time << 7) ^ (type << 50)) % 3367900313))
FROM friend_request_inbox
WHERE to_user_id > ? AND to_user_id <= ? AND (type <> 0 OR update_time <> 0)
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 + 1, 1) = x'31'
GROUP BY edges_group`,
		SQLite: `
SELECT (from_user_id & 9223372036854775807) % 1021 * ? +
  ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time)
FROM friend_request_inbox
WHERE to_user_id > ? AND to_user_id <= ? AND (type <> 0 OR update_time <> 0)
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 + 1, 1) = x'31'
GROUP BY edges_group`,
	},
	storage.Favorites: {
		MySQL: `
SELECT (from_user_id & 9223372036854775807) % 1021 * ? +
  ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? AS edges_group,
  COUNT(*),
  BIT_XOR(
    ((from_user_id ^ (to_user_id << 21) ^ (post_id << 32) ^ (post_id >> 32) ^ update_time ^ 7640891576956012809) % 4093082899) *
    ((to_user_id ^ (from_user_id << 13) ^ post_id ^ (update_time << 7) ^ (type << 50)) % 3367900313))
FROM favorite
WHERE from_user_id > ? AND from_user_id <= ? AND (type <> 0 OR update_time <> 0)
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 + 1, 1) = x'31'
GROUP BY edges_group`,
		SQLite: `
SELECT (from_user_id & 9223372036854775807) % 1021 * ? +
  ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time, post_id)
FROM favorite
WHERE from_user_id > ? AND from_user_id <= ? AND (type <> 0 OR update_time <> 0)
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 + 1, 1) = x'31'
GROUP BY edges_group`,
	},
	storage.FavoriteInbox: {
		MySQL: `
SELECT (from_user_id & 9223372036854775807) % 1021 * ? +
  ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? AS edges_group,
  COUNT(*),
  BIT_XOR(
    ((from_user_id ^ (to_user_id << 21) ^ (post_id << 32) ^ (post_id >> 32) ^ update_time ^ 7640891576956012809) % 4093082899) *
    ((to_user_id ^ (from_user_id << 13) ^ post_id ^ (update_time << 7) ^ (type << 50)) % 3367900313))
FROM favorite_inbox
WHERE to_user_id > ? AND to_user_id <= ? AND (type <> 0 OR update_time <> 0)
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 + 1, 1) = x'31'
GROUP BY edges_group`,
		SQLite: `
SELECT (from_user_id & 9223372036854775807) % 1021 * ? +
  ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time, post_id)
FROM favorite_inbox
WHERE to_user_id > ? AND to_user_id <= ? AND (type <> 0 OR update_time <> 0)
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 + 1, 1) = x'31'
GROUP BY edges_group`,
	},
}

// The rows of some groups. The four arguments behind the choice are the parts of the cut. Served
// by the primary keys, on SQLite by the
// list indexes, which have all columns: idx_following_list, idx_follower_list,
// idx_friend_request_list, idx_friend_request_inbox_list,
// idx_favorite_list, idx_favorite_inbox_list.
var sqlGroupRows = db.ByTable[string]{
	storage.Forward: `
SELECT from_user_id, to_user_id, type, update_time
FROM following
WHERE from_user_id > ? AND from_user_id <= ?
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 * ? +
    ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? + 1, 1) = x'31'`,
	storage.Inverse: `
SELECT to_user_id, from_user_id, type, update_time
FROM follower
WHERE to_user_id > ? AND to_user_id <= ?
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 * ? +
    ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? + 1, 1) = x'31'`,
	storage.Requests: `
SELECT from_user_id, to_user_id, type, update_time
FROM friend_request
WHERE from_user_id > ? AND from_user_id <= ?
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 * ? +
    ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? + 1, 1) = x'31'`,
	storage.Inbox: `
SELECT to_user_id, from_user_id, type, update_time
FROM friend_request_inbox
WHERE to_user_id > ? AND to_user_id <= ?
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 * ? +
    ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? + 1, 1) = x'31'`,
	storage.Favorites: `
SELECT from_user_id, to_user_id, type, update_time, post_id
FROM favorite
WHERE from_user_id > ? AND from_user_id <= ?
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 * ? +
    ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? + 1, 1) = x'31'`,
	storage.FavoriteInbox: `
SELECT to_user_id, from_user_id, type, update_time, post_id
FROM favorite_inbox
WHERE to_user_id > ? AND to_user_id <= ?
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 * ? +
    ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? + 1, 1) = x'31'`,
}
