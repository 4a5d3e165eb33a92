package suite_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"kith/bench"
	"kith/bench/report"
	"kith/bench/suite"
	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// tiny is the smallest configuration that measures everything.
func tiny(t *testing.T) suite.Config {
	return suite.Config{
		Flags: suite.Flags{
			Engines: report.Engines, States: []string{report.Baseline, report.Cold, report.Warm},
			MariaDB: suite.Auto, Redis: suite.Auto, Folder: t.TempDir(), Seed: 42,
			Connections: 2, Rounds: 1, Duration: 30 * time.Millisecond, Heat: 50 * time.Millisecond,
		},
		Program: kithtest.Binary(t), Baseline: kithtest.BenchBinary(t),
		Users: 500, Follows: 10, Questions: bench.Questions, MixedUsers: 500,
		Log: t.Logf,
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
	check.Equal(t, "cells", len(size.Cells), 3*(len(bench.Questions)+1))
	if cold := size.Find(report.SQLite, report.Cold, "q1"); *cold.Statements < 0.5 || *cold.Statements > 3 {
		t.Errorf("without caches q1 takes %v statements", *cold.Statements)
	}
}

// With private servers the result is the same, and the two engines share a baseline.
func TestRunOnPrivateServers(t *testing.T) {
	testenv.Needs(t, "mariadbd", "mariadb-install-db", "redis-server")
	c := tiny(t)
	c.Rounds, c.Engines = 2, []string{report.MariaDB, report.MariaDBRedis}
	c.Questions = []*bench.Question{bench.QuestionByName("q1"), bench.QuestionByName("q5t")}
	size, machine := runTiny(t, c)
	check.Equal(t, "cells", len(size.Cells), 5*3)
	if machine.MariaDB == "" || machine.Redis == "" || machine.Cores < 1 {
		t.Errorf("%+v", machine)
	}
}

// runTiny measures. It checks that all answers are right, and that their cost is known if it can be.
func runTiny(t *testing.T, c suite.Config) (*report.Size, report.Machine) {
	t.Helper()
	of, machine, err := suite.Run(t.Context(), c)
	must.OK(t, err)
	size := &of
	if size.Users != 500 || size.Edges < 2500 || size.MixedUsers != 500 || size.MixedEdges < 100 {
		t.Fatalf("%+v", size)
	}
	if questions := size.Questions(); len(questions) != len(c.Questions)+1 {
		t.Errorf("asked %v", questions)
	}
	for i := range size.Cells {
		cell := &size.Cells[i]
		name := fmt.Sprint(cell.Engine, " ", cell.State, " ", cell.Question)
		if cell.Errors > 0 || cell.Requests == 0 || cell.PerSecond <= 0 || cell.P99 < cell.P50 || cell.P50 <= 0 {
			t.Errorf("%s: %+v", name, cell.Figures)
		}
		check.That(t, size.Ratio(cell) > 0, "%s has no baseline beside it", name)
		if cell.GatewayCPU == nil || cell.Allocated == nil || *cell.Allocated <= 0 {
			t.Errorf("%s: nobody knows what it costs: %+v", name, cell.Figures)
		}
		check.Equal(t, name+": the database's CPU is known", cell.DatabaseCPU != nil, cell.Engine != report.SQLite)
		check.Equal(t, name+": the statements are known", cell.Statements != nil, cell.State != report.Baseline)
	}
	return size, machine
}

// On servers that already run, databases are created, and removed at the end.
func TestRunOnGivenServers(t *testing.T) {
	c := onShared(t, tiny(t))
	c.Engines, c.States, c.Questions = []string{report.MariaDBRedis}, []string{report.Cold}, bench.Questions[:1]
	c.MixedUsers = 0
	size, machine, err := suite.Run(t.Context(), c)
	must.OK(t, err)
	if cells := size.Cells; len(cells) != 1 || cells[0].Engine != report.MariaDBRedis || cells[0].Errors > 0 || cells[0].DatabaseCPU != nil {
		t.Errorf("%+v", size)
	}
	if machine.MariaDB == "" || machine.Redis == "" {
		t.Errorf("%+v", machine)
	}
	var left int
	if err := testenv.SharedMariaDB(t, 1)[0].Open(t, "").QueryRow("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name LIKE 'kith_bench%'").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d databases are left: %v", left, err)
	}
}

// Several gateways answer before and after one of them was killed, with Redis as their cache and without.
func TestRunSeveral(t *testing.T) {
	c := onShared(t, tiny(t))
	c.Engines = []string{report.MariaDBRedis}
	size, _, err := suite.RunSeveral(t.Context(), suite.SeveralConfig{Config: c, Gateways: 2, Late: 10 * time.Second})
	must.OK(t, err)
	var cells []string
	for _, cell := range size.Cells {
		cells = append(cells, cell.State+", "+cell.Question)
		if cell.Errors > 0 || cell.Requests == 0 || cell.Question != "seen by others" && (cell.Statements == nil || *cell.Statements == 0) {
			t.Errorf("%+v", cell)
		}
	}
	var want, last []string
	for _, state := range []string{"cache in Redis", "events only", "no Redis"} {
		for _, when := range []string{"1 before", "1 during", "1 after"} {
			want = append(want, state+", "+when)
		}
		last = append(last, state+", seen by others")
	}
	want = append(want, last...)
	check.Equal(t, "the cells", cells, want)
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
