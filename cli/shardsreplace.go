package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/alecthomas/kong"

	"kith/deployment"
	"kith/internal/sleep"
	"kith/reconcile"
	"kith/replication/binlog"
	"kith/storage/sqlstore"
)

// ShardsReplaceCmd is `kith shards replace ADDRESS`.
type ShardsReplaceCmd struct {
	Address string        `arg:"" help:"An empty database: a DSN without a user (tcp(host:port)/database), which is reached by the user and the password of the store's first one, or the path of a file."`
	Shard   *int          `placeholder:"N" help:"The shard whose place it takes. It must have no buckets: kith shards move."`
	Keep    time.Duration `default:"60s" help:"How long the old database is kept up, for programs that have not heard of it. Default: ${default}."`
}

// appliedWithin is how long replicators may take for what the old server has written. They save their
// progress every 30 s.
const appliedWithin = 3 * time.Minute

// Validate is called by kong.
func (c *ShardsReplaceCmd) Validate() error { return checkShardAndKeep(c.Shard, c.Keep) }

// checkShardAndKeep checks the flags of commands that take a database out of use.
func checkShardAndKeep(shard *int, keep time.Duration) error {
	if err := checkKeep(keep); err != nil {
		return err
	}
	switch {
	case shard == nil:
		return errors.New("--shard: it is missing: a number that kith shards status shows")
	case *shard < 0:
		return errors.New("--shard: it must be 0 or more")
	}
	return nil
}

// Run replaces the shard.
func (c *ShardsReplaceCmd) Run(ctx context.Context, settings *Settings, store *sqlstore.Store, k *kong.Context) error {
	if *c.Shard >= store.Shards() {
		return noShard(store, *c.Shard)
	}
	if err := still(store); err != nil {
		return err
	}
	old := printable(store.ShardsStatus()[*c.Shard].Name)
	err := alone(ctx, store, func(ctx context.Context, _ string) error {
		if settings.Redundancy == deployment.Binlog {
			if err := awaitApplied(ctx, store, *c.Shard); err != nil {
				return err
			}
		}
		if err := store.ReplaceShard(ctx, *c.Shard, c.Address, sqlstore.MoveConfig{}); err != nil {
			return err
		}
		// An earlier run could have noted until now how far it has read the other log.
		return reconcile.ForgetLog(ctx, store, *c.Shard)
	})
	if err != nil {
		return fmt.Errorf("%w; the same command again goes on", err)
	}
	now := printable(store.ShardsStatus()[*c.Shard].Name)
	fmt.Fprintf(k.Stdout, "shard %d is %s. Write that into KITH_STORE where %s stands, for the next start of every program\n", *c.Shard, now, old)
	if err := sleep.For(ctx, c.Keep); err != nil {
		return err
	}
	fmt.Fprintf(k.Stdout, "%s is not needed any more\n", old)
	return nil
}

// awaitApplied waits until all rows that were written on the server of a shard without buckets have been
// applied. Rows that are written there afterwards do not belong to this shard.
func awaitApplied(ctx context.Context, store *sqlstore.Store, shard int) error {
	ctx, cancel := context.WithTimeout(ctx, appliedWithin)
	defer cancel()
	if err := store.RaiseEpoch(ctx, shard); err != nil { // so that there is something new to apply
		return err
	}
	return binlog.AwaitApplied(ctx, store.Addresses()[shard], store, slog.Default())
}

// still returns an error if buckets are being moved, or the store is being copied.
func still(store *sqlstore.Store) error {
	if store.IsCopied() {
		return errors.New("the store is being copied to another one, or has been (kith shards status)")
	}
	if moves := store.Moves(); len(moves) > 0 {
		return fmt.Errorf("%s: run this when nothing is being moved (kith shards status)", moves[0])
	}
	return nil
}
