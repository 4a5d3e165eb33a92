package program_test

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
)

// A store in one file gets a second file, and half of its users move there, while a gateway serves it.
func TestShardsAreAdded(t *testing.T) {
	t.Parallel()
	first := demoSQLite(t, 1)[0].address
	dir := filepath.Dir(first)
	second := filepath.Join(dir, "b.db")
	g := kithtest.Start(t, kithtest.Args("--store", "sqlite:"+first))
	run := func(code int, args ...string) kithtest.End {
		t.Helper()
		end := kithtest.Run(t, kithtest.Args(append(args, "--store", "sqlite:"+first)...))
		must.That(t, end.Code == code && (code == 0 || strings.Count(end.Stderr, "\n") == 1), "kith %v ended with %d\n%s%s", args, end.Code, end.Stdout, end.Stderr)
		return end
	}
	whole := func() (answer struct {
		User struct {
			Followings struct{ TotalCount int }
			Followers  struct{ TotalCount int }
		}
	}) {
		t.Helper()
		g.Query(t, `{ user(by: {id: 1}) { followings { totalCount } followers { totalCount } } }`, nil, &answer)
		return answer
	}
	before := whole()

	// The path is relative to where the command runs. Every other program still finds the file.
	kithtest.Ends(t, 0, kithtest.Dir(dir), kithtest.Args("shards", "add", "b.db", "--store", "sqlite:"+first))
	// The first one may have been cut off before it said so.
	check.Has(t, "the same shard again", run(0, "shards", "add", second).Stdout, "is shard 1. It has no buckets yet")
	check.Has(t, "a dry run", run(0, "shards", "split", "--from", "0", "--to", "1", "--dry-run").Stdout, "buckets 512–1023 from shard 0 to shard 1: about ", "about 1m")
	var expected struct {
		Rows    int64
		Seconds float64
	}
	var report struct{ Rows int64 }
	split := func(to any, args ...string) {
		t.Helper()
		args = append([]string{"shards", "split", "--from", "0", "--to", "1", "--keep", "2s", "--output=json"}, args...)
		must.OK(t, json.Unmarshal([]byte(run(0, args...).Stdout), to))
	}
	split(&expected, "--dry-run", "--max-load=0.1")
	off := math.Abs(expected.Seconds - 2 - float64(expected.Rows)/8000/0.1)
	check.Most(t, fmt.Sprintf("the error of %g s for %d rows", expected.Seconds, expected.Rows), off, 0.01)
	split(&report)
	if report.Rows < 1000 || expected.Rows < report.Rows/2 || expected.Rows > 2*report.Rows {
		t.Errorf("%d rows were expected, and %d copied", expected.Rows, report.Rows)
	}
	var status struct {
		Shards []struct{ Buckets int }
		Moves  []any
	}
	must.OK(t, json.Unmarshal([]byte(run(0, "shards", "status", "--output=json").Stdout), &status))
	if len(status.Shards) != 2 || status.Shards[0].Buckets != 512 || status.Shards[1].Buckets != 512 || len(status.Moves) > 0 {
		t.Errorf("after the split the shards are %+v", status)
	}
	after := whole()
	check.That(t, after == before && before.User.Followings.TotalCount != 0, "the gateway answered %+v before and %+v after", before, after)
	check.Has(t, "the same shard again, with buckets", run(0, "shards", "add", second).Stdout, "has been shard 1 before, with buckets 512–1023")
	run(0, "reconcile", "full", "--max-load", "1")
	out := kithtest.Start(t, kithtest.Args("--store", "sqlite:"+first)).Stdout()
	check.That(t, strings.HasPrefix(out, "kith serves the graph on 2 sqlite shard(s)"), "a gateway says %q", out)

	for say, args := range map[string][]string{
		"there is no shard 7":              {"shards", "move", "--from", "0", "--to", "7", "--buckets", "3"},
		"there is no shard 8":              {"shards", "split", "--from", "8", "--to", "1"},
		"there is no shard 9":              {"shards", "readmit", "9"},
		"is shard 0 already":               {"shards", "add", first},
		"--to: it is the shard that has":   {"shards", "split", "--from", "1", "--to", "1"},
		"does not have buckets 600–600":    {"shards", "move", "--from", "0", "--to", "1", "--buckets", "600"},
		"missing flags: --buckets":         {"shards", "move", "--from", "0", "--to", "1"},
		"missing flags: --from":            {"shards", "split", "--to", "1"},
		"--keep: it must be from 2s to 24": {"shards", "split", "--from", "0", "--to", "1", "--keep", "1s"},
	} {
		code := 78 // the same command would fail again
		if strings.HasPrefix(say, "is shard 0") || strings.HasPrefix(say, "does not have") {
			code = 1
		}
		if end := run(code, args...); !strings.Contains(end.Stderr, say) {
			t.Errorf("kith %v says %q, want %q", args, end.Stderr, say)
		} else if strings.Contains(end.Stderr, "resume") {
			t.Errorf("kith %v says %q, but nothing has begun", args, end.Stderr)
		}
	}
}

// The list is of the shards that answer, with what is wrong with the others, and ends with 1 then.
func TestShardsWhileOneIsDown(t *testing.T) {
	t.Parallel()
	server := testenv.MariaDB(t)
	shards := laidOut(t, database{"mysql", testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0]}, database{"mysql", server.CreateDatabase(t, "kith")})
	list := func(code int, first, second string) {
		t.Helper()
		end := kithtest.Run(t, kithtest.Args("shards", "--store", location(shards...)))
		lines := strings.SplitN(end.Stdout, "\n", 2)
		if end.Code != code || len(lines) != 2 || !strings.HasSuffix(lines[0], first) || !strings.Contains(lines[1], second) {
			t.Errorf("%+v, want %q and %q", end, first, second)
		}
		if (end.Stderr != "") != (code == 1) || code == 1 && !strings.HasPrefix(end.Stderr, "kith: something is wrong with shard 1: ") {
			t.Errorf("it says %q", end.Stderr)
		}
	}
	const whole = "  512 buckets: 0–511"
	list(0, whole, "/kith  512 buckets: 512–1023\n")
	shards[1].exec(t, "DELETE FROM kith_admitted")
	list(1, whole, "/kith  512 buckets: 512–1023\n         nothing is written to the shard")
	server.Kill(t)
	list(1, whole, "/kith  buckets not known\n         ")
	end := kithtest.Run(t, kithtest.Args("shards", "status", "--output=json", "--store", location(shards...)))
	var status struct {
		Shards []struct {
			Buckets int
			Error   string
		}
	}
	if err := json.Unmarshal([]byte(end.Stdout), &status); err != nil || end.Code != 1 || len(status.Shards) != 2 ||
		status.Shards[0].Buckets != 512 || status.Shards[0].Error != "" || !strings.Contains(status.Shards[1].Error, "connection refused") {
		t.Errorf("%+v: %+v", end, status)
	}
}
