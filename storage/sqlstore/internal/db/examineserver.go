package db

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/go-sql-driver/mysql"

	"kith/storage/doctor"
)

// Rights on the database: those that Kith cannot do without, and those that migrations may need.
var (
	needed = []string{"SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER"}
	later  = []string{"INDEX", "DROP"}
)

// leastPacket is for statements that write or find a thousand rows with texts.
const leastPacket = 4 << 20

// serverNeeds are the variables that a server has to have. TiDB has none of them, or does not heed them.
var serverNeeds = []doctor.Need{
	{Level: doctor.Fail, Check: "read_only", Setting: "super_read_only", Value: "OFF", Fits: doctor.OneOf("OFF", "0", ""),
		Why: "is it a replica?", Mend: "name the server that takes writes, or SET GLOBAL super_read_only = OFF;"},
	{Level: doctor.Fail, Check: "read_only", Setting: "read_only", Value: "OFF", Fits: doctor.OneOf("OFF", "0"),
		Why: "is it a replica?", Mend: "name the server that takes writes, or SET GLOBAL read_only = OFF;"},
	{Level: doctor.Warn, Check: "durability", Setting: "innodb_flush_log_at_trx_commit", Value: "1",
		Why: "a power cut may take writes that were answered"},
	{Level: doctor.Fail, Check: "max_allowed_packet", Setting: "max_allowed_packet", Value: "16777216",
		Fits: func(value string) bool { n, err := strconv.Atoi(value); return err == nil && n >= leastPacket },
		Why:  "statements of many rows are larger"},
}

// binlogNeeds are for a server that writes a binlog.
var binlogNeeds = []doctor.Need{
	{Level: doctor.Fail, Check: "binlog_format", Setting: "binlog_format", Value: "'ROW'", Fits: doctor.OneOf("ROW", "MIXED", ""),
		Why: "with it, InnoDB refuses writes at READ COMMITTED"},
	{Level: doctor.Warn, Check: "durability", Setting: "sync_binlog", Value: "1", Fits: func(value string) bool { return value != "0" },
		Why: "after a power cut the binlog may lack what the tables have, so that follower lags behind following for good"},
}

// examineServer examines a shard on a server of the MySQL family.
func (d *DB) examineServer(ctx context.Context, s *examined, dsn string) {
	cfg, err := parseDSN(dsn)
	if err != nil {
		s.Fail("server", s.of, err.Error(), "correct KITH_STORE")
		return
	}
	s.name = cfg.Addr + "/" + cfg.DBName
	s.of += " (" + s.name + ")"
	opened, err := openMySQL(ctx, dsn, Config{StatementTimeout: d.cfg.StatementTimeout, MaxConns: 2})
	if err != nil {
		s.Fail("server", s.of, strings.TrimPrefix(err.Error(), s.name+": "), unreached(err, cfg))
		return
	}
	s.shard = opened
	asking, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	server, err := doctor.Ask(asking, opened.Read)
	if err != nil {
		s.Fail("server", s.of, err.Error(), "")
		return
	}
	has := server.Settings
	s.address = cfg.Addr
	s.server = has["hostname"] + ":" + has["port"] + has["datadir"]
	s.connections, _ = strconv.Atoi(has["max_connections"])
	s.examineSession(asking, cfg, has["time_zone"])
	s.examineClock(asking)
	s.examineGrants(&server, cfg.DBName)
	switch server.Flavor { // see docs/reference/engines.md
	case "TiDB":
		s.OK("version", s.of, "%s", server.Version)
		return
	case "MariaDB":
		s.Version("version", s.of, server.Version, [2]int{10, 5}, [2]int{10, 11}) // 10.5 has binlog_row_metadata
	default:
		s.Version("version", s.of, server.Version, [2]int{8, 0}, [2]int{9, 0})
	}
	var other string // by another connection
	if s.shard.Write.QueryRowContext(asking, `SELECT CONCAT(@@hostname, ':', @@port, @@datadir)`).Scan(&other) == nil && other != s.server {
		s.Fail("server", s.of, "its address leads to several servers, such as "+s.server+" and "+other+": what one has written, another may not have yet", "name the one that takes writes, not a load balancer over its replicas")
	}
	needs := serverNeeds
	if doctor.OneOf("ON", "1")(has["log_bin"]) {
		needs = slices.Concat(needs, binlogNeeds)
	}
	s.Needs(s.of, has, needs)
	s.examineMemory(asking, has["innodb_buffer_pool_size"])
}

// unreached is what to do about a server that cannot be reached.
func unreached(err error, cfg *mysql.Config) string {
	account := fmt.Sprintf("'%s'@'%%'", cfg.User)
	switch {
	case doctor.IsError(err, 1049):
		return "CREATE DATABASE " + doctor.Quoted(cfg.DBName) + ";"
	case doctor.IsError(err, 1045, 1698):
		return "correct user and password in KITH_STORE, or CREATE USER " + account + " IDENTIFIED BY …; if it exists, DROP USER ''@'localhost';, or add ?tls=true to the DSN if the server asks for TLS"
	case doctor.IsError(err, 3159): // so says MySQL
		return "add ?tls=true to the DSN"
	case errors.Is(err, mysql.ErrNoTLS):
		return "give the server a certificate, or leave tls out of the DSN"
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return "name the file of its certificate authority in SSL_CERT_FILE, and the server as its certificate does"
	case doctor.IsError(err, 1044):
		return grant(needed, cfg.DBName, account)
	case doctor.IsError(err, 1040, 1203, 1226):
		return "raise max_connections, or lower --shard-conns"
	}
	return "start the server, or correct its address in KITH_STORE"
}

