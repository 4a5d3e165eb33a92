package reconcile

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Runs serves as metrics what the last runs of all modes have found, which it reads from the store.
// Runs that end have no metrics page of their own, and their counters would be lost at their end.
type Runs struct {
	store StatusReader

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
func NewRuns(registerer prometheus.Registerer, store StatusReader) *Runs {
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
