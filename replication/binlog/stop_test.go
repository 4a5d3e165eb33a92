package binlog_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/replication/binlog"
	"kith/storage"
	"kith/storage/doctor"
)

// If the binlog does not show a change row by row, replication stops with an error that names the
// change.
func TestStopsLoudly(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		statements []string
		says       string
	}{
		"delete":               {[]string{"DELETE FROM following WHERE from_user_id = 1"}, "a DELETE took 2 row(s) of DB.following"},
		"delete of a follower": {[]string{"DELETE FROM follower LIMIT 1"}, "a DELETE took 1 row(s) of DB.follower"},
		"delete of a request":  {[]string{"DELETE FROM friend_request WHERE from_user_id = 1"}, "a DELETE took 1 row(s) of DB.friend_request"},
		"truncated requests":   {[]string{"TRUNCATE TABLE friend_request"}, `"TRUNCATE TABLE friend_request"`},
		"truncate":             {[]string{"TRUNCATE TABLE following"}, `"TRUNCATE TABLE following"`},
		"drop":                 {[]string{"DROP TABLE IF EXISTS nothing, following"}, "following"},
		"rename":               {[]string{"CREATE TABLE other LIKE following", "RENAME TABLE following TO old, other TO following"}, "RENAME TABLE"},
		"renamed by alter":     {[]string{"ALTER TABLE following RENAME TO old"}, "ALTER TABLE"},
		"replaced":             {[]string{"CREATE OR REPLACE TABLE following (id INT)"}, "CREATE OR REPLACE"},
		"statement":            {[]string{"SET SESSION binlog_format = STATEMENT", "UPDATE following SET type = 0, update_time = update_time + 1 WHERE from_user_id = 1"}, "logged as text"},
		"statement from afar":  {[]string{"SET SESSION binlog_format = STATEMENT", "CREATE DATABASE IF NOT EXISTS elsewhere", "USE elsewhere", "UPDATE `DB`.`following` SET type = 0, update_time = update_time + 1"}, "logged as text"},
		"key changed":          {[]string{"UPDATE following SET to_user_id = 77 WHERE from_user_id = 1 AND to_user_id = 2"}, "turned 1→2 into 1→77"},
		"xa":                   {[]string{"XA START 'x'", "UPDATE following SET type = 0, update_time = update_time + 1 WHERE from_user_id = 1", "XA END 'x'", "XA PREPARE 'x'", "XA ROLLBACK 'x'"}, "XA"},
		"columns taken away":   {[]string{"ALTER TABLE following CHANGE update_time changed BIGINT NOT NULL", "UPDATE following SET type = 0"}, "has no update_time"},
		"load data":            {[]string{"SET SESSION binlog_format = STATEMENT", "LOAD DATA LOCAL INFILE 'Reader::rows' INTO TABLE following"}, "LOAD DATA"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "replaced" {
				testenv.NotOn(t, "it has no CREATE OR REPLACE TABLE", "mysql")
			}
			w := worldOn(t, testenv.SharedMariaDB(t, 1).FreshDatabases(t, 2)...)
			r := w.replicate(t)
			r.await(t, binlog.Tailing)
			w.write(t, w.follow(1, 2), w.follow(1, 3), w.follow(1, 4))
			w.request(t, storage.Pending, 1, 5)
			w.settle(t)
			shard := w.shardWith(t, 1)
			w.exec(t, shard, "UPDATE users SET name = name", "DELETE FROM following WHERE from_user_id = -1") // these change no rows
			if name == "delete" {
				w.exec(t, shard, "UPDATE following SET update_time = update_time WHERE from_user_id = 1")
				test.statements = []string{"DELETE FROM following WHERE from_user_id = 1 AND to_user_id < 4"}
			}
			database := databaseOf(t, w.dsns[shard])
			var statements []string
			for _, s := range test.statements {
				statements = append(statements, strings.ReplaceAll(s, "DB", database))
			}
			if strings.Contains(name, "of a follower") {
				shard = w.shardWithFollower(t)
				database = databaseOf(t, w.dsns[shard])
			}
			w.exec(t, shard, statements...)
			stop := r.stopped(t)
			says := strings.ReplaceAll(test.says, "DB", database)
			check.That(t, strings.Contains(stop.What, says), "it says %q, not %q", stop.What, says)
			check.That(t, stop.GTID != "" && stop.Server != "" && stop.Remedy != "", "%+v", stop)

			again := w.replicate(t).stopped(t)
			check.That(t, again.GTID == stop.GTID, "started again, it stops at %s, not at %s", again.GTID, stop.GTID)
		})
	}
}

