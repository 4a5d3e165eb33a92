package db

import (
	"context"
	"crypto/sha1" //nolint:gosec // names a lock, and guards nothing
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/pressly/goose/v3/database"

	"kith/storage/doctor"
	"kith/storage/sqlstore/internal/db/prepared"
)

var mysqlDialect = &Dialect{
	name:      "mysql",
	goose:     database.DialectMySQL,
	migrating: namedLock("kith_migrate"),

	// MariaDB turns an IN list of 1,000 values or more into a derived table, without
	// an index (in_predicate_conversion_threshold). A pair is two values.
	MaxKeys:  900,
	MaxPairs: 450,
	MaxPages: 500,
	MaxRows:  1000,

	Limited: "(%s)",
	identity: func(ctx context.Context, n *Shard) (id string, err error) {
		err = n.Write.QueryRowContext(ctx, `SELECT CONCAT(@@hostname, ':', @@port, ':', @@datadir, '/', DATABASE())`).Scan(&id)
		return id, err
	},

	grace: 250 * time.Millisecond,

	beginMoment: []string{
		"SET wait_timeout = 28800",                        // locks nothing: whoever takes the rows may be slow
		"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", // of the next transaction only
		"START TRANSACTION WITH CONSISTENT SNAPSHOT",
	},

	HasBinlog: true,
	Moves:     true,

	retryable:   func(err error) bool { return lostRace(err) || isFull(err) },
	unavailable: isServersFault,
}

func lostRace(err error) bool {
	return doctor.IsError(err, 1205, 1213) // lock wait timeout, deadlock
}

func isServersFault(err error) bool {
	return errors.Is(err, mysql.ErrInvalidConn) || isReadOnly(err) || isFull(err) || doctor.IsError(err,
		1021, 1114, 3, 1026, // its disk is full, for tables or for the binlog
		1044, 1045, 1142, 1698, // access denied: its password or its rights have changed
		1820, 1862, // the password has expired
		1129, 1130, // nobody of this host may connect, such as after many broken connections
		1049, 1146, // no such database or table: it is being restored
		1053, 1077, 1317, 1927, // the server is going down, the statement or the connection was killed
		1205, 1213, // no lock, even after the retries
		1969, 3024, // the statement's time limit
	)
}

// isFull reports whether a server has no room for another connection: those that there are may do the work soon.
func isFull(err error) bool { return doctor.IsError(err, 1040, 1203, 1226) }

// isReadOnly reports whether a failover is under way, or has been: the address may lead to another server by now, and the one that has
// answered hears of no writes.
func isReadOnly(err error) bool { return doctor.IsError(err, 1290, 1792, 1836) }

// openMySQL opens the two pools of one shard and sees that the server answers.
func openMySQL(ctx context.Context, dsn string, c Config) (*Shard, error) {
	cfg, err := parseDSN(dsn)
	if err != nil {
		return nil, err
	}
	name := cfg.Addr + "/" + cfg.DBName
	cfg.InterpolateParams = true // for what is not prepared: saves the round trip
	cfg.Logger = &mysql.NopLogger{}
	if cfg.Timeout == 0 {
		cfg.Timeout = c.StatementTimeout
	}
	flavor, err := flavorOf(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	lasts := &prepared.Generation{Ends: isReadOnly}
	read, err := mysqlPool(cfg, flavor, lasts, lookAgain, c.StatementTimeout, c.MaxConns)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	write, err := mysqlPool(cfg, flavor, lasts, lookAgain, c.writeTimeout(), max(2, c.MaxConns/4))
	if err != nil {
		read.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	migrations, err := mysqlPool(cfg, flavor, lasts, migrationTimeout, migrationTimeout, 2)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), read.Close(), write.Close())
	}
	migrations.SetMaxIdleConns(0)
	return &Shard{Name: name, Read: read, Write: write, migrations: migrations, dialect: flavor.dialect}, nil
}

// migrationTimeout is how long a statement of a migration may take, or the wait for
// another gateway's.
const migrationTimeout = time.Hour

func parseDSN(dsn string) (*mysql.Config, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, dsnError(err)
	}
	if cfg.DBName == "" {
		return nil, errors.New("the DSN names no database (user:password@tcp(host:port)/database)")
	}
	return cfg, nil
}

// dsnError is the driver's error about a DSN. If the driver finds no address, it takes what may be
// user and password for the address, and shows it.
func dsnError(err error) error {
	if strings.HasPrefix(err.Error(), "default addr for network") {
		err = errors.New("invalid DSN: the address is missing")
	}
	return fmt.Errorf("%w (user:password@tcp(host:port)/database)", err)
}

// mysqlFlavor is a server of the family: its dialect, and how it spells its session variables.
type mysqlFlavor struct {
	dialect   *Dialect
	isolation string
	limits    func(time.Duration) map[string]string // of the time of statements
	implicit  bool                                  // transactions begin with their first statement
}

var (
	mariaDB = mysqlFlavor{
		dialect:   mysqlDialect,
		isolation: "tx_isolation",
		implicit:  true,
		limits: func(d time.Duration) map[string]string {
			return map[string]string{"max_statement_time": strconv.FormatFloat(d.Seconds(), 'f', 3, 64)}
		},
	}
	oracleMySQL = mysqlFlavor{
		dialect:   mysqlDialect,
		isolation: "transaction_isolation",
		implicit:  true,
		limits:    oracleLimits,
	}
	tiDB = mysqlFlavor{
		dialect:   tiDBDialect,
		isolation: "transaction_isolation",
		limits:    oracleLimits,
	}
)

