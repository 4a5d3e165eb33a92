package measure_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"kith/internal/must"
)

// followers makes a table of followers. Owners 1 … n have the given numbers of followers, one per second.
func followers(b *testing.B, conn *sql.Conn, lengths ...int) {
	b.Helper()
	execute(b, conn, `
CREATE TABLE follower (
  to_user_id BIGINT NOT NULL,
  from_user_id BIGINT NOT NULL,
  type TINYINT UNSIGNED NOT NULL,
  update_time BIGINT NOT NULL,
  PRIMARY KEY (to_user_id, from_user_id),
  KEY idx_follower_list (to_user_id, type, update_time, from_user_id))`)
	for i, n := range lengths {
		execute(b, conn, fmt.Sprintf(`
INSERT INTO follower
SELECT %d, 1000 + seq * 7919 MOD 1000003, 1, 1700000000000000 + seq * 1000000
FROM seq_1_to_%d`, i+1, n))
	}
	execute(b, conn, "ANALYZE TABLE follower")
}

// BenchmarkBounds reads 20 followers after a cursor in the middle of a list of 100,000, with the
// two spellings of the same bound.
func BenchmarkBounds(b *testing.B) {
	conn := begin(b)
	followers(b, conn, 100_000, 1000, 1000)
	const at = 1700000000000000 + 50_000*1000000
	const page = `
SELECT from_user_id, update_time
FROM follower
WHERE to_user_id = 1 AND type = 1
  AND %s
ORDER BY update_time DESC, from_user_id DESC
LIMIT 20`
	for _, bound := range []struct{ name, text string }{
		{"tuple", fmt.Sprintf("(update_time, from_user_id) < (%d, 5000)", at)},
		{"spelled", fmt.Sprintf("update_time <= %d AND (update_time < %d OR from_user_id < 5000)", at, at)},
	} {
		b.Run(bound.name, func(b *testing.B) { compare(b, conn, fmt.Sprintf(page, bound.text), 20) })
	}
}

// BenchmarkPages reads the newest 21 followers of each of 20 users, one of whom is famous.
func BenchmarkPages(b *testing.B) {
	conn := begin(b)
	lengths := []int{20_000, 5_000, 2_000}
	for len(lengths) < 20 {
		lengths = append(lengths, 50+20*len(lengths))
	}
	followers(b, conn, lengths...)
	var pages, owners []string
	for i := range lengths {
		owners = append(owners, fmt.Sprint(i+1))
		pages = append(pages, fmt.Sprintf(`
SELECT %d AS query, from_user_id, update_time
FROM follower
WHERE to_user_id = %d AND type = 1
ORDER BY update_time DESC, from_user_id DESC
LIMIT 21`, i, i+1))
	}
	window := `
SELECT to_user_id, from_user_id, update_time
FROM (
  SELECT to_user_id, from_user_id, update_time,
    ROW_NUMBER() OVER (PARTITION BY to_user_id ORDER BY update_time DESC, from_user_id DESC) AS place
  FROM follower
  WHERE type = 1 AND to_user_id IN (` + strings.Join(owners, ",") + `)) AS ranked
WHERE place <= 21`
	want := 21 * len(lengths)
	b.Run("union_all", func(b *testing.B) { compare(b, conn, "("+strings.Join(pages, ")\nUNION ALL\n(")+")", want) })
	b.Run("window", func(b *testing.B) { compare(b, conn, window, want) })
	b.Run("one_by_one", func(b *testing.B) {
		for b.Loop() {
			n := 0
			for _, text := range pages {
				n += count(b, conn, text)
			}
			must.Equal(b, "rows", n, want)
		}
	})
}
