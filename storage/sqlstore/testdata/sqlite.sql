-- commentsInOrder, Behind. Served by PRIMARY.
SELECT /*! STRAIGHT_JOIN */ c.author_id, c.comment_id, c.post_id, c.user_id, c.client_key, c.text, c.created_at
FROM comment c INDEXED BY sqlite_autoindex_comment_1
CROSS JOIN post p /*! FORCE INDEX (PRIMARY) */ ON p.author_id = c.author_id AND p.post_id = c.post_id AND p.state = 0
WHERE c.author_id > ?
ORDER BY c.author_id, c.comment_id LIMIT ?

-- commentsInOrder, Rest. Served by PRIMARY.
SELECT /*! STRAIGHT_JOIN */ c.author_id, c.comment_id, c.post_id, c.user_id, c.client_key, c.text, c.created_at
FROM comment c /*! FORCE INDEX (PRIMARY) */
JOIN post p /*! FORCE INDEX (PRIMARY) */ ON p.author_id = c.author_id AND p.post_id = c.post_id AND p.state = 0
WHERE c.author_id = ? AND c.comment_id > ?
ORDER BY c.comment_id LIMIT ?

-- db.ReadInOrder, annotations 0 Behind. Served by PRIMARY.
SELECT from_user_id, to_user_id, special, remark, 0, attributes
FROM edge_marks INDEXED BY sqlite_autoindex_edge_marks_1
WHERE from_user_id > ?
ORDER BY from_user_id, to_user_id LIMIT ?

-- db.ReadInOrder, annotations 0 Rest. Served by PRIMARY.
SELECT from_user_id, to_user_id, special, remark, 0, attributes
FROM edge_marks /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id > ?
ORDER BY to_user_id LIMIT ?

-- db.ReadInOrder, annotations 1 Behind. Served by PRIMARY.
SELECT from_user_id, to_user_id, 0, message, 0, ''
FROM friend_request INDEXED BY sqlite_autoindex_friend_request_1
WHERE from_user_id > ? AND from_user_id <= ? AND type = 1 AND message <> ''
ORDER BY from_user_id, to_user_id LIMIT ?

-- db.ReadInOrder, annotations 1 Rest. Served by PRIMARY.
SELECT from_user_id, to_user_id, 0, message, 0, ''
FROM friend_request /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id > ? AND from_user_id <= ? AND type = 1 AND message <> ''
ORDER BY to_user_id LIMIT ?

-- db.ReadInOrder, annotations 2 Behind. Served by PRIMARY.
SELECT from_user_id, to_user_id, 0, '', first_at, ''
FROM following INDEXED BY sqlite_autoindex_following_1
WHERE from_user_id > ? AND from_user_id <= ? AND first_at IS NOT NULL
ORDER BY from_user_id, to_user_id LIMIT ?

-- db.ReadInOrder, annotations 2 Rest. Served by PRIMARY.
SELECT from_user_id, to_user_id, 0, '', first_at, ''
FROM following /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id > ? AND from_user_id <= ? AND first_at IS NOT NULL
ORDER BY to_user_id LIMIT ?

-- db.ReadInOrder, lists Behind. Served by PRIMARY.
SELECT owner, number, name, public
FROM user_list INDEXED BY sqlite_autoindex_user_list_1
WHERE owner > ?
ORDER BY owner, number LIMIT ?

-- db.ReadInOrder, lists Rest. Served by PRIMARY.
SELECT owner, number, name, public
FROM user_list /*! FORCE INDEX (PRIMARY) */
WHERE owner = ? AND number > ?
ORDER BY number LIMIT ?

-- db.ReadInOrder, moderation Behind. Served by PRIMARY.
SELECT owner_id, at, user_id, action, operator, reason, ends_at, number
FROM moderation_log INDEXED BY sqlite_autoindex_moderation_log_1
WHERE owner_id > ?
ORDER BY owner_id, at LIMIT ?

-- db.ReadInOrder, moderation Rest. Served by PRIMARY.
SELECT owner_id, at, user_id, action, operator, reason, ends_at, number
FROM moderation_log /*! FORCE INDEX (PRIMARY) */
WHERE owner_id = ? AND at > ?
ORDER BY at LIMIT ?

-- db.ReadInOrder, posts Behind. Served by PRIMARY.
SELECT author_id, post_id, client_key, text, media, created_at, edited_at, state, attributes
FROM post INDEXED BY sqlite_autoindex_post_1
WHERE author_id > ?
ORDER BY author_id, post_id LIMIT ?

-- db.ReadInOrder, posts Rest. Served by PRIMARY.
SELECT author_id, post_id, client_key, text, media, created_at, edited_at, state, attributes
FROM post /*! FORCE INDEX (PRIMARY) */
WHERE author_id = ? AND post_id > ?
ORDER BY post_id LIMIT ?

-- db.ReadInOrder, rows favorite Behind. Served by PRIMARY.
SELECT from_user_id, to_user_id, type, update_time, post_id
FROM favorite INDEXED BY sqlite_autoindex_favorite_1
WHERE from_user_id > ? AND (type <> 0 OR update_time <> 0)
ORDER BY from_user_id, to_user_id, post_id LIMIT ?

-- db.ReadInOrder, rows favorite Rest. Served by PRIMARY.
SELECT from_user_id, to_user_id, type, update_time, post_id
FROM favorite /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id > ? AND (type <> 0 OR update_time <> 0)
ORDER BY to_user_id, post_id LIMIT ?

-- db.ReadInOrder, rows following Behind. Served by PRIMARY.
SELECT from_user_id, to_user_id, type, update_time
FROM following INDEXED BY sqlite_autoindex_following_1
WHERE from_user_id > ? AND (type <> 0 OR update_time <> 0)
ORDER BY from_user_id, to_user_id LIMIT ?

-- db.ReadInOrder, rows following Rest. Served by PRIMARY.
SELECT from_user_id, to_user_id, type, update_time
FROM following /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id > ? AND (type <> 0 OR update_time <> 0)
ORDER BY to_user_id LIMIT ?

-- db.ReadInOrder, rows friend_request Behind. Served by PRIMARY.
SELECT from_user_id, to_user_id, type, update_time
FROM friend_request INDEXED BY sqlite_autoindex_friend_request_1
WHERE from_user_id > ? AND (type <> 0 OR update_time <> 0)
ORDER BY from_user_id, to_user_id LIMIT ?

-- db.ReadInOrder, rows friend_request Rest. Served by PRIMARY.
SELECT from_user_id, to_user_id, type, update_time
FROM friend_request /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id > ? AND (type <> 0 OR update_time <> 0)
ORDER BY to_user_id LIMIT ?

-- db.ReadInOrder, rows relation Behind. Served by PRIMARY.
SELECT from_user_id, to_user_id, type, update_time, kind
FROM relation INDEXED BY sqlite_autoindex_relation_1
WHERE from_user_id > ? AND (type <> 0 OR update_time <> 0)
ORDER BY from_user_id, to_user_id, kind LIMIT ?

-- db.ReadInOrder, rows relation Rest. Served by PRIMARY.
SELECT from_user_id, to_user_id, type, update_time, kind
FROM relation /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id > ? AND (type <> 0 OR update_time <> 0)
ORDER BY to_user_id, kind LIMIT ?

-- db.SQLWriteClaim
INSERT INTO kith_buckets (first_bucket, last_bucket, state, other, token, changed_at)
VALUES (?, ?, ?, ?, ?, ?)

-- db.openFile
SELECT sqlite_version(), journal_mode FROM pragma_journal_mode

-- db.sqlAddedShards. Served by PRIMARY.
SELECT ordinal, address
FROM kith_shards
ORDER BY ordinal

-- db.sqlAdmit
REPLACE INTO kith_admitted (id)
VALUES (1)

-- db.sqlAdmitted. Served by PRIMARY.
SELECT id
FROM kith_admitted
WHERE id = ?

-- db.sqlAnyTable. Served by PRIMARY.
SELECT name
FROM sqlite_master
WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'
LIMIT 1

-- db.sqlBeginEpoch
INSERT OR IGNORE INTO kith_epoch (id, epoch)
VALUES (1, 1)

-- db.sqlCountMigrations. Served by PRIMARY.
SELECT COUNT(*)
FROM kith_migrations

-- db.sqlDismiss. Served by PRIMARY.
DELETE FROM kith_admitted
WHERE id = 1

-- db.sqlEpoch. Served by PRIMARY.
SELECT e.epoch
FROM kith_epoch e
JOIN kith_admitted a ON a.id = 1
WHERE e.id = ? /*! LOCK IN SHARE MODE */

-- db.sqlFirstMigration
INSERT INTO kith_migrations (version_id, is_applied)
VALUES (0, TRUE)

-- db.sqlHasMigrations. Served by PRIMARY.
SELECT COUNT(*)
FROM sqlite_master
WHERE type = 'table' AND name = 'kith_migrations'

-- db.sqlLastTable. Served by PRIMARY.
SELECT 1
FROM users
LIMIT 1

-- db.sqlListShard
INSERT OR IGNORE INTO kith_shards (ordinal, address)
VALUES (?, ?)

-- db.sqlNewLife. Served by PRIMARY.
UPDATE kith_epoch
SET epoch = epoch + 1000000
WHERE id = 1

-- db.sqlNewestMigration. Served by PRIMARY.
SELECT MAX(version_id) FROM kith_migrations

-- db.sqlNoteMoved
INSERT INTO kith_moved_rows (kind, owner, peer, handle)
VALUES (?, ?, ?, ?)

-- db.sqlPlaceShard
REPLACE INTO kith_shards (ordinal, address)
VALUES (?, ?)

-- db.sqlPresentEpoch. Served by PRIMARY.
SELECT epoch
FROM kith_epoch
WHERE id = 1

-- db.sqlReadBuckets. Served by PRIMARY.
SELECT e.epoch, b.first_bucket, b.last_bucket, b.state, b.other, b.token, b.changed_at
FROM kith_epoch e
LEFT JOIN kith_buckets b ON b.first_bucket >= 0
WHERE e.id = 1
ORDER BY b.first_bucket

-- db.sqlReadMeta. Served by PRIMARY.
SELECT store_uuid, layout, shards, ordinal, first_bucket, last_bucket
FROM kith_meta
WHERE id = 1

-- db.sqlSizeOfDatabase. Served by PRIMARY.
SELECT SUM(data_length + index_length) FROM information_schema.tables WHERE table_schema = DATABASE()

-- db.sqlWriteMeta
INSERT OR IGNORE INTO kith_meta (id, store_uuid, layout, shards, ordinal, first_bucket, last_bucket)
VALUES (1, ?, ?, ?, ?, ?, ?)

-- erasedRows, 0 0. Served by PRIMARY, idx_special.
SELECT 0, to_user_id
FROM edge_marks
WHERE from_user_id = ? LIMIT ?

-- erasedRows, 0 1. Served by PRIMARY, idx_special.
DELETE FROM edge_marks
WHERE from_user_id = ? AND to_user_id IN (?)

-- erasedRows, 1 0. Served by PRIMARY, idx_friend_request_list.
SELECT 1, to_user_id
FROM friend_request
WHERE from_user_id = ? AND message <> '' LIMIT ?

-- erasedRows, 1 1. Served by PRIMARY, idx_friend_request_list.
UPDATE friend_request
SET message = ''
WHERE from_user_id = ? AND to_user_id IN (?)

-- erasedRows, 10 0. Served by PRIMARY.
SELECT 10, side
FROM packed_short
WHERE owner = ? LIMIT ?

-- erasedRows, 10 1. Served by PRIMARY.
DELETE FROM packed_short
WHERE owner = ? AND side IN (?)

-- erasedRows, 11 0. Served by PRIMARY.
SELECT 11, kind
FROM relation_counts
WHERE owner = ? LIMIT ?

-- erasedRows, 11 1. Served by PRIMARY.
DELETE FROM relation_counts
WHERE owner = ? AND kind IN (?)

-- erasedRows, 12 0. Served by PRIMARY.
SELECT 12, number
FROM user_list
WHERE owner = ? LIMIT ?

-- erasedRows, 12 1. Served by PRIMARY.
DELETE FROM user_list
WHERE owner = ? AND number IN (?)

-- erasedRows, 13 0. Served by PRIMARY.
SELECT 13, number
FROM import_part
WHERE owner = ? LIMIT ?

-- erasedRows, 13 1. Served by PRIMARY.
DELETE FROM import_part
WHERE owner = ? AND number IN (?)

-- erasedRows, 2 0. Served by PRIMARY, idx_post_key, idx_post_list.
SELECT 2, post_id
FROM post
WHERE author_id = ? LIMIT ?

-- erasedRows, 2 1. Served by PRIMARY, idx_post_key, idx_post_list.
DELETE FROM post
WHERE author_id = ? AND post_id IN (?)

-- erasedRows, 3 0. Served by PRIMARY.
SELECT 3, post_id
FROM post_counts
WHERE author_id = ? LIMIT ?

-- erasedRows, 3 1. Served by PRIMARY.
DELETE FROM post_counts
WHERE author_id = ? AND post_id IN (?)

-- erasedRows, 4 0. Served by PRIMARY, idx_comment_list, idx_comment_received.
SELECT 4, comment_id
FROM comment
WHERE author_id = ? LIMIT ?

-- erasedRows, 4 1. Served by PRIMARY, idx_comment_list, idx_comment_received.
DELETE FROM comment
WHERE author_id = ? AND comment_id IN (?)

-- erasedRows, 5 0. Served by PRIMARY.
SELECT 5, side
FROM packed_list
WHERE owner = ? LIMIT ?

-- erasedRows, 5 1. Served by PRIMARY.
DELETE FROM packed_list
WHERE owner = ? AND side IN (?)

-- erasedRows, 6 0. Served by PRIMARY.
SELECT 6, first_peer
FROM packed_chunk
WHERE owner = ? AND side = 0 LIMIT ?

-- erasedRows, 6 1. Served by PRIMARY.
DELETE FROM packed_chunk
WHERE owner = ? AND side = 0 AND first_peer IN (?)

-- erasedRows, 7 0. Served by PRIMARY.
SELECT 7, first_peer
FROM packed_chunk
WHERE owner = ? AND side = 1 LIMIT ?

-- erasedRows, 7 1. Served by PRIMARY.
DELETE FROM packed_chunk
WHERE owner = ? AND side = 1 AND first_peer IN (?)

-- erasedRows, 8 0. Served by PRIMARY.
SELECT 8, peer
FROM packed_change
WHERE owner = ? AND side = 0 LIMIT ?

-- erasedRows, 8 1. Served by PRIMARY.
DELETE FROM packed_change
WHERE owner = ? AND side = 0 AND peer IN (?)

-- erasedRows, 9 0. Served by PRIMARY.
SELECT 9, peer
FROM packed_change
WHERE owner = ? AND side = 1 LIMIT ?

-- erasedRows, 9 1. Served by PRIMARY.
DELETE FROM packed_change
WHERE owner = ? AND side = 1 AND peer IN (?)

-- move.sizes. Served by PRIMARY.
SELECT COALESCE(SUM(table_rows), 0), COALESCE(SUM(data_length + index_length), 0)
FROM information_schema.tables

-- move.sqlAllArrived. Served by PRIMARY.
UPDATE kith_buckets
SET changed_at = ?
WHERE first_bucket = ?

-- move.sqlClaimHeld. Served by PRIMARY.
SELECT state, token
FROM kith_buckets
WHERE first_bucket = ? /*! LOCK IN SHARE MODE */

-- move.sqlClaims. Served by PRIMARY.
SELECT first_bucket, last_bucket, state, other, token, changed_at
FROM kith_buckets
ORDER BY first_bucket

-- move.sqlCopied. Served by PRIMARY.
SELECT name, up_to
FROM kith_copied
WHERE first_bucket = ?

-- move.sqlForgetCopied. Served by PRIMARY.
DELETE FROM kith_copied
WHERE first_bucket = ?

