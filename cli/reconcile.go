package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/alecthomas/kong"
	"github.com/dustin/go-humanize"

	"kith/cluster"
	"kith/gateway"
	"kith/reconcile"
	"kith/replication"
	"kith/replication/binlog"
	"kith/storage"
	"kith/storage/sleep"
	"kith/storage/sqlstore"
)

// ReconcileCmd is `kith reconcile`.
type ReconcileCmd struct {
	Full        ReconcileFullCmd        `cmd:"" help:"Compare everything, mostly inside the databases. It continues an interrupted scan."`
	Incremental ReconcileIncrementalCmd `cmd:"" help:"Check what was written since the last run."`
	Realtime    ReconcileRealtimeCmd    `cmd:"" help:"Watch writes, and repair what does not arrive within the window."`
	Watch       ReconcileWatchCmd       `cmd:"" help:"Ask running gateways, and count answers that differ from the tables."`
}

// ReconcileFullCmd is `kith reconcile full`.
type ReconcileFullCmd struct {
	reconcileFlags
	MaxLoad  float64 `bound:"share" default:"0.5" placeholder:"SHARE" help:"Share of time statements may run on each shard, above 0; 1: no pauses. Default: ${default}."`
	MaxEnded float64 `bound:"share" default:"0.01" placeholder:"SHARE" help:"Stop repairing if a shard lacks more than this share of its rows; 1,000 may always be missing if they are at most a tenth. 1: no limit. Default: ${default}."`
	Restart  bool    `help:"Start over instead of continuing a scan."`
}

// reconcileFlags are the flags of the commands that end by themselves.
type reconcileFlags struct {
	Repair bool          `help:"Make follower match following, friend_request_inbox match friend_request, favorite_inbox match favorite and relation_inbox match relation, correct counts, end forbidden follows, and delete users with ids of deleted ones. Otherwise only report."`
	Window time.Duration `bound:"positive" default:"3s" help:"How long the second table of a pair may lag; differences are read again after that. Default: ${default}."`
	Output
	List int `bound:"some" default:"100" placeholder:"N" help:"Findings to list; the others are still counted and repaired. Default: ${default}."`
}

// Run scans. The report goes to the standard output. Findings that are not repaired
// are an error.
func (c *ReconcileFullCmd) Run(ctx context.Context, settings *Settings, store *sqlstore.Store, k *kong.Context) error {
	logger := settings.Logger(k.Stderr)
	keep, err := c.mark(ctx, store, logger)
	if err != nil {
		logger.DebugContext(ctx, "no position for the incremental mode", "error", err)
	}
	if c.Repair {
		defer settings.cluster().ChangingAll(ctx, store)()
	}
	p := newProgress("reconcile", k.Stderr)
	report, err := reconcile.Full(ctx, reconcile.FullConfig{
		Store: store, Repair: c.Repair, Restart: c.Restart, Window: c.Window, MaxLoad: c.MaxLoad, MaxEnded: c.MaxEnded,
		List: c.List, OnProgress: p.comparing, Logger: logger,
	})
	p.done()
	if c.Repair && (err != nil || len(report.Repaired) > 0) { // a scan that is interrupted may be in the middle of a repair
		if err := settings.forgetAll(context.WithoutCancel(ctx), store); err != nil {
			logger.WarnContext(ctx, "the repairs are not reported to the gateways", "error", err)
		}
	}
	switch {
	case errors.Is(err, reconcile.ErrRowsLost): // the same command would fail again
		return err
	case err != nil && !errors.Is(err, reconcile.ErrNotRecorded):
		return fmt.Errorf("%w; run the same command again to go on from there", err)
	}
	if err := cmp.Or(c.report(k.Stdout, report), leftOver(report.Left(), c.Repair), err); err != nil {
		return err
	}
	if !report.Resumed && keep != nil {
		if err := keep(ctx); err != nil {
			logger.WarnContext(ctx, "the incremental mode does not go on from here", "error", err)
		}
	}
	return nil
}

