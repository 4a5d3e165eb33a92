package faults_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"kith/internal/check"
	"kith/internal/must"
	"kith/replication"
	"kith/storage"
)

// load follows and unfollows at a rate until the returned function is called. The edges are from the
// other users to one another and to those of the file, on both sides, as in the mode sync.
func (g *graph) load(t testing.TB, perSecond int) (stop func() (written int)) {
	t.Helper()
	return g.writing(t, perSecond, g.writeOne)
}

// writing makes eight writers write at a rate until the returned function is called.
func (g *graph) writing(t testing.TB, perSecond int, write func(context.Context, *replication.Synchronous, *rand.Rand) error) (stop func() (written int)) {
	t.Helper()
	mode := g.inCall()
	ctx, cancel := context.WithCancel(context.Background())
	var n atomic.Int64
	due := make(chan bool, perSecond)
	var running sync.WaitGroup
	running.Go(func() {
		defer close(due)
		sent := 0
		for began := time.Now(); ctx.Err() == nil; time.Sleep(time.Millisecond) {
			for want := int(time.Since(began).Seconds() * float64(perSecond)); sent < want && ctx.Err() == nil; sent++ {
				select {
				case due <- true:
				case <-ctx.Done():
				}
			}
		}
	})
	for i := range 8 {
		r := rand.New(rand.NewPCG(uint64(i), 11))
		running.Go(func() {
			for range due {
				// Each write is completed even if the load ends: half a write would be damage. If another
				// write has made a user block its follower, the follow is refused.
				if err := write(context.Background(), mode, r); err != nil && !errors.Is(err, storage.ErrForbidden) {
					t.Errorf("a write of the load: %v", err)
					return
				}
				n.Add(1)
			}
		})
	}
	var once sync.Once
	end := func() int {
		once.Do(func() { cancel(); running.Wait(); mode.Close() })
		return int(n.Load())
	}
	t.Cleanup(func() { end() })
	return end
}

// writeOne changes one edge on both sides.
func (g *graph) writeOne(ctx context.Context, mode *replication.Synchronous, r *rand.Rand) error {
	written, err := g.changeOne(ctx, r, storage.ChangeOptions{Inverse: true})
	if err != nil || !written.Changed {
		return err
	}
	return mode.Propagate(ctx, written.Written())
}

// changeOne changes one edge on the forward side.
func (g *graph) changeOne(ctx context.Context, r *rand.Rand, options storage.ChangeOptions) (storage.Changed, error) {
	from, to := g.others[r.IntN(len(g.others))], g.others[r.IntN(len(g.others))]
	if r.IntN(2) == 0 || from == to {
		to = g.users[r.IntN(len(g.users))]
	}
	change := storage.EdgeChange{To: to, Type: storage.Following, At: storage.MicrosOf(time.Now())}
	if r.IntN(4) == 0 {
		change.Type = storage.EdgeType(r.IntN(3))
	}
	written := g.ChangeEdges(ctx, storage.Forward, from, []storage.EdgeChange{change}, options)[0]
	return written.Value, written.Err
}

// inCall is a redundancy mode that applies rows to the inverse side in the same call, until it is closed.
func (g *graph) inCall() *replication.Synchronous {
	return replication.NewSynchronous(g.Store, nobody{}, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
}

// takeBack ends, on both sides, every edge that the load has made.
func (g *graph) takeBack(t testing.TB) {
	t.Helper()
	mode := g.inCall()
	defer mode.Close()
	made := map[storage.UserID][]storage.EdgeChange{}
	for _, e := range g.rows(t, storage.Forward) {
		if e.From >= firstOther && e.Type != storage.None {
			made[e.From] = append(made[e.From], storage.EdgeChange{To: e.To, Type: storage.None, Ends: e.Type, At: storage.MicrosOf(time.Now())})
		}
	}
	check.Least(t, "edges that the load has left", len(made), 1)
	var running errgroup.Group
	running.SetLimit(8)
	for from, changes := range made {
		running.Go(func() error {
			var ended []storage.Written
			for _, written := range g.ChangeEdges(t.Context(), storage.Forward, from, changes, storage.ChangeOptions{Inverse: true}) {
				if written.Err != nil || !written.Value.Changed {
					return fmt.Errorf("end an edge of %d: %+v", from, written)
				}
				ended = append(ended, written.Value.Written()...)
			}
			return mode.Propagate(t.Context(), ended)
		})
	}
	must.OK(t, running.Wait())
}

// nobody is notified of rows, and does nothing.
type nobody struct{}

func (nobody) Publish(context.Context, []storage.Row) {}
