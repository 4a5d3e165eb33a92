package binlog_test

import (
	"fmt"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/replication/binlog"
	"kith/storage"
)

// through are databases of a server at the address of a link.
func through(link *testenv.Link, server *testenv.MariaDBServer, databases ...string) []string {
	return storage.Each(databases, func(name string) string {
		return strings.Replace(server.DSN(name), server.Addr(), link.Addr, 1)
	})
}

// TestStartsWhileOneServerIsAway: the others are replicated at once, the lag of the one that is away grows, and it joins when it answers.
func TestStartsWhileOneServerIsAway(t *testing.T) {
	t.Parallel()
	testenv.NeedsBinlog(t)
	there, away := testenv.MariaDB(t), testenv.MariaDB(t)
	w := worldOn(t, there.CreateDatabase(t, "kith_a"), away.CreateDatabase(t, "kith_b"))
	link := testenv.NewLink(t, away.Addr())
	over := func(cfg *binlog.Config) { cfg.DSNs = append([]string{w.dsns[0]}, through(link, away, "kith_b")...) }
	r := w.replicate(t, over)
	r.await(t, binlog.Tailing)
	w.write(t, w.follow(1, 2), w.follow(2, 3), w.follow(3, 4), w.follow(4, 1))
	w.settle(t)
	r.stop(t)

	link.Cut()
	r = w.replicate(t, over)
	var first, second []storage.UserID
	for id := storage.UserID(1); len(first) < 2 || len(second) < 2; id++ {
		if r.shardOf(id) == 0 {
			first = append(first, id)
		} else {
			second = append(second, id)
		}
	}
	follow := w.follow(first[0], second[0])
	w.write(t, follow, w.follow(second[0], first[1]))
	must.Soon(t, "the server that is there is followed", func() bool { return r.published(follow) })
	must.Soon(t, "the other's lag grows", func() bool { return r.applier.Status().Lag > 0 })
	r.awaitSome(t, binlog.Connecting)
	link.Mend(t)
	w.settle(t)
	r.await(t, binlog.Tailing)
	check.Equal(t, "how often everything was copied", strings.Count(w.log.String(), "copying all edges"), 2)
}

// TestOneServerWithTwoNames is followed once, also if one of its names does not lead there for a while: at the start, or while it is found out
// that they are names of one server.
func TestOneServerWithTwoNames(t *testing.T) {
	t.Parallel()
	testenv.NeedsBinlog(t)
	server := testenv.MariaDB(t)
	w := worldOn(t, server.CreateDatabase(t, "kith_a"), server.CreateDatabase(t, "kith_b"))
	names := []*testenv.Link{testenv.NewLink(t, server.Addr()), testenv.NewLink(t, server.Addr())}
	over := func(cfg *binlog.Config) {
		cfg.DSNs = append(through(names[0], server, "kith_a"), through(names[1], server, "kith_b")...)
	}
	sprung := names[1].SilenceAt("kith_same/")
	r := w.replicate(t, over)
	<-sprung
	names[1].Cut()
	names[1].Mend(t)
	n := storage.UserID(0)
	works := func() {
		t.Helper()
		r.await(t, binlog.Tailing)
		n += 2
		w.write(t, w.follow(n, n+1), w.follow(n+1, n))
		w.settle(t)
		check.Equal(t, "how many servers are followed", len(r.binlog.Status()), 1)
	}
	works()
	for i := range names {
		r.stop(t)
		names[i].Cut()
		r = w.replicate(t, over)
		must.Soon(t, "the name is asked in vain", func() bool {
			return strings.Contains(w.log.String(), fmt.Sprintf("does not answer: retrying\" server=%s", names[i].Addr))
		})
		names[i].Mend(t)
		works()
	}
	check.Equal(t, "how often everything was copied", strings.Count(w.log.String(), "copying all edges"), 1)
}

// TestADatabaseOfAFollowedServerComesLate: under another name. The server is then followed with all its databases.
func TestADatabaseOfAFollowedServerComesLate(t *testing.T) {
	t.Parallel()
	testenv.NeedsBinlog(t)
	server := testenv.MariaDB(t)
	w := worldOn(t, server.CreateDatabase(t, "kith_a"), server.CreateDatabase(t, "kith_b"))
	name := testenv.NewLink(t, server.Addr())
	r := w.replicate(t, func(cfg *binlog.Config) { cfg.DSNs = w.dsns[:1] })
	r.await(t, binlog.Tailing)
	r.stop(t)
	name.Cut()
	r = w.replicate(t, func(cfg *binlog.Config) { cfg.DSNs = append(w.dsns[:1:1], through(name, server, "kith_b")...) })
	r.awaitSome(t, binlog.Tailing)
	w.write(t, w.follow(1, 2), w.follow(2, 3), w.follow(3, 4), w.follow(4, 1))
	name.Mend(t)
	w.settle(t)
	r.await(t, binlog.Tailing)
	check.Equal(t, "how many servers are followed", len(r.binlog.Status()), 1)
}