-- move.sqlForgetNoted. Served by PRIMARY.
DELETE FROM kith_moved_rows
WHERE position IN (?)

-- move.sqlLockEpoch. Served by PRIMARY.
SELECT epoch
FROM kith_epoch
WHERE id = 1 /*! FOR UPDATE */

-- move.sqlMark
INSERT INTO kith_mover (id, steps)
VALUES (1, 1)
ON CONFLICT (id) DO UPDATE SET steps = steps + 1

-- move.sqlNoted. Served by PRIMARY.
SELECT position, kind, owner, peer, handle, (SELECT MAX(position) FROM kith_moved_rows)
FROM kith_moved_rows
ORDER BY position LIMIT ?

-- move.sqlRaiseEpoch. Served by PRIMARY.
UPDATE kith_epoch
SET epoch = epoch + 1
WHERE id = 1

-- move.sqlRecordCopied
REPLACE INTO kith_copied (first_bucket, name, up_to)
VALUES (?, ?, ?)

-- move.sqlRemoveClaim. Served by PRIMARY.
DELETE FROM kith_buckets
WHERE first_bucket = ?

-- move.sqlSteps. Served by PRIMARY.
SELECT steps
FROM kith_mover
WHERE id = 1

-- packed.sqlBeginPacking
INSERT INTO packed_list (owner, side, began_at)
VALUES (?, ?, ?)
ON CONFLICT (owner, side) DO UPDATE SET began_at = excluded.began_at

-- packed.sqlChangesAfter. Served by PRIMARY.
SELECT peer, type, update_time
FROM packed_change
WHERE owner = ? AND side = ? AND peer > ?
ORDER BY peer LIMIT ?

-- packed.sqlChunksFrom. Served by PRIMARY.
SELECT first_peer, data
FROM packed_chunk
WHERE owner = ? AND side = ? AND first_peer >= COALESCE((
  SELECT MAX(first_peer) FROM packed_chunk WHERE owner = ? AND side = ? AND first_peer <= ?
), 0)
ORDER BY first_peer LIMIT ?

-- packed.sqlCountChanges. Served by PRIMARY.
SELECT COUNT(*)
FROM (SELECT 1 FROM packed_change WHERE owner = ? AND side = ? LIMIT ?) AS counted

-- packed.sqlDropChanges. Served by PRIMARY.
DELETE FROM packed_change
WHERE owner = ? AND side = ? AND peer > ? AND peer <= ?

-- packed.sqlDropChunks. Served by PRIMARY.
DELETE FROM packed_chunk
WHERE owner = ? AND side = ? AND first_peer > ? AND first_peer <= ?

-- packed.sqlDropTheseChunks. Served by PRIMARY.
DELETE FROM packed_chunk
WHERE owner = ? AND side = ? AND first_peer IN (?)

-- packed.sqlEndOfChanges. Served by PRIMARY.
SELECT peer
FROM packed_change
WHERE owner = ? AND side = ?
ORDER BY peer LIMIT 1 OFFSET ?

-- packed.sqlFollowsAfter, follower. Served by PRIMARY.
SELECT from_user_id, update_time
FROM follower /*! FORCE INDEX (PRIMARY) */
WHERE to_user_id = ? AND from_user_id > ? AND type = 1
ORDER BY from_user_id LIMIT ?

-- packed.sqlFollowsAfter, following. Served by PRIMARY.
SELECT to_user_id, update_time
FROM following /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id > ? AND type = 1
ORDER BY to_user_id LIMIT ?

-- packed.sqlInsertChunks
INSERT INTO packed_chunk (owner, side, first_peer, data)
VALUES (?, ?, ?, ?)

-- packed.sqlKeepChanges
INSERT INTO packed_change (owner, side, peer, type, update_time)
VALUES (?, ?, ?, ?, ?)
ON CONFLICT (owner, side, peer) DO UPDATE SET type = excluded.type, update_time = excluded.update_time

-- packed.sqlLeavePacking. Served by PRIMARY.
UPDATE packed_list
SET began_at = 0
WHERE owner = ? AND side = ? AND began_at = ?

-- packed.sqlList, follower. Served by PRIMARY, idx_follower_list.
SELECT 0 AS part, c.version AS a, c.follower_count AS b, (COALESCE(c.packed, 0) & 8 <> 0 AND c.packed_version = c.version) AS c, NULL AS data
FROM user_counts c
WHERE c.user_id = ?
UNION ALL
SELECT 1, peer, CAST(type AS SIGNED), update_time, NULL
FROM packed_change
WHERE owner = ? AND side = ?
UNION ALL
SELECT 3, from_user_id, CAST(type AS SIGNED), update_time, NULL
FROM follower /*! FORCE INDEX (idx_follower_list) */
WHERE to_user_id = ? AND type IN (2, 3)
UNION ALL
SELECT 3, from_user_id, CAST(type AS SIGNED), update_time, NULL
FROM follower /*! FORCE INDEX (idx_follower_list) */
WHERE to_user_id = ? AND type IN (0, 4) AND update_time >= ?
UNION ALL
SELECT 2, first_peer, 0, 0, data
FROM packed_chunk
WHERE owner = ? AND side = ?

-- packed.sqlList, following. Served by PRIMARY, idx_following_list.
SELECT 0 AS part, c.version AS a, c.following_count AS b, (COALESCE(c.packed, 0) & 4 <> 0 AND c.packed_version = c.version) AS c, NULL AS data
FROM user_counts c
WHERE c.user_id = ?
UNION ALL
SELECT 1, peer, CAST(type AS SIGNED), update_time, NULL
FROM packed_change
WHERE owner = ? AND side = ?
UNION ALL
SELECT 3, to_user_id, CAST(type AS SIGNED), update_time, NULL
FROM following /*! FORCE INDEX (idx_following_list) */
WHERE from_user_id = ? AND type IN (2, 3)
UNION ALL
SELECT 3, to_user_id, CAST(type AS SIGNED), update_time, NULL
FROM following /*! FORCE INDEX (idx_following_list) */
WHERE from_user_id = ? AND type IN (0, 4) AND update_time >= ?
UNION ALL
SELECT 2, first_peer, 0, 0, data
FROM packed_chunk
WHERE owner = ? AND side = ?

-- packed.sqlLock. Served by PRIMARY.
SELECT user_id
FROM user_counts
WHERE user_id = ? /*! FOR UPDATE */

-- packed.sqlNeighbours, follower. Served by PRIMARY.
SELECT 0 AS part, c.version AS a, c.follower_count AS b, (COALESCE(c.packed, 0) & 8 <> 0 AND c.packed_version = c.version) AS c, NULL AS data
FROM user_counts c
WHERE c.user_id = ?
UNION ALL
SELECT 1, p.peer, CAST(p.type AS SIGNED), p.update_time, NULL
FROM user_counts c
JOIN packed_change p ON p.owner = c.user_id AND p.side = ?
WHERE c.user_id = ? AND (COALESCE(c.packed, 0) & 8 <> 0 AND c.packed_version = c.version)
UNION ALL
SELECT 2, p.first_peer, 0, 0, p.data
FROM user_counts c
JOIN packed_chunk p ON p.owner = c.user_id AND p.side = ?
WHERE c.user_id = ? AND (COALESCE(c.packed, 0) & 8 <> 0 AND c.packed_version = c.version)

-- packed.sqlNeighbours, following. Served by PRIMARY.
SELECT 0 AS part, c.version AS a, c.following_count AS b, (COALESCE(c.packed, 0) & 4 <> 0 AND c.packed_version = c.version) AS c, NULL AS data
FROM user_counts c
WHERE c.user_id = ?
UNION ALL
SELECT 1, p.peer, CAST(p.type AS SIGNED), p.update_time, NULL
FROM user_counts c
JOIN packed_change p ON p.owner = c.user_id AND p.side = ?
WHERE c.user_id = ? AND (COALESCE(c.packed, 0) & 4 <> 0 AND c.packed_version = c.version)
UNION ALL
SELECT 2, p.first_peer, 0, 0, p.data
FROM user_counts c
JOIN packed_chunk p ON p.owner = c.user_id AND p.side = ?
WHERE c.user_id = ? AND (COALESCE(c.packed, 0) & 4 <> 0 AND c.packed_version = c.version)

-- packed.sqlPacking, follower. Served by PRIMARY.
SELECT c.follower_count, c.packed, c.version - c.packed_version, COALESCE(l.began_at, 0)
FROM user_counts c
LEFT JOIN packed_list l ON l.owner = c.user_id AND l.side = ?
WHERE c.user_id = ?

-- packed.sqlPacking, following. Served by PRIMARY.
SELECT c.following_count, c.packed, c.version - c.packed_version, COALESCE(l.began_at, 0)
FROM user_counts c
LEFT JOIN packed_list l ON l.owner = c.user_id AND l.side = ?
WHERE c.user_id = ?

-- packed.sqlSetPacked. Served by PRIMARY.
UPDATE user_counts
SET packed = ?, packed_version = version
WHERE user_id = ?

-- packed.sqlUnpack. Served by PRIMARY.
UPDATE user_counts
SET packed = packed & ?
WHERE user_id IN (?)

-- profileStatement. Served by PRIMARY.
UPDATE users
SET 

-- rowsOf, allRowsOfPair. Served by PRIMARY.
SELECT user_counts.user_id, following_count, follower_count, friend_count, post_count, favorite_count, total_favorited, version, packed,
  f.type, f.update_time,
  r.type, r.update_time,
  q.type, q.update_time,
  i.type, i.update_time
FROM user_counts
LEFT JOIN following f /*T! FORCE INDEX (PRIMARY) */ ON f.from_user_id = user_counts.user_id AND f.to_user_id = CASE user_counts.user_id WHEN ? THEN ? ELSE ? END
LEFT JOIN follower r /*T! FORCE INDEX (PRIMARY) */ ON r.to_user_id = user_counts.user_id AND r.from_user_id = CASE user_counts.user_id WHEN ? THEN ? ELSE ? END
LEFT JOIN friend_request q /*T! FORCE INDEX (PRIMARY) */ ON q.from_user_id = user_counts.user_id AND q.to_user_id = CASE user_counts.user_id WHEN ? THEN ? ELSE ? END
LEFT JOIN friend_request_inbox i /*T! FORCE INDEX (PRIMARY) */ ON i.to_user_id = user_counts.user_id AND i.from_user_id = CASE user_counts.user_id WHEN ? THEN ? ELSE ? END
WHERE user_counts.user_id IN (?)
ORDER BY user_counts.user_id /*! FOR UPDATE */ /*T! OF user_counts */

-- rowsOf, follows. Served by PRIMARY.
SELECT user_counts.user_id, following_count, follower_count, friend_count, post_count, favorite_count, total_favorited, version, packed,
  f.type, f.update_time,
  r.type, r.update_time
FROM user_counts
LEFT JOIN following f /*T! FORCE INDEX (PRIMARY) */ ON f.from_user_id = user_counts.user_id AND f.to_user_id = CASE user_counts.user_id WHEN ? THEN ? ELSE ? END
LEFT JOIN follower r /*T! FORCE INDEX (PRIMARY) */ ON r.to_user_id = user_counts.user_id AND r.from_user_id = CASE user_counts.user_id WHEN ? THEN ? ELSE ? END
WHERE user_counts.user_id IN (?)
ORDER BY user_counts.user_id /*! FOR UPDATE */ /*T! OF user_counts */

-- rowsOf, followsAndMarks. Served by PRIMARY.
SELECT user_counts.user_id, following_count, follower_count, friend_count, post_count, favorite_count, total_favorited, version, packed,
  f.type, f.update_time,
  r.type, r.update_time,
  m.from_user_id, 0
FROM user_counts
LEFT JOIN following f /*T! FORCE INDEX (PRIMARY) */ ON f.from_user_id = user_counts.user_id AND f.to_user_id = CASE user_counts.user_id WHEN ? THEN ? ELSE ? END
LEFT JOIN follower r /*T! FORCE INDEX (PRIMARY) */ ON r.to_user_id = user_counts.user_id AND r.from_user_id = CASE user_counts.user_id WHEN ? THEN ? ELSE ? END
LEFT JOIN edge_marks m /*T! FORCE INDEX (PRIMARY) */ ON m.from_user_id = user_counts.user_id AND m.to_user_id = CASE user_counts.user_id WHEN ? THEN ? ELSE ? END
WHERE user_counts.user_id IN (?)
ORDER BY user_counts.user_id /*! FOR UPDATE */ /*T! OF user_counts */

-- sqlAddAllCounts
INSERT INTO user_counts (user_id, following_count, follower_count, friend_count, active_day, favorite_count, total_favorited)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (user_id) DO UPDATE SET
  following_count = following_count + excluded.following_count,
  follower_count = follower_count + excluded.follower_count,
  friend_count = friend_count + excluded.friend_count,
  version = version + 1, packed_version = packed_version + 1,
  active_day = MAX(active_day, excluded.active_day),
  favorite_count = favorite_count + excluded.favorite_count,
  total_favorited = total_favorited + excluded.total_favorited

-- sqlAddCounts
INSERT INTO user_counts (user_id, following_count, follower_count, friend_count, active_day)
VALUES (?, ?, ?, ?, ?)
ON CONFLICT (user_id) DO UPDATE SET
  following_count = following_count + excluded.following_count,
  follower_count = follower_count + excluded.follower_count,
  friend_count = friend_count + excluded.friend_count,
  version = version + 1, packed_version = packed_version + 1,
  active_day = MAX(active_day, excluded.active_day)

-- sqlAddImport
INSERT INTO import_part (owner, number, part, kind, line, size, made, refused, done, due_at, content)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- sqlAddModeration
INSERT OR IGNORE INTO moderation_log (owner_id, at, user_id, action, operator, reason, ends_at, number)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)

-- sqlAddUserList
INSERT INTO user_list (owner, number, name, public)
VALUES (?, ?, ?, ?)

-- sqlAllItems, favorite. Served by PRIMARY.
SELECT ? AS query, from_user_id, to_user_id, type, update_time, post_id
FROM favorite /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id >= ? AND (to_user_id > ? OR post_id > ?) AND type <> 0
ORDER BY to_user_id, post_id LIMIT ?

-- sqlAllItems, favorite_inbox. Served by PRIMARY.
SELECT ? AS query, to_user_id, from_user_id, type, update_time, post_id
FROM favorite_inbox /*! FORCE INDEX (PRIMARY) */
WHERE to_user_id = ? AND from_user_id >= ? AND (from_user_id > ? OR post_id > ?) AND type <> 0
ORDER BY from_user_id, post_id LIMIT ?

-- sqlAllItems, relation. Served by PRIMARY.
SELECT ? AS query, from_user_id, to_user_id, type, update_time, kind
FROM relation /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id >= ? AND (to_user_id > ? OR kind > ?) AND type <> 0
ORDER BY to_user_id, kind LIMIT ?

-- sqlAllItems, relation_inbox. Served by PRIMARY.
SELECT ? AS query, to_user_id, from_user_id, type, update_time, kind
FROM relation_inbox /*! FORCE INDEX (PRIMARY) */
WHERE to_user_id = ? AND from_user_id >= ? AND (from_user_id > ? OR kind > ?) AND type <> 0
ORDER BY from_user_id, kind LIMIT ?

-- sqlAllRelations, relation. Served by PRIMARY.
SELECT ? AS query, from_user_id, to_user_id, type, update_time, kind
FROM relation /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id >= ? AND (to_user_id > ? OR kind > ?)
ORDER BY to_user_id, kind LIMIT ?

-- sqlAllRelations, relation_inbox. Served by PRIMARY.
SELECT ? AS query, to_user_id, from_user_id, type, update_time, kind
FROM relation_inbox /*! FORCE INDEX (PRIMARY) */
WHERE to_user_id = ? AND from_user_id >= ? AND (from_user_id > ? OR kind > ?)
ORDER BY from_user_id, kind LIMIT ?

