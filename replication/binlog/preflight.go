package binlog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
	driver "github.com/go-sql-driver/mysql"
)

// setting is a variable that the server must have set; otherwise its binlog does not say enough.
type setting struct {
	variable string
	value    string // the required value
	flavor   string // empty: all
	why      string
	restart  bool // changing it takes a restart
}

var settings = []setting{
	{"log_bin", "ON", "", "there is no binlog", true},
	{"binlog_format", "ROW", "", "changes are logged as statements", false},
	{"binlog_row_image", "FULL", "", "rows are logged in part", false},
	{"binlog_row_metadata", "FULL", "", "rows are logged without the names of their columns", false},
	{"gtid_strict_mode", "ON", mysql.MariaDBFlavor, "transactions may have numbers out of order", false},
	{"gtid_mode", "ON", mysql.MySQLFlavor, "transactions have no GTID", false},
	{"enforce_gtid_consistency", "ON", mysql.MySQLFlavor, "transactions may have no GTID", false},
}

// accepted are other spellings of a value.
var accepted = map[string][]string{"ON": {"1"}}

// preflight refuses a server whose binlog does not say enough, with a [StopError].
func (s *server) preflight(ctx context.Context) error {
	problems, err := s.problems(ctx)
	if err == nil && len(problems) > 0 {
		err = problems[0]
	}
	return err
}

// nobodysID is the user of the rows of [server.try]; ids of users begin at 1.
const nobodysID = 0

// try writes as gateways do, for the replicator to find in the binlog: if rows lack what it reads, whatever the settings
// say, replication stops at once and not at the first follow. user_counts has what servers have left out, a virtual
// column. Nobody sees the row, which is gone when the transaction commits.
func (s *server) try(ctx context.Context) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	table := quoted(s.databases[0]) + ".user_counts"
	for _, statement := range []string{
		`INSERT INTO ` + table + ` (user_id) VALUES (?)`,
		`UPDATE ` + table + ` SET version = version + 1 WHERE user_id = ?`,
		`DELETE FROM ` + table + ` WHERE user_id = ?`,
	} {
		_, err := tx.ExecContext(ctx, statement, nobodysID)
		if e := (*driver.MySQLError)(nil); errors.As(err, &e) && e.Number == mysql.ER_OPTION_PREVENTS_STATEMENT {
			s.log().Warn("replication: the server is read-only: it is followed without having tried a write", "error", err)
			return nil
		}
		if err != nil {
			return fmt.Errorf("try a write: %w", err)
		}
	}
	return tx.Commit()
}

// problems are all reasons for which the server cannot be followed.
func (s *server) problems(ctx context.Context) (list []*StopError, err error) {
	for _, v := range settings {
		if v.flavor != "" && v.flavor != s.flavor {
			continue
		}
		var name, value string
		err := s.db.QueryRowContext(ctx, `SHOW GLOBAL VARIABLES LIKE '`+v.variable+`'`).Scan(&name, &value)
		if err == sql.ErrNoRows {
			if v.variable == "binlog_format" {
				continue // a server that knows only rows
			}
			value, err = "missing", nil
		}
		if err != nil {
			return nil, fmt.Errorf("ask for %s: %w", v.variable, err)
		}
		if !strings.EqualFold(value, v.value) && !slices.Contains(accepted[v.value], value) {
			list = append(list, s.misset(v, value))
		}
	}
	for _, check := range []func(context.Context) (*StopError, error){s.filters, s.grants} {
		problem, err := check(ctx)
		if err != nil {
			return nil, err
		}
		if problem != nil {
			list = append(list, problem)
		}
	}
	return list, nil
}

func (s *server) misset(v setting, value string) *StopError {
	remedy := fmt.Sprintf("run: SET GLOBAL %s = '%s'; and set it in the server's configuration", v.variable, v.value)
	switch {
	case v.restart && s.flavor == mysql.MariaDBFlavor:
		remedy = "start the server with log_bin, binlog_format=ROW, binlog_row_image=FULL, binlog_row_metadata=FULL, gtid_strict_mode=ON"
	case v.restart:
		remedy = "start the server without skip_log_bin"
	case v.variable == "gtid_mode":
		remedy = "turn gtid_mode on step by step, as the server's manual says, or start the server with gtid_mode=ON and enforce_gtid_consistency=ON"
	}
	return &StopError{
		Server: s.name,
		What:   fmt.Sprintf("%s is %s, it has to be %s (%s)", v.variable, value, v.value, v.why),
		Remedy: remedy,
	}
}

// filters refuses a server that leaves databases of the store out of its binlog. If it has no right
// to ask, it assumes that none are left out.
func (s *server) filters(ctx context.Context) (*StopError, error) {
	for _, statement := range []string{`SHOW MASTER STATUS`, `SHOW BINARY LOG STATUS`} {
		rows, err := s.db.QueryContext(ctx, statement)
		if err != nil {
			continue // unknown to MySQL 8.4, or denied
		}
		logged, ignored, err := readFilters(rows)
		if err != nil {
			return nil, err
		}
		for _, name := range s.databases {
			if slices.Contains(ignored, name) || len(logged) > 0 && !slices.Contains(logged, name) {
				return &StopError{
					Server: s.name,
					What:   fmt.Sprintf("database %s is not in the binlog (binlog_do_db, binlog_ignore_db)", name),
					Remedy: "take the filter out of the server's configuration and start it again",
				}, nil
			}
		}
		return nil, nil
	}
	return nil, nil
}

func readFilters(rows *sql.Rows) (logged, ignored []string, err error) {
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, nil, err
	}
	for rows.Next() {
		values := make([]sql.NullString, len(columns))
		targets := make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			return nil, nil, err
		}
		for i, column := range columns {
			names := strings.FieldsFunc(values[i].String, func(r rune) bool { return r == ',' })
			switch column {
			case "Binlog_Do_DB":
				logged = names
			case "Binlog_Ignore_DB":
				ignored = names
			}
		}
	}
	return logged, ignored, rows.Err()
}

var (
	mayReplicate = regexp.MustCompile(`(?i)\b(REPLICATION (SLAVE|REPLICA)\b|ALL PRIVILEGES ON \*\.\*)`)
	grantsRole   = regexp.MustCompile(`(?i)^GRANT [^ ]+ TO `)
)

// grants refuses a user who may not read the binlog. The rights of a role show when the binlog is
// requested.
func (s *server) grants(ctx context.Context) (*StopError, error) {
	rows, err := s.db.QueryContext(ctx, `SHOW GRANTS`)
	if err != nil {
		return nil, fmt.Errorf("ask for grants: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var grant string
		if err := rows.Scan(&grant); err != nil {
			return nil, err
		}
		if mayReplicate.MatchString(grant) || grantsRole.MatchString(grant) {
			return nil, nil
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return s.noGrant(fmt.Errorf("REPLICATION SLAVE is not granted")), nil
}