// shardWith is the shard that owns a user's followings.
func (w *world) shardWith(t *testing.T, from storage.UserID) int {
	t.Helper()
	return w.find(t, "SELECT 1 FROM following WHERE from_user_id = "+from.String())
}

func (w *world) shardWithFollower(t *testing.T) int {
	t.Helper()
	return w.find(t, "SELECT 1 FROM follower")
}

func init() {
	mysql.RegisterReaderHandler("rows", func() io.Reader { return strings.NewReader("90\t91\t2\t5\n90\t92\t2\t5\n") })
}

func TestSkipGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.replicate(t)
	r.await(t, binlog.Tailing)
	lost := w.follow(1, 2)
	w.write(t, lost, w.follow(1, 3))
	w.settle(t)
	w.exec(t, w.shardWith(t, 1), "DELETE FROM following WHERE to_user_id = 2",
		"UPDATE user_counts SET following_count = following_count - 1 WHERE user_id = 1")
	w.write(t, w.follow(1, 5))
	stop := r.stopped(t)

	r = w.replicate(t, func(c *binlog.Config) { c.Skip = []string{stop.GTID} })
	r.await(t, binlog.Tailing)
	w.write(t, lost) // as it was: follower has kept it
	w.settle(t)
	n := strings.Count(w.log.String(), "skipped what cannot be followed")
	check.That(t, n == 1 && strings.Contains(w.log.String(), "transaction="+stop.GTID), "%d lines of what was skipped:\n%s", n, w.log)
}

func TestResyncCopiesAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.replicate(t)
	r.await(t, binlog.Tailing)
	w.write(t, w.follow(1, 2))
	w.settle(t)
	w.exec(t, w.shardWith(t, 1), "SET SESSION binlog_format = STATEMENT",
		"INSERT INTO following (from_user_id, to_user_id, type, update_time) VALUES (1, 9, 2, 5)")
	r.stopped(t)
	r = w.replicate(t, func(c *binlog.Config) { c.Resync = true })
	r.await(t, binlog.Tailing)
	w.settle(t)
}

// Changes of other databases on the same server are ignored.
func TestOtherTablesDoNotMatter(t *testing.T) {
	t.Parallel()
	options := []string{"--log-bin-compress=ON", "--log-bin-compress-min-len=10"}
	oddColumns, oddValues := "i BLOB COMPRESSED, j VARCHAR(100) COMPRESSED, k UUID, l INET6", "REPEAT('z', 1000), REPEAT('y', 90), UUID(), '::1'"
	if isMySQL() {
		options = []string{"--binlog-transaction-compression=ON", "--binlog-row-value-options=PARTIAL_JSON"}
		oddColumns, oddValues = "i BLOB, j VECTOR(3)", "REPEAT('z', 1000), TO_VECTOR('[1,2,3]')"
	}
	w, server := newPrivateWorld(t, options...)
	server.Exec(t, "CREATE DATABASE other")
	r := w.replicate(t)
	r.await(t, binlog.Tailing)
	db := server.Open(t, "other")
	db.SetMaxOpenConns(1)
	for _, statement := range []string{
		"CREATE TABLE following (from_user_id BIGINT PRIMARY KEY, x INT)",
		"INSERT INTO following VALUES (1, 2), (3, 4)",
		"DELETE FROM following",
		"TRUNCATE TABLE following",
		"SET SESSION binlog_format = STATEMENT",
		"INSERT INTO following SELECT from_user_id, MAX(type) FROM kith_a.following GROUP BY from_user_id",
		"SET SESSION binlog_format = ROW",
		"CREATE TABLE odd (id INT PRIMARY KEY, a DECIMAL(30,4), b ENUM('x','y'), c SET('p','q'), d GEOMETRY, e JSON, f BIT(7), g YEAR, h TIME(3), " + oddColumns + ", m VARCHAR(10) INVISIBLE)",
		"INSERT INTO odd VALUES (1, 12.5, 'x', 'p,q', POINT(1, 2), '{}', b'101', 2020, '10:00:00.123', " + oddValues + ")",
		"ALTER TABLE odd DROP COLUMN a, ADD COLUMN z INT FIRST",
		"UPDATE odd SET z = 5",
		"CREATE TABLE plain (id INT PRIMARY KEY) ENGINE = " + unsafeEngine(),
		"INSERT INTO plain VALUES (1), (2)",
		"CREATE TABLE made AS SELECT * FROM odd",
		"XA START 'o'", "INSERT INTO following VALUES (9, 9)", "XA END 'o'", "XA PREPARE 'o'", "XA COMMIT 'o'",
		"SET SESSION binlog_format = STATEMENT",
		"CREATE TABLE loaded (from_user_id BIGINT, to_user_id BIGINT, type INT, update_time BIGINT)",
		"LOAD DATA LOCAL INFILE 'Reader::rows' INTO TABLE loaded",
		"SET SESSION binlog_format = ROW",
		"LOAD DATA LOCAL INFILE 'Reader::rows' INTO TABLE kith_a.following (from_user_id, to_user_id, type, update_time)", // as rows
		"UPDATE kith_a.following SET type = 0, update_time = update_time + 1 WHERE from_user_id = 90",
		"DROP TABLE following, odd",
		"CREATE TABLE kith_a.beside (id INT PRIMARY KEY)",
		"INSERT INTO kith_a.beside VALUES (1)",
		"DELETE FROM kith_a.beside",
		"DROP TABLE kith_a.beside",
		"ALTER TABLE kith_a.following ADD COLUMN note VARCHAR(10) NULL FIRST",
		"DROP DATABASE other",
	} {
		_, err := db.Exec(statement)
		must.That(t, err == nil, "%s: %v", statement, err)
		w.write(t, w.follow(1, storage.UserID(w.clock.Load())))
	}
	w.settle(t)
	r.await(t, binlog.Tailing)
}