-- sqlAllRows, follower. Served by PRIMARY.
SELECT ? AS query, to_user_id, from_user_id, type, update_time, 0 AS post
FROM follower /*! FORCE INDEX (PRIMARY) */
WHERE to_user_id = ? AND from_user_id > ? AND type <> 0
ORDER BY from_user_id LIMIT ?

-- sqlAllRows, following. Served by PRIMARY.
SELECT ? AS query, from_user_id, to_user_id, type, update_time, 0 AS post
FROM following /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id > ? AND type <> 0
ORDER BY to_user_id LIMIT ?

-- sqlAllRows, friend_request. Served by PRIMARY.
SELECT ? AS query, from_user_id, to_user_id, type, update_time, 0 AS post
FROM friend_request /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id > ? AND type <> 0
ORDER BY to_user_id LIMIT ?

-- sqlAllRows, friend_request_inbox. Served by PRIMARY.
SELECT ? AS query, to_user_id, from_user_id, type, update_time, 0 AS post
FROM friend_request_inbox /*! FORCE INDEX (PRIMARY) */
WHERE to_user_id = ? AND from_user_id > ? AND type <> 0
ORDER BY from_user_id LIMIT ?

-- sqlAnyFavorited. Served by idx_favorite_received.
SELECT ? AS query, to_user_id, from_user_id, type, update_time, post_id
FROM favorite_inbox /*! FORCE INDEX (idx_favorite_received) */
WHERE to_user_id = ? AND type > 0 LIMIT ? OFFSET ?

-- sqlAnyRows, favorite. Served by idx_favorite_list.
SELECT ? AS query, from_user_id, to_user_id, type, update_time, 0 + post_id AS post
FROM favorite /*! FORCE INDEX (idx_favorite_list) */
WHERE from_user_id = ? AND type > 0 LIMIT ? OFFSET ?

-- sqlAnyRows, follower. Served by idx_follower_list.
SELECT ? AS query, to_user_id, from_user_id, type, update_time, 0 AS post
FROM follower /*! FORCE INDEX (idx_follower_list) */
WHERE to_user_id = ? AND type > 0 LIMIT ? OFFSET ?

-- sqlAnyRows, following. Served by idx_following_list.
SELECT ? AS query, from_user_id, to_user_id, type, update_time, 0 AS post
FROM following /*! FORCE INDEX (idx_following_list) */
WHERE from_user_id = ? AND type > 0 LIMIT ? OFFSET ?

-- sqlAnyRows, friend_request. Served by idx_friend_request_list.
SELECT ? AS query, from_user_id, to_user_id, type, update_time, 0 AS post
FROM friend_request /*! FORCE INDEX (idx_friend_request_list) */
WHERE from_user_id = ? AND type > 0 LIMIT ? OFFSET ?

-- sqlAnyRows, friend_request_inbox. Served by idx_friend_request_inbox_list.
SELECT ? AS query, to_user_id, from_user_id, type, update_time, 0 AS post
FROM friend_request_inbox /*! FORCE INDEX (idx_friend_request_inbox_list) */
WHERE to_user_id = ? AND type > 0 LIMIT ? OFFSET ?

-- sqlAppendLog
INSERT INTO relation_log (side, from_user_id, to_user_id, post_id, type, update_time)
VALUES (?, ?, ?, ?, ?, ?)

-- sqlBlocks. Served by idx_follower_list, idx_following_list.
SELECT from_user_id, to_user_id
FROM following /*! FORCE INDEX (idx_following_list) */
WHERE type = 2 AND from_user_id IN (?)
UNION ALL
SELECT to_user_id, from_user_id
FROM follower /*! FORCE INDEX (idx_follower_list) */
WHERE type = 2 AND to_user_id IN (?) LIMIT ?

-- sqlClaimHandles
INSERT OR IGNORE INTO handles (handle, user_id, claimed_at)
VALUES (?, ?, ?)

-- sqlCommentOfKey. Served by idx_comment_key.
SELECT author_id, comment_id, post_id, user_id, text, created_at
FROM comment
WHERE user_id = ? AND author_id = ? AND post_id = ? AND client_key = ?

-- sqlCommentPage. Served by idx_comment_list.
SELECT ? AS query, author_id, comment_id, post_id, user_id, text, created_at
FROM comment /*! FORCE INDEX (idx_comment_list) */
WHERE author_id = ? AND post_id = ? AND created_at <= ? AND (created_at < ? OR created_at = ? AND comment_id < ?)
ORDER BY created_at DESC, comment_id DESC LIMIT ?

-- sqlCommentedPosts. Served by idx_comment_key.
SELECT 1 AS part, NULL AS digest, author_id, post_id
FROM comment
WHERE user_id = ? AND author_id >= ? AND (author_id > ? OR post_id > ?)
GROUP BY author_id, post_id
ORDER BY author_id, post_id LIMIT ?

-- sqlComments. Served by PRIMARY.
WITH wanted(a, n) AS (VALUES (?, ?))
SELECT c.author_id, c.comment_id, c.post_id, c.user_id, c.text, c.created_at
FROM wanted
CROSS JOIN comment c ON c.author_id = a AND c.comment_id = n
JOIN post p /*! FORCE INDEX (PRIMARY) */ ON p.author_id = c.author_id AND p.post_id = c.post_id
WHERE p.state = 0

-- sqlCommentsReceived. Served by idx_comment_received.
SELECT ? AS query, created_at, comment_id, user_id, post_id
FROM comment /*! FORCE INDEX (idx_comment_received) */
WHERE author_id = ? AND created_at <= ? AND (created_at < ? OR created_at = ? AND comment_id < ?)
ORDER BY created_at DESC, comment_id DESC LIMIT ?

-- sqlCommentsThere. Served by PRIMARY.
SELECT comment_id
FROM comment /*! FORCE INDEX (PRIMARY) */
WHERE author_id = ? AND comment_id IN (?)

-- sqlCountComments. Served by PRIMARY.
UPDATE post_counts
SET comment_count = comment_count + ?, version = version + 1
WHERE author_id = ? AND post_id = ?

-- sqlCountEdges, favorite. Served by PRIMARY, idx_favorite_list, idx_favorite_received.
SELECT /*! STRAIGHT_JOIN */ e.from_user_id, COUNT(*)
FROM favorite e /*! FORCE INDEX (idx_favorite_list) */
WHERE e.type = 1 AND e.from_user_id IN (?)
GROUP BY e.from_user_id

-- sqlCountEdges, favorite_inbox. Served by PRIMARY, idx_favorite_inbox_list, idx_favorite_received.
SELECT /*! STRAIGHT_JOIN */ e.to_user_id, COUNT(*)
FROM favorite_inbox e /*! FORCE INDEX (idx_favorite_inbox_list) */ CROSS JOIN post p /*! FORCE INDEX (PRIMARY) */ ON p.author_id = e.to_user_id AND p.post_id = e.post_id AND p.state = 0
WHERE e.type = 1 AND e.to_user_id IN (?)
GROUP BY e.to_user_id

-- sqlCountEdges, follower. Served by PRIMARY, idx_favorite_received, idx_follower_list.
SELECT /*! STRAIGHT_JOIN */ e.to_user_id, COUNT(*)
FROM follower e /*! FORCE INDEX (idx_follower_list) */
WHERE e.type = 1 AND e.to_user_id IN (?)
GROUP BY e.to_user_id

-- sqlCountEdges, following. Served by PRIMARY, idx_favorite_received, idx_following_list.
SELECT /*! STRAIGHT_JOIN */ e.from_user_id, COUNT(*)
FROM following e /*! FORCE INDEX (idx_following_list) */
WHERE e.type = 1 AND e.from_user_id IN (?)
GROUP BY e.from_user_id

-- sqlCountFavorites
INSERT INTO post_counts (author_id, post_id, favorite_count)
VALUES (?, ?, ?)
ON CONFLICT (author_id, post_id) DO UPDATE SET favorite_count = favorite_count + excluded.favorite_count, version = version + 1

-- sqlCountIdentities. Served by idx_identity_user.
SELECT digest
FROM identities
WHERE user_id = ? LIMIT ? /*! FOR UPDATE */

-- sqlCountKinds
INSERT INTO relation_counts (owner, kind, outgoing, incoming)
VALUES (?, ?, ?, ?)
ON CONFLICT (owner, kind) DO UPDATE SET outgoing = outgoing + excluded.outgoing, incoming = incoming + excluded.incoming

-- sqlCountOfPeers, favorite. Served by PRIMARY.
SELECT /*! STRAIGHT_JOIN */ COUNT(*)
FROM favorite e INDEXED BY sqlite_autoindex_favorite_1
WHERE e.from_user_id = ? AND e.to_user_id BETWEEN ? AND ? AND e.type = 1

-- sqlCountOfPeers, favorite_inbox. Served by PRIMARY.
SELECT /*! STRAIGHT_JOIN */ COUNT(*)
FROM favorite_inbox e INDEXED BY sqlite_autoindex_favorite_inbox_1 CROSS JOIN post p /*! FORCE INDEX (PRIMARY) */ ON p.author_id = e.to_user_id AND p.post_id = e.post_id AND p.state = 0
WHERE e.to_user_id = ? AND e.from_user_id BETWEEN ? AND ? AND e.type = 1

-- sqlCountOfPeers, follower. Served by PRIMARY.
SELECT /*! STRAIGHT_JOIN */ COUNT(*)
FROM follower e INDEXED BY sqlite_autoindex_follower_1
WHERE e.to_user_id = ? AND e.from_user_id BETWEEN ? AND ? AND e.type = 1

-- sqlCountOfPeers, following. Served by PRIMARY.
SELECT /*! STRAIGHT_JOIN */ COUNT(*)
FROM following e INDEXED BY sqlite_autoindex_following_1
WHERE e.from_user_id = ? AND e.to_user_id BETWEEN ? AND ? AND e.type = 1

-- sqlCountPosts. Served by PRIMARY.
UPDATE user_counts
SET post_count = post_count + ?, total_favorited = total_favorited + ?, version = version + 1, packed_version = packed_version + 1,
  active_day = CASE WHEN active_day < ? THEN ? ELSE active_day END
WHERE user_id = ?

-- sqlCountSpecials. Served by idx_special.
SELECT COUNT(*)
FROM edge_marks /*! FORCE INDEX (idx_special) */
WHERE from_user_id = ? AND special = 1

-- sqlCounts. Served by PRIMARY.
SELECT user_id, following_count, follower_count, friend_count, post_count, favorite_count, total_favorited, version
FROM user_counts
WHERE user_id IN (?)

-- sqlCountsAgree, favorite. Served by PRIMARY, idx_favorite_list.
SELECT /*+ INL_JOIN(c) */ COUNT(*), COALESCE(SUM(c.favorite_count = e.n), 0), (
  SELECT COUNT(*)
  FROM user_counts
  WHERE user_id > ? AND user_id <= ? AND favorite_count <> 0
)
FROM (
  SELECT /*! STRAIGHT_JOIN */ e.from_user_id AS owner, COUNT(*) AS n
  FROM favorite e /*! FORCE INDEX (idx_favorite_list) */
  WHERE e.from_user_id > ? AND e.from_user_id <= ? AND e.type = 1
  GROUP BY e.from_user_id
) e
LEFT JOIN user_counts c ON c.user_id = e.owner

-- sqlCountsAgree, favorite_inbox. Served by PRIMARY, idx_favorite_inbox_list.
SELECT /*+ INL_JOIN(c) */ COUNT(*), COALESCE(SUM(c.total_favorited = e.n), 0), (
  SELECT COUNT(*)
  FROM user_counts
  WHERE user_id > ? AND user_id <= ? AND total_favorited <> 0
)
FROM (
  SELECT /*! STRAIGHT_JOIN */ e.to_user_id AS owner, COUNT(*) AS n
  FROM favorite_inbox e /*! FORCE INDEX (idx_favorite_inbox_list) */ CROSS JOIN post p /*! FORCE INDEX (PRIMARY) */ ON p.author_id = e.to_user_id AND p.post_id = e.post_id AND p.state = 0
  WHERE e.to_user_id > ? AND e.to_user_id <= ? AND e.type = 1
  GROUP BY e.to_user_id
) e
LEFT JOIN user_counts c ON c.user_id = e.owner

-- sqlCountsAgree, follower. Served by PRIMARY, idx_follower_list.
SELECT /*+ INL_JOIN(c) */ COUNT(*), COALESCE(SUM(c.follower_count = e.n), 0), (
  SELECT COUNT(*)
  FROM user_counts
  WHERE user_id > ? AND user_id <= ? AND follower_count <> 0
)
FROM (
  SELECT /*! STRAIGHT_JOIN */ e.to_user_id AS owner, COUNT(*) AS n
  FROM follower e /*! FORCE INDEX (idx_follower_list) */
  WHERE e.to_user_id > ? AND e.to_user_id <= ? AND e.type = 1
  GROUP BY e.to_user_id
) e
LEFT JOIN user_counts c ON c.user_id = e.owner

-- sqlCountsAgree, following. Served by PRIMARY, idx_following_list.
SELECT /*+ INL_JOIN(c) */ COUNT(*), COALESCE(SUM(c.following_count = e.n), 0), (
  SELECT COUNT(*)
  FROM user_counts
  WHERE user_id > ? AND user_id <= ? AND following_count <> 0
)
FROM (
  SELECT /*! STRAIGHT_JOIN */ e.from_user_id AS owner, COUNT(*) AS n
  FROM following e /*! FORCE INDEX (idx_following_list) */
  WHERE e.from_user_id > ? AND e.from_user_id <= ? AND e.type = 1
  GROUP BY e.from_user_id
) e
LEFT JOIN user_counts c ON c.user_id = e.owner

-- sqlCountsOfKinds, relation. Served by PRIMARY.
SELECT kind, outgoing
FROM relation_counts
WHERE owner = ?

-- sqlCountsOfKinds, relation_inbox. Served by PRIMARY.
SELECT kind, incoming
FROM relation_counts
WHERE owner = ?

-- sqlCountsOfNone, favorite. Served by PRIMARY, idx_favorite_list, idx_favorite_received.
SELECT c.user_id, c.favorite_count, 0
FROM user_counts c
WHERE c.user_id > ? AND c.user_id <= ? AND c.favorite_count <> 0
  AND NOT EXISTS (
    SELECT /*+ NO_DECORRELATE() INL_JOIN(p) */ /*! STRAIGHT_JOIN */ 1
    FROM favorite e /*! FORCE INDEX (idx_favorite_list) */
    WHERE e.from_user_id = c.user_id AND e.type = 1
    LIMIT 1
  )

-- sqlCountsOfNone, favorite_inbox. Served by PRIMARY, idx_favorite_inbox_list, idx_favorite_received.
SELECT c.user_id, c.total_favorited, 0
FROM user_counts c
WHERE c.user_id > ? AND c.user_id <= ? AND c.total_favorited <> 0
  AND NOT EXISTS (
    SELECT /*+ NO_DECORRELATE() INL_JOIN(p) */ /*! STRAIGHT_JOIN */ 1
    FROM favorite_inbox e /*! FORCE INDEX (idx_favorite_inbox_list) */ CROSS JOIN post p /*! FORCE INDEX (PRIMARY) */ ON p.author_id = e.to_user_id AND p.post_id = e.post_id AND p.state = 0
    WHERE e.to_user_id = c.user_id AND e.type = 1
    LIMIT 1
  )

-- sqlCountsOfNone, follower. Served by PRIMARY, idx_favorite_received, idx_follower_list.
SELECT c.user_id, c.follower_count, 0
FROM user_counts c
WHERE c.user_id > ? AND c.user_id <= ? AND c.follower_count <> 0
  AND NOT EXISTS (
    SELECT /*+ NO_DECORRELATE() INL_JOIN(p) */ /*! STRAIGHT_JOIN */ 1
    FROM follower e /*! FORCE INDEX (idx_follower_list) */
    WHERE e.to_user_id = c.user_id AND e.type = 1
    LIMIT 1
  )

