package binlog

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"kith/replication"
	"kith/storage"
	"kith/storage/events"
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
	pause := firstPause
	t.heard = time.Now()
	for {
		err := t.connection(ctx, t)
		s.alive = t.heard
		var stop *StopError
		if ctx.Err() != nil || errors.As(err, &stop) || errors.Is(err, errHistory) {
			return err
		}
		if t.arrived {
			pause = firstPause
		}
		silent := t.heard
		if unread := t.unread(); !unread.IsZero() && unread.Before(silent) {
			silent = unread
		}
		feed.Silent(silent)
		s.set(Connecting, err)
		s.log().Warn("replication: reading the binlog was interrupted: reconnecting", "error", err)
		_ = sleep.For(ctx, pause)
		pause = min(2*pause, longPause)
	}
}

// hear implements [sink]: it notes that the server is alive.
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

// rotated implements [sink].
func (t *tail) rotated(ctx context.Context) error {
	return t.feed.Submit(ctx, replication.Batch{Done: t.progress.rotated})
}

// complete implements [sink]: replication has no end.
func (t *tail) complete() bool { return false }

// take implements [sink]: it passes a transaction to the applier, and changes that concern caches to the
// events.
func (t *tail) take(ctx context.Context, done *transaction) error {
	if done.skips > 0 {
		t.server.log().Warn("replication: skipped what cannot be followed", "transaction", done.gtid.String(), "first", done.skipped, "count", done.skips)
	}
	if t.server.cfg.Changed != nil {
		if list := changed(done); len(list) > 0 {
			t.server.cfg.Changed(ctx, list)
		}
	}
	if list := stale(done); len(list) > 0 {
		t.server.cfg.Events.Send(ctx, list...)
	}
	err := t.feed.Submit(ctx, replication.Batch{
		Rows:      done.rows,
		Committed: done.committed,
		Done:      func() { t.progress.advance(done) },
	})
	if err == nil {
		t.advance(done)
	}
	return err
}

// stale lists the users whose profiles, counts or states a transaction changed, the posts, and new comments.
func stale(t *transaction) []events.Event {
	list := make([]events.Event, 0, len(t.users)+len(t.counts)+len(t.states)+len(t.posts)+len(t.comments))
	versions := make(map[storage.UserID]int64, len(t.counts))
	for _, c := range t.counts {
		versions[c.User] = c.Counts.Version
		list = append(list, events.Counts(c.User).Since(c.Counts.Version))
	}
	for _, id := range t.users {
		list = append(list, events.User(id).Since(versions[id]))
	}
	list = append(list, storage.Each(t.states, events.State)...)
	list = append(list, storage.Each(t.posts, events.Changed)...)
	return append(list, storage.Each(t.comments, events.Commented)...)
}

// changed lists what a transaction has changed about users. If a user's own row has changed as
// well, the counts alone are not enough.
func changed(t *transaction) []storage.UserChange {
	of := make(map[storage.UserID]storage.UserChange, len(t.counts))
	for _, c := range t.counts {
		c.Inverse = c.Inverse || t.inverse
		if before, again := of[c.User]; again {
			c = c.And(before)
		}
		of[c.User] = c
	}
	for _, r := range t.rows {
		if c, counted := of[r.Edge.From]; counted && r.Side == storage.Forward {
			c.Forward = true
			of[c.User] = c
		}
	}
	for _, id := range t.users {
		c := of[id]
		c.User, c.Before = id, c.Counts.Version
		of[id] = c
	}
	return slices.Collect(maps.Values(of))
}
