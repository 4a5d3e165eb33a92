package suite_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"kith/bench"
	"kith/bench/private"
	"kith/bench/report"
	"kith/bench/suite"
	"kith/internal/kithtest"
	"kith/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// needs skips a test if a program is not installed, unless skipping is not allowed.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, name := range programs {
		_, err := private.Find(name)
		switch {
		case err != nil && os.Getenv("CI") == "true":
			t.Fatal(err)
		case err != nil:
			t.Skip(err)
		}
	}
}

// tiny is the smallest configuration that measures everything.
func tiny(t *testing.T) suite.Config {
	return suite.Config{
		Program: kithtest.Binary(t), Baseline: kithtest.BenchBinary(t), Folder: t.TempDir(),
		Engines: report.Engines, States: []string{report.Baseline, report.Cold, report.Warm},
		MariaDB: suite.Auto, Redis: suite.Auto,
		Graphs: []suite.Graph{{Users: 500, Edges: 5000}}, Seed: 42, Questions: bench.Questions, MixedUsers: 500,
		Connections: 2, Rounds: 2, Duration: 30 * time.Millisecond, Warmup: 5 * time.Millisecond, FirstWarmup: 10 * time.Millisecond,
		Heat: 50 * time.Millisecond,
		Log:  t.Logf,
	}
}

// onShared measures on the servers of this test binary. Making data for a private server takes longer
// than most of what is measured here.
func onShared(t *testing.T, c suite.Config) suite.Config {
	c.MariaDB, c.Redis = testenv.SharedMariaDB(t, 1)[0].DSN(""), testenv.Redis(t).URL()
	return c
}

// The real program and the baseline give only right answers.
func TestRun(t *testing.T) {
	c := tiny(t)
	c.Engines = []string{report.SQLite}
	size, _ := runTiny(t, c)
	if len(size.Cells) != 3*(len(bench.Questions)+1) {
		t.Errorf("%d cells", len(size.Cells))
	}
	if cold := size.Find(report.SQLite, report.Cold, "q1"); *cold.Statements < 0.5 || *cold.Statements > 3 {
		t.Errorf("without caches q1 takes %v statements", *cold.Statements)
	}
}

// With private servers the result is the same, and the two engines share a baseline.
func TestRunOnPrivateServers(t *testing.T) {
	needs(t, "mariadbd", "mariadb-install-db", "redis-server")
	c := tiny(t)
	c.Engines = []string{report.MariaDB, report.MariaDBRedis}
	c.Questions = []*bench.Question{bench.QuestionByName("q1"), bench.QuestionByName("q5t")}
	size, machine := runTiny(t, c)
	if len(size.Cells) != 5*3 {
		t.Errorf("%d cells", len(size.Cells))
	}
	if machine.MariaDB == "" || machine.Redis == "" || machine.Cores < 1 {
		t.Errorf("%+v", machine)
	}
}

// runTiny measures. It checks that all answers are right, and that their cost is known if it can be.
func runTiny(t *testing.T, c suite.Config) (*report.Size, report.Machine) {
	t.Helper()
	sizes, machine, err := suite.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if len(sizes) != 1 || sizes[0].Users != 500 || sizes[0].Edges < 2500 || sizes[0].MixedUsers != 500 || sizes[0].MixedEdges < 100 {
		t.Fatalf("%+v", sizes)
	}
	size := &sizes[0]
	if questions := size.Questions(); len(questions) != len(c.Questions)+1 {
		t.Errorf("asked %v", questions)
	}
	for i := range size.Cells {
		cell := &size.Cells[i]
		name := fmt.Sprint(cell.Engine, " ", cell.State, " ", cell.Question)
		if cell.Errors > 0 || cell.Requests == 0 || cell.PerSecond <= 0 || cell.P99 < cell.P50 || cell.P50 <= 0 {
			t.Errorf("%s: %+v", name, cell.Figures)
		}
		if size.Ratio(cell) <= 0 {
			t.Errorf("%s has no baseline beside it", name)
		}
		if cell.GatewayCPU == nil || cell.Allocated == nil || *cell.Allocated <= 0 {
			t.Errorf("%s: nobody knows what it costs: %+v", name, cell.Figures)
		}
		if known := cell.DatabaseCPU != nil; known != (cell.Engine != report.SQLite) {
			t.Errorf("%s: the database's CPU is known: %v", name, known)
		}
		if known := cell.Statements != nil; known != (cell.State != report.Baseline) {
			t.Errorf("%s: the statements are known: %v", name, known)
		}
	}
	return size, machine
}