-- sqlCountsOfNone, following. Served by PRIMARY, idx_favorite_received, idx_following_list.
SELECT c.user_id, c.following_count, 0
FROM user_counts c
WHERE c.user_id > ? AND c.user_id <= ? AND c.following_count <> 0
  AND NOT EXISTS (
    SELECT /*+ NO_DECORRELATE() INL_JOIN(p) */ /*! STRAIGHT_JOIN */ 1
    FROM following e /*! FORCE INDEX (idx_following_list) */
    WHERE e.from_user_id = c.user_id AND e.type = 1
    LIMIT 1
  )

-- sqlCountsOfPosts. Served by PRIMARY, idx_post_list.
SELECT p.post_id, COALESCE(c.favorite_count, 0)
FROM post p
LEFT JOIN post_counts c ON c.author_id = p.author_id AND c.post_id = p.post_id
WHERE p.author_id = ?

-- sqlDateClaim. Served by PRIMARY.
UPDATE handles
SET claimed_at = ?
WHERE handle = ? AND user_id = ?

-- sqlDeferImports. Served by PRIMARY.
UPDATE import_part
SET due_at = ?
WHERE owner = ? AND done = 0 AND due_at < ?

-- sqlDeleteCheckpoint. Served by PRIMARY.
DELETE FROM kith_checkpoints
WHERE name = ?

-- sqlDeleteComments. Served by PRIMARY.
DELETE FROM comment
WHERE author_id = ? AND comment_id IN (?)

-- sqlDeletePost. Served by PRIMARY.
UPDATE post /*! FORCE INDEX (PRIMARY) */
SET text = '', media = '[]', attributes = '', state = 1
WHERE author_id = ? AND post_id = ?

-- sqlDetailOf. Served by PRIMARY.
SELECT ends_at, attributes
FROM relation
WHERE from_user_id = ? AND to_user_id = ? AND kind = ? AND type = 1 AND update_time = ?

-- sqlDetails. Served by PRIMARY.
WITH wanted(o, p, n) AS (VALUES (?, ?, ?))
SELECT from_user_id, to_user_id, kind, ends_at, attributes
FROM wanted
CROSS JOIN relation ON from_user_id = o AND to_user_id = p AND kind = n
WHERE type = 1

-- sqlDigestsByClass, favorite. Served by PRIMARY, idx_favorite_list.
SELECT (from_user_id & 9223372036854775807) % 1021 AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time, post_id)
FROM favorite
WHERE from_user_id > ? AND from_user_id <= ? AND (type <> 0 OR update_time <> 0)
GROUP BY edges_group

-- sqlDigestsByClass, favorite_inbox. Served by PRIMARY, idx_favorite_inbox_list.
SELECT (from_user_id & 9223372036854775807) % 1021 AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time, post_id)
FROM favorite_inbox
WHERE to_user_id > ? AND to_user_id <= ? AND (type <> 0 OR update_time <> 0)
GROUP BY edges_group

-- sqlDigestsByClass, follower. Served by PRIMARY, idx_follower_list.
SELECT (from_user_id & 9223372036854775807) % 1021 AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time)
FROM follower
WHERE to_user_id > ? AND to_user_id <= ? AND (type <> 0 OR update_time <> 0)
GROUP BY edges_group

-- sqlDigestsByClass, following. Served by PRIMARY, idx_following_list.
SELECT (from_user_id & 9223372036854775807) % 1021 AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time)
FROM following
WHERE from_user_id > ? AND from_user_id <= ? AND (type <> 0 OR update_time <> 0)
GROUP BY edges_group

-- sqlDigestsByClass, friend_request. Served by PRIMARY, idx_friend_request_list.
SELECT (from_user_id & 9223372036854775807) % 1021 AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time)
FROM friend_request
WHERE from_user_id > ? AND from_user_id <= ? AND (type <> 0 OR update_time <> 0)
GROUP BY edges_group

-- sqlDigestsByClass, friend_request_inbox. Served by PRIMARY, idx_friend_request_inbox_list.
SELECT (from_user_id & 9223372036854775807) % 1021 AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time)
FROM friend_request_inbox
WHERE to_user_id > ? AND to_user_id <= ? AND (type <> 0 OR update_time <> 0)
GROUP BY edges_group

-- sqlDigestsByClass, relation. Served by PRIMARY, idx_relation_list.
SELECT (from_user_id & 9223372036854775807) % 1021 AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time, kind)
FROM relation
WHERE from_user_id > ? AND from_user_id <= ? AND (type <> 0 OR update_time <> 0)
GROUP BY edges_group

-- sqlDigestsByClass, relation_inbox. Served by PRIMARY, idx_relation_inbox_list.
SELECT (from_user_id & 9223372036854775807) % 1021 AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time, kind)
FROM relation_inbox
WHERE to_user_id > ? AND to_user_id <= ? AND (type <> 0 OR update_time <> 0)
GROUP BY edges_group

-- sqlDigestsByGroup, favorite. Served by PRIMARY, idx_favorite_list.
SELECT (from_user_id & 9223372036854775807) % 1021 * ? +
  ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time, post_id)
FROM favorite
WHERE from_user_id > ? AND from_user_id <= ? AND (type <> 0 OR update_time <> 0)
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 + 1, 1) = x'31'
GROUP BY edges_group

-- sqlDigestsByGroup, favorite_inbox. Served by PRIMARY, idx_favorite_inbox_list.
SELECT (from_user_id & 9223372036854775807) % 1021 * ? +
  ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time, post_id)
FROM favorite_inbox
WHERE to_user_id > ? AND to_user_id <= ? AND (type <> 0 OR update_time <> 0)
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 + 1, 1) = x'31'
GROUP BY edges_group

-- sqlDigestsByGroup, follower. Served by PRIMARY, idx_follower_list.
SELECT (from_user_id & 9223372036854775807) % 1021 * ? +
  ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time)
FROM follower
WHERE to_user_id > ? AND to_user_id <= ? AND (type <> 0 OR update_time <> 0)
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 + 1, 1) = x'31'
GROUP BY edges_group

-- sqlDigestsByGroup, following. Served by PRIMARY, idx_following_list.
SELECT (from_user_id & 9223372036854775807) % 1021 * ? +
  ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time)
FROM following
WHERE from_user_id > ? AND from_user_id <= ? AND (type <> 0 OR update_time <> 0)
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 + 1, 1) = x'31'
GROUP BY edges_group

-- sqlDigestsByGroup, friend_request. Served by PRIMARY, idx_friend_request_list.
SELECT (from_user_id & 9223372036854775807) % 1021 * ? +
  ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time)
FROM friend_request
WHERE from_user_id > ? AND from_user_id <= ? AND (type <> 0 OR update_time <> 0)
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 + 1, 1) = x'31'
GROUP BY edges_group

-- sqlDigestsByGroup, friend_request_inbox. Served by PRIMARY, idx_friend_request_inbox_list.
SELECT (from_user_id & 9223372036854775807) % 1021 * ? +
  ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time)
FROM friend_request_inbox
WHERE to_user_id > ? AND to_user_id <= ? AND (type <> 0 OR update_time <> 0)
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 + 1, 1) = x'31'
GROUP BY edges_group

-- sqlDigestsByGroup, relation. Served by PRIMARY, idx_relation_list.
SELECT (from_user_id & 9223372036854775807) % 1021 * ? +
  ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time, kind)
FROM relation
WHERE from_user_id > ? AND from_user_id <= ? AND (type <> 0 OR update_time <> 0)
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 + 1, 1) = x'31'
GROUP BY edges_group

-- sqlDigestsByGroup, relation_inbox. Served by PRIMARY, idx_relation_inbox_list.
SELECT (from_user_id & 9223372036854775807) % 1021 * ? +
  ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? AS edges_group,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time, kind)
FROM relation_inbox
WHERE to_user_id > ? AND to_user_id <= ? AND (type <> 0 OR update_time <> 0)
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 + 1, 1) = x'31'
GROUP BY edges_group

-- sqlDigestsByOwner, favorite. Served by PRIMARY, idx_favorite_list.
SELECT from_user_id,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time, post_id)
FROM favorite
WHERE from_user_id > ? AND from_user_id <= ? AND type <> 0
GROUP BY from_user_id

-- sqlDigestsByOwner, favorite_inbox. Served by PRIMARY, idx_favorite_inbox_list.
SELECT to_user_id,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time, post_id)
FROM favorite_inbox
WHERE to_user_id > ? AND to_user_id <= ? AND type <> 0
GROUP BY to_user_id

-- sqlDigestsByOwner, follower. Served by PRIMARY, idx_follower_list.
SELECT to_user_id,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time)
FROM follower
WHERE to_user_id > ? AND to_user_id <= ? AND type <> 0
GROUP BY to_user_id

-- sqlDigestsByOwner, following. Served by PRIMARY, idx_following_list.
SELECT from_user_id,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time)
FROM following
WHERE from_user_id > ? AND from_user_id <= ? AND type <> 0
GROUP BY from_user_id

-- sqlDigestsByOwner, friend_request. Served by PRIMARY, idx_friend_request_list.
SELECT from_user_id,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time)
FROM friend_request
WHERE from_user_id > ? AND from_user_id <= ? AND type <> 0
GROUP BY from_user_id

-- sqlDigestsByOwner, friend_request_inbox. Served by PRIMARY, idx_friend_request_inbox_list.
SELECT to_user_id,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time)
FROM friend_request_inbox
WHERE to_user_id > ? AND to_user_id <= ? AND type <> 0
GROUP BY to_user_id

-- sqlDigestsByOwner, relation. Served by PRIMARY, idx_relation_list.
SELECT from_user_id,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time, kind)
FROM relation
WHERE from_user_id > ? AND from_user_id <= ? AND type <> 0
GROUP BY from_user_id

-- sqlDigestsByOwner, relation_inbox. Served by PRIMARY, idx_relation_inbox_list.
SELECT to_user_id,
  COUNT(*),
  mix_of_edges(from_user_id, to_user_id, type, update_time, kind)
FROM relation_inbox
WHERE to_user_id > ? AND to_user_id <= ? AND type <> 0
GROUP BY to_user_id

-- sqlDueImports. Served by idx_import_due.
SELECT owner, number, part, kind, line, size, made, refused, done, due_at, content
FROM import_part
WHERE due_at >= ? AND due_at <= ? AND (due_at > ? OR owner > ? OR owner = ? AND (number > ? OR number = ? AND part > ?))
ORDER BY due_at, owner, number, part LIMIT ?

-- sqlDueRelations. Served by idx_relation_end.
SELECT from_user_id, to_user_id, kind, update_time, ends_at
FROM relation
WHERE ends_at > 0 AND ends_at >= ? AND ends_at <= ?
  AND (ends_at > ? OR from_user_id > ? OR from_user_id = ? AND (to_user_id > ? OR to_user_id = ? AND kind > ?))
ORDER BY ends_at, from_user_id, to_user_id, kind LIMIT ?

-- sqlEdgeCount, follower. Served by idx_follower_list.
SELECT ? AS query, COUNT(*)
FROM (SELECT 1 FROM follower /*! FORCE INDEX (idx_follower_list) */ WHERE to_user_id = ? AND type = ? LIMIT ?) AS counted

-- sqlEdgeCount, following. Served by idx_following_list.
SELECT ? AS query, COUNT(*)
FROM (SELECT 1 FROM following /*! FORCE INDEX (idx_following_list) */ WHERE from_user_id = ? AND type = ? LIMIT ?) AS counted

-- sqlEdgeCount, friend_request. Served by idx_friend_request_list.
SELECT ? AS query, COUNT(*)
FROM (SELECT 1 FROM friend_request /*! FORCE INDEX (idx_friend_request_list) */ WHERE from_user_id = ? AND type = ? LIMIT ?) AS counted

-- sqlEdgeCount, friend_request_inbox. Served by idx_friend_request_inbox_list.
SELECT ? AS query, COUNT(*)
FROM (SELECT 1 FROM friend_request_inbox /*! FORCE INDEX (idx_friend_request_inbox_list) */ WHERE to_user_id = ? AND type = ? LIMIT ?) AS counted

-- sqlEdgeCountSince, follower. Served by idx_follower_list.
SELECT ? AS query, COUNT(*)
FROM (SELECT 1 FROM follower /*! FORCE INDEX (idx_follower_list) */ WHERE to_user_id = ? AND type = ? AND update_time > ? LIMIT ?) AS counted

-- sqlEdgeCountSince, following. Served by idx_following_list.
SELECT ? AS query, COUNT(*)
FROM (SELECT 1 FROM following /*! FORCE INDEX (idx_following_list) */ WHERE from_user_id = ? AND type = ? AND update_time > ? LIMIT ?) AS counted

-- sqlEdgeCountSince, friend_request. Served by idx_friend_request_list.
SELECT ? AS query, COUNT(*)
FROM (SELECT 1 FROM friend_request /*! FORCE INDEX (idx_friend_request_list) */ WHERE from_user_id = ? AND type = ? AND update_time > ? LIMIT ?) AS counted

-- sqlEdgeCountSince, friend_request_inbox. Served by idx_friend_request_inbox_list.
SELECT ? AS query, COUNT(*)
FROM (SELECT 1 FROM friend_request_inbox /*! FORCE INDEX (idx_friend_request_inbox_list) */ WHERE to_user_id = ? AND type = ? AND update_time > ? LIMIT ?) AS counted

-- sqlEdges, favorite. Served by PRIMARY.
WITH wanted(o, p, n) AS (VALUES (?, ?, ?))
SELECT from_user_id, to_user_id, type, update_time, post_id
FROM wanted
CROSS JOIN favorite ON from_user_id = o AND to_user_id = p AND post_id = n

-- sqlEdges, favorite_inbox. Served by PRIMARY.
WITH wanted(o, p, n) AS (VALUES (?, ?, ?))
SELECT to_user_id, from_user_id, type, update_time, post_id
FROM wanted
CROSS JOIN favorite_inbox ON to_user_id = o AND from_user_id = p AND post_id = n

-- sqlEdges, follower. Served by PRIMARY.
WITH wanted(o, p) AS (VALUES (?, ?))
SELECT to_user_id, from_user_id, type, update_time
FROM wanted
CROSS JOIN follower ON to_user_id = o AND from_user_id = p

-- sqlEdges, following. Served by PRIMARY.
WITH wanted(o, p) AS (VALUES (?, ?))
SELECT from_user_id, to_user_id, type, update_time
FROM wanted
CROSS JOIN following ON from_user_id = o AND to_user_id = p

-- sqlEdges, friend_request. Served by PRIMARY.
WITH wanted(o, p) AS (VALUES (?, ?))
SELECT from_user_id, to_user_id, type, update_time
FROM wanted
CROSS JOIN friend_request ON from_user_id = o AND to_user_id = p

-- sqlEdges, friend_request_inbox. Served by PRIMARY.
WITH wanted(o, p) AS (VALUES (?, ?))
SELECT to_user_id, from_user_id, type, update_time
FROM wanted
CROSS JOIN friend_request_inbox ON to_user_id = o AND from_user_id = p

-- sqlEdges, relation. Served by PRIMARY.
WITH wanted(o, p, n) AS (VALUES (?, ?, ?))
SELECT from_user_id, to_user_id, type, update_time, kind
FROM wanted
CROSS JOIN relation ON from_user_id = o AND to_user_id = p AND kind = n

-- sqlEdges, relation_inbox. Served by PRIMARY.
WITH wanted(o, p, n) AS (VALUES (?, ?, ?))
SELECT to_user_id, from_user_id, type, update_time, kind
FROM wanted
CROSS JOIN relation_inbox ON to_user_id = o AND from_user_id = p AND kind = n

-- sqlEdgesOfItem, favorite_inbox. Served by idx_favorite_inbox_list.
SELECT COUNT(*)
FROM favorite_inbox /*! FORCE INDEX (idx_favorite_inbox_list) */
WHERE to_user_id = ? AND post_id = ? AND type = 1

