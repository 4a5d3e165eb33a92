package reconcile_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/reconcile"
	"kith/storage"
)

// struck is a store in which a scan is killed just after a repair that has consequences.
type struck struct {
	*dying
	kill context.CancelFunc
}

func (s *struck) RepairInverse(ctx context.Context, repairs []storage.Repair) []storage.Result[storage.Changed] {
	results := s.dying.RepairInverse(ctx, repairs)
	for _, r := range results {
		if len(r.Value.Also) > 0 {
			s.dead.Store(true)
			s.kill()
		}
	}
	return results
}

// If a scan is killed between a repair and its consequences, the next scan propagates the consequences to
// their other side.
func TestWhatFollowsFromARepairOutlivesAKill(t *testing.T) {
	g := newGraph(t, 11, 2, 50, 500)
	g.lostBlock(g.apart[0], g.apart[1])
	g.lostAcceptance(g.apart[2], g.apart[3])
	g.forbiddenFollow(g.apart[4], g.apart[5])
	kills := 0
	for ended := false; !ended; {
		ctx, cancel := context.WithCancel(t.Context())
		cfg := quick(&struck{&dying{graph: g}, cancel})
		cfg.Repair, cfg.Logger = true, slog.New(slog.DiscardHandler)
		r, err := reconcile.Full(ctx, cfg)
		cancel()
		if ended = err == nil; ended {
			check.Equal(t, "what is left", r.Left(), 0)
			break
		}
		kills++
		must.That(t, errors.Is(err, context.Canceled) && kills <= 10, "%v", err)
	}
	check.Equal(t, "how often it was killed", kills, 3)
	g.whole()
}
