package baseline

import (
	"database/sql"
	"strconv"
	"time"

	"kith/storage"
)

// What the web app asks, for the user who is signed in. Each statement is served by primary keys, and by the index of the list that it reads;
// where a planner would do something else, the order of the join is forced by CROSS JOIN (SQLite) and STRAIGHT_JOIN (MariaDB).
const (
	sqlAppProfile = `
SELECT u.user_id, u.name, u.avatar_url, u.bio, c.following_count, c.follower_count, c.friend_count, c.post_count, c.favorite_count,
  COALESCE(mine.type, 0), COALESCE(theirs.type, 0), COALESCE(m.special, 0), COALESCE(m.remark, ''), COALESCE(sent.type, 0), COALESCE(received.type, 0)
FROM handles h
JOIN users u ON u.user_id = h.user_id
JOIN user_counts c ON c.user_id = h.user_id
LEFT JOIN following mine /*! FORCE INDEX (PRIMARY) */ ON mine.from_user_id = ? AND mine.to_user_id = h.user_id
LEFT JOIN follower theirs /*! FORCE INDEX (PRIMARY) */ ON theirs.to_user_id = ? AND theirs.from_user_id = h.user_id
LEFT JOIN edge_marks m ON m.from_user_id = ? AND m.to_user_id = h.user_id
LEFT JOIN friend_request sent ON sent.from_user_id = ? AND sent.to_user_id = h.user_id
LEFT JOIN friend_request_inbox received ON received.to_user_id = ? AND received.from_user_id = h.user_id
WHERE h.handle = ?`

	// Most users have few known followers, so that to count them here is faster than a window function.
	sqlAppKnown = `
SELECT /*! STRAIGHT_JOIN */ mine.to_user_id, u.handle, u.name
FROM following mine /*! FORCE INDEX (PRIMARY) */
CROSS JOIN follower theirs /*! FORCE INDEX (PRIMARY) */ ON theirs.to_user_id = ? AND theirs.from_user_id = mine.to_user_id AND theirs.type = 1
CROSS JOIN users u ON u.user_id = mine.to_user_id
LEFT JOIN follower back /*! FORCE INDEX (PRIMARY) */ ON back.to_user_id = mine.from_user_id AND back.from_user_id = mine.to_user_id AND back.type = 1
LEFT JOIN edge_marks m ON m.from_user_id = mine.from_user_id AND m.to_user_id = mine.to_user_id
WHERE mine.from_user_id = ? AND +mine.type = 1
ORDER BY CASE WHEN m.special = 1 THEN 0 WHEN back.type = 1 THEN 1 ELSE 2 END, mine.update_time DESC, mine.to_user_id DESC`

	sqlAppFeed = `
SELECT newest.author_id, newest.post_id, p.text, newest.created_at, c.comment_count, c.favorite_count, COALESCE(f.type, 0),
  u.handle, u.name, 1, COALESCE(theirs.type, 0)
FROM (
  SELECT /*! STRAIGHT_JOIN */ p.author_id, p.post_id, p.created_at
  FROM following f
  CROSS JOIN post p ON p.author_id = f.to_user_id AND p.state = 0
  WHERE f.from_user_id = ? AND f.type = 1
  ORDER BY p.created_at DESC, p.post_id DESC
  LIMIT 21
) newest
JOIN post p ON p.author_id = newest.author_id AND p.post_id = newest.post_id
JOIN post_counts c ON c.author_id = newest.author_id AND c.post_id = newest.post_id
JOIN users u ON u.user_id = newest.author_id
LEFT JOIN follower theirs /*! FORCE INDEX (PRIMARY) */ ON theirs.to_user_id = ? AND theirs.from_user_id = newest.author_id
LEFT JOIN favorite f /*! FORCE INDEX (PRIMARY) */ ON f.from_user_id = ? AND f.to_user_id = newest.author_id AND f.post_id = newest.post_id
ORDER BY newest.created_at DESC, newest.post_id DESC`

	sqlAppPosts = `
SELECT u.user_id, p.post_id, p.text, p.created_at, c.comment_count, c.favorite_count, COALESCE(f.type, 0),
  h.handle, u.name, COALESCE(mine.type, 0), COALESCE(theirs.type, 0)
FROM handles h
JOIN users u ON u.user_id = h.user_id
JOIN post p /*! FORCE INDEX (idx_post_list) */ ON p.author_id = h.user_id AND p.state = 0
JOIN post_counts c ON c.author_id = p.author_id AND c.post_id = p.post_id
LEFT JOIN following mine /*! FORCE INDEX (PRIMARY) */ ON mine.from_user_id = ? AND mine.to_user_id = h.user_id
LEFT JOIN follower theirs /*! FORCE INDEX (PRIMARY) */ ON theirs.to_user_id = ? AND theirs.from_user_id = h.user_id
LEFT JOIN favorite f /*! FORCE INDEX (PRIMARY) */ ON f.from_user_id = ? AND f.to_user_id = p.author_id AND f.post_id = p.post_id
WHERE h.handle = ?
ORDER BY p.created_at DESC, p.post_id DESC
LIMIT 21`

	sqlAppFollowings = `
SELECT h.user_id, c.following_count, f.to_user_id, f.update_time, u.handle, u.name, u.avatar_url, u.bio, COALESCE(mine.type, 0), COALESCE(theirs.type, 0)
FROM handles h
JOIN user_counts c ON c.user_id = h.user_id
JOIN following f /*! FORCE INDEX (idx_following_list) */ ON f.from_user_id = h.user_id AND f.type = 1
JOIN users u ON u.user_id = f.to_user_id
LEFT JOIN following mine /*! FORCE INDEX (PRIMARY) */ ON mine.from_user_id = ? AND mine.to_user_id = f.to_user_id
LEFT JOIN follower theirs /*! FORCE INDEX (PRIMARY) */ ON theirs.to_user_id = ? AND theirs.from_user_id = f.to_user_id
WHERE h.handle = ?
ORDER BY f.update_time DESC, f.to_user_id DESC
LIMIT 31`

	// Of a list without rows, which has nothing about its owner.
	sqlAppOwner = `
SELECT user_id
FROM handles
WHERE handle = ?`

	sqlAppViewer = `
SELECT u.handle, u.name, u.bio, c.following_count, c.follower_count, c.friend_count,
  (SELECT COUNT(*) FROM friend_request_inbox r WHERE r.to_user_id = u.user_id AND r.type = 1 AND r.update_time > ?)
FROM users u
JOIN user_counts c ON c.user_id = u.user_id
WHERE u.user_id = ?`
)