// unsafeEngine has tables that are not transactional. MySQL allows none beside others in a transaction
// with a GTID.
func unsafeEngine() string {
	if isMySQL() {
		return "InnoDB"
	}
	return "Aria"
}

func TestRolledBackRowsAreNotApplied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.replicate(t)
	r.await(t, binlog.Tailing)
	insert := func(from, to string) string {
		return "INSERT INTO following (from_user_id, to_user_id, type, update_time) VALUES (" + from + ", " + to + ", 2, 5)"
	}
	w.exec(t, 0, "CREATE TABLE memo (id INT) ENGINE = "+unsafeEngine())
	w.exec(t, 0, "BEGIN", insert("1", "2"), "SAVEPOINT a", insert("1", "3"), "SAVEPOINT b", insert("1", "4"),
		"ROLLBACK TO SAVEPOINT b", insert("1", "5"), "ROLLBACK TO a", insert("1", "6"), "COMMIT")
	// Because of a table that is not transactional, the server also logs rows that are rolled back.
	w.exec(t, 0, "BEGIN", insert("2", "2"), "SAVEPOINT a", insert("2", "3"), "INSERT INTO memo VALUES (1)", insert("2", "4"),
		"ROLLBACK TO SAVEPOINT a", insert("2", "6"), "COMMIT")
	w.exec(t, 0, "BEGIN", insert("3", "2"), "INSERT INTO memo VALUES (1)", insert("3", "4"), "ROLLBACK")
	w.exec(t, 0, "BEGIN", insert("4", "2"), "COMMIT")
	must.OKSoon(t, func() error {
		rows, err := w.rows(storage.Inverse)
		if err == nil && !rows[storage.Edge{From: 4, To: 2, Type: storage.Blocking, UpdateTime: 5}] {
			err = errNotYet
		}
		return err
	})
	w.settle(t)
}

