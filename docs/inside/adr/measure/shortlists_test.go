package measure_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/cache/idset"
)

// shortLengths are the lengths of the lists that are measured. From 10,000 on Kith packs lists beside
// their rows.
var shortLengths = []int{16, 64, 256, 1000, 4000, 10_000}

// edgesOfLength is how many edges there are in lists of each length.
const edgesOfLength = 300_000

// BenchmarkShortLists reads lists as Kith reads them without a cache: one text for each list, made of its rows. Beside it,
// the same lists from one BLOB for each, in the packed form of Kith's long lists. A statement
// reads two lists (common followings), or 40 (suggestions), and the text or the BLOB is parsed.
// "bytes/edge" is what the BLOBs take beside the rows.
//
// BenchmarkShortListWrites measures what keeping the BLOBs costs a follow.
func BenchmarkShortLists(b *testing.B) {
	conn := begin(b)
	createFollows(b, conn)
	first := 1
	for _, length := range shortLengths {
		owners := edgesOfLength / length
		size := fillLists(b, conn, first, owners, length)
		for _, lists := range []int{2, 40} {
			ids := make([]any, min(lists, owners))
			draw := func() {
				for i := range ids {
					ids[i] = first + rand.IntN(owners)
				}
			}
			want := len(ids) * length
			in := "(" + strings.Repeat("?,", len(ids)-1) + "?)"
			name := fmt.Sprintf("%d_lists_of_%d", lists, length)
			b.Run(name+"/texts", func(b *testing.B) {
				readLists(b, conn, `
SELECT c.user_id, c.version,
  (SELECT GROUP_CONCAT(e.type, e.to_user_id, ' ', e.update_time) FROM following e FORCE INDEX (PRIMARY)
   WHERE e.from_user_id = c.user_id AND e.to_user_id > 0)
FROM user_counts c WHERE c.user_id IN `+in, ids, draw, want, parseText)
			})
			b.Run(name+"/texts_of_ids", func(b *testing.B) {
				readLists(b, conn, `
SELECT from_user_id, COUNT(*), GROUP_CONCAT(to_user_id)
FROM following FORCE INDEX (PRIMARY)
WHERE type = 1 AND from_user_id IN `+in+` GROUP BY from_user_id`, ids, draw, want, parseTextOfIDs)
			})
			b.Run(name+"/packed", func(b *testing.B) {
				readLists(b, conn, `
SELECT c.user_id, c.version, s.data
FROM user_counts c LEFT JOIN short_list s ON s.owner = c.user_id AND s.side = 0 AND s.version = c.version
WHERE c.user_id IN `+in, ids, draw, want, parsePacked)
				b.ReportMetric(size, "bytes/edge")
			})
			if length > idset.ChunkSize {
				continue // more than one chunk
			}
			b.Run(name+"/packed_ids", func(b *testing.B) {
				readLists(b, conn, `
SELECT c.user_id, c.version, s.data
FROM user_counts c LEFT JOIN short_list s ON s.owner = c.user_id AND s.side = 0 AND s.version = c.version
WHERE c.user_id IN `+in, ids, draw, want, parsePackedIDs)
			})
		}
		first += owners
	}
}

