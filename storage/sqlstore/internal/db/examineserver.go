package db

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/go-sql-driver/mysql"

	"kith/storage/doctor"
)

// examineServer examines a shard on a server of the MySQL family.
func (d *DB) examineServer(ctx context.Context, s *examined, dsn string) {
	cfg, err := parseDSN(dsn)
	if err != nil {
		s.Fail("server", s.of, err.Error(), "correct KITH_STORE")
		return
	}
	s.of += " (" + cfg.Addr + "/" + cfg.DBName + ")"
	opened, err := openMySQL(ctx, dsn, Config{StatementTimeout: d.cfg.StatementTimeout, MaxConns: 2})
	if err != nil {
		s.Fail("server", s.of, strings.TrimPrefix(err.Error(), cfg.Addr+"/"+cfg.DBName+": "), unreached(err, cfg))
		return
	}
	s.shard = opened
	asking, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	v := &variables{of: s.of, list: &s.List}
	if err := s.askServer(asking, v); err != nil {
		s.Fail("server", s.of, err.Error(), "")
		return
	}
	s.connections, _ = strconv.Atoi(v.known["max_connections"])
	v.version()
	v.session(asking, opened.Write)
	if v.flavor != "TiDB" {
		v.writable()
		v.durability()
		v.memory(asking, opened.Read)
	}
	s.examineTLS(asking, cfg)
	s.examineClock(asking)
	s.examineGrants(asking, cfg.DBName)
}

// unreached is what to do about a server that cannot be reached.
func unreached(err error, cfg *mysql.Config) string {
	account := fmt.Sprintf("'%s'@'%%'", cfg.User)
	switch {
	case isMySQLError(err, 1049):
		return "CREATE DATABASE " + quoted(cfg.DBName) + ";"
	case isMySQLError(err, 1045, 1698):
		return "correct user and password in KITH_STORE, or CREATE USER " + account + " IDENTIFIED BY …;"
	case isMySQLError(err, 1044):
		return "GRANT " + strings.Join(needed, ", ") + " ON " + quoted(cfg.DBName) + ".* TO " + account + ";"
	case isMySQLError(err, 1040, 1203, 1226):
		return "raise max_connections, or lower --shard-conns"
	}
	return "start the server, or correct its address in KITH_STORE"
}

