package faults_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/internal/testgraph"
	"kith/reconcile"
	"kith/replication"
	"kith/replication/binlog"
	"kith/storage"
	"kith/storage/sides"
	"kith/storage/sqlstore"
)

// BenchmarkReconcile measures, on two servers with two databases each, a full scan of a generated
// and of a real graph, compared with COUNT(*) of both tables. It also measures how much slower
// writes are while the realtime mode watches them.
//
//	go test ./internal/faults -run '^$' -bench Reconcile -benchtime 1x -timeout 30m
func BenchmarkReconcile(b *testing.B) {
	b.Run("full", func(b *testing.B) {
		b.Run("generated", func(b *testing.B) { benchmarkFull(b, testgraph.Generate(b, testgraph.Large)) })
		b.Run("ego-twitter", func(b *testing.B) { benchmarkFull(b, testgraph.Real(b, "ego-twitter")) })
	})
	b.Run("realtime", benchmarkRealtime)
}

// rowSize is the size of the data in a row of an edge: two ids, a type, a time.
const rowSize = 8 + 8 + 1 + 8

func benchmarkFull(b *testing.B, data testgraph.Graph) {
	servers := privateServers(b, flushes[0].options)
	g := loadGraph(b, servers, data)
	g.countRows(b) // warms up the buffer pools, as far as it gets
	d := &deployment{servers: servers}
	used := func() float64 { return d.used(b, nil)["database"] + d.used(b, nil)["load"] }
	for b.Loop() {
		const rounds = 5
		var counts, scans, whole []time.Duration
		var cpu [2]float64 // of counting, of scanning
		var moved, rows int64
		for range rounds {
			at := used()
			counts = append(counts, g.countRows(b))
			cpu[0] += used() - at
			scans = append(scans, g.digestRows(b))
			before := bytesSent(b, servers)
			at = used()
			began := time.Now()
			r := g.scan(b, reconcile.FullConfig{Restart: true})
			whole = append(whole, time.Since(began))
			cpu[1] += used() - at
			moved = bytesSent(b, servers) - before
			rows = r.Rows[storage.Forward] + r.Rows[storage.Inverse]
			must.That(b, r.Total() == 0 && r.RowsRead == 0, "%d found, %d rows read", r.Total(), r.RowsRead)
			b.Logf("COUNT(*) %.2f s, digests alone %.2f s, full scan %.2f s", counts[len(counts)-1].Seconds(), scans[len(scans)-1].Seconds(), whole[len(whole)-1].Seconds())
		}
		b.ReportMetric(median(counts), "count-s")
		b.ReportMetric(median(scans), "digests-s")
		b.ReportMetric(median(whole), "full-s")
		b.ReportMetric(median(whole)/median(counts), "full/count")
		b.ReportMetric(cpu[0]/rounds, "count-cpu-s")
		b.ReportMetric(cpu[1]/rounds, "full-cpu-s")
		b.ReportMetric(cpu[1]/cpu[0], "full/count-cpu") // more reliable than times while other things run
		b.ReportMetric(float64(moved)/1e6, "MB-moved")
		b.ReportMetric(100*float64(moved)/float64(rows*rowSize), "%-of-rows")
		b.ReportMetric(float64(rows), "rows")
	}
	b.ReportMetric(0, "ns/op")
}

func median(times []time.Duration) float64 {
	slices.Sort(times)
	return times[len(times)/2].Seconds()
}

// countRows counts the rows of both tables, on all shards at once.
func (g *graph) countRows(b *testing.B) time.Duration {
	b.Helper()
	return g.onAllShards(b, func(ctx context.Context, shard int, side storage.Side) error {
		var n int64
		return g.past[shard].QueryRowContext(ctx, "SELECT COUNT(*) FROM "+side.String()).Scan(&n)
	})
}

// digestRows makes the servers compute the digests of both tables, in one statement each.
func (g *graph) digestRows(b *testing.B) time.Duration {
	b.Helper()
	return g.onAllShards(b, func(ctx context.Context, shard int, side storage.Side) error {
		_, err := g.Digests(ctx, side, shard, sides.OwnerRange{UpTo: 1 << 62}, sides.Cut{Parts: 1}, nil)
		return err
	})
}

func (g *graph) onAllShards(b *testing.B, do func(ctx context.Context, shard int, side storage.Side) error) time.Duration {
	b.Helper()
	began := time.Now()
	var wg sync.WaitGroup
	for i := range g.past {
		wg.Go(func() {
			for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
				err := do(b.Context(), i, side)
				check.That(b, err == nil, "%v", err)
			}
		})
	}
	wg.Wait()
	return time.Since(began)
}