func TestPreflight(t *testing.T) {
	t.Parallel()
	server := testenv.MariaDB(t)
	dsns := []string{server.CreateDatabase(t, "kith_a"), server.CreateDatabase(t, "kith_b")}
	w := worldOn(t, dsns...)
	type setting struct{ variable, bad, good string }
	settings := []setting{
		{"binlog_format", "MIXED", "ROW"},
		{"binlog_row_image", "MINIMAL", "FULL"},
	}
	if isMySQL() {
		settings = append(settings, setting{"binlog_row_metadata", "MINIMAL", "FULL"})
	} else {
		settings = append(settings, setting{"binlog_row_metadata", "NO_LOG", "FULL"}, setting{"gtid_strict_mode", "OFF", "ON"})
	}
	for _, test := range settings {
		server.Exec(t, "SET GLOBAL "+test.variable+" = '"+test.bad+"'")
		stop := w.replicate(t).stopped(t)
		if !strings.Contains(stop.What, test.variable+" is "+test.bad) || !strings.Contains(stop.Remedy, "SET GLOBAL "+test.variable+" = '"+test.good+"'") {
			t.Errorf("%v", stop)
		}
		server.Exec(t, "SET GLOBAL "+test.variable+" = '"+test.good+"'")
	}
	server.Exec(t, "CREATE USER poor IDENTIFIED BY 'poor'")
	server.Exec(t, "GRANT ALL ON kith_a.* TO poor")
	server.Exec(t, "GRANT ALL ON kith_b.* TO poor")
	for i := range dsns {
		dsns[i] = strings.Replace(dsns[i], "app:app", "poor:poor", 1)
	}
	stop := w.replicate(t).stopped(t)
	check.That(t, strings.Contains(stop.Remedy, "GRANT REPLICATION SLAVE ON *.* TO 'poor'@'%'"), "%v", stop)
	server.Exec(t, "GRANT REPLICATION SLAVE ON *.* TO poor")
	r := w.replicate(t)
	r.await(t, binlog.Tailing)
	w.write(t, w.follow(1, 2))
	w.settle(t)
	r.stop(t)

	server.Exec(t, "SET GLOBAL read_only = 1") // for others than administrators, as this test is
	r = w.replicate(t)
	r.await(t, binlog.Tailing)
	w.write(t, w.follow(1, 3))
	w.settle(t)
	check.That(t, strings.Contains(w.log.String(), "without a test write"), "%v", w.log)
	r.stop(t)
}

// The settings of the server say nothing about sessions that have others.
func TestPreflightTriesAWrite(t *testing.T) {
	t.Parallel()
	server := testenv.MariaDB(t, "--init-connect=SET SESSION binlog_row_image = 'MINIMAL'")
	w := worldOn(t, server.CreateDatabase(t, "kith_a"))
	server.Exec(t, "CREATE USER plain IDENTIFIED BY 'plain'") // init_connect does not apply to administrators
	server.Exec(t, "GRANT ALL ON kith_a.* TO plain")
	setter := "BINLOG ADMIN"
	if isMySQL() {
		setter = "SESSION_VARIABLES_ADMIN"
	}
	server.Exec(t, "GRANT REPLICATION SLAVE, "+setter+" ON *.* TO plain")
	w.dsns[0] = strings.Replace(w.dsns[0], "app:app", "plain:plain", 1)
	r := w.replicate(t)
	stop := r.stopped(t)
	check.That(t, strings.Contains(stop.What, "rows of kith_a.user_counts are logged without ") && strings.Contains(stop.Remedy, "init_connect"), "%v", stop)
	err := w.each("SELECT 1 FROM user_counts", func(*sql.Rows) error { return errors.New("a row is left") })
	check.That(t, err == nil, "%v", err)
	must.OKSoon(t, func() error { // so that an alert fires
		if lag := r.applier.Status().Lag; lag < time.Second {
			return fmt.Errorf("a lag of %s: %w", lag, errNotYet)
		}
		return nil
	})
}

func TestPreflightWithoutBinlog(t *testing.T) {
	t.Parallel()
	server := testenv.MariaDB(t, "--skip-log-bin")
	w := worldOn(t, server.CreateDatabase(t, "kith_a"))
	stop := w.replicate(t).stopped(t)
	check.That(t, strings.Contains(stop.What, "log_bin is OFF") && strings.Contains(stop.Remedy, "log_bin"), "%v", stop)
}

func TestPreflightFilters(t *testing.T) {
	t.Parallel()
	server := testenv.MariaDB(t, "--binlog-ignore-db=kith_b")
	w := worldOn(t, server.CreateDatabase(t, "kith_a"), server.CreateDatabase(t, "kith_b"))
	stop := w.replicate(t).stopped(t)
	check.That(t, strings.Contains(stop.What, "database kith_b is not in the binlog"), "%v", stop)
}