// mark notes where the logs end now, so that the incremental mode can start from
// the beginning of a full scan. Without readable logs there is nothing to note.
func (c *ReconcileFullCmd) mark(ctx context.Context, store *sqlstore.Store, logger *slog.Logger) (keep func(context.Context) error, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	logs, closing, err := openLogs(ctx, store, logger)
	if err != nil {
		return nil, err
	}
	defer closing()
	return reconcile.Mark(ctx, logs, store)
}

// openLogs opens the logs of all shards of a store, including shards that have been added. The caller
// closes them.
func openLogs(ctx context.Context, store *sqlstore.Store, logger *slog.Logger) (logs []replication.Log, closing func(), err error) {
	logs, closing, err = binlog.OpenLogs(ctx, store, logger)
	if errors.Is(err, binlog.ErrNoLog) {
		err = errors.New("TiDB has no binlog, which this mode reads: use kith reconcile full")
	}
	return logs, closing, err
}

func (c *ReconcileFullCmd) report(out io.Writer, r reconcile.Report) error {
	if c.JSON() {
		return WriteJSON(out, r)
	}
	for i, truth := range storage.Truths {
		verb, end := "compared", fmt.Sprintf(" in %.1f s; about %s moved", r.Seconds, humanize.Bytes(uint64(r.Bytes)))
		if i > 0 {
			verb, end = "and", ""
		}
		fmt.Fprintf(out, "%s %s rows of %s with %s of %s%s\n", verb, humanize.Comma(r.Rows[truth]), truth, humanize.Comma(r.Rows[truth.Replica()]), truth.Replica(), end)
	}
	if r.GroupsRead > 0 {
		fmt.Fprintf(out, "read %s rows of %s groups that differed, of %s\n",
			humanize.Comma(r.RowsRead), humanize.Comma(int64(r.GroupsRead)), humanize.Comma(int64(r.Groups)))
	}
	if r.Unsettled > 0 {
		fmt.Fprintf(out, "%s kept changing, and may or may not disagree\n", humanize.Comma(int64(r.Unsettled)))
	}
	listFindings(out, r.Findings, r.Found, r.Repaired)
	return nil
}

// listFindings lists findings, then how many there are of each kind.
func listFindings(out io.Writer, listed []reconcile.Finding, found, repaired map[reconcile.Kind]int) {
	total := 0
	for _, n := range found {
		total += n
	}
	for _, f := range listed {
		fmt.Fprintln(out, f)
	}
	if rest := total - len(listed); rest > 0 {
		fmt.Fprintf(out, "… and %s more\n", humanize.Comma(int64(rest)))
	}
	fmt.Fprintf(out, "  %-12s%12s%12s%12s\n", "", "found", "repaired", "left")
	for _, kind := range reconcile.Kinds() {
		n, repaired := found[kind], repaired[kind]
		fmt.Fprintf(out, "  %-12s%12s%12s%12s\n", kind, humanize.Comma(int64(n)), humanize.Comma(int64(repaired)), humanize.Comma(int64(n-repaired)))
	}
}

// leftOver is the error about disagreements that remain, if there are any.
func leftOver(n int, repair bool) error {
	switch {
	case n == 0:
		return nil
	case repair:
		return fmt.Errorf("disagreements that could not be repaired: %s", humanize.Comma(int64(n)))
	}
	return fmt.Errorf("disagreements found: %s; --repair ends them", humanize.Comma(int64(n)))
}

// ReconcileIncrementalCmd is `kith reconcile incremental`.
type ReconcileIncrementalCmd struct{ reconcileFlags }

