package deployment

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"kith/replication"
	"kith/replication/binlog"
	"kith/storage/notify"
)

// Replicator carries rows from the servers' logs to the inverse side, and tells of what the logs
// show.
type Replicator struct {
	applier *replication.Applier
	logs    *binlog.Replicator
}

// NewReplicator makes the replicator of the mode Binlog. It uses Skip, Resync and FailFast of cfg,
// and no other field.
func (d Config) NewReplicator(with Redundant, cfg binlog.Config) *Replicator {
	store := with.Caches.Writer
	cfg.Events = with.Bus
	if with.Caches.redis != nil {
		e := &echo{caches: with.Caches}
		store = notify.Watch(with.Store, e.carried)
		cfg.Events, cfg.Changed = e, e.changed
	}
	r := &Replicator{applier: replication.New(replication.Config{
		Store: store, Shards: with.Store.Shards(), Publisher: with.Bus,
		Metrics: replication.NewMetrics(with.Registerer), Logger: with.Logger,
	})}
	cfg.DSNs, cfg.Applier, cfg.Checkpoints, cfg.Logger = d.DSNs, r.applier, with.Store, with.Logger
	r.logs = binlog.New(cfg)
	return r
}

// Run replicates until the context is done, or a server cannot be followed.
func (r *Replicator) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var applying sync.WaitGroup
	defer applying.Wait()
	defer stop()
	applying.Go(func() { r.applier.Run(ctx) })
	return r.logs.Run(ctx)
}

// Ready returns an error if a shard takes no rows, or if a server is no longer followed.
func (r *Replicator) Ready(context.Context) error {
	err := r.applier.Status().Err()
	for _, s := range r.logs.Status() {
		if s.State == binlog.Stopped {
			return errors.Join(err, fmt.Errorf("replication of %s has stopped: %w", s.Server, s.Err))
		}
	}
	return err
}

// ReplicationReport is what /readyz shows of the replicator in this process.
type ReplicationReport struct {
	LagSeconds float64        `json:"lagSeconds"` // of the oldest row that is not applied
	Pending    int            `json:"pending"`    // rows
	Servers    []ServerReport `json:"servers"`
}

// ServerReport is the state of one server's replication.
type ServerReport struct {
	Server string       `json:"server"`
	State  binlog.State `json:"state"`
}

// Report is a [ReplicationReport].
func (r *Replicator) Report() any {
	status := r.applier.Status()
	report := ReplicationReport{LagSeconds: status.Lag.Seconds(), Pending: status.Pending}
	for _, s := range r.logs.Status() {
		report.Servers = append(report.Servers, ServerReport{s.Server, s.State})
	}
	return report
}
