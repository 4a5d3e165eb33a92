package binlog

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	driver "github.com/go-sql-driver/mysql"

	"kith/storage/doctor"
)

// Examine looks at the servers of databases, each once, as a replicator does before it follows their binlogs. A server that cannot be
// reached is passed over, because this is reported for its shards. chosen means that the operator has set this redundancy mode.
func Examine(ctx context.Context, dsns []string, chosen bool) (all doctor.List) {
	seen := map[string]*server{}
	var servers []*server
	for _, dsn := range dsns {
		parsed, err := driver.ParseDSN(strings.TrimSpace(dsn))
		if err != nil {
			continue
		}
		if known := seen[parsed.Addr]; known != nil {
			known.databases = append(known.databases, parsed.DBName)
			continue
		}
		s := &server{name: parsed.Addr, dsn: parsed, databases: []string{parsed.DBName}}
		seen[parsed.Addr] = s
		servers = append(servers, s)
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
	var version string
	switch err := s.db.QueryRowContext(ctx, `SELECT VERSION()`).Scan(&version); {
	case err != nil:
		return
	case strings.Contains(version, "TiDB") && chosen:
		all.Fail("binlog", s.name, "TiDB has none", "set KITH_REDUNDANCY to sync or stream")
		return
	case strings.Contains(version, "TiDB"):
		all.OK("binlog", s.name, "TiDB has none: the redundancy mode is sync")
		return
	}
	s.flavor = mysql.MySQLFlavor
	if strings.Contains(version, "MariaDB") {
		s.flavor = mysql.MariaDBFlavor
	}
	problems, err := s.problems(ctx)
	if err != nil {
		all.Fail("binlog", s.name, err.Error(), "")
		return
	}
	for _, p := range problems {
		all.Fail("binlog", s.name, p.What, p.Remedy)
	}
	kept := s.kept(ctx)
	switch {
	case len(problems) > 0:
	case kept > 0 && kept < longOutage:
		all.Warn("binlog", s.name, fmt.Sprintf("it is kept for %s: if no replicator runs for longer, everything is copied again", kept), "SET GLOBAL binlog_expire_logs_seconds = 604800; and set it in the server's configuration")
	case kept > 0:
		all.OK("binlog", s.name, "rows in full, with names and GTIDs, kept for %s", kept)
	default:
		all.OK("binlog", s.name, "rows in full, with names and GTIDs, kept until somebody removes it")
	}
}

// kept is for how long the server keeps its binlog; 0 means without limit, or not known.
func (s *server) kept(ctx context.Context) time.Duration {
	for variable, unit := range map[string]time.Duration{"binlog_expire_logs_seconds": time.Second, "expire_logs_days": 24 * time.Hour} {
		var name, value string
		if s.db.QueryRowContext(ctx, `SHOW GLOBAL VARIABLES LIKE '`+variable+`'`).Scan(&name, &value) != nil {
			continue
		}
		if n, err := strconv.ParseFloat(value, 64); err == nil && n > 0 {
			return time.Duration(n * float64(unit))
		}
	}
	return 0
}