// appAnswer returns nil if the operation is none of the web app's.
func (h *handler) appAnswer(name string, viewer int64, handle string) ([]byte, error) {
	switch name {
	case "AppProfile":
		return h.profile(viewer, handle)
	case "AppFeed":
		b, _, err := page(`{"data":{"viewer":{"feed":{"nodes":[`, viewer, h.read[sqlAppFeed], viewer, viewer, viewer)
		return append(b, `}}}`...), err
	case "AppPosts":
		b, author, err := page(`{"data":{"user":{"posts":{"nodes":[`, viewer, h.read[sqlAppPosts], viewer, viewer, viewer, handle)
		return h.endedOf(b, author, handle, err)
	case "AppFollowings":
		return h.followingsOf(viewer, handle)
	case "AppViewer":
		return h.person(viewer)
	}
	return nil, nil
}

func (h *handler) profile(viewer int64, handle string) ([]byte, error) {
	var id, known, mine, theirs, special, sent, received int64
	var counts [5]int64
	var name, avatar, bio, remark []byte
	err := h.read[sqlAppProfile].QueryRow(viewer, viewer, viewer, viewer, viewer, handle).Scan(&id, &name, &avatar, &bio,
		&counts[0], &counts[1], &counts[2], &counts[3], &counts[4], &mine, &theirs, &special, &remark, &sent, &received)
	if err != nil {
		return nil, err
	}
	b := appendPerson(append(make([]byte, 0, 1024), `{"data":{"user":`...), id, []byte(handle), name)
	b = appendOptional(b, `,"avatarUrl":`, avatar)
	b = appendOptional(b, `,"bio":`, bio)
	for i, field := range [...]string{`,"followingCount":`, `,"followerCount":`, `,"friendCount":`, `,"postCount":`, `,"favoritesGivenCount":`} {
		b = appendNumber(b, field, counts[i])
	}
	b = appendRelation(b, viewer, id, mine, theirs, func(b []byte) []byte {
		b = strconv.AppendBool(append(b, `,"blocking":`...), mine == 2)
		b = strconv.AppendBool(append(b, `,"blockedBy":`...), theirs == 2)
		b = strconv.AppendBool(append(b, `,"special":`...), special != 0)
		b = appendOptional(b, `,"remark":`, remark)
		b = appendRequest(b, `,"sentRequest":`, viewer, id, sent)
		return appendRequest(b, `,"receivedRequest":`, id, viewer, received)
	})
	var peer, peerName sql.RawBytes
	b = append(b, `,"followersYouKnow":{"nodes":[`...)
	b, total, err := appendRows(b, 4, []any{&known, &peer, &peerName}, func(b []byte) []byte {
		return append(appendPerson(b, known, peer, peerName), '}')
	}, h.read[sqlAppKnown], id, viewer)
	return append(appendNumber(b, `],"totalCount":`, int64(total)), `}}}}`...), err
}

