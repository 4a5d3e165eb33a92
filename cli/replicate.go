package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/alecthomas/kong"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"kith/deployment"
	"kith/reconcile"
	"kith/replication/binlog"
	"kith/storage/events"
	"kith/storage/sqlstore"
)

// ReplicateCmd is `kith replicate`: the replicator of the mode binlog in a process
// of its own.
type ReplicateCmd struct {
	MetricsAddr string   `env:"KITH_METRICS_ADDR" placeholder:"HOST:PORT" help:"Where to serve /healthz, /readyz and /metrics. Default: nowhere."`
	Resync      bool     `help:"Copy all of following, friend_request and favorite again first: the way on after statements that were not logged row by row."`
	Skip        []string `placeholder:"GTID" help:"A transaction to pass over as far as it cannot be followed. Repeat it or separate several by commas."`
}

// Validate is called by kong.
func (c *ReplicateCmd) Validate() error {
	for _, id := range c.Skip {
		if err := binlog.CheckGTID(id); err != nil {
			return fmt.Errorf("--skip: %w", err)
		}
	}
	return checkMetricsAddr(c.MetricsAddr)
}

func checkMetricsAddr(addr string) error {
	if addr == "" {
		return nil
	}
	if err := CheckAddress(addr); err != nil {
		return Misset("metrics-addr", err)
	}
	return nil
}

// Prepare implements [Preparer].
func (c *ReplicateCmd) Prepare(settings *Settings, _ *kong.Context) error {
	if settings.Redundancy != deployment.Binlog {
		return Misset("redundancy", fmt.Errorf("it is %s: replicate is for binlog", settings.Redundancy))
	}
	settings.modeLeftOpen = false // no other will do
	return nil
}

// Run replicates until the context is done, or a server cannot be followed.
func (c *ReplicateCmd) Run(ctx context.Context, settings *Settings, store *sqlstore.Store, k *kong.Context) error {
	logger := settings.Logger(k.Stderr)
	slog.SetDefault(logger)
	redis, err := settings.OpenRedis(ctx)
	if err != nil {
		return err
	}
	defer redis.Close()

	registry := newRegistry()
	reconcile.NewRuns(registry, store)
	bus := deployment.EventsOf(store, redis, events.NewHub(nil), events.NewMetrics(registry))
	shared := settings.deployment()
	caches, err := shared.OpenCaches(deployment.CacheConfig{Store: store, Bus: bus, Redis: redis, Registerer: registry})
	if err != nil {
		return Misset("redis", err)
	}
	defer caches.Close()
	replicator := shared.NewReplicator(
		deployment.Redundant{Store: store, Caches: caches, Bus: bus, Registerer: registry, Logger: logger},
		binlog.Config{Skip: c.Skip, Resync: c.Resync, FailFast: true})

	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(deployment.Attend(ctx, store, settings.Redis != ""))
	if c.MetricsAddr != "" {
		listener, err := Listen(ctx, "metrics-addr", c.MetricsAddr)
		if err != nil {
			return err
		}
		running.Go(func() { serveStatus(ctx, listener, registry, replicator) })
	}
	running.Go(func() { bus.Run(ctx) })
	return replicator.Run(ctx)
}

// serveStatus serves metrics, health and readiness until the context is done.
func serveStatus(ctx context.Context, l net.Listener, metrics prometheus.Gatherer, replicator *deployment.Replicator) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if replicator.Ready(r.Context()) != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(replicator.Report()) // a reader that has gone
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	ended := context.AfterFunc(ctx, func() { server.Close() })
	defer ended()
	_ = server.Serve(l) // until it is closed
}
