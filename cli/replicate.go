package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/alecthomas/kong"

	"kith/cluster"
	"kith/gateway"
	"kith/reconcile"
	"kith/replication/binlog"
	"kith/storage/events"
	"kith/storage/sqlstore"
)

// ReplicateCmd is `kith replicate`: the replicator of the modes binlog and stream in a process
// of its own, the copy service of the seeds ("好友中心" §7).
type ReplicateCmd struct {
	AdminAddr string   `basic:"" bound:"address" env:"KITH_ADMIN_ADDR" placeholder:"HOST:PORT" help:"Private address for /metrics, /healthz, /readyz and /debug/pprof/. Default: none."`
	Resync    bool     `help:"First copy all of following, friend_request, favorite and relation again: needed after statements that were not logged row by row."`
	Skip      []string `placeholder:"GTID" help:"Transactions to skip, as far as they cannot be followed."`
}

// Validate is called by kong.
func (c *ReplicateCmd) Validate() error {
	for _, id := range c.Skip {
		if err := binlog.CheckGTID(id); err != nil {
			return fmt.Errorf("--skip: %w", err)
		}
	}
	return nil
}

// Prepare implements [Preparer].
func (c *ReplicateCmd) Prepare(settings *Settings, _ *kong.Context) error {
	switch {
	case settings.Redundancy == cluster.Stream && (c.Resync || len(c.Skip) > 0):
		return Misset("redundancy", errors.New("it is stream: --resync and --skip are for binlog"))
	case settings.Redundancy == cluster.Sync:
		return Misset("redundancy", errors.New("it is sync: replicate is for stream and binlog"))
	}
	return nil
}

// Run replicates until the context is done, or no server can be followed.
func (c *ReplicateCmd) Run(ctx context.Context, settings *Settings, store *sqlstore.Store, k *kong.Context) error {
	logger := settings.Logger(k.Stderr)
	slog.SetDefault(logger)
	if err := c.Prepare(settings, k); err != nil { // the mode may be that of the store
		return unusable{err}
	}
	redis, heard, err := settings.joinRedis(ctx, store, logger)
	if err != nil {
		return err
	}
	defer redis.Close()
	registry := newRegistry()
	reconcile.NewRuns(registry, store)
	bus := cluster.EventsOf(store, redis, events.NewHub(nil), events.NewMetrics(registry))
	caches := settings.cluster().OpenCaches(cluster.CacheConfig{Store: store, Bus: bus, Redis: redis, Replicates: true, Registerer: registry, Logger: logger})
	defer caches.Close()
	admin, err := Listen(ctx, "admin-addr", c.AdminAddr)
	if err != nil {
		return err
	}
	replicator, run := c.replicator(settings.Redundancy, caches)
	defer cluster.InBackground(func(ctx context.Context) { settings.watch(ctx, store, redis, logger, forAll) })()
	defer caches.Attend(ctx, heard)()
	shown := gateway.Config{Gatherer: registry, HideSchema: true,
		Checks: []gateway.Check{{Name: "replication", Ask: replicator.Ready, Details: replicator.Report}}}
	defer serveAdmin(admin, shown.Admin(ctx))()
	return run(ctx)
}

// replicator is that of the mode. run runs it until its context ends.
func (c *ReplicateCmd) replicator(mode string, caches *cluster.Caches) (_ cluster.Replication, run func(context.Context) error) {
	if mode == cluster.Stream {
		consumer := caches.OpenRedundancy()
		return consumer.Replication, func(ctx context.Context) error {
			<-ctx.Done()
			consumer.Close()
			return nil
		}
	}
	binlogs := caches.NewReplicator(binlog.Config{Skip: c.Skip, Resync: c.Resync})
	return binlogs, binlogs.Run
}