// On one store, one gateway and the baseline are asked in turn, but no two gateways: a warm one that is not alone keeps nothing in memory.
func TestOnOneStore(t *testing.T) {
	c := tiny(t)
	c.OneStore, c.Engines, c.Questions, c.MixedUsers = true, []string{report.SQLite}, bench.Questions[:2], 0
	for _, test := range []struct {
		states []string
		want   string
	}{
		{[]string{report.Baseline, report.Warm}, "[q1 baseline q1 warm q2 baseline q2 warm]"},
		{[]string{report.Baseline, report.Cold, report.Warm}, "[q1 baseline q1 cold q2 baseline q2 cold q1 warm q2 warm]"},
	} {
		c.States = test.states
		sizes, _, err := suite.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		var asked []string
		for _, cell := range sizes[0].Cells {
			asked = append(asked, cell.Question, cell.State)
		}
		if got := fmt.Sprint(asked); got != test.want {
			t.Errorf("asked %s, want %s", got, test.want)
		}
	}
}

// On servers that already run, databases are created, and removed at the end.
func TestRunOnGivenServers(t *testing.T) {
	c := onShared(t, tiny(t))
	c.Engines, c.States, c.Questions = []string{report.MariaDBRedis}, []string{report.Cold}, bench.Questions[:1]
	c.MixedUsers = 0
	sizes, machine, err := suite.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if cells := sizes[0].Cells; len(cells) != 1 || cells[0].Engine != report.MariaDBRedis || cells[0].Errors > 0 || cells[0].DatabaseCPU == nil {
		t.Errorf("%+v", sizes)
	}
	if machine.MariaDB == "" || machine.Redis == "" {
		t.Errorf("%+v", machine)
	}
	var left int
	if err := testenv.SharedMariaDB(t, 1)[0].Open(t, "").QueryRow("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name LIKE 'kith_bench%'").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d databases are left: %v", left, err)
	}
}

// For stores of several databases, the parts are also measured: on MariaDB all of them.
func TestPartsOnMariaDB(t *testing.T) {
	c := onShared(t, tinyParts(t))
	c.Engines = []string{report.MariaDB}
	sizes, _, err := suite.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	s := checkParts(t, sizes, report.MariaDB)
	// These are the connection pools of one gateway, with 16 and 4 connections for each database.
	if s.Rest == nil || s.Rest.Gateways != 1 || s.Rest.Connections < 2 || s.Rest.Connections > 2*20+10 || s.Rest.PerSecond <= 0 {
		t.Errorf("at rest: %+v", s.Rest)
	}
	if d := s.Drain; d == nil || d.Follows != 500 || d.Written <= 0 || d.PerSecond <= 0 {
		t.Errorf("drained: %+v", d)
	}
}

// On SQLite there is no server and no binlog. Everything else is the same.
func TestPartsOnSQLite(t *testing.T) {
	c := tinyParts(t)
	c.Engines = []string{report.SQLite}
	sizes, _, err := suite.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if s := checkParts(t, sizes, report.SQLite); s.Rest != nil || s.Drain != nil {
		t.Errorf("measured %+v and %+v", s.Rest, s.Drain)
	}
}

// tinyParts is a run of all parts on two databases.
func tinyParts(t *testing.T) suite.Config {
	c := tiny(t)
	c.Shards, c.States, c.Questions, c.MixedUsers = []int{2}, []string{report.Baseline, report.Cold, report.Warm}, bench.Questions[:1], 0
	c.OneStore = true
	c.Parts, c.Inserts, c.CacheBytes, c.Zipf, c.HitsWarmup = suite.Parts, 0.1, []int64{1 << 20}, 0.8, 50*time.Millisecond
	return c
}

