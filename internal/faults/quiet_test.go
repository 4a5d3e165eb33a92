package faults_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"kith/internal/must"
)

// quiet waits until everything that was written has been propagated, or given up and counted.
// Nothing may be written at the same time.
func (d *deployment) quiet(t testing.TB, h *history) {
	t.Helper()
	switch d.mode {
	case "sync":
		d.retriesEnd(t)
	case "stream":
		d.streamDrains(t)
	case "binlog":
		d.lastRowsArrive(t, h)
	}
}

// retriesEnd waits until no gateway retries anything.
func (d *deployment) retriesEnd(t testing.TB) {
	t.Helper()
	for _, n := range d.gateways {
		l := n.now.Load()
		until(t, "end of the retries of "+l.name, func() bool {
			return l.metric(t, "kith_sync_inverse_failed_total", "") ==
				l.metric(t, "kith_sync_inverse_repaired_total", "")+l.metric(t, "kith_sync_inverse_dropped_total", "")
		})
	}
}

// streamDrains waits until every entry has been acknowledged.
func (d *deployment) streamDrains(t testing.TB) {
	t.Helper()
	client := d.admin(t)
	keys, err := client.Keys(t.Context(), "kith:following:*").Result()
	must.That(t, err == nil && len(keys) == 1, "the streams are %v: %v", keys, err)
	key := keys[0]
	until(t, "an empty stream", func() bool {
		stream, err := client.XInfoStream(t.Context(), key).Result()
		groups, errGroups := client.XInfoGroups(t.Context(), key).Result()
		must.OK(t, errors.Join(err, errGroups))
		return len(groups) == 1 && groups[0].Pending == 0 && groups[0].LastDeliveredID == stream.LastGeneratedID
	})
}

// lastRowsArrive writes one more edge from each shard to each, and waits for their inverse rows.
// What one server has written to one shard arrives in its order, so everything that was written
// before has also arrived. Then there must be no lag left.
func (d *deployment) lastRowsArrive(t testing.TB, h *history) {
	t.Helper()
	c := d.client(t)
	l := d.gateways[0].now.Load()
	last := map[edge]int64{}
	for from := range d.shards {
		for to := range d.shards {
			e := edge{d.onShard(from, 1)[0], d.onShard(to, 2)[1]}
			field := "follow"
			if d.number(t, from, "SELECT COUNT(*) FROM following WHERE from_user_id = ? AND to_user_id = ? AND type = 1", e.from, e.to) > 0 {
				field = "unfollow"
			}
			o := operation{field: field, viewer: e.from, targets: []int64{e.to}}
			r := o.send(t.Context(), c, l)
			must.That(t, r.err == nil && r.code == "" && len(r.changes) == 1, "the last %s of %v: %+v", field, e, r)
			must.OK(t, r.note(h))
			last[e] = r.changes[0].version
		}
	}
	defer func() {
		if t.Failed() {
			d.logProgress(t)
		}
	}()
	until(t, "the last rows", func() bool {
		for e, version := range last {
			if d.number(t, d.shardOf(e.to), "SELECT COUNT(*) FROM follower WHERE to_user_id = ? AND from_user_id = ? AND update_time = ?", e.to, e.from, version) == 0 {
				return false
			}
		}
		return true
	})
	for _, n := range d.replicators {
		l := n.now.Load()
		if l.gateway == nil {
			continue
		}
		until(t, "no lag of "+l.name, func() bool {
			return l.metric(t, "kith_replication_lag_seconds", "") == 0 && l.metric(t, "kith_replication_pending_rows", "") == 0
		})
	}
}

// logProgress logs how far replication has come.
func (d *deployment) logProgress(t testing.TB) {
	t.Helper()
	show := func(on *sql.DB, query string) {
		rows, err := on.QueryContext(context.Background(), query)
		if err != nil {
			t.Logf("%s: %v", query, err)
			return
		}
		defer rows.Close()
		columns, _ := rows.Columns()
		for rows.Next() {
			values := make([]sql.NullString, len(columns))
			into := make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Log(err)
			}
			for i, v := range values {
				t.Logf("%s: %s = %q", query, columns[i], v.String)
			}
		}
	}
	for _, db := range d.shards {
		show(db, "SHOW MASTER STATUS")
		show(db, "SHOW BINARY LOGS")
		show(db, "SELECT * FROM kith_leases")
	}
	show(d.shards[0], "SELECT name, CAST(value AS CHAR) FROM kith_checkpoints")
	for _, n := range d.replicators {
		l := n.now.Load()
		t.Logf("%s: %s", l.name, l.Stderr())
		if l.gateway != nil {
			t.Logf("%s: lag %v, pending %v", l.name, l.metric(t, "kith_replication_lag_seconds", ""), l.metric(t, "kith_replication_pending_rows", ""))
		}
	}
}
