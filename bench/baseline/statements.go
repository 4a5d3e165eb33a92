package baseline

import (
	"database/sql"
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

	sqlRelations = `
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

// What two lists have in common: the field, and the statements for it.
type sharedText struct {
	field       string
	both        string // of two short lists: faster than any join of the two
	count, page string // of two long lists: how many users they have in common, and the first of these
}

var (
	sqlSharedFollowings = sharedText{
		field: "commonFollowings",
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
	sqlSharedFollowers = sharedText{"commonFollowers", otherSide(sqlSharedFollowings.both), otherSide(sqlSharedFollowings.count), otherSide(sqlSharedFollowings.page)}
)

const (
	othersAsked = 50   // of the question about relationships
	fewAsked    = 5    // of most look-ups of the mixed load
	mergedHere  = 4000 // rows of two lists that are fetched whole; the statement reads one more
	pageSize    = 20   // as the statements say
)

var sqlAllRelations, sqlFewRelations, sqlTwentyNames = listed(sqlRelations, othersAsked), listed(sqlRelations, fewAsked), listed(sqlNames, pageSize)

// listed is a statement whose lists, `IN (?)`, have n members.
func listed(text string, n int) string {
	return strings.ReplaceAll(text, "IN (?)", "IN (?"+strings.Repeat(", ?", n-1)+")")
}

// statements are prepared ones, by their texts.
type statements map[string]*sql.Stmt

func prepare(db *sql.DB, texts ...string) (statements, error) {
	all := statements{}
	for _, text := range texts {
		statement, err := db.Prepare(text)
		if err != nil {
			return nil, fmt.Errorf("%w:%s", err, text)
		}
		all[text] = statement
	}
	return all, nil
}

// handler holds a prepared statement for everything it asks.
type handler struct {
	read   statements
	writes *writes
}

func newHandler(dbs databases) (*handler, error) {
	one, other := sqlSharedFollowings, sqlSharedFollowers
	read, err := prepare(dbs.read, sqlUser, sqlFollowings, sqlAllRelations, sqlFewRelations, sqlSuggestions, sqlNode, sqlCount, sqlTwentyNames,
		one.both, one.count, one.page, other.both, other.count, other.page,
		sqlAppProfile, sqlAppKnown, sqlAppFeed, sqlAppPosts, sqlAppFollowings, sqlAppOwner, sqlAppViewer)
	if err != nil {
		return nil, err
	}
	w, err := newWrites(dbs.write)
	return &handler{read, w}, err
}
