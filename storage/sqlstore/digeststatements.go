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

// By class, of all classes. Served by the primary key, on SQLite by the list index, which has all columns: {list}.
var sqlDigestsByClass = db.Text{
	MySQL: `
SELECT (from_user_id & 9223372036854775807) % 1021 AS edges_group,
  COUNT(*),
  BIT_XOR(
    ((from_user_id ^ (to_user_id << 21) ^{ (post_id << 32) ^ (post_id >> 32) ^} update_time ^ 7640891576956012809) % 4093082899) *
    ((to_user_id ^ (from_user_id << 13) ^{ post_id ^} (update_time << 7) ^ (type << 50)) % 3367900313))
FROM {table}
WHERE {owner} > ? AND {owner} <= ? AND (type <> 0 OR update_time <> 0)
GROUP BY edges_group`,
	SQLite: `
SELECT (from_user_id & 9223372036854775807) % 1021 AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time{, post_id})
FROM {table}
WHERE {owner} > ? AND {owner} <= ? AND (type <> 0 OR update_time <> 0)
GROUP BY edges_group`,
}.ForSides(storage.AllSides[:]...)

// By group, of some classes. The first four arguments are the parts of the cut. Served by the primary key, on SQLite by the list
// index, which has all columns: {list}.
var sqlDigestsByGroup = db.Text{
	MySQL: `
SELECT (from_user_id & 9223372036854775807) % 1021 * ? +
  ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? AS edges_group,
  COUNT(*),
  BIT_XOR(
    ((from_user_id ^ (to_user_id << 21) ^{ (post_id << 32) ^ (post_id >> 32) ^} update_time ^ 7640891576956012809) % 4093082899) *
    ((to_user_id ^ (from_user_id << 13) ^{ post_id ^} (update_time << 7) ^ (type << 50)) % 3367900313))
FROM {table}
WHERE {owner} > ? AND {owner} <= ? AND (type <> 0 OR update_time <> 0)
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 + 1, 1) = x'31'
GROUP BY edges_group`,
	SQLite: `
SELECT (from_user_id & 9223372036854775807) % 1021 * ? +
  ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time{, post_id})
FROM {table}
WHERE {owner} > ? AND {owner} <= ? AND (type <> 0 OR update_time <> 0)
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 + 1, 1) = x'31'
GROUP BY edges_group`,
}.ForSides(storage.AllSides[:]...)

// The rows of some groups. The four arguments behind the choice are the parts of the cut. Served by the primary key, on SQLite by
// the list index, which has all columns: {list}.
var sqlGroupRows = db.ForSides(`
SELECT {owner}, {peer}, type, update_time{, post_id}
FROM {table}
WHERE {owner} > ? AND {owner} <= ?
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 * ? +
    ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? + 1, 1) = x'31'`, storage.AllSides[:]...)