func quoted(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// askServer learns which server it is and how it is set.
func (s *examined) askServer(ctx context.Context, v *variables) error {
	v.known = map[string]string{}
	rows, err := s.shard.Read.QueryContext(ctx, `SHOW GLOBAL VARIABLES`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var value sql.NullString
		if err := rows.Scan(&name, &value); err != nil {
			return err
		}
		v.known[name] = value.String
	}
	if err := rows.Err(); err != nil {
		return err
	}
	s.server = v.known["hostname"] + ":" + v.known["port"] + v.known["datadir"]
	return s.shard.Read.QueryRowContext(ctx, `SELECT VERSION()`).Scan(&v.number)
}

// variables are those of a server, and the findings about them.
type variables struct {
	of     string
	list   *doctor.List
	known  map[string]string
	number string // of the version
	flavor string
}

// version says whether the tests run on such a server, see docs/engines.md.
func (v *variables) version() {
	v.flavor = "MySQL"
	least, tested := [2]int{8, 0}, [2]int{9, 0}
	switch {
	case strings.Contains(v.number, "MariaDB"):
		v.flavor, least, tested = "MariaDB", [2]int{10, 5}, [2]int{10, 11} // 10.5 has binlog_row_metadata
	case strings.Contains(v.number, "TiDB"):
		v.flavor = "TiDB"
		v.list.OK("version", v.of, "%s", v.number)
		return
	}
	var have [2]int
	if _, err := fmt.Sscanf(v.number, "%d.%d", &have[0], &have[1]); err != nil {
		v.list.Warn("version", v.of, fmt.Sprintf("%q is not known", v.number), "docs/engines.md has the servers that the tests run on")
		return
	}
	below := func(x [2]int) bool { return have[0] < x[0] || have[0] == x[0] && have[1] < x[1] }
	says := fmt.Sprintf("%s %d.%d", v.flavor, have[0], have[1])
	switch {
	case below(least):
		v.list.Fail("version", v.of, says+" is too old", fmt.Sprintf("update it to %d.%d or later", tested[0], tested[1]))
	case below(tested):
		v.list.Warn("version", v.of, says+" is older than what the tests run on", fmt.Sprintf("update it to %d.%d or later", tested[0], tested[1]))
	default:
		v.list.OK("version", v.of, "%s", says)
	}
}

// session says what a connection of Kith gets. It sets its isolation level itself, and keeps no local times.
func (v *variables) session(ctx context.Context, pool *sql.DB) {
	var name, level string
	err := pool.QueryRowContext(ctx, `SHOW SESSION VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation')`).Scan(&name, &level)
	switch {
	case err != nil:
		v.list.Fail("isolation", v.of, err.Error(), "")
	case level != "READ-COMMITTED":
		v.list.Fail("isolation", v.of, level+" although Kith has set READ-COMMITTED", "does a proxy before the server drop settings of sessions?")
	default:
		v.list.OK("isolation", v.of, "%s, which Kith sets for itself; time zone %s, which it does not use", level, v.known["time_zone"])
	}
}

func (v *variables) writable() {
	for _, name := range []string{"super_read_only", "read_only"} {
		if v.is(name, "ON", "1") {
			v.list.Fail("read_only", v.of, name+" is on: is it a replica?", "name the server that takes writes, or SET GLOBAL "+name+" = OFF;")
			return
		}
	}
	if v.is("log_bin", "ON") && v.is("binlog_format", "STATEMENT") {
		v.list.Fail("binlog_format", v.of, "STATEMENT: with it, InnoDB refuses writes at READ COMMITTED", "SET GLOBAL binlog_format = 'ROW'; and set it in the server's configuration")
	}
}

func (v *variables) is(name string, values ...string) bool {
	for _, value := range values {
		if strings.EqualFold(v.known[name], value) {
			return true
		}
	}
	return false
}

// durability says what a power cut may cost.
func (v *variables) durability() {
	if flush := v.known["innodb_flush_log_at_trx_commit"]; flush != "1" {
		v.list.Warn("durability", v.of, "innodb_flush_log_at_trx_commit is "+flush+": a power cut may take writes that were answered", "SET GLOBAL innodb_flush_log_at_trx_commit = 1; and set it in the server's configuration")
		return
	}
	if v.is("log_bin", "ON") && v.is("sync_binlog", "0") {
		v.list.Warn("durability", v.of, "sync_binlog is 0: after a power cut the binlog may lack what the tables have, so that follower lags behind following for good", "SET GLOBAL sync_binlog = 1; and set it in the server's configuration")
		return
	}
	v.list.OK("durability", v.of, "innodb_flush_log_at_trx_commit is 1")
}

// leastPacket is for statements that write or find a thousand rows with texts.
const leastPacket = 4 << 20

// Served by the primary key of the data dictionary: it has a row a table.
const sqlSizeOfDatabase = `SELECT SUM(data_length + index_length) FROM information_schema.tables WHERE table_schema = DATABASE()`

// memory compares the buffer pool with the size of the database.
func (v *variables) memory(ctx context.Context, pool *sql.DB) {
	if packet, _ := strconv.ParseUint(v.known["max_allowed_packet"], 10, 64); packet < leastPacket {
		v.list.Fail("max_allowed_packet", v.of, humanize.IBytes(packet)+": statements of many rows are larger", "SET GLOBAL max_allowed_packet = 16777216; and set it in the server's configuration")
	}
	var bytes sql.NullFloat64
	err := pool.QueryRowContext(ctx, sqlSizeOfDatabase).Scan(&bytes)
	if err != nil {
		return // it is a hint only
	}
	have, _ := strconv.ParseUint(v.known["innodb_buffer_pool_size"], 10, 64)
	says := fmt.Sprintf("innodb_buffer_pool_size is %s, the database has %s", humanize.IBytes(have), humanize.IBytes(uint64(bytes.Float64)))
	if float64(have) < bytes.Float64 {
		v.list.Warn("memory", v.of, says, "give the buffer pool the room of what is read often: some 70 % of the memory of a machine that does nothing else")
		return
	}
	v.list.OK("memory", v.of, "%s", says)
}

// examineTLS warns of passwords and rows that cross a network in the clear.
func (s *examined) examineTLS(ctx context.Context, cfg *mysql.Config) {
	var name, cipher string
	err := s.shard.Read.QueryRowContext(ctx, `SHOW SESSION STATUS LIKE 'Ssl_cipher'`).Scan(&name, &cipher)
	switch {
	case err != nil: // it is not known
	case cipher != "":
		s.OK("encryption", s.of, "%s", cipher)
	case cfg.Net == "unix" || doctor.IsLocal(cfg.Addr):
		s.OK("encryption", s.of, "none, on this machine")
	default:
		s.Warn("encryption", s.of, "the connection is in the clear", "add ?tls=true to the DSN, unless nobody can listen in that network")
	}
}

// examineClock compares the server's clock with ours, at the middle of the query.
func (s *examined) examineClock(ctx context.Context) {
	began := time.Now()
	var seconds float64
	if err := s.shard.Read.QueryRowContext(ctx, `SELECT UNIX_TIMESTAMP(NOW(6))`).Scan(&seconds); err != nil {
		s.Fail("clock", s.of, err.Error(), "")
		return
	}
	half := time.Since(began) / 2
	s.ahead, s.timed = time.Duration(seconds*float64(time.Second))-time.Duration(began.Add(half).UnixNano()), true
	if s.ahead > clocksApart+half || s.ahead < -clocksApart-half {
		s.Warn("clock", s.of, fmt.Sprintf("it is %s ahead of this machine's", s.ahead.Round(time.Millisecond)), "have NTP set the clocks of all machines")
		return
	}
	s.OK("clock", s.of, "%s ahead of this machine's", s.ahead.Round(time.Millisecond))
}

// replicating is how many connections the replicator of a server takes.
const replicating = 6

// examineConnections compares the connections that a gateway takes of each server with those that
// the server has.
func examineConnections(all *doctor.List, shards []*examined, cfg Config) {
	type server struct {
		of           string
		have, shards int
	}
	var servers []*server
	byName := map[string]*server{}
	for _, s := range shards {
		if s.server == "" {
			continue
		}
		known := byName[s.server]
		if known == nil {
			known = &server{of: s.of, have: s.connections}
			byName[s.server] = known
			servers = append(servers, known)
		}
		known.shards++
	}
	for _, s := range servers {
		needs := s.shards*(cfg.MaxConns+max(2, cfg.MaxConns/4)) + replicating
		says := fmt.Sprintf("max_connections is %d, and a gateway takes up to %d for %d shards there", s.have, needs, s.shards)
		mend := fmt.Sprintf("SET GLOBAL max_connections = %d; or lower --shard-conns", max(200, 4*needs))
		switch {
		case s.have == 0: // TiDB: no limit
			all.OK("connections", s.of, "no limit")
		case s.have < needs:
			all.Fail("connections", s.of, says, mend)
		case s.have < 2*needs:
			all.Warn("connections", s.of, says+": no second gateway fits", mend)
		default:
			all.OK("connections", s.of, "%s: room for %d gateways", says, s.have/needs)
		}
	}
}
