package cluster

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/replication"
	"kith/replication/binlog"
	"kith/storage/sqlstore"
)

// growing is a store that gets another shard while its servers are asked who they are, as if several are added one after another.
type growing struct {
	*sqlstore.Store
	grown chan struct{}
	asked int
}

func (g *growing) Grown(int) <-chan struct{} { return g.grown }
func (g *growing) Addresses() []string       { return []string{"a"} }
func (*growing) Status() []binlog.Status     { return nil }

// Run implements [Logs].
func (g *growing) Run(ctx context.Context) error {
	if g.asked++; g.asked > 1 {
		return nil
	}
	close(g.grown)
	<-ctx.Done()
	g.grown = make(chan struct{})
	return ctx.Err()
}

// TestReplicationBeginsAgainWithMoreShards, also if they come before it knows the servers.
func TestReplicationBeginsAgainWithMoreShards(t *testing.T) {
	t.Parallel()
	store := &growing{opened.Store(t, sqlstore.Config{Location: "sqlite:" + filepath.Join(t.TempDir(), "kith.db")}), make(chan struct{}), 0}
	logger := slog.New(slog.DiscardHandler)
	r := &Replicator{
		store: store, follow: func(binlog.Config) Logs { return store }, cfg: binlog.Config{Logger: logger},
		applying: replication.Config{Store: store, ShardOf: store.ShardOf, Metrics: replication.NewMetrics(prometheus.NewRegistry()), Logger: logger},
	}
	r.begin()
	must.OK(t, r.Run(t.Context()))
	check.Equal(t, "how often the servers were asked", store.asked, 2)
}
