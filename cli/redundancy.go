package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"kith/events"
	"kith/gateway"
	"kith/replication"
	"kith/replication/binlog"
	"kith/replication/incall"
	"kith/replication/stream"
	"kith/replication/tail"
	"kith/social"
	"kith/storage"
	"kith/storage/sqlstore"
)

// Redundancy is the mode of the settings at work: what writers hand their rows to,
// and what runs in the background to bring them to the inverse side.
type Redundancy struct {
	social.Redundancy
	Checks []gateway.Check // of /readyz

	stop    context.CancelFunc
	running sync.WaitGroup
	close   func()
}

// Redundant is what a mode is made of.
type Redundant struct {
	Store      *sqlstore.Store
	Caches     *Caches // are told of what is applied
	Redis      *Redis
	Bus        *events.Bus // is told what has been applied
	Registerer prometheus.Registerer
	Logger     *slog.Logger

	// Replicate runs the replicator of the modes stream and binlog in this process.
	Replicate bool
}

// EventsOf is the bus between the gateways of one store, which may share a Redis with
// others.
func EventsOf(store *sqlstore.Store, redis *Redis, hub *events.Hub, metrics *events.Metrics) *events.Bus {
	return events.NewBus(hub, events.BusConfig{Redis: redis.Client(), Channel: "kith:events:" + store.UUID(), Metrics: metrics})
}

// OpenRedundancy starts the mode of the settings; the caller closes it.
func (s *Settings) OpenRedundancy(with Redundant) (*Redundancy, error) {
	ctx, stop := context.WithCancel(context.Background())
	r := &Redundancy{stop: stop, close: func() {}}
	switch s.Redundancy {
	case RedundancySync:
		s.sync(ctx, r, with)
	case RedundancyStream:
		s.stream(ctx, r, with)
	case RedundancyBinlog:
		s.binlog(ctx, r, with)
	}
	if with.Store.HasLog() {
		r.running.Go(func() { tail.Run(ctx, with.Store, with.Bus, with.Logger) })
	}
	return r, nil
}

// Close stops what runs in the background, and waits for it.
func (r *Redundancy) Close() {
	r.stop()
	r.running.Wait()
	r.close()
}

func (s *Settings) sync(_ context.Context, r *Redundancy, with Redundant) {
	var publisher replication.Publisher = with.Bus
	if with.Store.HasLog() {
		publisher = nobody{} // the relation_log tells
	}
	sync := incall.New(with.Caches.Writer, publisher, incall.NewMetrics(with.Registerer), with.Logger)
	r.Redundancy, r.close = sync, sync.Close
}

type nobody struct{}

func (nobody) Publish(context.Context, []storage.Row) {}

func (s *Settings) stream(ctx context.Context, r *Redundancy, with Redundant) {
	metrics := stream.NewMetrics(with.Registerer)
	key := stream.DefaultKey + ":" + with.Store.UUID() // stores may share a Redis
	r.Redundancy = added{stream.NewProducer(stream.ProducerConfig{Redis: with.Redis.client, Key: key, Metrics: metrics}), with.Logger}
	if !with.Replicate {
		return
	}
	consumer := stream.NewConsumer(stream.ConsumerConfig{
		Redis: with.Redis.client, Key: key, Applier: carrying(with), Name: consumerName(), Metrics: metrics, Logger: with.Logger,
	})
	r.running.Go(func() { consumer.Run(ctx) })
	with.Registerer.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "kith_replication_lag_seconds",
		Help:        "How long ago the oldest row was committed that is not on the inverse side yet, by source. 0 when there is none.",
		ConstLabels: prometheus.Labels{"source": "stream"},
	}, func() float64 { return consumer.State().Age.Seconds() }))
	r.Checks = []gateway.Check{{
		Name: "replication", Advisory: true,
		Ask:     func(context.Context) error { return nil },
		Details: func() any { return streamDetails(consumer.State()) },
	}}
}

// carrying applies rows to the store of a mode and tells its bus.
func carrying(with Redundant) applied {
	return applied{replication.Carrier{Store: with.Caches.Carrier, Publisher: with.Bus, Logger: with.Logger}}
}

// streamReport is what /readyz shows of the mode stream.
type streamReport struct {
	LagSeconds float64 `json:"lagSeconds"` // of the oldest entry that is not acknowledged
	Backlog    int64   `json:"backlog"`    // entries that no consumer has been given yet
	Pending    int64   `json:"pending"`    // entries given and not acknowledged
}

