package stream

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/storage"
)

// entry is a decoded entry.
type entry struct {
	id   string
	rows []storage.Row
}

// settle applies and acknowledges entries, and moves those that cannot be decoded to the dead
// letters. It returns whether no entry is left; entries that are left stay pending. An error is an
// error of Redis.
func (c *Consumer) settle(ctx context.Context, messages []redis.XMessage) (complete bool, err error) {
	if len(messages) == 0 {
		return true, nil
	}
	batch, waiting := make([]entry, 0, len(messages)), false
	for _, m := range messages {
		rows, err := decode(m.Values)
		if err == nil {
			batch = append(batch, entry{m.ID, rows})
			continue
		}
		switch err := c.bury(ctx, m, err); {
		case redis.IsOOMError(err): // it stays pending, until what is behind it has made room
			waiting = true
		case err != nil:
			return false, err
		}
	}
	if len(batch) == 0 {
		return !waiting, nil
	}
	done := c.apply(ctx, batch)
	if err := c.acknowledge(ctx, done); err != nil {
		return false, err
	}
	return !waiting && len(done) == len(batch), nil
}

// apply propagates the rows of entries, and returns the entries of which nothing is left to do.
func (c *Consumer) apply(ctx context.Context, batch []entry) (done []entry) {
	var rows []storage.Written
	var of []int // the entry of each row
	for i, e := range batch {
		for _, r := range e.rows {
			rows, of = append(rows, storage.Written{Row: r}), append(of, i)
		}
	}
	left := c.Propagator.Propagate(ctx, rows)
	if len(left) == 0 {
		c.Metrics.batch.Observe(float64(len(rows)))
		return batch
	}
	if ctx.Err() == nil {
		c.Metrics.failures.Inc()
		c.Logger.WarnContext(ctx, "cannot apply entries of the stream: retrying", "stream", c.Key, "entries", len(batch), "first", batch[0].id, "error", left[0].Err)
	}
	incomplete := make(map[int]bool)
	for _, l := range left {
		incomplete[of[l.Root]] = true
	}
	for i, e := range batch {
		if !incomplete[i] {
			done = append(done, e)
		}
	}
	return done
}

func (c *Consumer) acknowledge(ctx context.Context, done []entry) error {
	if len(done) == 0 {
		return nil
	}
	ids, rows := make([]string, len(done)), 0
	for i, e := range done {
		ids[i], rows = e.id, rows+len(e.rows)
	}
	// Acknowledge even if the context has ended: others need not apply these entries again.
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), answers)
	defer cancel()
	if err := c.Redis.XAck(asking, c.Key, Group, ids...).Err(); err != nil {
		return fmt.Errorf("acknowledge %d entries: %w", len(ids), err)
	}
	c.Metrics.applied.Add(float64(rows))
	now := time.Now()
	for _, id := range ids {
		c.Metrics.delay.Observe(max(0, now.Sub(addedAt(id))).Seconds())
	}
	return nil
}

// addedAt is when an entry was added, by the clock of Redis.
func addedAt(id string) time.Time {
	ms, _ := split(id)
	return time.UnixMilli(int64(ms))
}

// maxDeadLetters bounds the dead-letter stream.
const maxDeadLetters = 10_000

// deadLetters is the key of the stream of entries that cannot be decoded.
func (c *Consumer) deadLetters() string { return c.Key + ":dead" }

// bury moves an entry that cannot be decoded to the dead-letter stream, with its id and the reason.
// If in doubt, it does so twice rather than not at all.
func (c *Consumer) bury(ctx context.Context, m redis.XMessage, reason error) error {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	values := []any{"id", m.ID, "reason", reason.Error()}
	for name, value := range m.Values {
		values = append(values, "field:"+name, value)
	}
	err := c.Redis.XAdd(ctx, &redis.XAddArgs{Stream: c.deadLetters(), MaxLen: maxDeadLetters, Approx: true, Values: values}).Err()
	if err == nil {
		err = c.Redis.XAck(ctx, c.Key, Group, m.ID).Err()
	}
	if err != nil {
		return fmt.Errorf("bury entry %s: %w", m.ID, err)
	}
	c.Metrics.poison.Inc()
	c.Logger.ErrorContext(ctx, "cannot decode an entry of the stream: set aside", "stream", c.Key, "entry", m.ID, "moved to", c.deadLetters(), "reason", reason)
	return nil
}