-- sqlEdgesOfItem, relation. Served by idx_relation_list.
SELECT COUNT(*)
FROM relation /*! FORCE INDEX (idx_relation_list) */
WHERE from_user_id = ? AND kind = ? AND type = 1

-- sqlEdgesOfItem, relation_inbox. Served by idx_relation_inbox_list.
SELECT COUNT(*)
FROM relation_inbox /*! FORCE INDEX (idx_relation_inbox_list) */
WHERE to_user_id = ? AND kind = ? AND type = 1

-- sqlEdgesOfOwner, follower. Served by PRIMARY.
SELECT to_user_id, from_user_id, type, update_time
FROM follower
WHERE to_user_id = ? AND from_user_id IN (?)

-- sqlEdgesOfOwner, following. Served by PRIMARY.
SELECT from_user_id, to_user_id, type, update_time
FROM following
WHERE from_user_id = ? AND to_user_id IN (?)

-- sqlEdgesOfOwner, friend_request. Served by PRIMARY.
SELECT from_user_id, to_user_id, type, update_time
FROM friend_request
WHERE from_user_id = ? AND to_user_id IN (?)

-- sqlEdgesOfOwner, friend_request_inbox. Served by PRIMARY.
SELECT to_user_id, from_user_id, type, update_time
FROM friend_request_inbox
WHERE to_user_id = ? AND from_user_id IN (?)

-- sqlEditPost. Served by PRIMARY.
UPDATE post /*! FORCE INDEX (PRIMARY) */
SET text = ?, media = ?, edited_at = ?, attributes = ?
WHERE author_id = ? AND post_id = ?

-- sqlEndLease. Served by PRIMARY.
DELETE FROM kith_leases
WHERE kind = ? AND slot = ? AND (owner = ? OR leased_until <= ?)

-- sqlErasedIdentities. Served by idx_identity_user.
SELECT 0 AS part, digest, 0 AS author, 0 AS post
FROM identities
WHERE user_id = ? AND digest > ?
ORDER BY digest LIMIT ?

-- sqlExistingUsers. Served by PRIMARY.
SELECT user_id
FROM users
WHERE user_id IN (?)

-- sqlFavoritePage. Served by idx_favorite_list.
SELECT ? AS query, from_user_id, to_user_id, update_time, post_id
FROM favorite /*! FORCE INDEX (idx_favorite_list) */
WHERE from_user_id = ? AND type = 1 AND update_time <= ? AND (update_time < ? OR update_time = ? AND post_id < ?)
ORDER BY update_time DESC, post_id DESC LIMIT ?

-- sqlFavoritesReceived. Served by idx_favorite_received.
SELECT ? AS query, update_time, post_id, from_user_id, post_id
FROM favorite_inbox /*! FORCE INDEX (idx_favorite_received) */
WHERE to_user_id = ? AND type = ? AND update_time <= ? AND (update_time < ? OR update_time = ? AND (post_id < ? OR post_id = ? AND from_user_id < ?))
ORDER BY update_time DESC, post_id DESC, from_user_id DESC LIMIT ?

-- sqlFinishImport. Served by PRIMARY.
UPDATE import_part
SET made = ?, refused = ?, done = ?, content = ?, due_at = ?
WHERE owner = ? AND number = ? AND part = ? AND done = 0

-- sqlFirstOfFollow. Served by PRIMARY.
SELECT COALESCE(first_at, 0)
FROM following
WHERE from_user_id = ? AND to_user_id = ?

-- sqlForbiddenFollows. Served by PRIMARY, idx_follower_list.
SELECT /*! STRAIGHT_JOIN */ f.from_user_id, f.to_user_id
FROM user_counts c
CROSS JOIN follower b ON b.to_user_id = c.user_id AND b.type = 2
CROSS JOIN following f ON f.from_user_id = b.to_user_id AND f.to_user_id = b.from_user_id AND f.type IN (1, 3)
WHERE c.user_id > ? AND c.user_id <= ?

-- sqlForbiddenToOne. Served by PRIMARY.
SELECT /*! STRAIGHT_JOIN */ f.from_user_id, f.to_user_id
FROM follower b INDEXED BY sqlite_autoindex_follower_1
CROSS JOIN following f ON f.from_user_id = b.to_user_id AND f.to_user_id = b.from_user_id AND f.type IN (1, 3)
WHERE b.to_user_id = ? AND b.from_user_id BETWEEN ? AND ? AND b.type = 2

-- sqlForbiddenUsers. Served by PRIMARY.
SELECT /*! STRAIGHT_JOIN */ u.user_id, u.user_id
FROM user_states s
CROSS JOIN users u ON u.user_id = s.user_id
WHERE s.user_id > ? AND s.user_id <= ? AND s.state = 3
UNION ALL
SELECT u.user_id, u.user_id
FROM users u
WHERE u.user_id > ? AND u.user_id <= ?

-- sqlFriendsOf. Served by PRIMARY, idx_follower_list, idx_following_list.
SELECT c.user_id, c.friend_count, CASE
  WHEN c.following_count <= c.follower_count THEN (
    SELECT /*+ NO_DECORRELATE() INL_JOIN(r) */ /*! STRAIGHT_JOIN */ COUNT(*)
    FROM following f
    CROSS JOIN follower r ON r.to_user_id = f.from_user_id AND r.from_user_id = f.to_user_id AND r.type = 1
    WHERE f.from_user_id = c.user_id AND f.type = 1
  )
  ELSE (
    SELECT /*+ NO_DECORRELATE() INL_JOIN(f) */ /*! STRAIGHT_JOIN */ COUNT(*)
    FROM follower r
    CROSS JOIN following f ON f.from_user_id = r.to_user_id AND f.to_user_id = r.from_user_id AND f.type = 1
    WHERE r.to_user_id = c.user_id AND r.type = 1
  )
END AS friends
FROM user_counts c
WHERE c.user_id IN (?)

-- sqlGroupRows, favorite. Served by PRIMARY, idx_favorite_list.
SELECT from_user_id, to_user_id, type, update_time, post_id
FROM favorite
WHERE from_user_id > ? AND from_user_id <= ?
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 * ? +
    ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? + 1, 1) = x'31'

-- sqlGroupRows, favorite_inbox. Served by PRIMARY, idx_favorite_inbox_list.
SELECT to_user_id, from_user_id, type, update_time, post_id
FROM favorite_inbox
WHERE to_user_id > ? AND to_user_id <= ?
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 * ? +
    ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? + 1, 1) = x'31'

-- sqlGroupRows, follower. Served by PRIMARY, idx_follower_list.
SELECT to_user_id, from_user_id, type, update_time
FROM follower
WHERE to_user_id > ? AND to_user_id <= ?
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 * ? +
    ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? + 1, 1) = x'31'

-- sqlGroupRows, following. Served by PRIMARY, idx_following_list.
SELECT from_user_id, to_user_id, type, update_time
FROM following
WHERE from_user_id > ? AND from_user_id <= ?
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 * ? +
    ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? + 1, 1) = x'31'

-- sqlGroupRows, friend_request. Served by PRIMARY, idx_friend_request_list.
SELECT from_user_id, to_user_id, type, update_time
FROM friend_request
WHERE from_user_id > ? AND from_user_id <= ?
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 * ? +
    ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? + 1, 1) = x'31'

-- sqlGroupRows, friend_request_inbox. Served by PRIMARY, idx_friend_request_inbox_list.
SELECT to_user_id, from_user_id, type, update_time
FROM friend_request_inbox
WHERE to_user_id > ? AND to_user_id <= ?
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 * ? +
    ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? + 1, 1) = x'31'

-- sqlGroupRows, relation. Served by PRIMARY, idx_relation_list.
SELECT from_user_id, to_user_id, type, update_time, kind
FROM relation
WHERE from_user_id > ? AND from_user_id <= ?
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 * ? +
    ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? + 1, 1) = x'31'

-- sqlGroupRows, relation_inbox. Served by PRIMARY, idx_relation_inbox_list.
SELECT to_user_id, from_user_id, type, update_time, kind
FROM relation_inbox
WHERE to_user_id > ? AND to_user_id <= ?
  AND SUBSTR(?, (from_user_id & 9223372036854775807) % 1021 * ? +
    ((from_user_id & 9223372036854775807) % ? + (to_user_id & 9223372036854775807) % ?) % ? + 1, 1) = x'31'

-- sqlHandles. Served by PRIMARY.
SELECT handle, user_id
FROM handles
WHERE handle IN (?)

-- sqlHaveWord. Served by PRIMARY.
SELECT user_id
FROM user_words /*! FORCE INDEX (PRIMARY) */
WHERE user_id IN (?) AND word >= ? AND word < ?

-- sqlHolders. Served by PRIMARY.
SELECT owner, leased_until
FROM kith_leases
WHERE kind = ?

-- sqlIdentities. Served by PRIMARY.
SELECT user_id, issuer, subject
FROM identities
WHERE digest IN (?)

-- sqlIdentitiesBehind. Served by PRIMARY.
SELECT user_id, issuer, subject, linked_at
FROM identities
WHERE digest > ?
ORDER BY digest LIMIT ?

-- sqlIdentitiesOf. Served by idx_identity_user.
SELECT user_id, issuer, subject, linked_at
FROM identities
WHERE user_id = ? AND digest > ?
ORDER BY digest LIMIT ?

-- sqlIdentitiesThere. Served by PRIMARY.
SELECT user_id, issuer, subject
FROM identities
WHERE digest IN (?) /*! FOR UPDATE */

-- sqlImports. Served by PRIMARY.
SELECT owner, number, part, kind, line, size, made, refused, done, due_at
FROM import_part
WHERE owner = ?

-- sqlImportsHeld. Served by PRIMARY.
SELECT number, MIN(done)
FROM import_part
WHERE owner = ?
GROUP BY number
ORDER BY number DESC

-- sqlInsertComment
INSERT INTO comment (author_id, comment_id, post_id, user_id, client_key, text, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?)

-- sqlInsertEdges, follower
INSERT OR IGNORE INTO follower (to_user_id, from_user_id, type, update_time)
VALUES (?, ?, ?, ?)

-- sqlInsertEdges, following
INSERT OR IGNORE INTO following (from_user_id, to_user_id, type, update_time)
VALUES (?, ?, ?, ?)

-- sqlInsertEdges, friend_request
INSERT OR IGNORE INTO friend_request (from_user_id, to_user_id, type, update_time)
VALUES (?, ?, ?, ?)

-- sqlInsertEdges, friend_request_inbox
INSERT OR IGNORE INTO friend_request_inbox (to_user_id, from_user_id, type, update_time)
VALUES (?, ?, ?, ?)

-- sqlInsertNewCounts
INSERT INTO user_counts (user_id, active_day)
VALUES (?, ?)
ON CONFLICT (user_id) DO UPDATE SET active_day = CASE WHEN active_day < excluded.active_day THEN excluded.active_day ELSE active_day END

-- sqlInsertNoCounts
INSERT OR IGNORE INTO user_counts (user_id)
VALUES (?)

-- sqlInsertPost
INSERT INTO post (author_id, post_id, client_key, text, media, created_at, attributes)
VALUES (?, ?, ?, ?, ?, ?, ?)

-- sqlInsertPostCounts
INSERT INTO post_counts (author_id, post_id, version)
VALUES (?, ?, 1)

-- sqlInsertUsers
INSERT OR IGNORE INTO users (user_id, handle, name, bio, avatar_url, website, password_hash, created_at, updated_at, followings_visibility, followers_visibility, undiscoverable, locked, attributes)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- sqlInsertWords
INSERT OR IGNORE INTO user_words (user_id, word)
VALUES (?, ?)

-- sqlItemsOfPeers, favorite_inbox. Served by PRIMARY.
SELECT post_id, COUNT(*)
FROM favorite_inbox INDEXED BY sqlite_autoindex_favorite_inbox_1
WHERE to_user_id > ? AND to_user_id <= ? AND type = 1
GROUP BY post_id

-- sqlItemsOfPeers, relation. Served by PRIMARY.
SELECT kind, COUNT(*)
FROM relation INDEXED BY sqlite_autoindex_relation_1
WHERE from_user_id > ? AND from_user_id <= ? AND type = 1
GROUP BY kind

-- sqlItemsOfPeers, relation_inbox. Served by PRIMARY.
SELECT kind, COUNT(*)
FROM relation_inbox INDEXED BY sqlite_autoindex_relation_inbox_1
WHERE to_user_id > ? AND to_user_id <= ? AND type = 1
GROUP BY kind

-- sqlKeepShort
INSERT INTO packed_short (owner, side, version, data)
VALUES (?, ?, ?, ?)
ON CONFLICT (owner, side) DO UPDATE SET
  data = CASE WHEN version <= excluded.version THEN excluded.data ELSE data END,
  version = MAX(version, excluded.version)

-- sqlKeysThere. Served by idx_post_key.
SELECT client_key
FROM post /*! FORCE INDEX (idx_post_key) */
WHERE author_id = ? AND client_key IN (?)

-- sqlKindCounts. Served by PRIMARY.
WITH wanted(o, n) AS (VALUES (?, ?))
SELECT owner, kind, outgoing, incoming
FROM wanted
CROSS JOIN relation_counts ON owner = o AND kind = n

-- sqlKindCountsOfNone, relation. Served by PRIMARY, idx_relation_list.
SELECT c.owner, c.kind, c.outgoing, 0
FROM relation_counts c
WHERE c.owner > ? AND c.owner <= ? AND c.outgoing <> 0
  AND NOT EXISTS (SELECT /*+ NO_DECORRELATE() */ 1 FROM relation e WHERE e.from_user_id = c.owner AND e.kind = c.kind AND e.type = 1)

-- sqlKindCountsOfNone, relation_inbox. Served by PRIMARY, idx_relation_inbox_list.
SELECT c.owner, c.kind, c.incoming, 0
FROM relation_counts c
WHERE c.owner > ? AND c.owner <= ? AND c.incoming <> 0
  AND NOT EXISTS (SELECT /*+ NO_DECORRELATE() */ 1 FROM relation_inbox e WHERE e.to_user_id = c.owner AND e.kind = c.kind AND e.type = 1)

-- sqlLastAbout. Served by idx_moderation_about.
SELECT at, action
FROM moderation_log /*! FORCE INDEX (idx_moderation_about) */
WHERE owner_id = ? AND user_id = ? AND number = ? AND action >= ? AND action <= ?
ORDER BY at DESC LIMIT 1

-- sqlLastModeration. Served by PRIMARY.
SELECT at
FROM moderation_log /*! FORCE INDEX (PRIMARY) */
WHERE owner_id = ?
ORDER BY at DESC LIMIT 1

-- sqlLastOfLog. Served by PRIMARY.
SELECT seq
FROM sqlite_sequence
WHERE name = 'relation_log'

-- sqlLastPosts. Served by idx_post_list.
WITH wanted(author, up_to) AS (VALUES (?, ?))
SELECT author, up_to, (SELECT MAX(created_at) FROM post WHERE author_id = author AND state = 0 AND created_at <= up_to)
FROM wanted

-- sqlLatestPosts. Served by PRIMARY, idx_post_latest.
SELECT /*+ INL_JOIN(c) */ /*! STRAIGHT_JOIN */ p.author_id, p.post_id, p.text, p.media, p.created_at, p.edited_at, p.attributes, c.comment_count, c.favorite_count, c.version
FROM post p /*! FORCE INDEX (idx_post_latest) */
JOIN post_counts c ON c.author_id = p.author_id AND c.post_id = p.post_id
WHERE p.state = 0 AND p.created_at <= ? AND (p.created_at < ? OR p.created_at = ? AND p.post_id < ?)
ORDER BY p.created_at DESC, p.post_id DESC LIMIT ?

-- sqlLinkIdentity
INSERT OR IGNORE INTO identities (digest, user_id, issuer, subject, linked_at)
VALUES (?, ?, ?, ?, ?)

