// Package stream takes forward rows from the gateways that wrote them to those
// that apply them to the inverse side, over a Redis Stream: the redundancy mode
// `stream`.
//
// An entry holds the rows of one request. The consumers of all gateways share the work as one
// consumer group. A consumer acknowledges an entry after its rows and their consequences have been
// committed; only after that is the entry removed. An entry may be applied twice, late, or after a
// newer one of the same edge, which changes nothing (see [storage.EdgeWriter.Apply]). Nothing that
// was not applied is ever trimmed: while nobody consumes, the stream grows, and once Redis is full,
// Add fails.
package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/replication"
	"kith/storage"
	"kith/storage/wire"
)

// A Propagator writes forward rows to the inverse side, see [replication.Propagator].
type Propagator interface {
	Propagate(ctx context.Context, rows []storage.Written) []replication.Left
}

// Names in Redis: of the stream, unless another is configured, and of the group of all consumers.
const (
	DefaultKey = "kith:following"
	Group      = "kith"
)

// field is the only field of an entry.
const field = "e"

// Producer adds forward rows to the stream.
type Producer struct{ ProducerConfig }

// ProducerConfig says where to add.
type ProducerConfig struct {
	// Redis holds the stream. Set its ContextTimeoutEnabled, or Timeout does not bound the wait for
	// an answer.
	Redis redis.UniversalClient

	// Key of the stream; stores that share a Redis need one each. Defaults to
	// [DefaultKey].
	Key string

	// Timeout is how long Add may take, whatever its context allows. Defaults to 1 s.
	Timeout time.Duration

	// Metrics counts what is added. Defaults to none.
	Metrics *Metrics
}

// NewProducer makes a producer.
func NewProducer(cfg ProducerConfig) *Producer {
	cfg.Key, cfg.Timeout, cfg.Metrics = cmp.Or(cfg.Key, DefaultKey), cmp.Or(cfg.Timeout, time.Second), cmp.Or(cfg.Metrics, NewMetrics(nil))
	return &Producer{cfg}
}

// Add puts rows into the stream as one entry, so that they are applied together. After an error
// they may be in the stream all the same.
func (p *Producer) Add(ctx context.Context, rows []storage.Row) error {
	if len(rows) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	err := p.Redis.XAdd(ctx, &redis.XAddArgs{Stream: p.Key, Values: []any{field, encode(rows)}}).Err()
	if err != nil {
		p.Metrics.addFailures.Add(float64(len(rows)))
		return fmt.Errorf("add %d rows to stream %s: %w", len(rows), p.Key, err)
	}
	p.Metrics.added.Add(float64(len(rows)))
	return nil
}

// encode writes an entry: the version, then the rows.
func encode(rows []storage.Row) []byte {
	to := append(make([]byte, 0, 1+26*len(rows)), wire.Version)
	for _, r := range rows {
		to = wire.AppendRow(to, r)
	}
	return to
}

// errPoison: an entry that no consumer of this version can understand.
var errPoison = errors.New("entry cannot be decoded")

func decode(values map[string]any) ([]storage.Row, error) {
	text, ok := values[field].(string)
	if !ok {
		return nil, fmt.Errorf("%w: no field %q", errPoison, field)
	}
	r := wire.NewDecoder(text)
	if version := r.Byte(); version != wire.Version {
		return nil, fmt.Errorf("%w: version %d", errPoison, version)
	}
	var rows []storage.Row
	for r.More() {
		row := r.Row()
		if row.Side.IsInverse() {
			return nil, fmt.Errorf("%w: a row of %s", errPoison, row.Side)
		}
		rows = append(rows, row)
	}
	if r.End() != nil || len(rows) == 0 {
		return nil, fmt.Errorf("%w: %d bytes", errPoison, len(text))
	}
	return rows, nil
}
