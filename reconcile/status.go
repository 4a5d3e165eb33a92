package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
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
	Found          map[Kind]int64 `json:"found"`
	Repaired       map[Kind]int64 `json:"repaired"`
	OldestUnpaired float64        `json:"oldestUnpaired"`   // seconds
	LostAt         float64        `json:"lostAt,omitempty"` // when a log last did not go on from the checkpoint, Unix seconds
}

// Status is what the metrics have counted for a mode.
func (m *Metrics) Status(mode Mode, at time.Time) Status {
	s := Status{Mode: mode, At: storage.MicrosOf(at), Found: map[Kind]int64{}, Repaired: map[Kind]int64{}}
	for _, kind := range Kinds() {
		s.Found[kind] = int64(valueOf(m.found.WithLabelValues(string(mode), string(kind))))
		s.Repaired[kind] = int64(valueOf(m.repaired.WithLabelValues(string(mode), string(kind))))
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

// StatusReader is what [Statuses] reads from.
type StatusReader interface {
	LoadCheckpoint(ctx context.Context, name string) ([]byte, bool, error)
}

// Statuses returns the status of every mode that has run, in the order of [Modes].
func Statuses(ctx context.Context, store StatusReader) ([]Status, error) {
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
