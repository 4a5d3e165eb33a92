package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alecthomas/kong"
	"github.com/dustin/go-humanize"

	"kith/cluster"
	"kith/storage"
	"kith/storage/sqlstore"
)

// CopyCmd is `kith copy LOCATION`.
type CopyCmd struct {
	To      string  `arg:"" help:"Target store, as in KITH_STORE: sqlite:PATH[;…] or mysql:DSN[;…]. It must be empty."`
	MaxLoad float64 `bound:"share" default:"0.5" placeholder:"SHARE" help:"Share of time spent copying and comparing, above 0; 1: no pauses. Default: ${default}."`
	Output
}

// Prepare implements [Preparer].
func (c *CopyCmd) Prepare(*Settings, *kong.Context) error {
	if err := sqlstore.Check(c.To); err != nil {
		return fmt.Errorf("the copy: %w", err)
	}
	return nil
}

// Run copies the store. Progress goes to the standard error, the report to the standard output.
func (c *CopyCmd) Run(ctx context.Context, settings *Settings, store *sqlstore.Store, k *kong.Context) error {
	to, err := sqlstore.Open(ctx, sqlstore.Config{Location: c.To, StatementTimeout: settings.StatementTimeout, MaxConns: settings.ShardConns})
	if err != nil {
		return misfit(fmt.Errorf("the copy: %w", err))
	}
	defer to.Close()
	if to.UUID() == store.UUID() {
		return unusable{errors.New("the copy: the source and the target are one store")}
	}
	var expected int64
	for _, s := range store.ShardsStatus() {
		for _, r := range s.Buckets {
			e, err := store.ExpectMove(ctx, sqlstore.Move{Buckets: r, From: s.Ordinal, To: s.Ordinal})
			if err != nil {
				return err
			}
			expected += e.Rows
		}
	}
	var report sqlstore.MoveReport
	err = alone(ctx, store, k, "copy", expected, c.MaxLoad, func(ctx context.Context, cfg sqlstore.MoveConfig) (err error) {
		report, err = store.CopyTo(ctx, to, cfg, cluster.SettingsCheckpoint)
		return err
	})
	if err != nil && store.IsCopied() && !errors.Is(err, storage.ErrCopied) && !errors.Is(err, storage.ErrLayout) { // otherwise it has ended, or not begun
		err = fmt.Errorf("%w; the same command again copies what is missing, kith shards abort gives the copy up", err)
	}
	if err != nil {
		return err
	}
	if c.JSON() {
		return WriteJSON(k.Stdout, report)
	}
	fmt.Fprintf(k.Stdout, "copied: %s rows, %s of them again, %s compared; the store took no writes for the last %s of %s\n",
		humanize.Comma(report.Rows), humanize.Comma(report.Again), humanize.Comma(report.Compared),
		report.Waited.Round(time.Millisecond), report.Took.Round(time.Second))
	fmt.Fprintln(k.Stdout, "it takes no writes any more: start everything with the copy as KITH_STORE, and run kith reconcile full there")
	return nil
}
