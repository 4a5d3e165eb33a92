package binlog_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/replication/binlog"
)

// TestADemotedServerIsNotFollowed: a replica is promoted and gets the address, while the server before goes on running, read-only. Its
// binlog never shows anything again, so that of the new server is followed, by one replicator.
func TestADemotedServerIsNotFollowed(t *testing.T) {
	t.Parallel()
	testenv.OnlyOn(t, "a replica is set up in MariaDB's words", "mariadb")
	servers := []*testenv.MariaDBServer{testenv.MariaDB(t), testenv.MariaDB(t, "--log-slave-updates=ON")}
	host, port, _ := strings.Cut(servers[0].Addr(), ":")
	servers[1].Exec(t, fmt.Sprintf("CHANGE MASTER TO MASTER_HOST = '%s', MASTER_PORT = %s, MASTER_USER = 'app', MASTER_PASSWORD = 'app', MASTER_USE_GTID = slave_pos", host, port))
	servers[1].Exec(t, "START SLAVE")
	name := testenv.NewLink(t, servers[0].Addr())
	servers[0].Exec(t, "CREATE USER kith IDENTIFIED BY 'kith'") // who may not write to a read-only server
	servers[0].Exec(t, "GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO kith")
	var dsns, direct []string
	for _, database := range []string{"kith_a", "kith_b"} {
		servers[0].CreateDatabase(t, database)
		servers[0].Exec(t, "GRANT ALL ON "+database+".* TO kith")
		dsns = append(dsns, "kith:kith@tcp("+name.Addr+")/"+database)
		direct = append(direct, servers[1].DSN(database))
	}
	w := worldOn(t, dsns...)
	r := w.replicate(t)
	r.await(t, binlog.Tailing)
	w.write(t, w.follow(1, 2), w.follow(2, 1))
	w.settle(t)

	servers[0].Exec(t, "SET GLOBAL read_only = 1")
	position := func(server *testenv.MariaDBServer) (text string) {
		must.OK(t, server.Open(t, "").QueryRow("SELECT @@gtid_binlog_pos").Scan(&text))
		return text
	}
	must.Soon(t, "the replica has everything", func() bool { return position(servers[1]) == position(servers[0]) })
	servers[1].Exec(t, "STOP SLAVE")
	name.Turn(servers[1].Addr())
	w.dsns = direct
	must.OKSoon(t, func() error { return w.tryWrite(w.follow(3, 2), w.follow(2, 3)) })
	began := time.Now()
	w.settle(t)
	check.Most(t, "the time until the new server is followed", time.Since(began), 40*time.Second)
	r.await(t, binlog.Tailing)
	// Whoever is started from now on finds that it is being followed.
	late := w.replicate(t, func(cfg *binlog.Config) { cfg.DSNs = dsns })
	late.await(t, binlog.Waiting)
	watcher := w.replicate(t, func(cfg *binlog.Config) { cfg.DSNs, cfg.Watch = dsns, true })
	watcher.await(t, binlog.Waiting)
	r.stop(t)
	late.await(t, binlog.Tailing)
	check.Equal(t, "how often everything was copied", strings.Count(w.log.String(), "copying all edges"), 2)
}