func createFollows(b *testing.B, conn *sql.Conn) {
	execute(b, conn, "SET SESSION group_concat_max_len = 16777216", `
CREATE TABLE following (
  from_user_id BIGINT NOT NULL,
  to_user_id   BIGINT NOT NULL,
  type         TINYINT UNSIGNED NOT NULL,
  update_time  BIGINT NOT NULL,
  PRIMARY KEY (from_user_id, to_user_id),
  KEY idx_following_list (from_user_id, type, update_time, to_user_id)
) ENGINE = InnoDB`, `
CREATE TABLE follower (
  to_user_id   BIGINT NOT NULL,
  from_user_id BIGINT NOT NULL,
  type         TINYINT UNSIGNED NOT NULL,
  update_time  BIGINT NOT NULL,
  PRIMARY KEY (to_user_id, from_user_id),
  KEY idx_follower_list (to_user_id, type, update_time, from_user_id)
) ENGINE = InnoDB`, `
CREATE TABLE user_counts (
  user_id         BIGINT NOT NULL PRIMARY KEY,
  following_count BIGINT NOT NULL DEFAULT 0,
  follower_count  BIGINT NOT NULL DEFAULT 0,
  version         BIGINT NOT NULL DEFAULT 1
) ENGINE = InnoDB`, `
CREATE TABLE short_list (
  owner   BIGINT NOT NULL,
  side    TINYINT UNSIGNED NOT NULL,
  version BIGINT NOT NULL,
  data    MEDIUMBLOB NOT NULL,
  PRIMARY KEY (owner, side)
) ENGINE = InnoDB`, `
CREATE TABLE packed_change (
  owner       BIGINT NOT NULL,
  side        TINYINT UNSIGNED NOT NULL,
  peer        BIGINT NOT NULL,
  type        TINYINT UNSIGNED NOT NULL,
  update_time BIGINT NOT NULL,
  PRIMARY KEY (owner, side, peer)
) ENGINE = InnoDB`)
}

// drawList draws a list: ids of a million users, times of three years.
func drawList(length int) []storage.Position {
	peers := make(map[storage.UserID]bool, length)
	for len(peers) < length {
		peers[storage.UserID(1+rand.IntN(1_000_000))] = true
	}
	list := make([]storage.Position, 0, length)
	for id := range peers {
		list = append(list, storage.Position{Peer: id, UpdateTime: storage.Micros(1_700_000_000_000_000 + rand.Int64N(94_608_000_000_000))})
	}
	slices.SortFunc(list, func(a, b storage.Position) int { return int(a.Peer - b.Peer) })
	return list
}

func packList(list []storage.Position) (data []byte) {
	for chunk := range slices.Chunk(list, idset.ChunkSize) {
		data = idset.AppendChunk(data, chunk)
	}
	return idset.Seal(data)
}

// fillLists stores the lists of some owners in both forms, and returns the bytes of an edge in the
// BLOBs: of the file, not of the data.
func fillLists(b *testing.B, conn *sql.Conn, first, owners, length int) float64 {
	before := fileBytes(b, conn, "short_list")
	for owner := first; owner < first+owners; owner++ {
		list := drawList(length)
		for chunk := range slices.Chunk(list, 5000) {
			var values strings.Builder
			for i, p := range chunk {
				if i > 0 {
					values.WriteByte(',')
				}
				fmt.Fprintf(&values, "(%d,%d,1,%d)", owner, p.Peer, p.UpdateTime)
			}
			execute(b, conn, "INSERT INTO following VALUES "+values.String())
		}
		execute(b, conn, fmt.Sprintf("INSERT INTO user_counts VALUES (%d, %d, 0, 1)", owner, length))
		_, err := conn.ExecContext(context.Background(), "INSERT INTO short_list VALUES (?, 0, 1, ?)", owner, packList(list))
		must.OK(b, err)
	}
	return float64(fileBytes(b, conn, "short_list")-before) / float64(owners*length)
}

// fileBytes is what a table takes by the counters of InnoDB's pages.
func fileBytes(b *testing.B, conn *sql.Conn, table string) (n int64) {
	execute(b, conn, "ANALYZE TABLE "+table)
	err := conn.QueryRowContext(context.Background(), `
SELECT data_length + index_length FROM information_schema.tables
WHERE table_schema = 'measure' AND table_name = ?`, table).Scan(&n)
	must.OK(b, err)
	return n
}