// Run checks the changes once. Findings that are not repaired are an error.
func (c *ReconcileIncrementalCmd) Run(ctx context.Context, settings *Settings, store *sqlstore.Store, k *kong.Context) error {
	logger := settings.Logger(k.Stderr)
	logs, closing, err := openLogs(ctx, store, logger)
	if err != nil {
		return err
	}
	defer closing()
	repairs, err := settings.cluster().OpenRepairs(ctx, store)
	if err != nil {
		return Misset("redis", err)
	}
	defer repairs.Close()
	listed := []reconcile.Finding{}
	metrics := reconcile.NewMetrics(nil)
	report, err := reconcile.Incremental(ctx, reconcile.ChangesConfig{
		Store: store, Logs: logs, Checkpoints: store, Window: c.Window, Repair: c.Repair, Metrics: metrics, Logger: logger,
		OnRepair: repairs.Repaired,
		Found: func(f reconcile.Finding) {
			if len(listed) < c.List {
				listed = append(listed, f)
			}
		},
	})
	unsaved, status := error(nil), metrics.Status(reconcile.ModeIncremental, time.Now())
	if err == nil || report.Left() > 0 || status.LostAt > 0 { // otherwise what the last run has left is still there
		unsaved = reconcile.SaveStatus(context.WithoutCancel(ctx), store, status)
	}
	return cmp.Or(err, c.report(k.Stdout, report, listed), unsaved, leftOver(report.Left(), c.Repair))
}

func (c *ReconcileIncrementalCmd) report(out io.Writer, r reconcile.IncrementalReport, listed []reconcile.Finding) error {
	if c.JSON() {
		return WriteJSON(out, struct {
			reconcile.IncrementalReport
			Repair   bool                `json:"repair"`
			Left     int                 `json:"left"`
			Findings []reconcile.Finding `json:"findings"`
		}{r, c.Repair, r.Left(), listed})
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
	AdminAddr  string        `basic:"" bound:"address" env:"KITH_ADMIN_ADDR" placeholder:"HOST:PORT" help:"Private address for /metrics, /healthz and /debug/pprof/. Default: none."`
}

// Run watches until the context is done.
func (c *ReconcileRealtimeCmd) Run(ctx context.Context, settings *Settings, store *sqlstore.Store, k *kong.Context) error {
	logger := settings.Logger(k.Stderr)
	registry := newRegistry()
	metrics := reconcile.NewMetrics(registry)
	reconcile.NewRuns(registry, store)
	admin, err := Listen(ctx, "admin-addr", c.AdminAddr)
	if err != nil {
		return err
	}
	defer serveAdmin(admin, gateway.Admin{Metrics: registry})()
	repairs, err := settings.cluster().OpenRepairs(ctx, store)
	if err != nil {
		return Misset("redis", err)
	}
	defer repairs.Close()
	defer cluster.InBackground(func(ctx context.Context) { keepStatus(ctx, store, metrics, logger) })() // until the watch has ended
	cfg := reconcile.ChangesConfig{
		Store: store, Checkpoints: store, Window: c.Window, Repair: !c.DryRun, MaxPending: c.MaxPending,
		Found: func(f reconcile.Finding) { logFound(ctx, logger, f) }, OnRepair: repairs.Repaired,
		Metrics: metrics, Logger: logger,
	}
	for err == nil && ctx.Err() == nil {
		err = watchChanges(ctx, store, repairs, cfg)
	}
	return err
}

// openWatched opens the logs of all shards or, if the servers write none, the log of what gateways tell each other.
func openWatched(ctx context.Context, store *sqlstore.Store, repairs *cluster.Repairs, logger *slog.Logger) (logs []replication.Log, closing func(), err error) {
	if logs, closing, err = openLogs(ctx, store, logger); err == nil || ctx.Err() != nil {
		return logs, closing, err
	}
	logger.InfoContext(ctx, "reconcile: there is no log to read: listening to what gateways tell each other", "because", err)
	hub, earlier := repairs.Listen(ctx)
	if hub == nil {
		return nil, nil, fmt.Errorf("%w; with --redis it watches what gateways tell each other instead", err)
	}
	return []replication.Log{reconcile.NewTold(hub, earlier)}, func() {}, nil
}

// watchChanges watches the logs of the present shards, until shards are added.
func watchChanges(ctx context.Context, store *sqlstore.Store, repairs *cluster.Repairs, cfg reconcile.ChangesConfig) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	replication.OnGrown(ctx, store, store.Shards(), func() {
		cfg.Logger.InfoContext(ctx, "reconcile: watching begins again: the store's shards have changed")
		stop()
	})
	logs, closing, err := openWatched(ctx, store, repairs, cfg.Logger)
	if err != nil {
		return err
	}
	defer closing()
	cfg.Logs = logs
	return reconcile.Realtime(ctx, cfg)
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