func grant(rights []string, database, account string) string {
	return "GRANT " + strings.Join(rights, ", ") + " ON " + doctor.Quoted(database) + ".* TO " + account + ";"
}

// examineSession says what a connection of Kith gets. It sets its isolation level itself, and keeps no local times.
func (s *examined) examineSession(ctx context.Context, cfg *mysql.Config, zone string) {
	var name, level, cipher string
	err := s.shard.Write.QueryRowContext(ctx, `SHOW SESSION VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation')`).Scan(&name, &level)
	switch {
	case err != nil:
		s.Fail("isolation", s.of, err.Error(), "")
	case level != "READ-COMMITTED":
		s.Fail("isolation", s.of, level+" although Kith has set READ-COMMITTED", "does a proxy before the server drop settings of sessions?")
	default:
		s.OK("isolation", s.of, "%s, which Kith sets for itself; time zone %s, which it does not use", level, zone)
	}
	if s.shard.Read.QueryRowContext(ctx, `SHOW SESSION STATUS LIKE 'Ssl_cipher'`).Scan(&name, &cipher) == nil { // otherwise it is not known
		s.Encryption("encryption", s.of, cipher, cfg.Net == "unix" || doctor.IsLocal(cfg.Addr), "add ?tls=true to the DSN")
	}
}

// Served by the primary key of the data dictionary: it has a row a table.
const sqlSizeOfDatabase = `SELECT SUM(data_length + index_length) FROM information_schema.tables WHERE table_schema = DATABASE()`

// examineMemory compares the buffer pool with the size of the database, which is a hint only.
func (s *examined) examineMemory(ctx context.Context, pool string) {
	var bytes sql.NullFloat64
	if s.shard.Read.QueryRowContext(ctx, sqlSizeOfDatabase).Scan(&bytes) != nil {
		return
	}
	have, _ := strconv.ParseUint(pool, 10, 64)
	says := fmt.Sprintf("innodb_buffer_pool_size is %s, the database has %s", humanize.IBytes(have), humanize.IBytes(uint64(bytes.Float64)))
	if float64(have) < bytes.Float64 {
		s.Warn("memory", s.of, says, "make the buffer pool as large as what is read often: some 70 % of the memory of a dedicated machine")
		return
	}
	s.OK("memory", s.of, "%s", says)
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
	s.Clock("clock", s.of, s.ahead, half, "this machine's")
}

// examineGrants compares the user's rights with those that are needed.
func (s *examined) examineGrants(server *doctor.Server, database string) {
	user, host, _ := strings.Cut(server.Account, "@")
	for _, need := range []struct {
		rights []string
		note   func(check, of, says, mend string)
		says   string
	}{{needed, s.Fail, "not granted: %s"}, {later, s.Warn, "%s may be needed by migrations to come"}} {
		lacking, on, byRole := server.Lacking(database, need.rights)
		if len(lacking) == 0 {
			continue
		}
		if byRole {
			need.note, need.says = s.Warn, "%s can only come from a role"
		}
		need.note("grants", s.of, fmt.Sprintf(need.says, strings.Join(lacking, ", ")), grant(lacking, on, "'"+user+"'@'"+host+"'"))
		return
	}
	s.OK("grants", s.of, "all that is needed")
}

// replicating is how many connections the replicator of a server takes.
const replicating = 6

// examineConnections compares the connections that a gateway takes of each server with those that the server has.
func examineConnections(all *doctor.List, shards []*examined, cfg Config) {
	for i, s := range shards {
		onIt := func(other *examined) bool { return other.server == s.server }
		if s.server == "" || slices.IndexFunc(shards, onIt) < i {
			continue // it is SQLite, or said already
		}
		count := 0
		for _, other := range shards {
			if onIt(other) {
				count++
			}
		}
		needs := count*(cfg.MaxConns+max(2, cfg.MaxConns/4)) + replicating
		says := fmt.Sprintf("max_connections is %d, and a gateway takes up to %d for %d shards there", s.connections, needs, count)
		mend := fmt.Sprintf("SET GLOBAL max_connections = %d; or lower --shard-conns", max(200, 4*needs))
		switch {
		case s.connections == 0: // TiDB: no limit
			all.OK("connections", s.of, "no limit")
		case s.connections < needs:
			all.Fail("connections", s.of, says, mend)
		case s.connections < 2*needs:
			all.Warn("connections", s.of, says+": no second gateway fits", mend)
		default:
			all.OK("connections", s.of, "%s: room for %d gateways", says, s.connections/needs)
		}
	}
}
