package faults_test

import (
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
)

// reconcile runs a command that reconciles, to its end.
func (d *deployment) reconcile(t testing.TB, args ...string) kithtest.End {
	t.Helper()
	end := d.command(append([]string{"reconcile"}, args...)...)(t).Wait(t)
	must.That(t, end.Code == 0, "kith reconcile %s ended with code %d: %s\n%s", strings.Join(args, " "), end.Code, end.Stderr, end.Stdout)
	return end
}

// repairTimes measures how long the commands incremental and full take until nothing differs any
// more. They run with their default settings, except for the window. For the second command the
// edges are made to differ again, without the binlogs noticing. Nothing may be written at the same time.
func (r *running) repairTimes(t testing.TB, apart tables, different []edge) {
	t.Helper()
	modes := []string{"incremental", "full"}
	if !testenv.HasBinlog() {
		modes = modes[1:]
	}
	for i, mode := range modes {
		if i > 0 {
			r.putBack(t, apart, different)
		}
		end := r.reconcile(t, mode, "--repair", "--output=json", "--list", all, "--window", r.window.String())
		report := reportOf(t, end)
		found := map[edge]bool{}
		for _, f := range report.Findings {
			found[edge{int64(f.Pair().From), int64(f.Pair().To)}] = true
		}
		for _, e := range different {
			check.That(t, found[e], "%s has not found %v", mode, e)
		}
		check.Equal(t, mode+", edges that were found", report.Total(), len(different))
		if left := r.tables(t).different(); len(left) > 0 {
			t.Errorf("%s has left %d edges, such as %v", mode, len(left), left[0])
		}
		r.countsAreExact(t)
		t.Logf("%s: %s found and repaired %d edges in %v, windows of %v included", r.mode, mode, report.Total(), end.Took.Round(time.Millisecond), r.window)
	}
}

// putBack sets rows of follower back to what they were, and sets the counts to the numbers of rows.
func (d *deployment) putBack(t testing.TB, apart tables, different []edge) {
	t.Helper()
	for shard, dsn := range d.dsns {
		past := pastTheBinlog(t, dsn)
		exec := func(text string, args ...any) {
			_, err := past.ExecContext(t.Context(), text, args...)
			must.OK(t, err)
		}
		for _, e := range different {
			if d.shardOf(e.to) != shard {
				continue
			}
			if was, there := apart.inverse[e]; there {
				exec("REPLACE INTO follower (from_user_id, to_user_id, type, update_time) VALUES (?, ?, ?, ?)", e.from, e.to, was.kind, was.version)
			} else {
				exec("DELETE FROM follower WHERE from_user_id = ? AND to_user_id = ?", e.from, e.to)
			}
			exec("UPDATE user_counts SET follower_count = (SELECT COUNT(*) FROM follower WHERE to_user_id = ? AND type = ?) WHERE user_id = ?",
				e.to, int64(storage.Following), e.to)
		}
	}
}
