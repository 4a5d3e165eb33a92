package binlog

import (
	"context"
	"errors"
	"sync"
	"time"

	"kith/replication"
	"kith/storage/sleep"
)

// follow finishes the copy, if there is one to make, then follows the binlog. It survives interruptions, and
// ends when the context does or when it cannot continue: [*StopError], errHistory.
func (s *server) follow(ctx context.Context, feed *replication.Feed, p *progress) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var keeping sync.WaitGroup
	defer keeping.Wait()
	defer cancel(context.Canceled)
	keeping.Go(func() { p.keep(ctx) })
	if state := p.copy; state != nil {
		if err := s.copyAll(ctx, feed, p, *state); err != nil {
			return err
		}
	}

	t := &tail{server: s, feed: feed, progress: p, at: p.at.clone()}
	defer feed.Silent(time.Time{})
	report := func(done *transaction) { t.report(ctx, done) }
	return onceVisible(ctx, s.cfg.Store, report, func(add func(*transaction) error) error { return t.follow(ctx, add) })
}

// follow adds all transactions, on as many connections as it takes.
func (t *tail) follow(ctx context.Context, add func(*transaction) error) error {
	s, pause := t.server, firstPause
	t.heard = time.Now()
	for {
		err := t.connection(ctx, sink{hear: t.hear, rotated: t.rotated, take: add})
		s.alive = t.heard
		if ctx.Err() != nil || errors.As(err, new(*StopError)) || errors.Is(err, errHistory) {
			return err
		}
		if t.arrived {
			pause = firstPause
		}
		silent := t.heard
		if unread := t.unread(); !unread.IsZero() && unread.Before(silent) {
			silent = unread
		}
		t.feed.Silent(silent)
		s.set(Connecting, err)
		s.log().Warn("replication: reading the binlog was interrupted: reconnecting", "error", err)
		_ = sleep.For(ctx, pause)
		pause = min(2*pause, longPause)
	}
}

// hear notes that the server is alive.
func (t *tail) hear() {
	t.heard = time.Now()
	if t.connected {
		return
	}
	t.connected = true
	t.feed.Silent(t.unread())
	t.server.set(Tailing, nil)
	t.server.log().Info("replication: following the binlog", "from", t.at.set().String())
}

func (t *tail) rotated(ctx context.Context) error {
	return t.feed.Submit(ctx, replication.Batch{Done: t.progress.rotated})
}

// report reports what a transaction has changed, and passes its rows to the applier.
func (t *tail) report(ctx context.Context, done *transaction) {
	if done.skips > 0 {
		t.server.log().Warn("replication: skipped what cannot be followed", "transaction", done.gtid.String(), "first", done.skipped, "count", done.skips)
	}
	if c := done.change(); !c.IsEmpty() && !done.moves {
		t.server.cfg.Changed(ctx, c)
	}
	_ = t.feed.Submit(ctx, replication.Batch{ // an error is the end of the context
		Rows:      done.rows,
		Committed: done.committed,
		Known:     done.moves,
		Done:      func() { t.progress.advance(done) },
	})
}
