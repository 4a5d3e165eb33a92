package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"kith/deployment"
	"kith/internal/sleep"
	"kith/storage/sqlstore"
)

// ShardsRemoveCmd is `kith shards remove`.
type ShardsRemoveCmd struct {
	Shard *int          `placeholder:"N" help:"The shard that is removed: the last one. It must have no buckets: kith shards move."`
	Keep  time.Duration `default:"60s" help:"How long its database is kept up, for programs that have not heard of it. Default: ${default}."`
}

// Validate is called by kong.
func (c *ShardsRemoveCmd) Validate() error { return checkShardAndKeep(c.Shard, c.Keep) }

// Run removes the shard.
func (c *ShardsRemoveCmd) Run(ctx context.Context, settings *Settings, store *sqlstore.Store, k *kong.Context) error {
	if err := still(store); err != nil {
		return err
	}
	name := fmt.Sprintf("the database of shard %d", *c.Shard)
	if status := store.ShardsStatus(); *c.Shard < len(status) {
		name = printable(status[*c.Shard].Name)
	}
	err := alone(ctx, store, func(ctx context.Context, _ string) error {
		if settings.Redundancy == deployment.Binlog && *c.Shard > 0 && *c.Shard == store.Shards()-1 && len(store.ShardsStatus()[*c.Shard].Buckets) == 0 {
			if err := awaitApplied(ctx, store, *c.Shard); err != nil {
				return err
			}
		}
		return store.RemoveShard(ctx, *c.Shard, sqlstore.MoveConfig{})
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(k.Stdout, "the store has %d shards. Take %s out of KITH_STORE if it stands there, for the next start of every program\n", store.Shards(), name)
	if err := sleep.For(ctx, c.Keep); err != nil {
		return err
	}
	fmt.Fprintf(k.Stdout, "%s is not needed any more\n", name)
	return nil
}