// readLists measures a prepared statement with its parsing.
func readLists(b *testing.B, conn *sql.Conn, text string, ids []any, draw func(), want int, parse func([]byte) int) {
	statement, err := conn.PrepareContext(context.Background(), text)
	must.OK(b, err)
	defer statement.Close()
	read := func() (n int) {
		rows, err := statement.Query(ids...)
		must.OK(b, err)
		defer rows.Close()
		seen := 0
		for rows.Next() {
			var owner, version int64
			var data sql.RawBytes
			must.OK(b, rows.Scan(&owner, &version, &data))
			n, seen = n+parse(data), seen+1
		}
		must.OK(b, rows.Err())
		different := slices.Clone(ids)
		slices.SortFunc(different, func(a, b any) int { return a.(int) - b.(int) })
		must.That(b, n*len(ids) == want*len(slices.Compact(different)), "%d edges, want %d", n, want)
		return n
	}
	for b.Loop() {
		draw()
		read()
	}
}

func parseText(text []byte) int {
	list := make([]storage.Position, 0, len(text)/24)
	for part := range strings.SplitSeq(string(text), ",") {
		peer, at, _ := strings.Cut(part[1:], " ")
		id, _ := strconv.ParseInt(peer, 10, 64)
		time, _ := strconv.ParseInt(at, 10, 64)
		list = append(list, storage.Position{Peer: storage.UserID(id), UpdateTime: storage.Micros(time)})
	}
	return len(list)
}

func parseTextOfIDs(text []byte) int {
	list := make([]storage.UserID, 0, len(text)/7)
	var id storage.UserID
	for _, c := range text {
		if c == ',' {
			list, id = append(list, id), 0
			continue
		}
		id = id*10 + storage.UserID(c-'0')
	}
	return len(append(list, id))
}

func parsePacked(data []byte) int {
	body, err := idset.Unseal(data)
	var list []storage.Position
	for err == nil && len(body) > 0 {
		list, body, err = idset.ParseChunk(list, body)
	}
	if err != nil {
		return -1
	}
	return len(list)
}

func parsePackedIDs(data []byte) int {
	body, err := idset.Unseal(data)
	if err != nil {
		return -1
	}
	list, err := idset.ParsePeers(nil, body)
	if err != nil {
		return -1
	}
	return len(list)
}

// BenchmarkShortListWrites measures a follow as one transaction on one database, with the counts of
// both ends, and the same with what keeps a packed list of both: a row of packed_change each, an
// entry that is put behind the BLOB, the BLOB written anew, as if the gateway had read it. The binlog
// is on, and nothing is flushed at the commit, so the difference is work and not waiting.
func BenchmarkShortListWrites(b *testing.B) {
	server := testenv.MariaDB(b, "--innodb-buffer-pool-size=768M", "--log-bin=binlog", "--binlog-format=ROW", "--innodb-flush-log-at-trx-commit=2", "--sync-binlog=0")
	server.CreateDatabase(b, "measure")
	conn, err := server.Open(b, "measure").Conn(context.Background())
	must.OK(b, err)
	b.Cleanup(func() { _ = conn.Close() })
	createFollows(b, conn)
	execute(b, conn, "SET GLOBAL max_binlog_size = 1073741824")
	entry := make([]byte, 17)
	first := 1
	for _, length := range shortLengths {
		owners := max(edgesOfLength/length, 200)
		data := packList(drawList(length))
		for owner := first; owner < first+owners; owner++ {
			execute(b, conn, fmt.Sprintf("INSERT INTO user_counts VALUES (%d, %d, %d, 1)", owner, length, length))
			_, err := conn.ExecContext(context.Background(), "INSERT INTO short_list VALUES (?, 0, 1, ?), (?, 1, 1, ?)", owner, data, owner, data)
			must.OK(b, err)
		}
		for _, way := range []struct {
			name string
			text string
			args func(from, to int, at int64) []any
		}{
			{"none", "", nil},
			{
				"changes", "INSERT INTO packed_change VALUES (?, 0, ?, 1, ?), (?, 1, ?, 1, ?) ON DUPLICATE KEY UPDATE type = VALUES(type), update_time = VALUES(update_time)",
				func(from, to int, at int64) []any { return []any{from, to, at, to, from, at} },
			},
			{
				"appended", "INSERT INTO short_list VALUES (?, 0, 1, ?), (?, 1, 1, ?) ON DUPLICATE KEY UPDATE version = version + 1, data = CONCAT(LEFT(data, " + strconv.Itoa(len(data)) + "), VALUES(data))",
				func(from, to int, _ int64) []any { return []any{from, entry, to, entry} },
			},
			{
				"written", "INSERT INTO short_list VALUES (?, 0, 1, ?), (?, 1, 1, ?) ON DUPLICATE KEY UPDATE version = version + 1, data = VALUES(data)",
				func(from, to int, at int64) []any {
					data := slices.Clone(data)
					for i := range 8 {
						data[len(data)/2+i] ^= byte(at >> i)
					}
					return []any{from, data, to, data}
				},
			},
		} {
			b.Run(fmt.Sprintf("lists_of_%d/%s", length, way.name), func(b *testing.B) {
				writeFollows(b, conn, first, owners, way.text, way.args)
			})
		}
		first += owners
	}
}