// page begins an answer with a page of posts. It returns the last author, too, 0 if there are no posts.
func page(begin string, viewer int64, statement *sql.Stmt, args ...any) (_ []byte, author int64, err error) {
	var number, created, comments, favorites, favorited, mine, theirs int64
	var text, handle, name sql.RawBytes
	row := []any{&author, &number, &text, &created, &comments, &favorites, &favorited, &handle, &name, &mine, &theirs}
	b, n, err := appendRows(append(make([]byte, 0, 12<<10), begin...), pageSize, row, func(b []byte) []byte {
		b = appendNumber(b, `{"id":"post_`, author)
		b = appendNumber(b, `_`, number)
		b = appendText(append(b, `","text":`...), text)
		b = appendTime(append(b, `,"createdAt":"`...), created)
		b = appendNumber(b, `","commentCount":`, comments)
		b = appendNumber(b, `,"favoritesReceivedCount":`, favorites)
		b = strconv.AppendBool(append(b, `,"viewerHasFavorited":`...), favorited == 1)
		b = appendPerson(append(b, `,"author":`...), author, handle, name)
		return append(appendRelation(b, viewer, author, mine, theirs, nil), `}}`...)
	}, statement, args...)
	return appendMore(append(b, ']'), n > pageSize), author, err
}

func (h *handler) followingsOf(viewer int64, handle string) ([]byte, error) {
	const most = 30
	var owner, total, id, at, mine, theirs int64
	var peer, name, avatar, bio sql.RawBytes
	row := []any{&owner, &total, &id, &at, &peer, &name, &avatar, &bio, &mine, &theirs}
	b := append(make([]byte, 0, 8<<10), `{"data":{"user":{"followings":{"edges":[`...)
	b, n, err := appendRows(b, most, row, func(b []byte) []byte {
		b = appendTime(append(b, `{"followedAt":"`...), at)
		b = appendPerson(append(b, `","node":`...), id, peer, name)
		b = appendOptional(b, `,"avatarUrl":`, avatar)
		b = appendOptional(b, `,"bio":`, bio)
		return append(appendRelation(b, viewer, id, mine, theirs, nil), `}}`...)
	}, h.read[sqlAppFollowings], viewer, viewer, handle)
	return h.endedOf(appendMore(appendNumber(b, `],"totalCount":`, total), n > most), owner, handle, err)
}