-- sqlList, follower. Served by PRIMARY.
SELECT wanted.query, COALESCE(c.version, 0), COALESCE(c.follower_count, 0), 0, e.from_user_id, e.type, e.update_time
FROM (SELECT ? AS query, ? AS owner, ? AS longest, ? AS ended_since) wanted
LEFT JOIN user_counts c ON c.user_id = wanted.owner
LEFT JOIN follower e /*! FORCE INDEX (PRIMARY) */
  ON e.to_user_id = CASE WHEN COALESCE(c.follower_count, 0) <= wanted.longest THEN wanted.owner END
  AND e.from_user_id > 0 AND (e.type NOT IN (0, 4) OR e.update_time >= wanted.ended_since)

-- sqlList, following. Served by PRIMARY.
SELECT wanted.query, COALESCE(c.version, 0), COALESCE(c.following_count, 0), 0, e.to_user_id, e.type, e.update_time
FROM (SELECT ? AS query, ? AS owner, ? AS longest, ? AS ended_since) wanted
LEFT JOIN user_counts c ON c.user_id = wanted.owner
LEFT JOIN following e /*! FORCE INDEX (PRIMARY) */
  ON e.from_user_id = CASE WHEN COALESCE(c.following_count, 0) <= wanted.longest THEN wanted.owner END
  AND e.to_user_id > 0 AND (e.type NOT IN (0, 4) OR e.update_time >= wanted.ended_since)

-- sqlListTexts, follower. Served by PRIMARY.
SELECT c.user_id, c.version, c.follower_count, (c.packed & 8 <> 0 AND c.packed_version = c.version), s.data,
  (SELECT GROUP_CONCAT(e.type || e.from_user_id || ' ' || e.update_time) FROM follower e
   WHERE e.to_user_id = CASE WHEN s.owner IS NULL AND c.follower_count <= ? AND NOT (c.packed & 8 <> 0 AND c.packed_version = c.version) THEN c.user_id END
     AND e.from_user_id > 0 AND (e.type NOT IN (0, 4) OR e.update_time >= ?))
FROM user_counts c
LEFT JOIN packed_short s ON s.owner = c.user_id AND s.side = 1 AND s.version = c.version AND c.follower_count <= ?
WHERE c.user_id IN (?)

-- sqlListTexts, following. Served by PRIMARY.
SELECT c.user_id, c.version, c.following_count, (c.packed & 4 <> 0 AND c.packed_version = c.version), s.data,
  (SELECT GROUP_CONCAT(e.type || e.to_user_id || ' ' || e.update_time) FROM following e
   WHERE e.from_user_id = CASE WHEN s.owner IS NULL AND c.following_count <= ? AND NOT (c.packed & 4 <> 0 AND c.packed_version = c.version) THEN c.user_id END
     AND e.to_user_id > 0 AND (e.type NOT IN (0, 4) OR e.update_time >= ?))
FROM user_counts c
LEFT JOIN packed_short s ON s.owner = c.user_id AND s.side = 0 AND s.version = c.version AND c.following_count <= ?
WHERE c.user_id IN (?)

-- sqlLists, follower. Served by PRIMARY.
SELECT wanted.query, COALESCE(c.version, 0), COALESCE(c.follower_count, 0), (COALESCE(c.packed, 0) & 8 <> 0 AND c.packed_version = c.version), e.from_user_id, e.type, e.update_time
FROM (SELECT ? AS query, ? AS owner, ? AS longest, ? AS ended_since) wanted
LEFT JOIN user_counts c ON c.user_id = wanted.owner
LEFT JOIN follower e /*! FORCE INDEX (PRIMARY) */
  ON e.to_user_id = CASE WHEN COALESCE(c.follower_count, 0) <= wanted.longest AND NOT (COALESCE(c.packed, 0) & 8 <> 0 AND c.packed_version = c.version) THEN wanted.owner END
  AND e.from_user_id > 0 AND (e.type NOT IN (0, 4) OR e.update_time >= wanted.ended_since)

-- sqlLists, following. Served by PRIMARY.
SELECT wanted.query, COALESCE(c.version, 0), COALESCE(c.following_count, 0), (COALESCE(c.packed, 0) & 4 <> 0 AND c.packed_version = c.version), e.to_user_id, e.type, e.update_time
FROM (SELECT ? AS query, ? AS owner, ? AS longest, ? AS ended_since) wanted
LEFT JOIN user_counts c ON c.user_id = wanted.owner
LEFT JOIN following e /*! FORCE INDEX (PRIMARY) */
  ON e.from_user_id = CASE WHEN COALESCE(c.following_count, 0) <= wanted.longest AND NOT (COALESCE(c.packed, 0) & 4 <> 0 AND c.packed_version = c.version) THEN wanted.owner END
  AND e.to_user_id > 0 AND (e.type NOT IN (0, 4) OR e.update_time >= wanted.ended_since)

-- sqlListsLike. Served by PRIMARY.
SELECT COUNT(*), COALESCE(MAX(number), 0), COALESCE(MAX(CASE WHEN name = ? AND public = ? THEN number END), 0)
FROM user_list
WHERE owner = ?

-- sqlLoadCheckpoint. Served by PRIMARY.
SELECT value
FROM kith_checkpoints
WHERE name = ?

-- sqlLockCounts. Served by PRIMARY.
SELECT user_id, following_count, follower_count, friend_count, post_count, favorite_count, total_favorited, version, packed
FROM user_counts
WHERE user_id IN (?)
ORDER BY user_id /*! FOR UPDATE */

-- sqlLockMarks. Served by PRIMARY.
SELECT user_counts.user_id, following_count, follower_count, friend_count, post_count, favorite_count, total_favorited, version, packed,
  COALESCE(f.to_user_id, 0), COALESCE(m.special, 0), COALESCE(m.remark, ''), COALESCE(m.attributes, ''), COALESCE(f.first_at, 0)
FROM user_counts
LEFT JOIN following f /*! FORCE INDEX (PRIMARY) */ ON f.from_user_id = user_counts.user_id AND f.to_user_id IN (?) AND f.type = 1
LEFT JOIN edge_marks m /*! FORCE INDEX (PRIMARY) */ ON m.from_user_id = f.from_user_id AND m.to_user_id = f.to_user_id
WHERE user_counts.user_id IN (?)
ORDER BY user_counts.user_id /*! FOR UPDATE */ /*T! OF user_counts */

-- sqlLockOneCounts. Served by PRIMARY.
SELECT user_id
FROM user_counts
WHERE user_id = ? /*! FOR UPDATE */

-- sqlLockPostCounts. Served by PRIMARY.
SELECT version
FROM post_counts
WHERE author_id = ? AND post_id = ? /*! FOR UPDATE */

-- sqlLockState. Served by PRIMARY.
SELECT user_counts.user_id, following_count, follower_count, friend_count, post_count, favorite_count, total_favorited, version, packed,
  COALESCE(state, 0), COALESCE(changed_at, 0), COALESCE(users.user_id, 0)
FROM user_counts
LEFT JOIN user_states ON user_states.user_id = user_counts.user_id
LEFT JOIN users ON users.user_id = user_counts.user_id
WHERE user_counts.user_id = ? /*! FOR UPDATE */ /*T! OF user_counts */

-- sqlLockUsers. Served by PRIMARY.
SELECT user_counts.user_id, following_count, follower_count, friend_count, post_count, favorite_count, total_favorited, version, packed,
  users.created_at, users.updated_at, users.followings_visibility, users.followers_visibility, users.undiscoverable, users.locked,
  users.handle, users.name, users.bio, users.avatar_url, users.website, users.attributes
FROM user_counts
JOIN users ON users.user_id = user_counts.user_id
WHERE user_counts.user_id IN (?)
ORDER BY user_counts.user_id /*! FOR UPDATE */ /*T! OF user_counts */

-- sqlLockVersions. Served by PRIMARY.
SELECT user_id, version
FROM user_counts
WHERE user_id IN (?)
ORDER BY user_id /*! FOR UPDATE */

-- sqlMarkActive. Served by PRIMARY.
UPDATE user_counts
SET active_day = ?
WHERE active_day < ? AND user_id IN (?)

-- sqlMarkOfFollow. Served by PRIMARY.
SELECT COALESCE(m.special, 0), COALESCE(m.remark, ''), COALESCE(m.attributes, '')
FROM following AS f
LEFT JOIN edge_marks AS m ON m.from_user_id = f.from_user_id AND m.to_user_id = f.to_user_id
WHERE f.from_user_id = ? AND f.to_user_id = ? AND f.type = 1

-- sqlMarks, ofOwner. Served by PRIMARY.
SELECT f.from_user_id, f.to_user_id, COALESCE(m.special, 0), COALESCE(m.remark, ''), COALESCE(m.attributes, ''), COALESCE(f.first_at, 0)
FROM following f /*! FORCE INDEX (PRIMARY) */
LEFT JOIN edge_marks m /*! FORCE INDEX (PRIMARY) */ ON m.from_user_id = f.from_user_id AND m.to_user_id = f.to_user_id
WHERE f.from_user_id = ? AND f.to_user_id IN (?) AND f.type = 1 AND (m.from_user_id IS NOT NULL OR f.first_at IS NOT NULL)

-- sqlMarks, ofPairs. Served by PRIMARY.
WITH wanted(o, p) AS (VALUES (?, ?))
SELECT f.from_user_id, f.to_user_id, COALESCE(m.special, 0), COALESCE(m.remark, ''), COALESCE(m.attributes, ''), COALESCE(f.first_at, 0)
FROM wanted
CROSS JOIN following f ON f.from_user_id = o AND f.to_user_id = p
LEFT JOIN edge_marks m /*! FORCE INDEX (PRIMARY) */ ON m.from_user_id = f.from_user_id AND m.to_user_id = f.to_user_id
WHERE f.type = 1 AND (m.from_user_id IS NOT NULL OR f.first_at IS NOT NULL)

-- sqlMessageOfRequest. Served by PRIMARY.
SELECT message
FROM friend_request
WHERE from_user_id = ? AND to_user_id = ? AND type = 1

-- sqlMessages, ofOwner. Served by PRIMARY.
SELECT from_user_id, to_user_id, type, message
FROM friend_request /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id IN (?)

-- sqlMessages, ofPairs. Served by PRIMARY.
WITH wanted(o, p) AS (VALUES (?, ?))
SELECT from_user_id, to_user_id, type, message
FROM wanted
CROSS JOIN friend_request ON from_user_id = o AND to_user_id = p

-- sqlModeration. Served by idx_moderation_time.
SELECT owner_id, at, user_id, action, operator, reason, ends_at, number
FROM moderation_log /*! FORCE INDEX (idx_moderation_time) */
WHERE at <= ? AND (at < ? OR at = ? AND owner_id < ?)
ORDER BY at DESC, owner_id DESC LIMIT ?

-- sqlModerationOf. Served by idx_moderation_user.
SELECT owner_id, at, user_id, action, operator, reason, ends_at, number
FROM moderation_log /*! FORCE INDEX (idx_moderation_user) */
WHERE user_id = ? AND at <= ? AND (at < ? OR at = ? AND owner_id < ?)
ORDER BY at DESC, owner_id DESC LIMIT ?

-- sqlNeighbourTexts, follower. Served by PRIMARY, idx_follower_list.
SELECT c.user_id, c.follower_count, s.data,
  (SELECT GROUP_CONCAT(e.from_user_id) FROM follower e /*! FORCE INDEX (PRIMARY) */
   WHERE e.type = 1 AND e.to_user_id = CASE WHEN s.owner IS NULL THEN c.user_id END)
FROM user_counts c
LEFT JOIN packed_short s ON s.owner = c.user_id AND s.side = 1 AND s.version = c.version
WHERE c.user_id IN (?)

-- sqlNeighbourTexts, following. Served by PRIMARY, idx_following_list.
SELECT c.user_id, c.following_count, s.data,
  (SELECT GROUP_CONCAT(e.to_user_id) FROM following e /*! FORCE INDEX (PRIMARY) */
   WHERE e.type = 1 AND e.from_user_id = CASE WHEN s.owner IS NULL THEN c.user_id END)
FROM user_counts c
LEFT JOIN packed_short s ON s.owner = c.user_id AND s.side = 0 AND s.version = c.version
WHERE c.user_id IN (?)

-- sqlNeighbours, follower. Served by PRIMARY, idx_follower_list.
SELECT to_user_id, COUNT(*), GROUP_CONCAT(from_user_id)
FROM follower /*! FORCE INDEX (PRIMARY) */
WHERE type = 1 AND to_user_id IN (?)
GROUP BY to_user_id

-- sqlNeighbours, following. Served by PRIMARY, idx_following_list.
SELECT from_user_id, COUNT(*), GROUP_CONCAT(to_user_id)
FROM following /*! FORCE INDEX (PRIMARY) */
WHERE type = 1 AND from_user_id IN (?)
GROUP BY from_user_id

-- sqlNeighbours, friend_request. Served by PRIMARY, idx_friend_request_list.
SELECT from_user_id, COUNT(*), GROUP_CONCAT(to_user_id)
FROM friend_request /*! FORCE INDEX (PRIMARY) */
WHERE type = 1 AND from_user_id IN (?)
GROUP BY from_user_id

-- sqlNeighbours, friend_request_inbox. Served by PRIMARY, idx_friend_request_inbox_list.
SELECT to_user_id, COUNT(*), GROUP_CONCAT(from_user_id)
FROM friend_request_inbox /*! FORCE INDEX (PRIMARY) */
WHERE type = 1 AND to_user_id IN (?)
GROUP BY to_user_id

-- sqlNeighboursByRow, follower. Served by PRIMARY, idx_follower_list.
SELECT from_user_id
FROM follower
WHERE to_user_id = ? AND type = 1

-- sqlNeighboursByRow, following. Served by PRIMARY, idx_following_list.
SELECT to_user_id
FROM following
WHERE from_user_id = ? AND type = 1

-- sqlNeighboursByRow, friend_request. Served by PRIMARY, idx_friend_request_list.
SELECT to_user_id
FROM friend_request
WHERE from_user_id = ? AND type = 1

-- sqlNeighboursByRow, friend_request_inbox. Served by PRIMARY, idx_friend_request_inbox_list.
SELECT from_user_id
FROM friend_request_inbox
WHERE to_user_id = ? AND type = 1

-- sqlNextOwner. Served by PRIMARY.
SELECT user_id
FROM user_counts
WHERE user_id > ?
ORDER BY user_id LIMIT 1 OFFSET ?

-- sqlNotActive. Served by PRIMARY.
SELECT user_id
FROM user_counts
WHERE active_day < ? AND user_id IN (?)

-- sqlOlderClaims. Served by PRIMARY.
SELECT handle, user_id
FROM handles
WHERE handle IN (?) AND claimed_at < ?

-- sqlOwnComments. Served by idx_comment_key.
SELECT comment_id
FROM comment /*! FORCE INDEX (idx_comment_key) */
WHERE user_id = ? AND author_id = ? AND post_id = ? LIMIT ?

-- sqlOwnerOfRow, favorite. Served by PRIMARY, idx_favorite_list, idx_favorite_received.
SELECT from_user_id
FROM favorite /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id > ?
ORDER BY from_user_id LIMIT 1 OFFSET ?

-- sqlOwnerOfRow, favorite_inbox. Served by PRIMARY, idx_favorite_inbox_list, idx_favorite_received.
SELECT to_user_id
FROM favorite_inbox /*! FORCE INDEX (PRIMARY) */
WHERE to_user_id > ?
ORDER BY to_user_id LIMIT 1 OFFSET ?

-- sqlOwnerOfRow, follower. Served by PRIMARY, idx_favorite_received, idx_follower_list.
SELECT to_user_id
FROM follower /*! FORCE INDEX (PRIMARY) */
WHERE to_user_id > ?
ORDER BY to_user_id LIMIT 1 OFFSET ?