// A user who may not ask which databases are in the binlog is followed, too, if they are.
func TestStopsIfItsTestWriteDoesNotCome(t *testing.T) {
	t.Parallel()
	testenv.NotOn(t, "its account is named otherwise", "mysql")
	for _, ignored := range []string{"another", "kith_b"} {
		server := testenv.MariaDB(t, "--binlog-ignore-db="+ignored)
		dsns := []string{server.CreateDatabase(t, "kith_a"), server.CreateDatabase(t, "kith_b")}
		for _, statement := range []string{
			"CREATE USER asker@'%' IDENTIFIED BY 'x'", "GRANT REPLICATION SLAVE ON *.* TO asker@'%'",
			"GRANT ALL ON kith_a.* TO asker@'%'", "GRANT ALL ON kith_b.* TO asker@'%'",
		} {
			server.Exec(t, statement)
		}
		for i, dsn := range dsns {
			cfg, err := mysql.ParseDSN(dsn)
			must.OK(t, err)
			cfg.User, cfg.Passwd = "asker", "x"
			dsns[i] = cfg.FormatDSN()
		}
		r := worldOn(t, dsns...).replicate(t)
		if ignored == "another" {
			r.await(t, binlog.Tailing)
			continue
		}
		stop := r.stopped(t)
		check.That(t, stop.What == "a test write to database kith_b is not in the binlog" && strings.Contains(stop.Remedy, "binlog_ignore_db"), "%v", stop)
	}
}

// A server may write names in lower case, whatever the DSN has, and quote them in its answers as the settings of a DSN or its own say.
func TestNamesAreThoseOfTheServer(t *testing.T) {
	t.Parallel()
	testenv.NotOn(t, "it takes lower_case_table_names only when its data is made", "mysql")
	server := testenv.MariaDB(t, "--lower-case-table-names=1", "--sql-mode=ANSI_QUOTES")
	dsns := []string{server.CreateDatabase(t, "Kith_A"), server.CreateDatabase(t, "Kith_B")}
	for i := range dsns {
		cfg, err := mysql.ParseDSN(dsns[i])
		must.OK(t, err)
		cfg.ColumnsWithAlias = true
		dsns[i] = cfg.FormatDSN()
	}
	w := worldOn(t, dsns...)
	r := w.replicate(t)
	r.await(t, binlog.Tailing)
	w.write(t, w.follow(1, 2), w.follow(2, 3), w.follow(3, 1))
	w.settle(t)
	for _, f := range binlog.Examine(t.Context(), dsns, true) {
		check.That(t, f.Level != doctor.Fail, "%+v", f)
	}
}

// The replicator must not react to itself: its own writes are in the binlog that it reads.
func TestIdleServersStayIdle(t *testing.T) {
	t.Parallel()
	w, server := newPrivateWorld(t)
	r := w.replicate(t)
	r.await(t, binlog.Tailing)
	w.write(t, w.follow(1, 2), w.follow(2, 1))
	w.settle(t)
	db := server.Open(t, "")
	variable := "@@gtid_binlog_pos"
	if isMySQL() {
		variable = "@@global.gtid_executed"
	}
	position := func() (text string) {
		must.OK(t, db.QueryRowContext(context.Background(), "SELECT "+variable).Scan(&text))
		return text
	}
	last, since := position(), time.Now()
	must.OKSoon(t, func() error { // the checkpoint of rows that were applied may still be saved
		if at := position(); at != last {
			last, since = at, time.Now()
		}
		if time.Since(since) < 5*time.Second {
			return errNotYet
		}
		return nil
	})
}

// A shard that is down only holds back its own rows.
func TestOneServerIsDown(t *testing.T) {
	t.Parallel()
	up, down := testenv.MariaDB(t), testenv.MariaDB(t)
	w := worldOn(t, up.CreateDatabase(t, "kith_a"), down.CreateDatabase(t, "kith_b"))
	r := w.replicate(t)
	r.await(t, binlog.Tailing)
	w.write(t, w.follow(1, 2), w.follow(2, 3), w.follow(3, 4), w.follow(4, 1))
	w.settle(t)
	var first, second []storage.UserID
	for id := storage.UserID(1); id <= 200; id++ {
		if r.shardOf(id) == 0 {
			first = append(first, id)
		} else {
			second = append(second, id)
		}
	}
	down.Kill(t)
	var last storage.Edge
	for i := range 50 {
		last = w.follow(first[i%len(first)], first[(i+1)%len(first)])
		w.write(t, w.follow(first[i%len(first)], second[i%len(second)]), last)
	}
	must.OKSoon(t, func() error {
		if !r.published(last) || r.applier.Status().Err() == nil {
			return errNotYet
		}
		return nil
	})
	s := r.applier.Status()
	check.That(t, s.Lag > 0 && s.Pending != 0, "%+v", s)
	down.Restart(t)
	w.settle(t)
	must.OKSoon(t, func() error { return r.applier.Status().Err() })
}