// bytesSent is how much servers have sent to all clients so far.
func bytesSent(b *testing.B, servers testenv.Servers) (total int64) {
	b.Helper()
	for _, s := range servers {
		var name string
		var n int64
		must.OK(b, s.Open(b, "").QueryRowContext(b.Context(), "SHOW GLOBAL STATUS LIKE 'Bytes_sent'").Scan(&name, &n))
		total += n
	}
	return total
}

// benchmarkRealtime writes from 16 connections in the mode sync, with and without the realtime
// mode, in turn: directly to the store, where nothing else takes time, and through GraphQL.
func benchmarkRealtime(b *testing.B) {
	servers := privateServers(b, flushes[0].options)
	b.Run("store", func(b *testing.B) {
		g := loadGraph(b, servers, testgraph.Generate(b, testgraph.Small))
		mode := replication.NewSynchronous(g.Store, nobody{}, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
		defer mode.Close()
		writes := make([]write, connections)
		for i := range writes {
			r := rand.New(rand.NewPCG(uint64(i), 17))
			writes[i] = func(ctx context.Context) (bool, error) {
				err := g.writeOne(ctx, mode, r)
				if errors.Is(err, storage.ErrForbidden) { // another write has made one of them block the other
					err = nil
				}
				return false, err
			}
		}
		d := &deployment{servers: servers, dsns: g.dsns}
		d.inTurn(b, nil, writes, g.Store)
	})
	b.Run("graphql", func(b *testing.B) {
		d := prepare(b, servers, "sync", benchUsers)
		store, err := sqlstore.Open(b.Context(), sqlstore.Config{Location: d.location()})
		must.OK(b, err)
		defer store.Close()
		l := d.lone(b)
		connect := d.follows(b, l, payloads[0].text)
		writes := make([]write, connections)
		for i := range writes {
			writes[i] = connect(i)
		}
		d.inTurn(b, l, writes, store)
	})
}

// inTurn writes with and without the realtime mode, and reports the rates and the CPU time of all processes.
func (d *deployment) inTurn(b *testing.B, l *life, writes []write, store *sqlstore.Store) {
	b.Helper()
	used := func() (sum float64) {
		for _, cpu := range d.used(b, l) {
			sum += cpu
		}
		return sum
	}
	for b.Loop() {
		run(b, writes, *duration/4)
		const rounds = 8
		slice := *duration / 4
		var n, cpu [2]float64 // without it, with it
		for i := range 2 * rounds {
			stop := func() {}
			watched := (i + i/2) % 2 // 0 1 1 0 0 1 1 0 …, because the speed of the machine changes over time
			if watched == 1 {
				stop = watch(b, store)
			}
			run(b, writes, slice/4) // the beginning of watching is not measured
			before := used()
			times, _ := run(b, writes, slice)
			n[watched] += float64(len(times))
			cpu[watched] += used() - before
			stop()
		}
		b.ReportMetric(n[0]/rounds/slice.Seconds(), "without/s")
		b.ReportMetric(n[1]/rounds/slice.Seconds(), "with/s")
		b.ReportMetric(100*(1-n[1]/n[0]), "%-slower")
		b.ReportMetric(1e3*cpu[0]/n[0], "without-cpu-ms/write")
		b.ReportMetric(1e3*cpu[1]/n[1], "with-cpu-ms/write")
		b.ReportMetric(100*(cpu[1]/n[1]/(cpu[0]/n[0])-1), "%-more-cpu/write")
	}
	b.ReportMetric(0, "ns/op")
}

// watch runs the realtime mode, from the present end of the logs, until the returned function is called.
func watch(b *testing.B, store *sqlstore.Store) (stop func()) {
	b.Helper()
	logger := slog.New(slog.DiscardHandler)
	logs, closing, err := binlog.OpenLogs(b.Context(), store, logger)
	must.OK(b, err)
	for _, l := range logs {
		must.OK(b, store.DeleteCheckpoint(b.Context(), "reconcile/realtime/"+l.Name()))
	}
	found := 0
	cfg := reconcile.ChangesConfig{
		Store: store, Logs: logs, Checkpoints: store, Repair: true, Logger: logger, Metrics: reconcile.NewMetrics(prometheus.NewRegistry()),
		Found: func(reconcile.Finding) { found++ },
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		err := reconcile.Realtime(ctx, cfg)
		check.That(b, err == nil, "%v", err)
	})
	return func() {
		cancel()
		running.Wait()
		closing()
		check.Most(b, "findings", found, 0)
	}
}