-- sqlOwnerOfRow, following. Served by PRIMARY, idx_favorite_received, idx_following_list.
SELECT from_user_id
FROM following /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id > ?
ORDER BY from_user_id LIMIT 1 OFFSET ?

-- sqlOwnerOfRow, friend_request. Served by PRIMARY, idx_favorite_received, idx_friend_request_list.
SELECT from_user_id
FROM friend_request /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id > ?
ORDER BY from_user_id LIMIT 1 OFFSET ?

-- sqlOwnerOfRow, friend_request_inbox. Served by PRIMARY, idx_favorite_received, idx_friend_request_inbox_list.
SELECT to_user_id
FROM friend_request_inbox /*! FORCE INDEX (PRIMARY) */
WHERE to_user_id > ?
ORDER BY to_user_id LIMIT 1 OFFSET ?

-- sqlOwnerOfRow, relation. Served by PRIMARY, idx_favorite_received, idx_relation_list.
SELECT from_user_id
FROM relation /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id > ?
ORDER BY from_user_id LIMIT 1 OFFSET ?

-- sqlOwnerOfRow, relation_inbox. Served by PRIMARY, idx_favorite_received, idx_relation_inbox_list.
SELECT to_user_id
FROM relation_inbox /*! FORCE INDEX (PRIMARY) */
WHERE to_user_id > ?
ORDER BY to_user_id LIMIT 1 OFFSET ?

-- sqlPage, favorite_inbox. Served by idx_favorite_inbox_list.
SELECT ? AS query, from_user_id, update_time
FROM favorite_inbox
WHERE to_user_id = ? AND post_id = ? AND type = ?

-- sqlPage, follower. Served by idx_follower_list.
SELECT ? AS query, from_user_id, update_time
FROM follower
WHERE to_user_id = ? AND type = ?

-- sqlPage, following. Served by idx_following_list.
SELECT ? AS query, to_user_id, update_time
FROM following
WHERE from_user_id = ? AND type = ?

-- sqlPage, friend_request. Served by idx_friend_request_list.
SELECT ? AS query, to_user_id, update_time
FROM friend_request
WHERE from_user_id = ? AND type = ?

-- sqlPage, friend_request_inbox. Served by idx_friend_request_inbox_list.
SELECT ? AS query, from_user_id, update_time
FROM friend_request_inbox
WHERE to_user_id = ? AND type = ?

-- sqlPage, relation. Served by idx_relation_list.
SELECT ? AS query, to_user_id, update_time
FROM relation
WHERE from_user_id = ? AND kind = ? AND type = ?

-- sqlPage, relation_inbox. Served by idx_relation_inbox_list.
SELECT ? AS query, from_user_id, update_time
FROM relation_inbox
WHERE to_user_id = ? AND kind = ? AND type = ?

-- sqlPasswords. Served by PRIMARY.
SELECT users.user_id, COALESCE(users.password_hash, ''), COALESCE(user_states.password_at, 0)
FROM users
LEFT JOIN user_states ON user_states.user_id = users.user_id
WHERE users.user_id IN (?)

-- sqlPeerOfRow, favorite. Served by PRIMARY.
SELECT to_user_id
FROM favorite /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id >= ?
ORDER BY to_user_id LIMIT 1 OFFSET ?

-- sqlPeerOfRow, favorite_inbox. Served by PRIMARY.
SELECT from_user_id
FROM favorite_inbox /*! FORCE INDEX (PRIMARY) */
WHERE to_user_id = ? AND from_user_id >= ?
ORDER BY from_user_id LIMIT 1 OFFSET ?

-- sqlPeerOfRow, follower. Served by PRIMARY.
SELECT from_user_id
FROM follower /*! FORCE INDEX (PRIMARY) */
WHERE to_user_id = ? AND from_user_id >= ?
ORDER BY from_user_id LIMIT 1 OFFSET ?

-- sqlPeerOfRow, following. Served by PRIMARY.
SELECT to_user_id
FROM following /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id >= ?
ORDER BY to_user_id LIMIT 1 OFFSET ?

-- sqlPeerOfRow, friend_request. Served by PRIMARY.
SELECT to_user_id
FROM friend_request /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id >= ?
ORDER BY to_user_id LIMIT 1 OFFSET ?

-- sqlPeerOfRow, friend_request_inbox. Served by PRIMARY.
SELECT from_user_id
FROM friend_request_inbox /*! FORCE INDEX (PRIMARY) */
WHERE to_user_id = ? AND from_user_id >= ?
ORDER BY from_user_id LIMIT 1 OFFSET ?

-- sqlPeerOfRow, relation. Served by PRIMARY.
SELECT to_user_id
FROM relation /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id >= ?
ORDER BY to_user_id LIMIT 1 OFFSET ?

-- sqlPeerOfRow, relation_inbox. Served by PRIMARY.
SELECT from_user_id
FROM relation_inbox /*! FORCE INDEX (PRIMARY) */
WHERE to_user_id = ? AND from_user_id >= ?
ORDER BY from_user_id LIMIT 1 OFFSET ?

-- sqlPendingRequests. Served by idx_friend_request_list.
SELECT COUNT(*)
FROM friend_request
WHERE from_user_id = ? AND type = 1 AND update_time >= ?

-- sqlPopular. Served by PRIMARY, idx_popular.
SELECT /*+ INL_JOIN(counts) */ counts.user_id, counts.follower_count
FROM (
  SELECT /*! STRAIGHT_JOIN */ user_counts.user_id
  FROM user_counts /*! FORCE INDEX (idx_popular) */
  CROSS JOIN users ON users.user_id = user_counts.user_id
  WHERE user_counts.follower_class IN (?) AND user_counts.active_day >= ?
  ORDER BY user_counts.follower_class DESC, user_counts.active_day DESC, user_counts.user_id DESC LIMIT ?
) AS famous
LEFT JOIN user_counts AS counts ON counts.user_id = famous.user_id
ORDER BY counts.follower_count DESC, counts.user_id LIMIT ?

-- sqlPostCountsOfNone. Served by PRIMARY, idx_favorite_inbox_list.
SELECT c.author_id, c.post_id, c.favorite_count, 0
FROM post_counts c
WHERE c.author_id > ? AND c.author_id <= ? AND c.favorite_count <> 0
  AND NOT EXISTS (SELECT /*+ NO_DECORRELATE() */ 1 FROM favorite_inbox e WHERE e.to_user_id = c.author_id AND e.post_id = c.post_id AND e.type = 1)

-- sqlPostOfKey. Served by idx_post_key.
SELECT post_id, state
FROM post
WHERE author_id = ? AND client_key = ?

-- sqlPostPage. Served by PRIMARY, idx_post_list.
SELECT /*! STRAIGHT_JOIN */ ? AS query, p.author_id, p.post_id, p.text, p.media, p.created_at, p.edited_at, p.attributes, c.comment_count, c.favorite_count, c.version
FROM post p /*! FORCE INDEX (idx_post_list) */
JOIN post_counts c ON c.author_id = p.author_id AND c.post_id = p.post_id
WHERE p.author_id = ? AND p.state = 0 AND p.created_at <= ? AND (p.created_at < ? OR p.created_at = ? AND p.post_id < ?)
ORDER BY p.created_at DESC, p.post_id DESC LIMIT ?

-- sqlPostStates. Served by PRIMARY.
WITH wanted(a, n) AS (VALUES (?, ?))
SELECT author_id, post_id, state
FROM wanted
CROSS JOIN post ON author_id = a AND post_id = n

-- sqlPosts. Served by PRIMARY.
WITH wanted(a, n) AS (VALUES (?, ?))
SELECT p.author_id, p.post_id, p.text, p.media, p.created_at, p.edited_at, p.attributes, c.comment_count, c.favorite_count, c.version
FROM wanted
CROSS JOIN post p ON p.author_id = a AND p.post_id = n
JOIN post_counts c ON c.author_id = p.author_id AND c.post_id = p.post_id
WHERE p.state = 0

-- sqlPostsThere. Served by PRIMARY.
SELECT post_id
FROM post /*! FORCE INDEX (PRIMARY) */
WHERE author_id = ? AND post_id IN (?)

-- sqlProfiles. Served by PRIMARY.
SELECT wanted.user_id, c.version, c.following_count, c.follower_count, c.friend_count, c.post_count, c.favorite_count, c.total_favorited,
  u.created_at, u.updated_at, u.followings_visibility, u.followers_visibility, u.undiscoverable, u.locked,
  u.handle, u.name, u.bio, u.avatar_url, u.website, u.attributes
FROM (SELECT ? AS user_id) wanted
LEFT JOIN user_counts c ON c.user_id = wanted.user_id
LEFT JOIN users u ON u.user_id = wanted.user_id

-- sqlProfilesByKey. Served by PRIMARY.
SELECT u.user_id, u.created_at, u.updated_at, u.followings_visibility, u.followers_visibility, u.undiscoverable, u.locked,
  c.version, c.following_count, c.follower_count, c.friend_count, c.post_count, c.favorite_count, c.total_favorited,
  u.handle, u.name, u.bio, u.avatar_url, u.website, u.attributes
FROM users u
LEFT JOIN user_counts c ON c.user_id = u.user_id
WHERE u.user_id IN (?)

-- sqlPruneLog. Served by PRIMARY.
DELETE FROM relation_log
WHERE position <= ?

-- sqlRaiseVersion. Served by PRIMARY.
UPDATE user_counts
SET version = version + 1, packed_version = packed_version + 1
WHERE user_id = ?

-- sqlRanked. Served by idx_popular.
SELECT follower_class, active_day, user_id
FROM user_counts /*! FORCE INDEX (idx_popular) */
WHERE follower_class < ?
ORDER BY follower_class DESC, active_day DESC, user_id DESC LIMIT ?

-- sqlRankedOfClass. Served by idx_popular.
SELECT follower_class, active_day, user_id
FROM user_counts /*! FORCE INDEX (idx_popular) */
WHERE follower_class = ? AND active_day < ?
ORDER BY follower_class DESC, active_day DESC, user_id DESC LIMIT ?

-- sqlRankedOfDay. Served by idx_popular.
SELECT follower_class, active_day, user_id
FROM user_counts /*! FORCE INDEX (idx_popular) */
WHERE follower_class = ? AND active_day = ? AND user_id < ?
ORDER BY follower_class DESC, active_day DESC, user_id DESC LIMIT ?

-- sqlReadClaim. Served by PRIMARY.
SELECT user_id, claimed_at
FROM handles
WHERE handle = ?

-- sqlReadLeases. Served by PRIMARY.
SELECT slot, owner, leased_until
FROM kith_leases
WHERE kind = ?
ORDER BY slot /*! FOR UPDATE */

-- sqlReadLog. Served by PRIMARY.
SELECT COALESCE((SELECT MIN(position) FROM relation_log), (SELECT seq + 1 FROM sqlite_sequence WHERE name = 'relation_log'), 1), 0, 0, 0, 0, 0, 0
UNION ALL
SELECT *
FROM (SELECT position, side, from_user_id, to_user_id, post_id, type, update_time
  FROM relation_log
  WHERE position > ?
  ORDER BY position LIMIT ?)

-- sqlReadSecret. Served by PRIMARY.
SELECT value
FROM kith_secrets
WHERE name = 'store'

-- sqlRecentPosts. Served by idx_post_latest.
SELECT author_id, post_id, created_at
FROM post /*! FORCE INDEX (idx_post_latest) */
WHERE state = 0 AND created_at >= ? AND created_at <= ? AND (created_at < ? OR created_at = ? AND post_id < ?)
ORDER BY created_at DESC, post_id DESC LIMIT ?

-- sqlRefusedLines. Served by PRIMARY.
SELECT owner, number, part, kind, line, size, made, refused, done, due_at, content
FROM import_part
WHERE owner = ? AND number = ? AND part BETWEEN ? AND ? AND done = 1 AND refused > 0
ORDER BY part

-- sqlRelease. Served by PRIMARY, idx_lease_owner.
DELETE FROM kith_leases
WHERE kind = ? AND owner = ? AND ? IN (0, leased_until)

-- sqlReleaseHandle. Served by PRIMARY.
DELETE FROM handles
WHERE handle = ? AND user_id = ?

-- sqlRemoveCounts. Served by PRIMARY.
DELETE FROM user_counts
WHERE user_id IN (?)

-- sqlRemoveIdentity. Served by PRIMARY, idx_identity_user.
DELETE FROM identities
WHERE digest = ? AND user_id = ?

-- sqlRemoveImport. Served by PRIMARY.
DELETE FROM import_part
WHERE owner = ? AND number = ?

-- sqlRemoveMark. Served by PRIMARY, idx_special.
DELETE FROM edge_marks
WHERE from_user_id = ? AND to_user_id = ?

-- sqlRemoveMarks. Served by PRIMARY.
DELETE FROM edge_marks
WHERE from_user_id = ? AND to_user_id IN (?)

-- sqlRemoveSeen. Served by PRIMARY.
DELETE FROM seen
WHERE user_id = ?

-- sqlRemoveUser. Served by PRIMARY.
DELETE FROM users
WHERE user_id = ?

-- sqlRemoveUserList. Served by PRIMARY.
DELETE FROM user_list
WHERE owner = ? AND number = ?

-- sqlRemoveWords. Served by PRIMARY.
DELETE FROM user_words
WHERE user_id IN (?)

-- sqlRestOfPair, favorite. Served by PRIMARY.
SELECT from_user_id, to_user_id, type, update_time, post_id
FROM favorite /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id = ? AND post_id > ? AND (type <> 0 OR update_time <> 0)
ORDER BY post_id LIMIT ?

-- sqlRestOfPair, relation. Served by PRIMARY.
SELECT from_user_id, to_user_id, type, update_time, kind
FROM relation /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id = ? AND kind > ? AND (type <> 0 OR update_time <> 0)
ORDER BY kind LIMIT ?

-- sqlRestorePosts
INSERT INTO post (author_id, post_id, client_key, text, media, created_at, edited_at, state, attributes)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- sqlRows, edge_marks. Served by PRIMARY.
SELECT 8, from_user_id, to_user_id, 0, 0
FROM (VALUES (?, ?)) AS wanted
CROSS JOIN edge_marks ON from_user_id = column1 AND to_user_id = column2

-- sqlRows, follower. Served by PRIMARY.
SELECT 1, to_user_id, from_user_id, type, update_time
FROM (VALUES (?, ?)) AS wanted
CROSS JOIN follower ON to_user_id = column1 AND from_user_id = column2

-- sqlRows, following. Served by PRIMARY.
SELECT 0, from_user_id, to_user_id, type, update_time
FROM (VALUES (?, ?)) AS wanted
CROSS JOIN following ON from_user_id = column1 AND to_user_id = column2

-- sqlRows, friend_request. Served by PRIMARY.
SELECT 2, from_user_id, to_user_id, type, update_time
FROM (VALUES (?, ?)) AS wanted
CROSS JOIN friend_request ON from_user_id = column1 AND to_user_id = column2

-- sqlRows, friend_request_inbox. Served by PRIMARY.
SELECT 3, to_user_id, from_user_id, type, update_time
FROM (VALUES (?, ?)) AS wanted
CROSS JOIN friend_request_inbox ON to_user_id = column1 AND from_user_id = column2

-- sqlRowsOfOwner, edge_marks. Served by PRIMARY.
SELECT 8, from_user_id, to_user_id, 0, 0
FROM edge_marks /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id IN (?)

-- sqlRowsOfOwner, follower. Served by PRIMARY.
SELECT 1, to_user_id, from_user_id, type, update_time
FROM follower /*! FORCE INDEX (PRIMARY) */
WHERE to_user_id = ? AND from_user_id IN (?)

-- sqlRowsOfOwner, following. Served by PRIMARY.
SELECT 0, from_user_id, to_user_id, type, update_time
FROM following /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id IN (?)

-- sqlRowsOfOwner, friend_request. Served by PRIMARY.
SELECT 2, from_user_id, to_user_id, type, update_time
FROM friend_request /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id IN (?)

