package faults_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"
)

// windows are how long the inverse side lagged behind at each moment. Probes are written one after
// another, each as soon as the row of the previous probe has arrived. windows also has the stalls
// of this machine, in which nothing runs on time.
type windows struct {
	mu     sync.Mutex
	probes []span
	stalls []span
}

// span is a time from begin to end.
type span struct{ from, to time.Time }

func (s span) length() time.Duration { return s.to.Sub(s.from) }

// measureWindows probes from one user to another and back, until it is stopped. Nobody else writes
// these two edges.
func (d *deployment) measureWindows(t testing.TB, a, b int64) (w *windows, stop func()) {
	w = &windows{}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, e := range []edge{{a, b}, {b, a}} {
		c := d.client(t)
		running.Go(func() { w.probe(ctx, t, d, c, e) })
	}
	running.Go(func() { w.watchStalls(ctx) })
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(stop)
	return w, stop
}

func (w *windows) probe(ctx context.Context, t testing.TB, d *deployment, c *client, e edge) {
	const query = "SELECT COUNT(*) FROM follower WHERE to_user_id = ? AND from_user_id = ? AND update_time = ?"
	for field := "follow"; ctx.Err() == nil; {
		o := operation{field: field, viewer: e.from, targets: []int64{e.to}}
		r := o.send(context.WithoutCancel(ctx), c, d.gateways[0].now.Load())
		if r.err != nil || r.code != "" || len(r.changes) != 1 {
			t.Errorf("probe the lag: %+v", r)
			return
		}
		for there := 0; there == 0; {
			if err := d.shards[d.shardOf(e.to)].QueryRow(query, e.to, e.from, r.changes[0].version).Scan(&there); err != nil {
				t.Errorf("probe the lag: %v", err)
				return
			}
			if time.Since(r.ended) > patience {
				t.Errorf("the row of %v is not on the other side after %s", e, patience)
				return
			}
			time.Sleep(time.Millisecond)
		}
		w.add(&w.probes, span{r.ended, time.Now()})
		field = map[string]string{"follow": "unfollow", "unfollow": "follow"}[field]
		time.Sleep(40 * time.Millisecond)
	}
}

// watchStalls notes when a short sleep takes much longer.
func (w *windows) watchStalls(ctx context.Context) {
	const nap = 2 * time.Millisecond
	for ctx.Err() == nil {
		began := time.Now()
		time.Sleep(nap)
		if s := (span{began, time.Now()}); s.length() > 3*nap {
			w.add(&w.stalls, s)
		}
	}
}

func (w *windows) add(list *[]span, s span) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*list = append(*list, s)
}

// allowed is how late a sight may be that should show what was acknowledged at time from: the
// longest lag of that time, and how long the machine stalled. The sight was asked for at time to.
func (w *windows) allowed(from, to time.Time) time.Duration {
	const around = 300 * time.Millisecond              // there are pauses between probes
	if most := from.Add(time.Second); to.After(most) { // what comes later has delayed nothing
		to = most
	}
	longest := time.Duration(0)
	for _, p := range w.probes {
		if p.from.Before(to.Add(around)) && p.to.After(from.Add(-around)) {
			longest = max(longest, p.length())
		}
	}
	for _, s := range w.stalls {
		if s.from.Before(to) && s.to.After(from) {
			longest += s.length()
		}
	}
	return longest
}

// lag is the time within which a share of the probes arrived.
func (w *windows) lag(share float64) time.Duration {
	list := make([]time.Duration, len(w.probes))
	for i, p := range w.probes {
		list[i] = p.length()
	}
	slices.Sort(list)
	return list[int(float64(len(list)-1)*share)].Round(100 * time.Microsecond)
}
