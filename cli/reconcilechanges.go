package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/alecthomas/kong"
	"github.com/dustin/go-humanize"

	"kith/gateway"
	"kith/reconcile"
	"kith/storage/sleep"
	"kith/storage/sqlstore"
)

// ReconcileIncrementalCmd is `kith reconcile incremental`.
type ReconcileIncrementalCmd struct{ reconcileFlags }

// Run checks the changes once. Findings that are not repaired are an error.
func (c *ReconcileIncrementalCmd) Run(ctx context.Context, settings *Settings, store *sqlstore.Store, k *kong.Context) error {
	logger := settings.Logger(k.Stderr)
	logs, closing, err := openLogs(ctx, store, logger)
	if err != nil {
		return err
	}
	defer func() { _ = closing() }() // what was read is read
	repairs, err := settings.cluster().OpenRepairs(ctx, store)
	if err != nil {
		return Misset("redis", err)
	}
	defer repairs.Close()
	listed := []reconcile.Finding{}
	metrics := reconcile.NewMetrics(nil)
	report, err := reconcile.NewIncremental(reconcile.ChangesConfig{
		Store: store, Logs: logs, Checkpoints: store, Window: c.Window, Repair: c.Repair, Metrics: metrics, Logger: logger,
		OnRepair: repairs.Repaired,
		Found: func(f reconcile.Finding) {
			if len(listed) < c.List {
				listed = append(listed, f)
			}
		},
	}).Run(ctx)
	if shown := c.report(k.Stdout, report, listed); err == nil {
		err = shown
	}
	if saved := reconcile.SaveStatus(context.WithoutCancel(ctx), store, metrics.Status(reconcile.ModeIncremental, time.Now())); err == nil {
		err = saved
	}
	if err == nil {
		err = leftOver(report.Left(), c.Repair)
	}
	return err
}

func (c *ReconcileIncrementalCmd) report(out io.Writer, r reconcile.IncrementalReport, listed []reconcile.Finding) error {
	if c.JSON() {
		return WriteJSON(out, struct {
			Rows     int                    `json:"rows"`
			Checked  int                    `json:"checked"`
			Begun    []string               `json:"begun"`
			Repair   bool                   `json:"repair"`
			Found    map[reconcile.Kind]int `json:"found"`
			Repaired map[reconcile.Kind]int `json:"repaired"`
			Left     int                    `json:"left"`
			Findings []reconcile.Finding    `json:"findings"`
		}{r.Rows, r.Checked, r.Begun, c.Repair, r.Found, r.Repaired, r.Left(), listed})
	}
	fmt.Fprintf(out, "read %s rows in the logs, looked up %s edges\n", humanize.Comma(int64(r.Rows)), humanize.Comma(int64(r.Checked)))
	for _, log := range r.Begun {
		fmt.Fprintf(out, "%s: there was no checkpoint; it is looked at from now on, what was before is for kith reconcile full\n", log)
	}
	listFindings(out, listed, r.Found, r.Repaired)
	return nil
}

// ReconcileRealtimeCmd is `kith reconcile realtime`.
type ReconcileRealtimeCmd struct {
	Window     time.Duration `bound:"positive" default:"3s" help:"How long the second table of a pair may lag before an edge is checked. Default: ${default}."`
	DryRun     bool          `help:"Only report, repair nothing."`
	MaxPending int           `bound:"some" default:"100000" placeholder:"EDGES" help:"Edges waiting in memory for their second row; at this many, reading pauses. Default: ${default}."`
	AdminAddr  string        `basic:"" env:"KITH_ADMIN_ADDR" placeholder:"HOST:PORT" help:"Private address for /metrics, /healthz and /debug/pprof/. Default: none."`
}

// Validate is called by kong.
func (c *ReconcileRealtimeCmd) Validate() error { return checkAdminAddr(c.AdminAddr) }

// Run watches until the context is done.
func (c *ReconcileRealtimeCmd) Run(ctx context.Context, settings *Settings, store *sqlstore.Store, k *kong.Context) error {
	logger := settings.Logger(k.Stderr)
	registry := newRegistry()
	metrics := reconcile.NewMetrics(registry)
	reconcile.NewRuns(registry, store)

	ctx, stop := context.WithCancel(ctx)
	var serving sync.WaitGroup
	defer serving.Wait()
	defer stop()
	admin, err := listenAdmin(ctx, c.AdminAddr)
	if err != nil {
		return err
	}
	defer serveAdmin(admin, gateway.Admin{Metrics: registry})()
	repairs, err := settings.cluster().OpenRepairs(ctx, store)
	if err != nil {
		return Misset("redis", err)
	}
	defer repairs.Close()
	keeping, ended := context.WithCancel(context.WithoutCancel(ctx)) // until the watch has ended
	defer ended()
	serving.Go(func() { keepStatus(keeping, store, metrics, logger) })
	cfg := reconcile.ChangesConfig{
		Store: store, Checkpoints: store, Window: c.Window, Repair: !c.DryRun, MaxPending: c.MaxPending,
		Found: func(f reconcile.Finding) { logFound(ctx, logger, f) }, OnRepair: repairs.Repaired,
		Metrics: metrics, Logger: logger,
	}
	for err == nil && ctx.Err() == nil {
		err = watchChanges(ctx, store, cfg)
	}
	return err
}

// watchChanges watches the logs of the present shards, until shards are added.
func watchChanges(ctx context.Context, store *sqlstore.Store, cfg reconcile.ChangesConfig) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	changed := store.Grown(store.Shards())
	logs, closing, err := openLogs(ctx, store, cfg.Logger)
	if err != nil {
		return err
	}
	defer func() { _ = closing() }() // what was read is read
	go func() {
		select {
		case <-changed:
			cfg.Logger.InfoContext(ctx, "reconcile: watching begins again: the store's shards have changed")
			stop()
		case <-ctx.Done():
		}
	}()
	cfg.Logs = logs
	return reconcile.NewRealtime(cfg).Run(ctx)
}

// statusEvery is how often the realtime mode reports its state.
const statusEvery = 5 * time.Second

// keepStatus saves the status of the realtime mode until the context is done, and then once more.
func keepStatus(ctx context.Context, store *sqlstore.Store, metrics *reconcile.Metrics, logger *slog.Logger) {
	for ended := false; !ended; _ = sleep.For(ctx, statusEvery) {
		ended = ctx.Err() != nil
		err := reconcile.SaveStatus(context.WithoutCancel(ctx), store, metrics.Status(reconcile.ModeRealtime, time.Now()))
		if err != nil {
			logger.WarnContext(ctx, "the status is not saved", "error", err)
		}
	}
}

func logFound(ctx context.Context, logger *slog.Logger, f reconcile.Finding) {
	p, table, inverse := f.Pair(), f.Side.String(), f.Side.Replica().String()
	logger.WarnContext(ctx, "an edge disagrees", "kind", string(f.Kind), "pair", table, "from", p.From, "to", p.To,
		table+"_type", f.Forward.Type, table+"_time", f.Forward.UpdateTime,
		inverse+"_type", f.Inverse.Type, inverse+"_time", f.Inverse.UpdateTime)
}