// oracleLimits are two limits, because max_execution_time does not end a wait for a lock. The limit
// of that wait is in whole seconds, at least one.
func oracleLimits(d time.Duration) map[string]string {
	return map[string]string{
		"max_execution_time":       strconv.FormatInt(d.Milliseconds(), 10),
		"innodb_lock_wait_timeout": strconv.FormatInt(max(1, int64(d/time.Second)), 10),
	}
}

// maxPatience is how long the first answer of a server may take, whatever the timeouts of
// statements are: a program that cannot start says so within 5 s.
const maxPatience = 4 * time.Second

func flavorOf(ctx context.Context, cfg *mysql.Config) (mysqlFlavor, error) {
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return mysqlFlavor{}, err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	patience := min(2*cfg.Timeout, maxPatience) // one for the dial, one for the answer
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var version string
	err = db.QueryRowContext(asking, `SELECT VERSION()`).Scan(&version)
	if err != nil && asking.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("no answer within %s", patience)
	}
	if err != nil {
		return mysqlFlavor{}, err
	}
	switch doctor.FlavorOf(version) {
	case "MariaDB":
		return mariaDB, nil
	case "TiDB":
		return tiDB, nil
	}
	return oracleMySQL, nil
}

// mysqlPool opens connections whose statements the server itself ends after the
// limit: a context that ends closes the client's socket but leaves the statement
// running on the server. Connections are made anew after their lifetime. One that has been silent for longer is ended by the server:
// its process stands still or is cut off, and may have left rows locked.
func mysqlPool(cfg *mysql.Config, f mysqlFlavor, lasts *prepared.Generation, lifetime, limit time.Duration, conns int) (*sql.DB, error) {
	cfg = cfg.Clone()
	if cfg.Params == nil {
		cfg.Params = map[string]string{}
	}
	maps.Copy(cfg.Params, f.limits(limit))
	cfg.Params["wait_timeout"] = strconv.Itoa(int((lifetime * 5 / 4).Seconds()))
	cfg.Params["autocommit"] = "1"                          // a look-up would begin a transaction that nobody ends
	cfg.Params["sql_select_limit"] = "18446744073709551615" // none: a server may have one against careless programs
	cfg.Params[f.isolation] = "'READ-COMMITTED'"
	cfg.Params["group_concat_max_len"] = strconv.Itoa(2 * MaxText) // MySQL's default is 1,024
	cfg.ReadTimeout = limit + time.Second                          // a server that has gone silent
	cfg.WriteTimeout = limit + time.Second

	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(prepared.Connector(connector, prepared.Database{Server: true, Implicit: f.implicit, Generation: lasts}))
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	db.SetConnMaxLifetime(lifetime)
	return db, nil
}

// lookAgain is after how long it is found out where an address leads. A server that was demoted may go on answering what is read, from data
// that hear of no writes. A connection with its prepared statements costs some 5 ms.
const lookAgain = time.Minute

// MaxText is the length up to which a text made of many rows is trusted to be whole: less than what
// any server with this setting allows, see [mysqlPool].
const MaxText = 1 << 20

// namedLock serialises migrations by GET_LOCK. Its name counts for a whole server, so
// the database's name is added to it.
type namedLock string

const (
	// Served by the primary key: the table has a row a migration.
	sqlCountMigrations = `
SELECT COUNT(*)
FROM kith_migrations`

	sqlFirstMigration = `
INSERT INTO kith_migrations (version_id, is_applied)
VALUES (0, TRUE)`
)

// SessionLock takes the lock, and gives the table of versions its first row if that is missing.
// Goose makes table and row in one transaction, but MySQL commits the table at once, so a program
// that is killed in between leaves it empty, and goose refuses an empty one.
func (l namedLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	name, err := l.of(ctx, conn)
	if err != nil {
		return err
	}
	var got sql.NullInt64
	err = conn.QueryRowContext(ctx, `SELECT GET_LOCK(?, 60)`, name).Scan(&got)
	if err == nil && got.Int64 != 1 {
		err = fmt.Errorf("another gateway has been migrating for a minute (lock %q)", string(l))
	}
	if err != nil {
		return err
	}
	if err := writeFirstMigration(ctx, conn); err != nil {
		return errors.Join(err, l.SessionUnlock(ctx, conn))
	}
	return nil
}

// writeFirstMigration writes the row of version 0 to an empty table of versions, if the table exists. Otherwise it writes nothing: the
// server may be read-only.
func writeFirstMigration(ctx context.Context, conn *sql.Conn) error {
	var tables, rows int
	if err := conn.QueryRowContext(ctx, sqlHasMigrations.MySQL).Scan(&tables); err != nil || tables == 0 {
		return err
	}
	if err := conn.QueryRowContext(ctx, sqlCountMigrations).Scan(&rows); err != nil || rows > 0 {
		return err
	}
	_, err := conn.ExecContext(ctx, sqlFirstMigration)
	return err
}

func (l namedLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	name, err := l.of(ctx, conn)
	if err == nil {
		_, err = conn.ExecContext(ctx, `DO RELEASE_LOCK(?)`, name)
	}
	return err
}

// of is the lock's name on the connection's database: with a hash, as names have at most
// 64 characters. The hash is made here because MySQL 9 has no SHA1() built in.
func (l namedLock) of(ctx context.Context, conn *sql.Conn) (string, error) {
	var database string
	if err := conn.QueryRowContext(ctx, `SELECT DATABASE()`).Scan(&database); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s.%x", string(l), sha1.Sum([]byte(database))), nil //nolint:gosec // as above
}
