package replication_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"kith/internal/check"
	"kith/internal/metered"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/replication"
	"kith/storage"
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

func (f *flaky) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Changed] {
	results := make([]storage.Result[storage.Changed], len(edges))
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

// world is users 1 … 9 on a flaky store, with the mode running.
type world struct {
	store     *flaky
	published *published
	mode      *replication.Synchronous
	registry  *prometheus.Registry
	log       bytes.Buffer // to be read once it is closed
	close     func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{store: &flaky{Store: oracle.New(), away: map[storage.UserID]bool{}}, published: &published{}, registry: prometheus.NewRegistry()}
	for id := storage.UserID(1); id < 10; id++ {
		must.OK(t, w.store.CreateUsers(t.Context(), []storage.User{{ID: id, Handle: "u" + id.String(), Name: "U"}})[0].Err)
	}
	w.mode = replication.NewSynchronous(w.store, w.published, w.registry, slog.New(slog.NewTextHandler(&w.log, nil)))
	w.close = sync.OnceFunc(w.mode.Close)
	t.Cleanup(w.close)
	return w
}

// change changes an edge as a user may do, and propagates it.
func (w *world) change(t *testing.T, from, to storage.UserID, kind storage.EdgeType, at storage.Micros) error {
	t.Helper()
	r := w.store.ChangeEdges(t.Context(), storage.Forward, from, []storage.EdgeChange{{To: to, Type: kind, Ends: storage.Blocking, At: at}}, storage.ChangeOptions{})[0]
	must.That(t, r.Err == nil && r.Value.Changed, "%d→%d to %d: %+v", from, to, kind, r)
	return w.mode.Propagate(t.Context(), r.Value.Written())
}

func (w *world) row(side storage.Side, from, to storage.UserID) storage.Edge {
	return storage.EdgeLookups[side].Read(context.Background(), w.store, storage.Pair{From: from, To: to})[0].Value
}

// agree reports whether the two sides of an edge are equal.
func (w *world) agree(from, to storage.UserID) bool {
	return w.row(storage.Forward, from, to) == w.row(storage.Inverse, from, to)
}

func (w *world) counter(t *testing.T, name string) float64 { return metered.Value(t, w.registry, name) }

// Rows that follow from a block are on both sides when the call returns, and are published.
func TestWhatFollowsIsAppliedInTheCall(t *testing.T) {
	w := newWorld(t)
	must.OK(t, errors.Join(w.change(t, 2, 1, storage.Following, 10), w.change(t, 1, 2, storage.Blocking, 20)))
	ended := storage.Row{Side: storage.Forward, Edge: w.row(storage.Forward, 2, 1)}
	if ended.Edge.Type != storage.None || !w.agree(2, 1) || !w.agree(1, 2) || !slices.Contains(w.published.all(), ended) {
		t.Errorf("%+v is %+v on the other side; published %v", ended, w.row(storage.Inverse, 2, 1), w.published.all())
	}
	check.Equal(t, "failures counted", w.counter(t, "kith_sync_inverse_failed_total"), 0)
}

// A write that fails in the request is retried, and so are the rows that follow from it, even if only
// these fail.
func TestWhatFollowsIsTriedAgain(t *testing.T) {
	for name, away := range map[string]struct {
		first, then []storage.UserID // whose rows cannot be written: 2 is blocked, 1 blocks
		failed      float64
	}{
		"the block":                     {[]storage.UserID{2}, nil, 1},
		"what follows":                  {[]storage.UserID{1}, nil, 1},
		"the block, then what follows":  {[]storage.UserID{2}, []storage.UserID{1}, 2},
		"both, and what follows longer": {[]storage.UserID{1, 2}, []storage.UserID{1}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			must.OK(t, w.change(t, 2, 1, storage.Following, 10))
			for _, id := range away.first {
				w.store.set(id, true)
			}
			err := w.change(t, 1, 2, storage.Blocking, 20)
			must.That(t, errors.Is(err, errAway), "propagated: %v", err)
			for _, id := range away.then {
				w.store.set(id, true)
			}
			w.store.set(2, false)
			if len(away.then) > 0 {
				must.Soon(t, "the block has ended the follow", func() bool { return w.row(storage.Forward, 2, 1).Type == storage.None })
				must.Soon(t, "what follows has failed", func() bool { return w.counter(t, "kith_sync_inverse_failed_total") == 2 })
			}
			w.store.set(1, false)
			must.Soon(t, "both sides agree", func() bool {
				return w.row(storage.Forward, 2, 1).Type == storage.None && w.agree(2, 1) && w.agree(1, 2)
			})
			must.Soon(t, "all is counted as repaired", func() bool {
				return w.counter(t, "kith_sync_inverse_repaired_total") == away.failed && w.counter(t, "kith_sync_inverse_failed_total") == away.failed
			})
			check.Equal(t, "dropped", w.counter(t, "kith_sync_inverse_dropped_total"), 0)
		})
	}
}

// Rows that still wait when the program ends are counted as left for reconcile. Nobody asks for metrics by then, so the log has them, too.
func TestWhatIsLeftIsCounted(t *testing.T) {
	w := newWorld(t)
	w.store.set(2, true)
	must.That(t, w.change(t, 1, 2, storage.Following, 10) != nil, "propagated")
	w.close()
	check.Equal(t, "dropped", w.counter(t, "kith_sync_inverse_dropped_total"), 1)
	check.That(t, strings.Contains(w.log.String(), "left to kith reconcile"), "the log: %s", w.log.String())
}

// Rows whose other side is already written are only published.
func TestWrittenOnBothSidesIsPublished(t *testing.T) {
	w := newWorld(t)
	row := storage.Row{Side: storage.Forward, Edge: storage.Edge{From: 1, To: 2, Type: storage.Following, UpdateTime: 5}}
	must.OK(t, w.mode.Propagate(t.Context(), []storage.Written{{Row: row, Inverse: true}}))
	if !slices.Contains(w.published.all(), row) || w.row(storage.Inverse, 1, 2) != (storage.Edge{}) {
		t.Errorf("published %v, follower holds %+v", w.published.all(), w.row(storage.Inverse, 1, 2))
	}
}
