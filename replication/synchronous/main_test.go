package synchronous_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/replication/synchronous"
	"kith/storage"
	"kith/storage/storagetest/oracle"
)

// flaky is a store in which the inverse rows of some users cannot be written for a while.
type flaky struct {
	*oracle.Store
	mu   sync.Mutex
	away map[storage.UserID]bool // owners
}

var errAway = errors.New("away")

func (f *flaky) set(owner storage.UserID, away bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away[owner] = away
}

func (f *flaky) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Applied] {
	results := make([]storage.Result[storage.Applied], len(edges))
	for i, e := range edges {
		f.mu.Lock()
		away := f.away[side.Owner(e.Pair())]
		f.mu.Unlock()
		if away {
			results[i].Err = errAway
			continue
		}
		results[i] = f.Store.Apply(ctx, side, edges[i:i+1], rule)[0]
	}
	return results
}

// published is a publisher that remembers what was published.
type published struct {
	mu   sync.Mutex
	rows []storage.Row
}

func (p *published) Publish(_ context.Context, rows []storage.Row) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rows = append(p.rows, rows...)
}

func (p *published) has(row storage.Row) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.rows, row)
}

// world is users 1 … 9 on a flaky store, with the mode running.
type world struct {
	store     *flaky
	published *published
	mode      *synchronous.Redundancy
	registry  *prometheus.Registry
	close     func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{store: &flaky{Store: oracle.New(), away: map[storage.UserID]bool{}}, published: &published{}, registry: prometheus.NewRegistry()}
	for id := storage.UserID(1); id < 10; id++ {
		if r := w.store.CreateUsers(t.Context(), []storage.User{{ID: id, Handle: "u" + id.String(), Name: "U"}})[0]; r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	w.mode = synchronous.New(w.store, w.published, synchronous.NewMetrics(w.registry), slog.New(slog.DiscardHandler))
	w.close = sync.OnceFunc(w.mode.Close)
	t.Cleanup(w.close)
	return w
}

// change changes an edge as a user may do, and propagates it.
func (w *world) change(t *testing.T, from, to storage.UserID, kind storage.EdgeType, at storage.Micros) error {
	t.Helper()
	r := w.store.ChangeEdges(t.Context(), from, []storage.EdgeChange{{To: to, Type: kind, Ends: storage.Blocking, At: at}}, storage.ChangeOptions{})[0]
	if r.Err != nil || !r.Value.Changed {
		t.Fatalf("%d→%d to %d: %+v", from, to, kind, r)
	}
	return w.mode.Propagate(t.Context(), r.Value.Written())
}

func (w *world) row(side storage.Side, from, to storage.UserID) storage.Edge {
	return w.store.Edges(context.Background(), side, []storage.Pair{{From: from, To: to}})[0].Value
}

// agree reports whether the two sides of an edge are equal.
func (w *world) agree(from, to storage.UserID) bool {
	return w.row(storage.Forward, from, to) == w.row(storage.Inverse, from, to)
}

func (w *world) counter(t *testing.T, name string) float64 {
	t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never happens that %s", what)
		}
	}
}