-- sqlRowsOfOwner, friend_request_inbox. Served by PRIMARY.
SELECT 3, to_user_id, from_user_id, type, update_time
FROM friend_request_inbox /*! FORCE INDEX (PRIMARY) */
WHERE to_user_id = ? AND from_user_id IN (?)

-- sqlSaveCheckpoint
INSERT INTO kith_checkpoints (name, value)
VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- sqlSee. Served by PRIMARY.
UPDATE seen
SET seen_at = ?
WHERE user_id = ? AND kind = ? AND seen_at < ?

-- sqlSeeFirst
INSERT OR IGNORE INTO seen (user_id, kind, seen_at)
VALUES (?, ?, ?)

-- sqlSeen. Served by PRIMARY.
SELECT seen_at
FROM seen
WHERE user_id = ? AND kind = ?

-- sqlSetDetail. Served by PRIMARY.
UPDATE relation
SET ends_at = ?, attributes = ?
WHERE from_user_id = ? AND to_user_id = ? AND kind = ?

-- sqlSetKindCount, relation. Served by PRIMARY.
UPDATE relation_counts
SET outgoing = ?
WHERE owner = ? AND kind = ? AND outgoing <> ?

-- sqlSetKindCount, relation_inbox. Served by PRIMARY.
UPDATE relation_counts
SET incoming = ?
WHERE owner = ? AND kind = ? AND incoming <> ?

-- sqlSetPasswordHash. Served by PRIMARY.
UPDATE users
SET password_hash = ?, updated_at = ?
WHERE user_id = ?

-- sqlSetPostFavorites. Served by PRIMARY.
UPDATE post_counts
SET favorite_count = ?, version = version + 1
WHERE author_id = ? AND post_id = ? AND favorite_count <> ?

-- sqlSpecials. Served by idx_special.
SELECT from_user_id, to_user_id
FROM edge_marks /*! FORCE INDEX (idx_special) */
WHERE special = 1 AND from_user_id IN (?)

-- sqlStateAndHandle. Served by PRIMARY.
SELECT user_states.state, COALESCE(users.handle, '')
FROM user_states
LEFT JOIN users ON users.user_id = user_states.user_id
WHERE user_states.user_id = ?

-- sqlStateChanges. Served by PRIMARY, idx_state_changes.
SELECT /*! STRAIGHT_JOIN */ s.user_id, s.state, s.changed_at, s.password_at, COALESCE(m.ends_at, 0)
FROM user_states s /*! FORCE INDEX (idx_state_changes) */
LEFT JOIN moderation_log m ON m.owner_id = s.user_id AND m.at = s.suspended_at
WHERE s.changed_at >= ? AND (s.changed_at > ? OR s.user_id > ?)
ORDER BY s.changed_at, s.user_id LIMIT ?

-- sqlStateOf. Served by PRIMARY.
SELECT state, changed_at
FROM user_states
WHERE user_id = ?

-- sqlStates. Served by PRIMARY.
SELECT /*+ INL_JOIN(m) */ s.user_id, s.state, COALESCE(m.ends_at, 0), COALESCE(m.reason, '')
FROM user_states s
LEFT JOIN moderation_log m ON m.owner_id = s.user_id AND m.at = s.suspended_at
WHERE s.user_id IN (?)

-- sqlTakeClaimOver. Served by PRIMARY.
UPDATE handles
SET user_id = ?, claimed_at = ?
WHERE handle = ? AND user_id = ? AND claimed_at = ?

-- sqlTakeLease
INSERT OR IGNORE INTO kith_leases (kind, slot, owner, leased_until)
VALUES (?, ?, ?, ?)

-- sqlTypeCount. Served by idx_following_list.
SELECT COUNT(*)
FROM following
WHERE from_user_id = ? AND type = ?

-- sqlUpdateUserList. Served by PRIMARY.
UPDATE user_list
SET name = ?, public = ?
WHERE owner = ? AND number = ?

-- sqlUserIDsAfter. Served by PRIMARY.
SELECT user_id
FROM users
WHERE user_id > ?
ORDER BY user_id LIMIT ?

-- sqlUserList. Served by PRIMARY.
SELECT name, public
FROM user_list
WHERE owner = ? AND number = ?

-- sqlUserLists. Served by PRIMARY.
SELECT ? AS query, owner, number, name, public
FROM user_list
WHERE owner = ? AND number <= ? AND public >= ?
ORDER BY number DESC LIMIT ?

-- sqlUsers. Served by PRIMARY.
SELECT user_id, created_at, updated_at, followings_visibility, followers_visibility, undiscoverable, locked,
  handle, name, bio, avatar_url, website, attributes
FROM users
WHERE user_id IN (?)

-- sqlUsersOfShard. Served by PRIMARY.
SELECT u.user_id, u.created_at, u.updated_at, u.followings_visibility, u.followers_visibility, u.undiscoverable, u.locked,
  s.state,
  u.handle, u.name, u.bio, u.avatar_url, u.website, u.attributes
FROM users u
LEFT JOIN user_states s ON s.user_id = u.user_id
WHERE u.user_id > ?
ORDER BY u.user_id LIMIT ?

-- sqlWholeLists, follower. Served by idx_follower_list.
SELECT to_user_id, type, GROUP_CONCAT(from_user_id)
FROM follower /*! FORCE INDEX (idx_follower_list) */
WHERE to_user_id IN (?) AND type IN (1, 2)
GROUP BY to_user_id, type

-- sqlWholeLists, following. Served by idx_following_list.
SELECT from_user_id, type, GROUP_CONCAT(to_user_id)
FROM following /*! FORCE INDEX (idx_following_list) */
WHERE from_user_id IN (?) AND type IN (1, 2)
GROUP BY from_user_id, type

-- sqlWithWord. Served by idx_user_words.
SELECT word, user_id
FROM user_words /*! FORCE INDEX (idx_user_words) */
WHERE word >= ? AND word < ? AND (word > ? OR user_id > ?)
ORDER BY word, user_id LIMIT ?

-- sqlWriteEdges, favorite
INSERT INTO favorite (from_user_id, to_user_id, post_id, type, update_time)
VALUES (?, ?, ?, ?, ?)
ON CONFLICT (from_user_id, to_user_id, post_id) DO UPDATE SET type = excluded.type, update_time = excluded.update_time

-- sqlWriteEdges, favorite_inbox
INSERT INTO favorite_inbox (to_user_id, from_user_id, post_id, type, update_time)
VALUES (?, ?, ?, ?, ?)
ON CONFLICT (to_user_id, from_user_id, post_id) DO UPDATE SET type = excluded.type, update_time = excluded.update_time

-- sqlWriteEdges, follower
INSERT INTO follower (to_user_id, from_user_id, type, update_time)
VALUES (?, ?, ?, ?)
ON CONFLICT (to_user_id, from_user_id) DO UPDATE SET type = excluded.type, update_time = excluded.update_time

-- sqlWriteEdges, friend_request_inbox
INSERT INTO friend_request_inbox (to_user_id, from_user_id, type, update_time)
VALUES (?, ?, ?, ?)
ON CONFLICT (to_user_id, from_user_id) DO UPDATE SET type = excluded.type, update_time = excluded.update_time

-- sqlWriteEdges, relation_inbox
INSERT INTO relation_inbox (to_user_id, from_user_id, kind, type, update_time)
VALUES (?, ?, ?, ?, ?)
ON CONFLICT (to_user_id, from_user_id, kind) DO UPDATE SET type = excluded.type, update_time = excluded.update_time

-- sqlWriteFirst. Served by PRIMARY.
UPDATE following
SET first_at = ?
WHERE from_user_id = ? AND to_user_id = ?

-- sqlWriteFollowing
INSERT INTO following (from_user_id, to_user_id, type, update_time)
VALUES (?, ?, ?, ?)
ON CONFLICT (from_user_id, to_user_id) DO UPDATE SET
  first_at = CASE WHEN first_at IS NULL AND type = 1 THEN update_time ELSE first_at END, type = excluded.type, update_time = excluded.update_time

-- sqlWriteMark
INSERT INTO edge_marks (from_user_id, to_user_id, special, remark, attributes)
VALUES (?, ?, ?, ?, ?)
ON CONFLICT (from_user_id, to_user_id) DO UPDATE SET special = excluded.special, remark = excluded.remark, attributes = excluded.attributes

-- sqlWriteMessage. Served by PRIMARY.
UPDATE friend_request
SET message = ?
WHERE from_user_id = ? AND to_user_id = ?

-- sqlWritePasswordTime
INSERT INTO user_states (user_id, state, changed_at, password_at)
VALUES (?, ?, ?, ?)
ON CONFLICT (user_id) DO UPDATE SET changed_at = excluded.changed_at, password_at = excluded.password_at

-- sqlWriteRelations
INSERT INTO relation (from_user_id, to_user_id, kind, type, update_time, ends_at, attributes)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (from_user_id, to_user_id, kind) DO UPDATE SET
  type = excluded.type, update_time = excluded.update_time, ends_at = excluded.ends_at, attributes = excluded.attributes

-- sqlWriteRequests
INSERT INTO friend_request (from_user_id, to_user_id, type, update_time, message)
VALUES (?, ?, ?, ?, ?)
ON CONFLICT (from_user_id, to_user_id) DO UPDATE SET type = excluded.type, update_time = excluded.update_time, message = excluded.message

-- sqlWriteSecret
INSERT OR IGNORE INTO kith_secrets (name, value)
VALUES ('store', ?)

-- sqlWriteState
INSERT INTO user_states (user_id, state, changed_at)
VALUES (?, ?, ?)
ON CONFLICT (user_id) DO UPDATE SET state = excluded.state, changed_at = excluded.changed_at

-- sqlWriteSuspension
INSERT INTO user_states (user_id, state, changed_at, suspended_at)
VALUES (?, ?, ?, ?)
ON CONFLICT (user_id) DO UPDATE SET changed_at = excluded.changed_at, suspended_at = excluded.suspended_at

-- sqlWrongCounts, favorite. Served by PRIMARY, idx_favorite_list.
SELECT /*+ INL_JOIN(c) */ e.owner, COALESCE(c.favorite_count, 0), e.n
FROM (
  SELECT /*! STRAIGHT_JOIN */ e.from_user_id AS owner, COUNT(*) AS n
  FROM favorite e /*! FORCE INDEX (idx_favorite_list) */
  WHERE e.from_user_id > ? AND e.from_user_id <= ? AND e.type = 1
  GROUP BY e.from_user_id
) e
LEFT JOIN user_counts c ON c.user_id = e.owner
WHERE c.user_id IS NULL OR c.favorite_count <> e.n

-- sqlWrongCounts, favorite_inbox. Served by PRIMARY, idx_favorite_inbox_list.
SELECT /*+ INL_JOIN(c) */ e.owner, COALESCE(c.total_favorited, 0), e.n
FROM (
  SELECT /*! STRAIGHT_JOIN */ e.to_user_id AS owner, COUNT(*) AS n
  FROM favorite_inbox e /*! FORCE INDEX (idx_favorite_inbox_list) */ CROSS JOIN post p /*! FORCE INDEX (PRIMARY) */ ON p.author_id = e.to_user_id AND p.post_id = e.post_id AND p.state = 0
  WHERE e.to_user_id > ? AND e.to_user_id <= ? AND e.type = 1
  GROUP BY e.to_user_id
) e
LEFT JOIN user_counts c ON c.user_id = e.owner
WHERE c.user_id IS NULL OR c.total_favorited <> e.n

-- sqlWrongCounts, follower. Served by PRIMARY, idx_follower_list.
SELECT /*+ INL_JOIN(c) */ e.owner, COALESCE(c.follower_count, 0), e.n
FROM (
  SELECT /*! STRAIGHT_JOIN */ e.to_user_id AS owner, COUNT(*) AS n
  FROM follower e /*! FORCE INDEX (idx_follower_list) */
  WHERE e.to_user_id > ? AND e.to_user_id <= ? AND e.type = 1
  GROUP BY e.to_user_id
) e
LEFT JOIN user_counts c ON c.user_id = e.owner
WHERE c.user_id IS NULL OR c.follower_count <> e.n

-- sqlWrongCounts, following. Served by PRIMARY, idx_following_list.
SELECT /*+ INL_JOIN(c) */ e.owner, COALESCE(c.following_count, 0), e.n
FROM (
  SELECT /*! STRAIGHT_JOIN */ e.from_user_id AS owner, COUNT(*) AS n
  FROM following e /*! FORCE INDEX (idx_following_list) */
  WHERE e.from_user_id > ? AND e.from_user_id <= ? AND e.type = 1
  GROUP BY e.from_user_id
) e
LEFT JOIN user_counts c ON c.user_id = e.owner
WHERE c.user_id IS NULL OR c.following_count <> e.n

-- sqlWrongFriends. Served by PRIMARY, idx_follower_list, idx_following_list.
SELECT *
FROM (
  SELECT c.user_id, c.friend_count, CASE
    WHEN c.following_count <= c.follower_count THEN (
      SELECT /*+ NO_DECORRELATE() INL_JOIN(r) */ /*! STRAIGHT_JOIN */ COUNT(*)
      FROM following f
      CROSS JOIN follower r ON r.to_user_id = f.from_user_id AND r.from_user_id = f.to_user_id AND r.type = 1
      WHERE f.from_user_id = c.user_id AND f.type = 1
    )
    ELSE (
      SELECT /*+ NO_DECORRELATE() INL_JOIN(f) */ /*! STRAIGHT_JOIN */ COUNT(*)
      FROM follower r
      CROSS JOIN following f ON f.from_user_id = r.to_user_id AND f.to_user_id = r.from_user_id AND f.type = 1
      WHERE r.to_user_id = c.user_id AND r.type = 1
    )
  END AS friends
  FROM user_counts c
  WHERE c.user_id > ? AND c.user_id <= ?
) counted
WHERE friend_count <> friends
ORDER BY user_id

-- sqlWrongKindCounts, relation. Served by PRIMARY, idx_relation_list.
SELECT /*+ INL_JOIN(c) */ e.owner, e.kind, COALESCE(c.outgoing, 0), e.n
FROM (
  SELECT from_user_id AS owner, kind, COUNT(*) AS n
  FROM relation /*! FORCE INDEX (idx_relation_list) */
  WHERE from_user_id > ? AND from_user_id <= ? AND type = 1
  GROUP BY from_user_id, kind
) e
LEFT JOIN relation_counts c ON c.owner = e.owner AND c.kind = e.kind
WHERE c.owner IS NULL OR c.outgoing <> e.n

-- sqlWrongKindCounts, relation_inbox. Served by PRIMARY, idx_relation_inbox_list.
SELECT /*+ INL_JOIN(c) */ e.owner, e.kind, COALESCE(c.incoming, 0), e.n
FROM (
  SELECT to_user_id AS owner, kind, COUNT(*) AS n
  FROM relation_inbox /*! FORCE INDEX (idx_relation_inbox_list) */
  WHERE to_user_id > ? AND to_user_id <= ? AND type = 1
  GROUP BY to_user_id, kind
) e
LEFT JOIN relation_counts c ON c.owner = e.owner AND c.kind = e.kind
WHERE c.owner IS NULL OR c.incoming <> e.n

-- sqlWrongPostCounts. Served by PRIMARY, idx_favorite_inbox_list.
SELECT /*+ INL_JOIN(p, c) */ e.author, e.number, COALESCE(c.favorite_count, 0), e.n
FROM (
  SELECT to_user_id AS author, post_id AS number, COUNT(*) AS n
  FROM favorite_inbox
  WHERE to_user_id > ? AND to_user_id <= ? AND type = 1
  GROUP BY to_user_id, post_id
) e
JOIN post p ON p.author_id = e.author AND p.post_id = e.number
LEFT JOIN post_counts c ON c.author_id = e.author AND c.post_id = e.number
WHERE c.author_id IS NULL OR c.favorite_count <> e.n

