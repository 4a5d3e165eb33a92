package faults_test

import (
	"testing"

	"kith/internal/check"
	"kith/internal/must"
)

// TestFollowManyStatements: following 200 users takes as many statements as following 50, a few on
// each table of each shard.
func TestFollowManyStatements(t *testing.T) {
	t.Parallel()
	inEach(t, []string{"sync", "binlog"}, func(t *testing.T, mode string) { // in stream a gateway writes the same as in binlog
		d := deploy(t, mode, 400)
		l := d.gateways[0].now.Load()
		c := d.client(t)
		viewers := d.onShard(0, 2)
		h := newHistory()
		statements := func(viewer int64, n int) float64 {
			const counter = "kith_sql_statement_duration_seconds_count"
			o := operation{field: "followMany", viewer: viewer}
			for i := range n {
				o.targets = append(o.targets, int64(101+i))
			}
			// Statements that the gateway runs by itself, including replication, are not counted.
			mine := []string{`"profiles"`, `"change"`}
			if mode == "sync" {
				mine = append(mine, `"apply.follower"`)
			}
			counted := func() (n float64) {
				for _, what := range mine {
					n += l.metric(t, counter, what)
				}
				return n
			}
			before := counted()
			r := o.send(t.Context(), c, l)
			if r.err != nil || r.code != "" || r.stale || len(r.changes) != n {
				t.Fatalf("%d of %d were followed: %v %s %s, stale: %v", len(r.changes), n, r.err, r.code, r.message, r.stale)
			}
			must.OK(t, r.note(h))
			return counted() - before
		}
		few, many := statements(viewers[0], 50), statements(viewers[1], 200)
		t.Logf("followMany of 50: %v statements, of 200: %v", few, many)
		// There is one look-up of users on each of four shards, and the transaction's epoch,
		// lock, read, rows and counts. In the mode sync, the inverse rows of the three other
		// shards are added. Those of the viewer's shard are in the same transaction, and share
		// its lock and counts. No user is read again for the answer: the writes return the
		// counts that they have left.
		want := 4.0 + 5
		if mode == "sync" {
			want += 3*5 + 1
		}
		if few != want || many != want {
			t.Errorf("followMany of 50 takes %v statements, of 200 %v; want %v", few, many, want)
		}
		d.quiet(t, h)
		check.Equal(t, "what differs", h.judge(t, d.tables(t)), nil)
		d.countsAreExact(t)
	})
}
