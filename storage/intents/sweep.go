package intents

import (
	"context"
	_ "embed"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/storage"
)

//go:embed sweep.lua
var sweepText string

var sweepScript = redis.NewScript(sweepText)

// run renews what is open, and sweeps what others have left, until the context is done.
func (l *Log) run(ctx context.Context) {
	ticks := time.NewTicker(sweepEvery)
	defer ticks.Stop()
	for {
		l.standBy()
		if err := l.sweep(ctx); err != nil && ctx.Err() == nil {
			l.cfg.Metrics.failures.Inc()
		}
		select {
		case <-ctx.Done():
			l.standBy() // sends what was ended last
			return
		case <-ticks.C:
		}
	}
}

// standBy adds intents again that have been open for a while, in case Redis has lost them, and
// removes those that are done.
func (l *Log) standBy() {
	l.mu.Lock()
	now := time.Now()
	for in := range l.open {
		if now.Sub(in.begun) > longestWrite {
			delete(l.open, in)
		} else if now.Sub(in.kept) >= sweepEvery/2 {
			if renewed := renew(in.member, now); renewed != in.member {
				l.remove(in.member)
				in.member = renewed
			}
			l.add(in)
		}
	}
	first := !l.sending && len(l.adding)+len(l.removal) > 0
	l.sending = l.sending || first
	l.cfg.Metrics.open.Set(float64(len(l.open)))
	l.mu.Unlock()
	if first {
		l.exchange()
	}
}

// sweep looks after intents that have not been renewed.
func (l *Log) sweep(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	due, err := sweepScript.Run(asking, l.cfg.Redis, []string{l.cfg.Key}, orphaned.Milliseconds(), maxSwept).Result()
	if err != nil {
		return err
	}
	list, ok := due.([]any)
	if ok && len(list) == 0 {
		return nil
	}
	if !ok {
		l.cfg.Metrics.swept.WithLabelValues("too many").Inc()
		l.cfg.Sweep(ctx, nil, func() {})
		return nil
	}
	l.cfg.Metrics.swept.WithLabelValues("single").Add(float64(len(list)))
	users, over := look(list, time.Now())
	l.cfg.Sweep(ctx, users, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, member := range over {
			l.remove(member)
		}
	})
	return nil
}

// look returns the users of the intents, each once, or none if any user may be meant. It also
// returns the intents that have come to their end.
func look(list []any, now time.Time) (users []storage.UserID, over []string) {
	seen, all := map[storage.UserID]bool{}, false
	for _, one := range list {
		member, _ := one.(string)
		at, some, err := decode(member)
		// An intent that means all users is swept only once, because that is expensive.
		if age := now.Sub(at); err != nil || age > lateCommits || age < -lateCommits || len(some) == 0 {
			over = append(over, member)
		}
		all = all || err == nil && len(some) == 0
		for _, id := range some {
			if !seen[id] {
				seen[id] = true
				users = append(users, id)
			}
		}
	}
	if all {
		users = nil
	}
	return users, over
}