// endedOf ends an answer about a list's owner, who is looked up if the list had no rows.
func (h *handler) endedOf(b []byte, owner int64, handle string, err error) ([]byte, error) {
	if err == nil && owner == 0 {
		err = h.read[sqlAppOwner].QueryRow(handle).Scan(&owner)
	}
	return append(appendNumber(b, `,"id":"`, owner), `"}}}`...), err
}

// appendRows appends an object for each of the first rows of a statement, and counts all rows.
func appendRows(b []byte, most int, row []any, object func([]byte) []byte, statement *sql.Stmt, args ...any) (_ []byte, n int, err error) {
	rows, err := statement.Query(args...)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	for ; rows.Next(); n++ {
		if n >= most {
			continue
		}
		if n > 0 {
			b = append(b, ',')
		}
		if err := rows.Scan(row...); err != nil {
			return nil, 0, err
		}
		b = object(b)
	}
	return b, n, rows.Err()
}

func (h *handler) person(viewer int64) ([]byte, error) {
	var counts [4]int64
	var handle, name, bio []byte
	since := time.Now().Add(-storage.DefaultRequestTTL).UnixMicro()
	if err := h.read[sqlAppViewer].QueryRow(since, viewer).Scan(&handle, &name, &bio, &counts[0], &counts[1], &counts[2], &counts[3]); err != nil {
		return nil, err
	}
	b := appendPerson(append(make([]byte, 0, 256), `{"data":{"viewer":{"user":`...), viewer, handle, name)
	b = appendOptional(b, `,"bio":`, bio)
	for i, field := range [...]string{`,"followingCount":`, `,"followerCount":`, `,"friendCount":`, `},"requests":{"totalCount":`} {
		b = appendNumber(b, field, counts[i])
	}
	return append(b, `}}}}`...), nil
}

// appendPerson appends an object that is left open.
func appendPerson(b []byte, id int64, handle, name []byte) []byte {
	b = appendNumber(b, `{"id":"`, id)
	b = appendText(append(b, `","handle":`...), handle)
	return appendText(append(b, `,"name":`...), name)
}

// appendRelation appends the viewer's relationship, with more in it, if the user is another. The types are those of the edges in both
// directions.
func appendRelation(b []byte, viewer, id, mine, theirs int64, more func([]byte) []byte) []byte {
	if id == viewer {
		return append(b, `,"viewerRelationship":null`...)
	}
	b = appendNumber(b, `,"viewerRelationship":{"id":"rel_`, viewer)
	b = appendNumber(b, `_`, id)
	switch {
	case mine == 1 && theirs == 1:
		b = append(b, `","status":"MUTUAL","following":true,"followedBy":true`...)
	case mine == 1:
		b = append(b, `","status":"FOLLOWING","following":true,"followedBy":false`...)
	case theirs == 1:
		b = append(b, `","status":"FOLLOWED_BY","following":false,"followedBy":true`...)
	default:
		b = append(b, `","status":"NONE","following":false,"followedBy":false`...)
	}
	if more != nil {
		b = more(b)
	}
	return append(b, '}')
}

func appendRequest(b []byte, field string, from, to, state int64) []byte {
	b = append(b, field...)
	if state == 0 {
		return append(b, `null`...)
	}
	b = appendNumber(b, `{"id":"req_`, from)
	return append(appendNumber(b, `_`, to), `"}`...)
}

// appendMore ends a page.
func appendMore(b []byte, more bool) []byte {
	return append(strconv.AppendBool(append(b, `,"pageInfo":{"hasNextPage":`...), more), `}}`...)
}

// appendOptional appends null for a text that is empty.
func appendOptional(b []byte, field string, text []byte) []byte {
	if b = append(b, field...); len(text) == 0 {
		return append(b, `null`...)
	}
	return appendText(b, text)
}

func appendNumber(b []byte, before string, n int64) []byte {
	return strconv.AppendInt(append(b, before...), n, 10)
}
