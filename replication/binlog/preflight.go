package binlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"kith/storage"
	"kith/storage/doctor"
)

// The variables that a server must have set; otherwise its binlog does not say enough.
var (
	everyServer = []doctor.Need{
		binlogNeed("binlog_format", "ROW", "changes are logged as statements", ""),
		binlogNeed("binlog_row_image", "FULL", "rows are logged in part", ""),
		binlogNeed("binlog_row_metadata", "FULL", "rows are logged without the names of their columns", ""),
	}
	onMariaDB = []doctor.Need{
		binlogNeed("log_bin", "ON", "there is no binlog", "start the server with log_bin, binlog_format=ROW, binlog_row_image=FULL, binlog_row_metadata=FULL, gtid_strict_mode=ON"),
		binlogNeed("gtid_strict_mode", "ON", "transactions may have numbers out of order", ""),
	}
	onMySQL = []doctor.Need{
		binlogNeed("log_bin", "ON", "there is no binlog", "start the server without skip_log_bin"),
		binlogNeed("gtid_mode", "ON", "transactions have no GTID", "turn gtid_mode on step by step, as the server's manual says, or start the server with gtid_mode=ON and enforce_gtid_consistency=ON"),
		binlogNeed("enforce_gtid_consistency", "ON", "transactions may have no GTID", ""),
	}
)

func binlogNeed(setting, value, why, mend string) doctor.Need {
	n := doctor.Need{Level: doctor.Fail, Check: "binlog", Setting: setting, Value: "'" + value + "'", Why: why, Mend: mend}
	switch {
	case value == "ON":
		n.Fits = doctor.OneOf("ON", "1")
	case setting == "binlog_format":
		n.Fits = doctor.OneOf("ROW", "") // some servers know only rows
	}
	return n
}

// preflight refuses a server whose binlog does not say enough, with a [StopError].
func (s *server) preflight(ctx context.Context) error {
	asked, err := doctor.Ask(ctx, s.db)
	if err != nil {
		return fmt.Errorf("ask for its settings: %w", err)
	}
	for _, f := range s.problems(ctx, &asked) {
		if f.Level == doctor.Fail {
			return &StopError{Server: s.name, What: f.Says, Remedy: f.Mend}
		}
	}
	return nil
}

// nobodysID is the user of the rows of [server.try]; ids of users begin at 1.
const nobodysID = 0

