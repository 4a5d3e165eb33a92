package baseline

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

const (
	sqlUser = `
SELECT u.name, c.following_count, c.follower_count
FROM users u
JOIN user_counts c ON c.user_id = u.user_id
WHERE u.user_id = ?`

	sqlFollowings = `
SELECT f.to_user_id, u.name, f.update_time
FROM (
  SELECT to_user_id, update_time
  FROM following
  WHERE from_user_id = ? AND type = 1
  ORDER BY update_time DESC, to_user_id DESC
  LIMIT 20
) f
JOIN users u ON u.user_id = f.to_user_id
ORDER BY f.update_time DESC, f.to_user_id DESC`

	sqlRelationships = `
SELECT 1, to_user_id FROM following WHERE from_user_id = ? AND type = 1 AND to_user_id IN (?)
UNION ALL
SELECT 2, from_user_id FROM follower WHERE to_user_id = ? AND type = 1 AND from_user_id IN (?)`

	sqlSuggestions = `
SELECT best.id, u.name, best.mutual
FROM (
  SELECT found.id, found.mutual
  FROM (
    SELECT theirs.to_user_id AS id, COUNT(*) AS mutual
    FROM following mine
    JOIN following theirs ON theirs.from_user_id = mine.to_user_id AND theirs.type = 1
    WHERE mine.from_user_id = ? AND mine.type = 1
    GROUP BY theirs.to_user_id
  ) found
  WHERE found.id <> ?
    AND NOT EXISTS (SELECT 1 FROM following f WHERE f.from_user_id = ? AND f.to_user_id = found.id AND f.type = 1)
  ORDER BY found.mutual DESC, found.id
  LIMIT 20
) best
JOIN users u ON u.user_id = best.id
ORDER BY best.mutual DESC, best.id`

	sqlNode = `
SELECT handle, name, created_at
FROM users
WHERE user_id = ?`

	sqlCount = `
SELECT following_count
FROM user_counts
WHERE user_id = ?`

	sqlNames = `
SELECT user_id, name
FROM users
WHERE user_id IN (?)
ORDER BY user_id`
)

// The statements for what two lists have in common.
type sharedText struct {
	both        string // of two short lists: faster than any join of the two
	count, page string // of two long lists: how many users they have in common, and the first of these
}

var (
	sqlSharedFollowings = sharedText{
		both: `
SELECT from_user_id, to_user_id
FROM following
WHERE from_user_id IN (?, ?) AND type = 1
ORDER BY from_user_id, to_user_id
LIMIT 4001`,
		count: `
SELECT COUNT(*)
FROM (
  SELECT to_user_id FROM following WHERE from_user_id = ? AND type = 1
  INTERSECT
  SELECT to_user_id FROM following WHERE from_user_id = ? AND type = 1
) shared`,
		page: `
SELECT one.to_user_id
FROM following one
WHERE one.from_user_id = ? AND one.type = 1
  AND EXISTS (SELECT 1 FROM following other WHERE other.from_user_id = ? AND other.to_user_id = one.to_user_id AND other.type = 1)
ORDER BY one.to_user_id
LIMIT 20`,
	}

	otherSide          = strings.NewReplacer("following", "follower", "from_user_id", "to_user_id", "to_user_id", "from_user_id").Replace
	sqlSharedFollowers = sharedText{otherSide(sqlSharedFollowings.both), otherSide(sqlSharedFollowings.count), otherSide(sqlSharedFollowings.page)}
)

// handler holds a prepared statement for everything it asks.
type handler struct {
	oneUser, firstFollowings, relations, fewRelations *sql.Stmt
	suggested, oneNode, oneCount                      *sql.Stmt
	following, follower                               lists
	writes                                            *writes
	app                                               app
}

// lists answers what two lists of one table have in common.
type lists struct {
	field             string
	both, count, page *sql.Stmt
	names             *sql.Stmt
}

const (
	othersAsked = 50   // of the question about relationships
	fewAsked    = 5    // of most look-ups of the mixed load
	mergedHere  = 4000 // rows of two lists that are fetched whole; the statement reads one more
	pageSize    = 20   // as the statements say
)

func newHandler(dbs databases) (*handler, error) {
	prepare, failed := preparing(dbs.read)
	listsOf := func(field string, text sharedText) lists {
		return lists{
			field: field, both: prepare(text.both), count: prepare(text.count), page: prepare(text.page),
			names: prepare(listed(sqlNames, pageSize)),
		}
	}
	h := &handler{
		oneUser:         prepare(sqlUser),
		firstFollowings: prepare(sqlFollowings),
		relations:       prepare(listed(sqlRelationships, othersAsked)),
		fewRelations:    prepare(listed(sqlRelationships, fewAsked)),
		suggested:       prepare(sqlSuggestions),
		oneNode:         prepare(sqlNode),
		oneCount:        prepare(sqlCount),
		following:       listsOf("commonFollowings", sqlSharedFollowings),
		follower:        listsOf("commonFollowers", sqlSharedFollowers),
		app:             newApp(prepare),
	}
	var err error
	h.writes, err = newWrites(dbs.write)
	return h, errors.Join(*failed, err)
}

// preparing prepares statements, and keeps the first failure.
func preparing(db *sql.DB) (prepare func(text string) *sql.Stmt, failed *error) {
	failed = new(error)
	return func(text string) *sql.Stmt {
		statement, err := db.Prepare(text)
		if err != nil && *failed == nil {
			*failed = fmt.Errorf("%w:%s", err, text)
		}
		return statement
	}, failed
}

// listed is a statement whose lists, `IN (?)`, have n members.
func listed(text string, n int) string {
	return strings.ReplaceAll(text, "IN (?)", "IN (?"+strings.Repeat(", ?", n-1)+")")
}
