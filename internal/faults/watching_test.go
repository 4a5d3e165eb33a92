package faults_test

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// watching is `kith reconcile realtime` beside a deployment. It measures how long each edge that it
// finds has differed.
type watching struct {
	*deployment
	*life

	mu    sync.Mutex
	apart map[found]time.Duration // from the write until both rows were seen to be equal, or 0 until then
}

// found is an edge that realtime reports, with its version in following.
type found struct {
	edge
	version int64
}

// watch starts the realtime mode over slow links, and waits until it has its positions in the logs of all servers.
func (d *deployment) watch(t testing.TB, window time.Duration) *watching {
	t.Helper()
	l := d.command("reconcile", "realtime", "--window", window.String(), "--store", d.slowLocation(t))(t)
	l.name = "kith reconcile realtime"
	w := &watching{deployment: d, life: l, apart: map[found]time.Duration{}}
	w.Until(t, "places in the logs", func() bool {
		places := int64(0)
		for shard := range d.shards {
			places += d.number(t, shard, "SELECT COUNT(*) FROM kith_checkpoints WHERE name LIKE 'reconcile/realtime/%'")
		}
		return places >= int64(len(d.servers))
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			w.look(ctx)
			time.Sleep(50 * time.Millisecond) // this is how exactly times are known
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return w
}

// disagrees is a line of realtime's log.
var disagrees = regexp.MustCompile(`msg="an edge disagrees" .*\bfrom=(\d+) to=(\d+) .*\bfollowing_time=(\d+)`)

// look notes which edges have been found, and which of them are now equal on both sides.
func (w *watching) look(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range disagrees.FindAllStringSubmatch(w.Stderr(), -1) {
		var n [3]int64
		for i := range n {
			n[i], _ = strconv.ParseInt(line[i+1], 10, 64) // these are digits
		}
		f := found{edge{n[0], n[1]}, n[2]}
		if _, known := w.apart[f]; !known {
			w.apart[f] = 0
		}
	}
	for f, apart := range w.apart {
		if apart == 0 && w.same(ctx, f) {
			w.apart[f] = max(1, time.Since(time.UnixMicro(f.version)))
		}
	}
}

// same reports whether follower has the version that was found in following, or a newer one. If the
// server is down, it returns false.
func (w *watching) same(ctx context.Context, f found) bool {
	var n int
	err := w.shards[w.shardOf(f.to)].QueryRowContext(ctx,
		"SELECT COUNT(*) FROM follower WHERE to_user_id = ? AND from_user_id = ? AND update_time >= ?", f.to, f.from, f.version).Scan(&n)
	return err == nil && n > 0
}

// settle waits until nothing differs any more, and reports what was repaired and how long that took.
func (w *watching) settle(t testing.TB) {
	t.Helper()
	began := time.Now()
	until(t, "repair by the realtime mode", func() bool { return len(w.tables(t).different()) == 0 })
	rest := time.Since(began)
	var times []time.Duration
	until(t, "end of the repairs", func() bool {
		w.look(t.Context())
		w.mu.Lock()
		defer w.mu.Unlock()
		times = nil
		for _, apart := range w.apart {
			times = append(times, apart)
		}
		return !slices.Contains(times, 0)
	})
	w.wasWell(t)
	if len(times) == 0 {
		// A crash loses something only at some moments. Other tests, such as
		// TestRealtimeRepairsWithinTwoWindows, check that differences are found.
		t.Log("nothing has come apart for long enough to be found")
		return
	}
	slices.Sort(times)
	t.Logf("realtime found and repaired %d edges, %v after they were written (median), %v at most; the last ones %v after all was quiet",
		len(times), times[len(times)/2].Round(time.Millisecond), times[len(times)-1].Round(time.Millisecond), rest.Round(time.Millisecond))
}
