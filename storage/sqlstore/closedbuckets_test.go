package sqlstore_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/sqlstore"
)

// While buckets are closed, writes to them wait. Those to the shard's other buckets, with which they share transactions, go on.
func TestNeighboursOfClosedBucketsDoNotWait(t *testing.T) {
	grow(t, 200, func(g *grower) {
		t := g.t
		to, err := g.mover.AddShard(t.Context(), g.add)
		must.OK(t, err)
		var users [2][]storage.UserID // that stay, and that move
		for id := storage.UserID(1); id <= storage.UserID(g.users); id++ {
			moves := id.Bucket() / 512
			users[moves] = append(users[moves], id)
		}
		ctx, stop := context.WithCancel(t.Context())
		var writing sync.WaitGroup
		var written [2]atomic.Int64
		var slowest [2]atomic.Int64 // ms
		s := g.writers[0]
		writing.Go(func() { s.Watch(ctx) })
		for n := range 16 {
			moves, list := n%2, users[n%2]
			writing.Go(func() {
				for i := n; ctx.Err() == nil; i++ {
					began := time.Now()
					change := storage.EdgeChange{To: list[(i+1)%len(list)], Type: storage.EdgeType(i % 2), At: storage.MicrosOf(began)}
					r := s.ChangeEdges(context.WithoutCancel(ctx), storage.Forward, list[i%len(list)], []storage.EdgeChange{change}, storage.ChangeOptions{Inverse: true})[0]
					check.That(t, r.Err == nil, "a write: %v", r.Err)
					written[moves].Add(1)
					slowest[moves].Store(max(slowest[moves].Load(), time.Since(began).Milliseconds()))
					time.Sleep(25 * time.Millisecond)
				}
			})
		}
		defer writing.Wait()
		defer stop()
		figures := func() (n [2]int64, ms [2]int64) {
			for i := range n {
				n[i], ms[i] = written[i].Swap(0), slowest[i].Swap(0)
			}
			return n, ms
		}
		const span = time.Second
		var before [2]int64
		report, err := g.mover.Move(t.Context(), half(0, to), sqlstore.MoveConfig{Token: "mover", Keep: time.Millisecond, Step: func(step string) {
			switch step {
			case "close":
				figures()
				time.Sleep(span)
				before, _ = figures()
			case "last rows":
				time.Sleep(span / 10) // until the gateway has heard of it
				figures()
				time.Sleep(span)
				n, ms := figures()
				t.Logf("in %s: %d writes of neighbours before, %d while the others are closed, the slowest %d ms; %d to the others before, %d then", span, before[0], n[0], ms[0], before[1], n[1])
				check.That(t, n[0] >= before[0]/10, "neighbours wait with them") // those that wait make none, and on a busy machine the spans differ by half
				check.That(t, n[1] <= 8, "closed buckets are written to")
			}
		}})
		check.That(t, err == nil && report.Repaired == 0, "%+v, %v", report, err)
		stop()
		writing.Wait()
		_, ms := figures()
		t.Logf("the slowest write to the buckets: %d ms", ms[1])
	})
}

// The same of a batch of edges, as replicators apply them: those of closed buckets are applied later, the others at once.
func TestBatchesDoNotWaitForClosedBuckets(t *testing.T) {
	t.Parallel()
	grow(t, 10, func(g *grower) {
		t, ctx := g.t, g.t.Context()
		to, err := g.mover.AddShard(ctx, g.add)
		must.OK(t, err)
		var edges []storage.Edge
		for id := storage.UserID(1); id <= storage.UserID(g.users); id++ {
			edges = append(edges, storage.Edge{From: 1000, To: id, Type: storage.Following, UpdateTime: 1})
		}
		s := g.writers[0]
		there := func(open bool) bool {
			return !slices.ContainsFunc(edges, func(e storage.Edge) bool {
				stays := !half(0, to).Buckets.Contains(e.To.Bucket())
				return storage.EdgeLookups[storage.Inverse].Read(ctx, s, e.Pair())[0].Found != (open || stays)
			})
		}
		applied := make(chan []storage.Result[storage.Changed], 1)
		g.moveAfter(half(0, to), "mover", "last rows", func() {
			go func() { applied <- s.Apply(ctx, storage.Inverse, edges, storage.IfNewer) }()
			for deadline := time.Now().Add(2 * time.Second); !there(false); time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Error("neighbours wait with them")
					return
				}
			}
		})
		for _, r := range <-applied {
			check.That(t, r.Err == nil && r.Value.Changed, "an edge: %+v", r)
		}
		check.That(t, there(true), "edges are missing")
	})
}