func writeFollows(b *testing.B, conn *sql.Conn, first, owners int, more string, args func(from, to int, at int64) []any) {
	ctx := context.Background()
	prepare := func(text string) *sql.Stmt {
		s, err := conn.PrepareContext(ctx, text)
		must.OK(b, err)
		b.Cleanup(func() { _ = s.Close() })
		return s
	}
	done := func(_ any, err error) { must.OK(b, err) }
	lock := prepare("SELECT user_id, following_count, follower_count, version FROM user_counts WHERE user_id IN (?, ?) ORDER BY user_id FOR UPDATE")
	following := prepare("INSERT INTO following VALUES (?, ?, 1, ?) ON DUPLICATE KEY UPDATE type = 1, update_time = VALUES(update_time)")
	follower := prepare("INSERT INTO follower VALUES (?, ?, 1, ?) ON DUPLICATE KEY UPDATE type = 1, update_time = VALUES(update_time)")
	counts := prepare("UPDATE user_counts SET version = version + 1, following_count = following_count + CASE user_id WHEN ? THEN 1 ELSE 0 END WHERE user_id IN (?, ?)")
	var keep *sql.Stmt
	if more != "" {
		keep = prepare(more)
	}
	redo, binlog := written(b, conn)
	n := 0
	for b.Loop() {
		from, to := first+rand.IntN(owners), first+rand.IntN(owners)
		if from == to {
			to = first + (to-first+1)%owners
		}
		at := time.Now().UnixMicro()
		done(conn.ExecContext(ctx, "BEGIN"))
		rows, err := lock.Query(from, to)
		done(nil, err)
		for rows.Next() {
			var id, a, b, v int64
			done(nil, rows.Scan(&id, &a, &b, &v))
		}
		done(nil, rows.Err())
		done(following.Exec(from, to, at))
		done(follower.Exec(to, from, at))
		if keep != nil {
			done(keep.Exec(args(from, to, at)...))
		}
		done(counts.Exec(from, from, to))
		done(conn.ExecContext(ctx, "COMMIT"))
		n++
	}
	redoAfter, binlogAfter := written(b, conn)
	b.ReportMetric(float64(redoAfter-redo)/float64(n), "redo-bytes/op")
	b.ReportMetric(float64(binlogAfter-binlog)/float64(n), "binlog-bytes/op")
}

// written is how many bytes of redo log and binlog the server has written.
func written(b *testing.B, conn *sql.Conn) (redo, binlog int64) {
	err := conn.QueryRowContext(context.Background(), `
SELECT CAST(MAX(CASE variable_name WHEN 'INNODB_LSN_CURRENT' THEN variable_value END) AS SIGNED),
  CAST(MAX(CASE variable_name WHEN 'BINLOG_BYTES_WRITTEN' THEN variable_value END) AS SIGNED)
FROM information_schema.global_status WHERE variable_name IN ('INNODB_LSN_CURRENT', 'BINLOG_BYTES_WRITTEN')`).Scan(&redo, &binlog)
	must.OK(b, err)
	return redo, binlog
}