func streamDetails(s stream.State) streamReport {
	return streamReport{LagSeconds: s.Age.Seconds(), Backlog: s.Backlog, Pending: s.Pending}
}

// consumerName tells this process's consumer from others.
func consumerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// added is the mode stream: rows go to a Redis Stream.
type added struct {
	producer *stream.Producer
	logger   *slog.Logger
}

func (added) Inline() bool { return false }

// Carry fails no follow: what is not published has been counted, and is left to
// reconcile.
func (a added) Carry(ctx context.Context, written []storage.Written) error {
	err := a.producer.Add(ctx, rowsOf(written))
	if err != nil {
		a.logger.WarnContext(ctx, "follows not published", "rows", len(written), "error", err)
	}
	return err
}

func rowsOf(written []storage.Written) []storage.Row {
	rows := make([]storage.Row, len(written))
	for i, w := range written {
		rows[i] = w.Row
	}
	return rows
}

// applied is what the consumers of the stream hand rows to. What follows from a row is
// carried on before its entry is acknowledged, so that a consumer that dies in between
// leaves the entry to another.
type applied struct{ replication.Carrier }

// Apply implements [stream.Applier].
func (a applied) Apply(ctx context.Context, rows []storage.Row) error {
	written := make([]storage.Written, len(rows))
	for i, row := range rows {
		written[i] = storage.Written{Row: row}
	}
	var missed unapplied
	for _, left := range a.Carry(ctx, written) {
		missed.error, missed.rows = left.Err, append(missed.rows, rows[left.Root])
	}
	if missed.error != nil {
		return missed
	}
	return nil
}

// unapplied implements [stream.Partial].
type unapplied struct {
	error
	rows []storage.Row
}

func (u unapplied) Unapplied() []storage.Row { return u.rows }
func (u unapplied) Unwrap() error            { return u.error }

func (s *Settings) binlog(ctx context.Context, r *Redundancy, with Redundant) {
	r.Redundancy = logged{}
	if !with.Replicate {
		return
	}
	applier := replication.New(replication.Config{
		Store: with.Caches.Carrier, Shards: with.Store.Shards(), Publisher: with.Bus,
		Metrics: replication.NewMetrics(with.Registerer), Logger: with.Logger,
	})
	_, dsns, _ := strings.Cut(s.Store, ":")
	replicator := binlog.New(binlog.Config{
		DSNs: strings.Split(dsns, ";"), Applier: applier, Checkpoints: with.Store, Events: with.Caches.echoed(), Logger: with.Logger,
	})
	r.running.Go(func() { applier.Run(ctx) })
	r.running.Go(func() {
		if err := replicator.Run(ctx); err != nil {
			with.Logger.Error("replication has stopped", "error", err)
		}
	})
	r.Checks = []gateway.Check{{
		Name: "replication", Advisory: true,
		Ask:     func(context.Context) error { return errors.Join(applier.Status().Err(), stopped(replicator)) },
		Details: func() any { return replicationDetails(applier, replicator) },
	}}
}

// replicationReport is what /readyz shows of the replicator in this process.
type replicationReport struct {
	LagSeconds float64        `json:"lagSeconds"` // of the oldest row that is not applied
	Pending    int            `json:"pending"`    // rows
	Servers    []serverReport `json:"servers"`
}

type serverReport struct {
	Server string       `json:"server"`
	State  binlog.State `json:"state"`
}

func replicationDetails(applier *replication.Applier, replicator *binlog.Replicator) replicationReport {
	status := applier.Status()
	report := replicationReport{LagSeconds: status.Lag.Seconds(), Pending: status.Pending}
	for _, s := range replicator.Status() {
		report.Servers = append(report.Servers, serverReport{s.Server, s.State})
	}
	return report
}

// stopped tells of servers that are not followed any more.
func stopped(r *binlog.Replicator) error {
	for _, s := range r.Status() {
		if s.State == binlog.Stopped {
			return fmt.Errorf("replication of %s has stopped: %w", s.Server, s.Err)
		}
	}
	return nil
}

// logged is the mode binlog: the database's log carries the rows.
type logged struct{}

func (logged) Inline() bool                                   { return false }
func (logged) Carry(context.Context, []storage.Written) error { return nil }