// try writes to each database as gateways do, and reads that in the binlog: if it is filtered out, or rows lack what is read, whatever
// the settings say, replication stops at once and not at the first follow. user_counts has what servers have left out, a virtual
// column. Nobody sees the row, which is gone when the transaction commits.
func (s *server) try(ctx context.Context) error {
	before, err := s.serverPosition(ctx)
	if err != nil {
		return err
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	for _, database := range s.databases {
		table := doctor.Quoted(database) + ".user_counts"
		for _, statement := range []string{
			`INSERT INTO ` + table + ` (user_id) VALUES (?)`,
			`UPDATE ` + table + ` SET version = version + 1 WHERE user_id = ?`,
			`DELETE FROM ` + table + ` WHERE user_id = ?`,
		} {
			_, err := tx.ExecContext(ctx, statement, nobodysID)
			if doctor.IsError(err, readOnly) {
				s.log().Warn("replication: the server is read-only: following it without a test write", "error", err)
				return nil
			}
			if err != nil {
				return fmt.Errorf("try a write: %w", err)
			}
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	end, err := s.serverPosition(ctx)
	if err != nil {
		return err
	}
	t := &tail{server: s, at: position{before: before}, values: true}
	missing := slices.Clone(s.databases) // of which the test write has not come
	err = t.connection(ctx, sink{
		take: func(done *transaction) error {
			missing = slices.DeleteFunc(missing, func(name string) bool { return slices.Contains(done.tried, name) })
			return nil
		},
		complete: func() bool { return t.at.set().Contains(end) },
	})
	if err != nil || len(missing) == 0 {
		return err
	}
	return &StopError{
		Server: s.name, What: fmt.Sprintf("a test write to database %s is not in the binlog", missing[0]),
		Remedy: "look for what keeps it out (binlog_do_db, binlog_ignore_db, sql_log_bin), take it away, and start the server again; then start again with --resync",
	}
}

// problems are all reasons for which the server cannot be followed.
func (s *server) problems(ctx context.Context, asked *doctor.Server) (all doctor.List) {
	own := onMySQL
	if asked.Flavor == "MariaDB" {
		own = onMariaDB
	}
	all.Needs(s.name, asked.Settings, slices.Concat(own, everyServer))
	if setting := asked.Settings["lower_case_table_names"]; setting == "1" || setting == "2" { // then names in the binlog are so, whatever the DSN has
		s.databases = storage.Each(s.databases, strings.ToLower)
	}
	if name := s.filtered(ctx); name != "" {
		all.Fail("binlog", s.name, fmt.Sprintf("database %s is not in the binlog (binlog_do_db, binlog_ignore_db)", name),
			"take the filter out of the server's configuration and start it again")
	}
	// The rights of a role show when the binlog is requested. A server calls this one by one of two names.
	if lacking, _, byRole := asked.Lacking("", []string{"REPLICATION SLAVE", "REPLICATION REPLICA"}); len(lacking) == 2 && !byRole {
		lacks := s.noGrant(errors.New("REPLICATION SLAVE is not granted"))
		all.Fail("binlog", s.name, lacks.What, lacks.Remedy)
	}
	return all
}

// filtered is a database of the store that the server leaves out of its binlog. If the server does not say, it is
// assumed that there is none.
func (s *server) filtered(ctx context.Context) string {
	for _, statement := range []string{`SHOW MASTER STATUS`, `SHOW BINARY LOG STATUS`} {
		rows, err := doctor.Rows(ctx, s.db, statement)
		if err != nil || len(rows) == 0 {
			continue // unknown to MySQL 8.4, or denied
		}
		names := func(column string) []string {
			return strings.FieldsFunc(rows[0][column], func(r rune) bool { return r == ',' })
		}
		logged, ignored := names("Binlog_Do_DB"), names("Binlog_Ignore_DB")
		for _, name := range s.databases {
			if slices.Contains(ignored, name) || len(logged) > 0 && !slices.Contains(logged, name) {
				return name
			}
		}
	}
	return ""
}

// Examine looks at the servers of databases, each once, as a replicator does before it follows their binlogs. A server that cannot be
// reached is passed over, because this is reported for its shards. chosen means that the operator has set this redundancy mode.
func Examine(ctx context.Context, dsns []string, chosen bool) (all doctor.List) {
	var servers []*server
	for _, dsn := range dsns {
		parsed, err := driver.ParseDSN(strings.TrimSpace(dsn))
		if err != nil {
			continue
		}
		i := slices.IndexFunc(servers, func(s *server) bool { return s.name == parsed.Addr })
		if i < 0 {
			i, servers = len(servers), append(servers, &server{name: parsed.Addr, dsn: parsed})
		}
		servers[i].databases = append(servers[i].databases, parsed.DBName)
	}
	for _, s := range servers {
		s.examine(ctx, chosen, &all)
	}
	return all
}

// longOutage is for how long all replicators should be able to be down together without a copy of everything. A weekend is longer,
// but a server that keeps less has probably not been configured on purpose.
const longOutage = 24 * time.Hour

func (s *server) examine(ctx context.Context, chosen bool, all *doctor.List) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var err error
	if s.db, err = s.pool(2, dialTimeout, nil); err != nil {
		return
	}
	defer s.db.Close()
	asked, err := doctor.Ask(ctx, s.db)
	switch {
	case err != nil:
		return
	case asked.Flavor == "TiDB" && chosen:
		all.Fail("binlog", s.name, "TiDB has none", "set KITH_REDUNDANCY to sync or stream")
		return
	case asked.Flavor == "TiDB":
		all.OK("binlog", s.name, "TiDB has none: the redundancy mode is sync")
		return
	}
	problems := s.problems(ctx, &asked)
	*all = append(*all, problems...)
	if problems.Count(doctor.Fail) > 0 {
		return
	}
	switch kept := retention(asked.Settings); {
	case kept == 0:
		all.OK("binlog", s.name, "it is kept until somebody removes it")
	case kept < longOutage:
		all.Warn("binlog", s.name, fmt.Sprintf("it is kept for %s: if no replicator runs for longer, everything is copied again", kept), "SET GLOBAL binlog_expire_logs_seconds = 604800; and set it in the server's configuration")
	default:
		all.OK("binlog", s.name, "it is kept for %s", kept)
	}
}

// retention is for how long a server keeps its binlog; 0 means without limit, or not known.
func retention(settings map[string]string) time.Duration {
	seconds, _ := strconv.ParseFloat(settings["binlog_expire_logs_seconds"], 64)
	days, _ := strconv.ParseFloat(settings["expire_logs_days"], 64)
	return cmp.Or(time.Duration(seconds*float64(time.Second)), time.Duration(days*24*float64(time.Hour)))
}
