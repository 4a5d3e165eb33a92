package measure_test

import (
	"context"
	"fmt"
	"testing"

	"kith/internal/must"
)

// BenchmarkKeys stores a million edges in the order in which they are made: once with the edge's
// two ends as clustered key, and once with a running number as key and two covering secondary
// indexes. It reports the table's size, and the time of the two most frequent questions: a relation
// to 50 others, and the first page of a list.
func BenchmarkKeys(b *testing.B) {
	conn := begin(b)
	for _, layout := range []struct{ name, create string }{
		{"clustered", `
CREATE TABLE %s (
  from_user_id BIGINT NOT NULL,
  to_user_id BIGINT NOT NULL,
  type TINYINT UNSIGNED NOT NULL,
  update_time BIGINT NOT NULL,
  PRIMARY KEY (from_user_id, to_user_id),
  KEY idx_following_list (from_user_id, type, update_time, to_user_id))`},
		{"secondary", `
CREATE TABLE %s (
  id BIGINT NOT NULL AUTO_INCREMENT,
  from_user_id BIGINT NOT NULL,
  to_user_id BIGINT NOT NULL,
  type TINYINT UNSIGNED NOT NULL,
  update_time BIGINT NOT NULL,
  PRIMARY KEY (id),
  KEY idx_following (from_user_id, to_user_id, type, update_time),
  KEY idx_following_list (from_user_id, type, update_time, to_user_id))`},
	} {
		// There are 5,000 users. Each follows 200 of 50,000 users, one by one.
		execute(b, conn, fmt.Sprintf(layout.create, layout.name), `
INSERT INTO `+layout.name+` (from_user_id, to_user_id, type, update_time)
SELECT 1 + seq * 7919 MOD 5000, 1 + (seq * 7919 + seq DIV 5000 * 2477 + 13) MOD 50000, 1, 1700000000000000 + seq
FROM seq_0_to_999999
ORDER BY seq`, "ANALYZE TABLE "+layout.name)
		var bytes int64
		err := conn.QueryRowContext(context.Background(), `
SELECT data_length + index_length
FROM information_schema.tables
WHERE table_schema = 'measure' AND table_name = ?`, layout.name).Scan(&bytes)
		must.OK(b, err)
		// The user follows 25 of them, and does not follow the other 25.
		var others string
		err = conn.QueryRowContext(context.Background(), `
SELECT GROUP_CONCAT(id)
FROM (
  (SELECT to_user_id AS id FROM `+layout.name+` WHERE from_user_id = 4242 ORDER BY update_time DESC LIMIT 25)
  UNION ALL
  SELECT 50000 + seq FROM seq_1_to_25) AS others`).Scan(&others)
		must.OK(b, err)
		b.Run(layout.name+"/relation", func(b *testing.B) {
			compare(b, conn, `SELECT to_user_id, type, update_time FROM `+layout.name+` WHERE from_user_id = 4242 AND to_user_id IN (`+others+`)`, 25)
			b.ReportMetric(float64(bytes)/1e6, "MB")
		})
		b.Run(layout.name+"/page", func(b *testing.B) {
			compare(b, conn, `SELECT to_user_id, update_time FROM `+layout.name+` WHERE from_user_id = 4242 AND type = 1 ORDER BY update_time DESC, to_user_id DESC LIMIT 20`, 20)
			b.ReportMetric(float64(bytes)/1e6, "MB")
		})
	}
}