// checkParts checks that everything that every engine has was measured.
func checkParts(t *testing.T, sizes []report.Size, engine string) *report.Store {
	t.Helper()
	if len(sizes) != 1 || sizes[0].Shards != 2 || len(sizes[0].Stores) != 1 {
		t.Fatalf("%+v", sizes)
	}
	if names := sizes[0].Questions(); len(sizes[0].Cells) != 4 || names[0] != "q1" || names[1] != "follow" {
		t.Errorf("asked %v: the baseline knows of one database only", names)
	}
	for _, c := range sizes[0].Cells {
		if c.Errors > 0 || c.Requests == 0 {
			t.Errorf("%s: %+v", c.Question, c.Figures)
		}
	}
	s := &sizes[0].Stores[0]
	if s.Engine != engine || s.Imported != sizes[0].Edges || s.ImportPerSecond <= 0 || s.Inserted != s.Imported/10 || s.InsertPerSecond <= 0 {
		t.Errorf("%+v", s)
	}
	for _, name := range []string{"following", "follower", "users", "user_counts"} {
		i := slices.IndexFunc(s.Tables, func(t report.Table) bool { return t.Name == name })
		if i < 0 || s.Tables[i].Imported < 20*500 || s.Tables[i].Inserted < s.Tables[i].Imported {
			t.Errorf("%s: %+v", name, s.Tables)
		}
	}
	if p := s.Packed; p == nil || p.Lists != 0 {
		t.Errorf("lists of some hundreds are packed: %+v", p)
	}
	if len(s.Hits) != 2 || s.Hits[0].Question != "q1" || s.Hits[1].Question != "q2" {
		t.Fatalf("%+v", s.Hits)
	}
	for _, h := range s.Hits {
		if h.Share <= 0 || h.Share > 1 || h.PerSecond <= 0 || h.Entries < 1 || h.Entries > 2000 || h.Bytes < 100*int64(h.Entries) || h.Bytes > 2<<20 {
			t.Errorf("%+v", h)
		}
	}
	if m := s.Move; m == nil || m.Rows < 100 || m.PerSecond <= 0 || m.Waited <= 0 {
		t.Errorf("moved: %+v", m)
	}
	return s
}

// Several gateways answer before and after one of them was killed, with Redis as their cache and without, in turn with another
// build.
func TestRunSeveral(t *testing.T) {
	c := onShared(t, tiny(t))
	c.Rounds = 1
	size, _, err := suite.RunSeveral(t.Context(), suite.SeveralConfig{Config: c, Gateways: 2, Beside: c.Program})
	if err != nil {
		t.Fatal(err)
	}
	var cells []string
	for _, cell := range size.Cells {
		cells = append(cells, cell.State+", "+cell.Question)
		if cell.Errors > 0 || cell.Requests == 0 || cell.Question != "seen by others" && (cell.Statements == nil || *cell.Statements == 0) {
			t.Errorf("%+v", cell)
		}
	}
	var want, last []string
	for _, beside := range []string{"", " beside"} {
		for _, state := range []string{"cache in Redis", "events only", "no Redis"} {
			for _, when := range []string{"1 before", "1 during", "1 after"} {
				want = append(want, state+beside+", "+when)
			}
			last = append(last, state+beside+", seen by others")
		}
	}
	want = append(want, last...)
	if !slices.Equal(cells, want) {
		t.Errorf("%q, want %q", cells, want)
	}
}

// If something cannot be measured, the error says why.
func TestRunFails(t *testing.T) {
	c := tiny(t)
	c.Engines, c.Program = []string{report.SQLite}, "/no/such/kith"
	if _, _, err := suite.Run(t.Context(), c); err == nil {
		t.Error("a program that is not there is measured")
	}
	c = tiny(t)
	c.Engines, c.MariaDB = []string{report.MariaDB}, "kith:kith@tcp(127.0.0.1:1)/"
	if _, _, err := suite.Run(t.Context(), c); err == nil {
		t.Error("a server that is not there is measured")
	}
	if left, _ := os.ReadDir(c.Folder); len(left) > 0 {
		t.Errorf("left in the folder: %v", left)
	}
}

// Home feeds: everybody shows the same pages, and posts are seen through another gateway.
func TestRunFeed(t *testing.T) {
	c := onShared(t, tiny(t))
	size, _, err := suite.RunFeed(t.Context(), suite.FeedConfig{Config: c, Followings: []int{20, 100}, Followers: []int{1, 30}, PerSecond: 20, Posts: 2})
	if err != nil {
		t.Fatal(err)
	}
	if len(size.Cells) != 1+2*4 {
		t.Errorf("%d cells", len(size.Cells))
	}
	for _, cell := range size.Cells {
		if cell.Errors > 0 || cell.Requests == 0 {
			t.Errorf("%s %s, %s: %d of %d answers are wrong: %s", cell.Engine, cell.State, cell.Question, cell.Errors, cell.Requests, cell.Error)
		}
	}
	feeds := size.Feeds
	if feeds.Recent == 0 || feeds.Recent >= feeds.Posts || feeds.RecentBytes == 0 || len(feeds.Seen) != 2 {
		t.Errorf("%+v", feeds)
	}
	if feeds.Inboxes != 2*16 || feeds.InboxBytes < 1000 || feeds.FanBytes < 1000 || len(feeds.SeenHybrid) != 2 {
		t.Errorf("%+v", feeds)
	}
	for _, seen := range slices.Concat(feeds.Seen, feeds.SeenHybrid) {
		if seen.Posts != 2 || seen.P50 <= 0 || seen.Max < seen.P50 || seen.Written < 3 {
			t.Errorf("%+v", seen)
		}
	}
}
