package stream_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/testenv"
	"kith/replication"
	"kith/replication/stream"
	"kith/storage"
)

// BenchmarkAdd measures the cost for a follow, with every entry on disk before it is acknowledged, at
// 16 connections.
func BenchmarkAdd(b *testing.B) {
	p := stream.NewProducer(stream.ProducerConfig{Redis: connect(b, testenv.Redis(b, testenv.AppendOnly...).Addr())})
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := p.Add(b.Context(), rowsOf(edge(1, 2, 3))); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "adds/s")
}

// BenchmarkDrain measures the stream's own part of replication: an applier that does nothing gets a
// backlog of entries of one edge each.
func BenchmarkDrain(b *testing.B) {
	client := connect(b, testenv.Redis(b, testenv.AppendOnly...).Addr())
	p := stream.NewProducer(stream.ProducerConfig{Redis: client, Timeout: time.Minute})
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range b.N/16 + 1 {
				if err := p.Add(b.Context(), rowsOf(edge(1, 2, 3))); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	total := int64(b.N/16+1) * 16
	var n atomic.Int64
	done := make(chan struct{})
	b.ResetTimer()
	consume(b, stream.ConsumerConfig{Redis: client, Batch: 1000, Propagator: propagatorFunc(func(_ context.Context, rows []storage.Written) []replication.Left {
		if n.Add(int64(len(rows))) == total {
			close(done)
		}
		return nil
	})})
	<-done
	b.ReportMetric(float64(total)/b.Elapsed().Seconds(), "edges/s")
}
