package stream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/storage"
)

// entry is a decoded entry.
type entry struct {
	id   string
	rows []storage.Row
}

// maxAttempts is how often parts of a batch are tried by themselves after the whole batch failed.
// 18 attempts find one bad row in 500 entries; if more rows fail, such as those of a whole shard,
// the rest waits.
const maxAttempts = 24

// settle applies and acknowledges entries, and moves those that cannot be decoded to the dead
// letters. It returns whether no entry is left; entries that are left stay pending. An error is an
// error of Redis.
func (c *Consumer) settle(ctx context.Context, messages []redis.XMessage) (complete bool, err error) {
	if len(messages) == 0 {
		return true, nil
	}
	batch := make([]entry, 0, len(messages))
	for _, m := range messages {
		rows, err := decode(m.Values)
		if err == nil {
			batch = append(batch, entry{m.ID, rows})
			continue
		}
		if err := c.bury(ctx, m, err); err != nil {
			return false, err
		}
	}
	if len(batch) == 0 {
		return true, nil
	}
	attempts := maxAttempts
	done := c.apply(ctx, batch, &attempts)
	if err := c.acknowledge(ctx, done); err != nil {
		return false, err
	}
	return len(done) == len(batch), nil
}

// apply returns the entries that are fully applied. If a batch fails without saying which rows
// failed, apply halves it until the attempts are used up.
func (c *Consumer) apply(ctx context.Context, batch []entry, attempts *int) []entry {
	rows := rowsOf(batch)
	*attempts--
	err := c.Applier.Apply(ctx, rows)
	if err == nil {
		c.Metrics.batch.Observe(float64(len(rows)))
		return batch
	}
	if ctx.Err() != nil {
		return nil
	}
	c.Metrics.failures.Inc()
	c.Logger.WarnContext(ctx, "stream entries are not applied", "stream", c.Key, "entries", len(batch), "first", batch[0].id, "error", err)
	if partial, ok := errors.AsType[Partial](err); ok {
		return without(batch, partial.Unapplied())
	}
	if len(batch) == 1 || *attempts < 2 {
		return nil
	}
	half := len(batch) / 2
	done := c.apply(ctx, batch[:half:half], attempts)
	if *attempts > 0 {
		done = append(done, c.apply(ctx, batch[half:], attempts)...)
	}
	return done
}

// without returns the entries that hold none of the rows.
func without(batch []entry, rows []storage.Row) []entry {
	missing := make(map[storage.Row]bool, len(rows))
	for _, r := range rows {
		missing[r] = true
	}
	var done []entry
	for _, candidate := range batch {
		complete := true
		for _, r := range candidate.rows {
			complete = complete && !missing[r]
		}
		if complete {
			done = append(done, candidate)
		}
	}
	return done
}

func (c *Consumer) acknowledge(ctx context.Context, done []entry) error {
	if len(done) == 0 {
		return nil
	}
	ids := make([]string, len(done))
	for i, e := range done {
		ids[i] = e.id
	}
	// Acknowledge even if the context has ended: others need not apply these entries again.
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), answers)
	defer cancel()
	if err := c.Redis.XAck(asking, c.Key, c.Group, ids...).Err(); err != nil {
		return fmt.Errorf("acknowledge %d entries: %w", len(ids), err)
	}
	c.Metrics.applied.Add(float64(len(rowsOf(done))))
	now := time.Now()
	var longest time.Duration
	for _, id := range ids {
		delay := max(0, now.Sub(addedAt(id)))
		longest = max(longest, delay)
		c.Metrics.delay.Observe(delay.Seconds())
	}
	c.OnDelay(longest)
	return nil
}

// addedAt is when an entry was added, by the clock of Redis.
func addedAt(id string) time.Time {
	text, _, _ := strings.Cut(id, "-")
	ms, _ := strconv.ParseInt(text, 10, 64)
	return time.UnixMilli(ms)
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
		err = c.Redis.XAck(ctx, c.Key, c.Group, m.ID).Err()
	}
	if err != nil {
		return fmt.Errorf("bury entry %s: %w", m.ID, err)
	}
	c.Metrics.poison.Inc()
	c.Logger.ErrorContext(ctx, "stream entry cannot be decoded", "stream", c.Key, "entry", m.ID, "moved to", c.deadLetters(), "reason", reason)
	return nil
}
