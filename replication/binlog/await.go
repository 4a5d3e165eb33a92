package binlog

import (
	"context"
	"fmt"
	"log/slog"

	"kith/internal/sleep"
	"kith/storage"
)

// AwaitApplied waits until replicators have applied what a database's server has written to its binlog by
// now: afterwards nothing of the server is needed any more. If nobody has ever replicated the server,
// there is nothing to wait for. An idle replicator saves how far it is every 30 s.
func AwaitApplied(ctx context.Context, dsn string, checkpoints storage.Checkpoints, logger *slog.Logger) error {
	servers, err := New(Config{DSNs: []string{dsn}, Checkpoints: checkpoints, Logger: logger}).identify(ctx)
	if err != nil || ctx.Err() != nil {
		return err
	}
	s := servers[0]
	defer s.db.Close()
	written, err := s.serverPosition(ctx)
	if err != nil {
		return err
	}
	for {
		p, err := s.load(ctx)
		switch {
		case err != nil:
			return err
		case p == nil, p.copy == nil && p.at.set().Contain(written):
			return nil
		}
		if sleep.For(ctx, firstPause) != nil {
			return fmt.Errorf("%s has been applied of %s, which is at %s: is there a replicator?", p.position(), s.name, written)
		}
	}
}
