package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/alecthomas/kong"
	"github.com/dustin/go-humanize"

	"kith/reconcile"
	"kith/storage"
	"kith/storage/sqlstore"
)

// ReconcileCmd is `kith reconcile`.
type ReconcileCmd struct {
	Full        ReconcileFullCmd        `cmd:"" help:"Compare everything, mostly inside the databases. It continues an interrupted scan."`
	Incremental ReconcileIncrementalCmd `cmd:"" help:"Check what was written since the last run."`
	Realtime    ReconcileRealtimeCmd    `cmd:"" help:"Watch writes, and repair what does not arrive within the window."`
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
	keep := c.mark(ctx, store, logger)
	if c.Repair {
		defer settings.cluster().ChangingAll(ctx, store)()
	}
	p := newProgress("reconcile", k.Stderr)
	report, err := reconcile.Full(ctx, reconcile.FullConfig{
		Store: store, Repair: c.Repair, Restart: c.Restart, Window: c.Window, MaxLoad: c.MaxLoad, MaxEnded: c.MaxEnded,
		List: c.List, OnProgress: p.comparing, Logger: logger,
	})
	p.done()
	if err != nil {
		return fmt.Errorf("%w; run the same command again to go on from there", err)
	}
	if err := c.report(k.Stdout, report); err != nil {
		return err
	}
	if len(report.Repaired) > 0 {
		if err := settings.forgetAll(ctx, store); err != nil {
			logger.WarnContext(ctx, "the repairs are not reported to the gateways", "error", err)
		}
	}
	if err := leftOver(report.Left(), c.Repair); err != nil {
		return err
	}
	if !report.Resumed {
		keep()
	}
	return nil
}

// mark notes where the logs end now, so that the incremental mode can start from
// the beginning of a full scan. Without readable logs there is nothing to note.
func (c *ReconcileFullCmd) mark(ctx context.Context, store *sqlstore.Store, logger *slog.Logger) (keep func()) {
	nothing := func() {}
	noting, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	logs, closing, err := openLogs(noting, store, logger)
	if err != nil {
		logger.DebugContext(ctx, "no logs for the incremental mode", "error", err)
		return nothing
	}
	defer func() { _ = closing() }() // what was read is read
	at, err := reconcile.NewIncremental(reconcile.ChangesConfig{Store: store, Logs: logs, Checkpoints: store, Logger: logger}).Mark(noting)
	if err != nil {
		logger.DebugContext(ctx, "no position for the incremental mode", "error", err)
		return nothing
	}
	return func() {
		if err := at(ctx); err != nil {
			logger.WarnContext(ctx, "the incremental mode does not go on from here", "error", err)
		}
	}
}

// openLogs opens the logs of all shards of a store, including shards that have been added. The caller
// closes them.
func openLogs(ctx context.Context, store *sqlstore.Store, logger *slog.Logger) (logs []reconcile.Log, closing func() error, err error) {
	if store.HasLog() {
		return reconcile.RelationLogs(store), func() error { return nil }, nil
	}
	if !store.HasBinlog() {
		return nil, nil, errors.New("TiDB has no binlog, which the modes incremental and realtime read: use kith reconcile full")
	}
	return reconcile.OpenBinlogs(ctx, store.Addresses(), logger)
}

func (c *ReconcileFullCmd) report(out io.Writer, r reconcile.Report) error {
	if c.JSON() {
		return WriteJSON(out, r)
	}
	fmt.Fprintf(out, "compared %s rows of following with %s of follower in %.1f s; about %s moved\n",
		humanize.Comma(r.Rows[storage.Forward]), humanize.Comma(r.Rows[storage.Inverse]), r.Seconds, humanize.Bytes(uint64(r.Bytes)))
	fmt.Fprintf(out, "and %s rows of friend_request with %s of friend_request_inbox\n",
		humanize.Comma(r.Rows[storage.Requests]), humanize.Comma(r.Rows[storage.Inbox]))
	fmt.Fprintf(out, "and %s rows of favorite with %s of favorite_inbox\n",
		humanize.Comma(r.Rows[storage.Favorites]), humanize.Comma(r.Rows[storage.FavoriteInbox]))
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
		return fmt.Errorf("%s disagreements could not be repaired", humanize.Comma(int64(n)))
	}
	return fmt.Errorf("%s disagreements found; --repair ends them", humanize.Comma(int64(n)))
}
