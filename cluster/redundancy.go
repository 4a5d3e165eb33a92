package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"kith/replication"
	"kith/replication/binlog"
	"kith/replication/stream"
	"kith/social"
	"kith/storage"
	"kith/storage/events"
	"kith/storage/metrics"
)

// Redundancy is a running mode: it takes rows from writers, and propagates them to the inverse side
// in the background.
type Redundancy struct {
	social.Redundancy

	Replication Replication // nil if there is none

	stop    context.CancelFunc
	running sync.WaitGroup
	close   func()
}

// Replication reports the state of the replication, as seen by this process, for /readyz.
type Replication interface {
	Ready(context.Context) error
	Report() any
}

// OpenRedundancy starts the mode; the caller closes it. Applied rows are reported to the caches, and published on their bus.
func (c *Caches) OpenRedundancy() *Redundancy {
	ctx, stop := context.WithCancel(context.Background())
	r := &Redundancy{stop: stop, close: func() {}}
	NewMetrics(c.cfg.Registerer).WithLabelValues(c.mode).Set(1)
	switch c.mode {
	case Sync:
		r.sync(c)
	case Stream:
		r.stream(ctx, c)
	case Binlog:
		r.binlog(ctx, c)
	}
	if c.way.rows {
		r.running.Go(func() { replication.FollowLogs(ctx, c.store, c.bus, c.cfg.Logger) })
	}
	return r
}

// NewMetrics makes the metric that names the mode, and registers it.
func NewMetrics(registerer prometheus.Registerer) *prometheus.GaugeVec {
	return metrics.In(registerer).Gauges("kith_redundancy", "1 for the redundancy mode of this gateway (sync, stream, binlog).", "mode")
}

// Close stops what runs in the background, and waits until it has ended.
func (r *Redundancy) Close() {
	r.stop()
	r.running.Wait()
	r.close()
}

func (r *Redundancy) sync(c *Caches) {
	var publisher replication.Publisher
	if !c.way.rows { // otherwise the relation_log reports
		publisher = c.bus
	}
	sync := replication.NewSynchronous(c.store, publisher, c.cfg.Registerer, c.cfg.Logger)
	r.Redundancy, r.close = telling{sync, c.bus}, sync.Close
}

// telling is a mode that has the other gateways forget the users of rows which it could not
// propagate: they hear of a row when it is on both sides, which may be much later, or never.
type telling struct {
	social.Redundancy
	bus *events.Bus
}

func (t telling) Propagate(ctx context.Context, written []storage.Written) error {
	err := t.Redundancy.Propagate(ctx, written)
	if err != nil {
		var users []storage.UserID
		for _, w := range written {
			users = append(users, w.Edge.From, w.Edge.To)
		}
		t.bus.Send(ctx, missed(users))
	}
	return err
}

func (r *Redundancy) stream(ctx context.Context, c *Caches) {
	metrics := stream.NewMetrics(c.cfg.Registerer)
	key := stream.DefaultKey + ":" + c.store.UUID() // stores may share a Redis
	r.Redundancy = telling{added{stream.NewProducer(stream.ProducerConfig{Redis: c.cfg.Redis.client, Key: key, Metrics: metrics}), c.cfg.Logger}, c.bus}
	if !c.cfg.Replicates {
		return
	}
	consumer := stream.NewConsumer(stream.ConsumerConfig{
		Redis: c.cfg.Redis.client, Key: key, Name: consumerName(), Metrics: metrics, Logger: c.cfg.Logger,
		Propagator: replication.Propagator{Store: c.store, Publisher: c.bus, Logger: c.cfg.Logger},
	})
	r.running.Go(func() { consumer.Run(ctx) })
	c.cfg.Registerer.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "kith_replication_lag_seconds",
		Help:        "How long ago the oldest row was committed that is not on the inverse side yet, or how long nobody has followed the log, by source. 0 when all is applied.",
		ConstLabels: prometheus.Labels{"source": "stream"},
	}, func() float64 { return consumer.State().Age.Seconds() }))
	r.Replication = consumed{consumer}
}

// consumed reports the state of the consumer in this process.
type consumed struct{ *stream.Consumer }

func (c consumed) Report() any {
	s := c.State()
	return streamReport{LagSeconds: s.Age.Seconds(), Backlog: s.Backlog, Pending: s.Pending}
}

// streamReport is what /readyz shows of the mode stream.
type streamReport struct {
	LagSeconds float64 `json:"lagSeconds"` // of the oldest entry that is not acknowledged
	Backlog    int64   `json:"backlog"`    // entries that no consumer has been given yet
	Pending    int64   `json:"pending"`    // entries given and not acknowledged
}

// consumerName distinguishes this process's consumer from others.
func consumerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// added is the mode stream: it adds rows to a Redis Stream.
type added struct {
	producer *stream.Producer
	logger   *slog.Logger
}

func (added) Inline() bool { return false }

// Propagate returns errors that do not fail the follow: rows that could not be added are counted, and
// left to reconcile.
func (a added) Propagate(ctx context.Context, written []storage.Written) error {
	err := a.producer.Add(ctx, rowsOf(written))
	if err != nil {
		a.logger.WarnContext(ctx, "cannot add rows to the stream: left to kith reconcile", "rows", len(written), "error", err)
	}
	return err
}

func rowsOf(written []storage.Written) []storage.Row {
	return storage.Each(written, func(w storage.Written) storage.Row { return w.Row })
}

func (r *Redundancy) binlog(ctx context.Context, c *Caches) {
	r.Redundancy = logged{c.bus}
	replicator := c.NewReplicator(binlog.Config{Watch: !c.cfg.Replicates})
	r.running.Go(func() {
		if err := replicator.Run(ctx); err != nil {
			c.cfg.Logger.Error("replication has stopped", "error", err)
		}
	})
	r.Replication = replicator
}

// logged is the mode binlog: the database's log propagates the rows. It tells nobody of a row that was there before, whose other side has been
// written again: that may have been lost, and its event with it.
type logged struct{ publisher replication.Publisher }

func (logged) Inline() bool { return false }

func (l logged) Propagate(ctx context.Context, written []storage.Written) error {
	again := storage.Filter(written, func(w storage.Written) bool { return w.Again && w.Inverse })
	if len(again) > 0 {
		l.publisher.Publish(ctx, rowsOf(again))
	}
	return nil
}
