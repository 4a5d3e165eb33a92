package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"kith/storage"
)

// Status is what a mode's last run has found. It is kept in the store, so that operators can ask
// any gateway for it.
type Status struct {
	Mode           Mode           `json:"mode"`
	At             storage.Micros `json:"at"`              // when it ended or, while it runs, when it last reported
	Began          storage.Micros `json:"began,omitempty"` // of [ModeFull]
	Found          map[Kind]int   `json:"found"`
	Repaired       map[Kind]int   `json:"repaired"`
	OldestUnpaired float64        `json:"oldestUnpaired"`   // seconds
	LostAt         float64        `json:"lostAt,omitempty"` // when a log last did not go on from the checkpoint, Unix seconds
}

// Status is what the metrics have counted for a mode.
func (m *Metrics) Status(mode Mode, at time.Time) Status {
	s := Status{Mode: mode, At: storage.MicrosOf(at), Found: map[Kind]int{}, Repaired: map[Kind]int{}}
	for _, kind := range Kinds() {
		s.Found[kind] = int(valueOf(m.found.WithLabelValues(string(mode), string(kind))))
		s.Repaired[kind] = int(valueOf(m.repaired.WithLabelValues(string(mode), string(kind))))
	}
	s.OldestUnpaired = valueOf(m.unpaired.WithLabelValues(string(mode)))
	s.LostAt = valueOf(m.lostAt.WithLabelValues(string(mode)))
	return s
}

func valueOf(m prometheus.Metric) float64 {
	var d dto.Metric
	if err := m.Write(&d); err != nil {
		return 0
	}
	return d.GetCounter().GetValue() + d.GetGauge().GetValue()
}

func statusName(mode Mode) string { return "reconcile/status/" + string(mode) }

// SaveStatus stores a status for [Statuses]. When something was lost is kept until it is lost again.
func SaveStatus(ctx context.Context, store storage.Checkpoints, s Status) error {
	if s.LostAt == 0 {
		before, err := Statuses(ctx, store)
		if err != nil {
			return err
		}
		for _, one := range before {
			if one.Mode == s.Mode {
				s.LostAt = one.LostAt
			}
		}
	}
	value, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("spell the status of %s: %w", s.Mode, err)
	}
	return store.SaveCheckpoint(ctx, statusName(s.Mode), value)
}

// Statuses returns the status of every mode that has run, in the order of [Modes].
func Statuses(ctx context.Context, store storage.Checkpoints) ([]Status, error) {
	var list []Status
	for _, mode := range Modes() {
		value, found, err := store.LoadCheckpoint(ctx, statusName(mode))
		if err != nil {
			return nil, err
		}
		if !found {
			continue
		}
		var s Status
		if err := json.Unmarshal(value, &s); err != nil {
			return nil, fmt.Errorf("read the status of %s: %w", mode, err)
		}
		list = append(list, s)
	}
	return list, nil
}

// Runs serves as metrics what the last runs of all modes have found, which it reads from the store.
// Runs that end have no metrics page of their own, and their counters would be lost at their end.
type Runs struct {
	store storage.Checkpoints

	mu   sync.Mutex
	read time.Time
	last []Status
}

const (
	// runsEvery is the greatest age of what is served.
	runsEvery = 10 * time.Second

	// runsWithin bounds how long a page waits for the store. After that it shows what was read
	// last.
	runsWithin = 2 * time.Second
)

var (
	lastRun = prometheus.NewDesc("kith_reconcile_last_run_timestamp_seconds",
		"When the last run ended, or last reported while it runs, by mode, in Unix seconds.", []string{"mode"}, nil)
	lastFound = prometheus.NewDesc("kith_reconcile_last_run_found",
		"Differences that the last run found, by mode and kind.", []string{"mode", "kind"}, nil)
	lastRepaired = prometheus.NewDesc("kith_reconcile_last_run_repaired",
		"Of those, repaired.", []string{"mode", "kind"}, nil)
	lastUnpaired = prometheus.NewDesc("kith_reconcile_last_run_oldest_unpaired_seconds",
		"How long the oldest edge had waited for its second half when the last run reported, by mode.", []string{"mode"}, nil)
	lastLost = prometheus.NewDesc("kith_reconcile_lost_timestamp_seconds",
		"When a log last did not go on from the checkpoint, by mode, in Unix seconds. 0 when that has not happened.", []string{"mode"}, nil)
	lastFullScan = prometheus.NewDesc("kith_reconcile_last_full_scan_timestamp_seconds",
		"When the last full scan that went to its end began, in Unix seconds. 0 when there was none.", nil, nil)
)

// NewRuns makes the metrics and registers them.
func NewRuns(registerer prometheus.Registerer, store storage.Checkpoints) *Runs {
	r := &Runs{store: store}
	registerer.MustRegister(r)
	return r
}

// Describe implements [prometheus.Collector].
func (r *Runs) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{lastRun, lastFound, lastRepaired, lastUnpaired, lastLost, lastFullScan} {
		descriptions <- d
	}
}

// Collect implements [prometheus.Collector].
func (r *Runs) Collect(metrics chan<- prometheus.Metric) {
	list, known := r.statuses()
	if !known {
		return // no value is better than a false 0
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	fullScan := 0.0
	for _, s := range list {
		mode := string(s.Mode)
		gauge(lastRun, float64(s.At)/1e6, mode)
		gauge(lastUnpaired, s.OldestUnpaired, mode)
		gauge(lastLost, s.LostAt, mode)
		for _, kind := range Kinds() {
			gauge(lastFound, float64(s.Found[kind]), mode, string(kind))
			gauge(lastRepaired, float64(s.Repaired[kind]), mode, string(kind))
		}
		if s.Mode == ModeFull {
			fullScan = float64(s.Began) / 1e6
		}
	}
	gauge(lastFullScan, fullScan)
}

// statuses reads the store at intervals; false if it has never answered.
func (r *Runs) statuses() ([]Status, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.read) < runsEvery {
		return r.last, true
	}
	ctx, cancel := context.WithTimeout(context.Background(), runsWithin)
	defer cancel()
	if list, err := Statuses(ctx, r.store); err == nil {
		r.last, r.read = list, time.Now()
	}
	return r.last, !r.read.IsZero()
}
