package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"kith/replication"
	"kith/replication/binlog"
	"kith/storage"
)

// Logs follow the logs of a store's servers. They pass the rows of each, in its order, to the applier and to Changed of their
// configuration.
type Logs interface {
	Run(context.Context) error
	Status() []binlog.Status
}

// Replicator applies rows of the servers' logs to the inverse side, and reports what the logs
// show. If shards are added, it starts over with their servers.
type Replicator struct {
	store    Store
	follow   func(binlog.Config) Logs
	cfg      binlog.Config
	applying replication.Config

	mu      sync.Mutex
	applier *replication.Applier
	logs    Logs
	shards  int // that the store had when the parts were made
}

// NewReplicator makes the replicator of the mode Binlog. It uses Skip, Resync and Watch of cfg,
// and no other field.
func (c *Caches) NewReplicator(cfg binlog.Config) *Replicator {
	cfg.Changed = func(ctx context.Context, change storage.Change) { _ = c.heard(ctx, change) }
	cfg.Store, cfg.Checkpoints, cfg.Logger = c.store, c.store, c.cfg.Logger
	r := &Replicator{store: c.store, follow: c.cfg.Follow, cfg: cfg, applying: replication.Config{
		Store: c.store, ShardOf: c.store.ShardOf, Publisher: c.bus,
		Metrics: replication.NewMetrics(c.cfg.Registerer), Logger: c.cfg.Logger,
	}}
	r.begin()
	return r
}

// begin makes the parts for the shards that the store has now.
func (r *Replicator) begin() {
	cfg, applying := r.cfg, r.applying
	cfg.DSNs = r.store.Addresses()
	applying.Shards = len(cfg.DSNs)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.applier != nil {
		r.applier.Discard()
	}
	r.applier = replication.New(applying)
	cfg.Applier, r.shards = r.applier, applying.Shards
	r.logs = r.follow(cfg)
}

func (r *Replicator) running() (*replication.Applier, Logs) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.applier, r.logs
}

// Run replicates until the context is done, or no server can be followed.
func (r *Replicator) Run(ctx context.Context) error {
	for {
		changed, err := r.run(ctx)
		if !changed {
			return err
		}
		r.cfg.Logger.InfoContext(ctx, "replication restarts: the store's shards have changed")
		r.cfg.Resync = false // that has been done
		r.begin()
	}
}

// run replicates until shards have been added; then it returns true, whatever else has ended by that.
func (r *Replicator) run(ctx context.Context) (changed bool, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop(nil)
	applier, logs := r.running()
	running.Go(func() { applier.Run(ctx) })
	replication.OnGrown(ctx, r.store, r.shards, func() { stop(errGrown) })
	err = logs.Run(ctx)
	return errors.Is(context.Cause(ctx), errGrown), err
}

// errGrown means that there are more shards than before.
var errGrown = errors.New("the store has more shards")

// Ready returns an error if a shard takes no rows, or if a server is not followed, by whichever process.
func (r *Replicator) Ready(context.Context) error {
	applier, logs := r.running()
	err := applier.Status().Err()
	for _, s := range logs.Status() {
		if s.State == binlog.Stopped || s.State == binlog.NoReplicator {
			return errors.Join(err, fmt.Errorf("replication of %s is %s: %w", s.Server, s.State, s.Err))
		}
	}
	return err
}

// ReplicationReport is what /readyz shows of the replicator in this process.
type ReplicationReport struct {
	LagSeconds float64         `json:"lagSeconds"` // of the oldest row that is not applied
	Pending    int             `json:"pending"`    // rows
	Servers    []binlog.Status `json:"servers"`
}

// Report is a [ReplicationReport].
func (r *Replicator) Report() any {
	applier, logs := r.running()
	status := applier.Status()
	return ReplicationReport{status.Lag.Seconds(), status.Pending, logs.Status()}
}
