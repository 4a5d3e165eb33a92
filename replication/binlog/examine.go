package binlog

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"kith/storage/doctor"
)

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
