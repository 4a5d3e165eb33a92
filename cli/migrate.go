package cli

import (
	"context"
	"fmt"

	"github.com/alecthomas/kong"

	"kith/storage/sqlstore"
)

// MigrateCmd is `kith migrate`.
type MigrateCmd struct{ Output }

// Run prints the version of each shard's tables; opening the store has brought them
// up to date.
func (c *MigrateCmd) Run(ctx context.Context, store *sqlstore.Store, k *kong.Context) error {
	shards, err := store.Migrations(ctx)
	if err != nil {
		return err
	}
	if c.JSON() {
		return WriteJSON(k.Stdout, shards)
	}
	for _, m := range shards {
		fmt.Fprintf(k.Stdout, "shard %d  %s  version %d\n", m.Shard, printable(m.Name), m.Version)
	}
	return nil
}
