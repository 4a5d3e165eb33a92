package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"

	"kith/storage"
)

// How long /readyz waits: for the shards, which decide, and for the checks, which do not and must not delay the answer.
const (
	readyWithin  = 2 * time.Second
	checksWithin = 500 * time.Millisecond
	answerGrace  = 100 * time.Millisecond // for an answer at the last moment, which tells more than none
)

// Check is something that the gateway uses besides the store. /readyz shows it; without it, the gateway still answers
// requests, and is ready. A process that serves no store, such as a replicator, is ready while all its checks succeed.
type Check struct {
	Name string // such as "redis"; shown in the answer
	Ask  func(context.Context) error

	// Details, if there are any, are shown as JSON. They hold no secrets.
	Details func() any
}

func serveHealth(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write([]byte("ok\n"))
}

// Pinger reports which shards answer, as [storage.Store] does.
type Pinger interface {
	Ping(ctx context.Context) []storage.ShardHealth
}

// readiness answers /readyz: whether this gateway should get requests. It should not if it stops, or if none of its shards
// answers. If some do, it can answer for their users, and the other gateways could hardly do better.
type readiness struct {
	store    Pinger
	checks   []Check
	stopping func() bool // if true, it is not ready, whatever answers
	asking   singleflight.Group
}

// report is the body of the answer.
type report struct {
	Ready    bool         `json:"ready"`
	Stopping bool         `json:"stopping,omitempty"`
	Shards   []partReport `json:"shards,omitempty"`
	Checks   []partReport `json:"checks,omitempty"`
}

// partReport is a shard or a check. It names kinds of errors, never their text: it may
// hold addresses and names of users.
type partReport struct {
	Shard   *int   `json:"shard,omitempty"`
	Name    string `json:"name"`
	OK      bool   `json:"ok"`
	Error   string `json:"error,omitempty"`
	Details any    `json:"details,omitempty"`
}

func (h *readiness) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := report{Stopping: h.stopping()}
	if !body.Stopping {
		body = h.ask(r.Context())
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if !body.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(body)
}

// ask asks all questions at once.
func (h *readiness) ask(ctx context.Context) report {
	body := report{Ready: true, Checks: make([]partReport, len(h.checks))}
	var wg sync.WaitGroup
	for i, check := range h.checks {
		wg.Go(func() {
			_, err := h.once(ctx, "check "+check.Name, checksWithin, func(ctx context.Context) (any, error) { return nil, check.Ask(ctx) })
			body.Checks[i] = partReport{Name: check.Name, OK: err == nil, Error: class(err)}
			if check.Details != nil {
				body.Checks[i].Details = check.Details()
			}
		})
	}
	var stuck bool
	if h.store != nil {
		wg.Go(func() { body.Shards, stuck = h.askShards(ctx) })
	}
	wg.Wait()
	if h.store == nil {
		body.Ready = !slices.ContainsFunc(body.Checks, func(c partReport) bool { return !c.OK })
	} else {
		body.Ready = !stuck && (len(body.Shards) == 0 || slices.ContainsFunc(body.Shards, func(s partReport) bool { return s.OK }))
	}
	if stuck {
		body.Checks = append(body.Checks, partReport{Name: "store", Error: "timeout"})
	}
	return body
}

var (
	readyDesc    = prometheus.NewDesc("kith_ready", "1 while /readyz answers 200.", nil, nil)
	degradedDesc = prometheus.NewDesc("kith_degraded", "1 while a shard (shard0, shard1, …) or a check of /readyz fails, by part.", []string{"part"}, nil)
)

// Describe implements [prometheus.Collector].
func (h *readiness) Describe(to chan<- *prometheus.Desc) { to <- readyDesc; to <- degradedDesc }

// Collect implements [prometheus.Collector].
func (h *readiness) Collect(to chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, is bool, labels ...string) {
		value := 0.0
		if is {
			value = 1
		}
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	body := h.ask(context.Background())
	gauge(readyDesc, body.Ready && !h.stopping())
	for _, s := range body.Shards {
		gauge(degradedDesc, !s.OK, "shard"+strconv.Itoa(*s.Shard))
	}
	for _, c := range body.Checks {
		gauge(degradedDesc, !c.OK, c.Name)
	}
}

// askShards reports each shard, or, if the store as a whole does not answer in time, that it is stuck.
func (h *readiness) askShards(ctx context.Context) (shards []partReport, stuck bool) {
	found, err := h.once(ctx, "store", readyWithin, func(ctx context.Context) (any, error) { return h.store.Ping(ctx), nil })
	if err != nil {
		return nil, true
	}
	for _, s := range found.([]storage.ShardHealth) {
		shards = append(shards, partReport{Shard: &s.Shard, Name: s.Name, OK: s.Err == nil, Error: class(s.Err)})
	}
	return shards, false
}

// once asks a question. If the same question is still open, it waits for that answer, so that
// something that hangs is not asked again with every probe.
func (h *readiness) once(ctx context.Context, name string, within time.Duration, question func(context.Context) (any, error)) (any, error) {
	answer := h.asking.DoChan(name, func() (any, error) {
		// Not the context of the first probe: others may be waiting.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
		defer cancel()
		return question(ctx)
	})
	waiting, cancel := context.WithTimeout(ctx, within+answerGrace) // not ctx, which the question still reads
	defer cancel()
	select {
	case <-waiting.Done():
		return nil, waiting.Err()
	case a := <-answer:
		return a.Val, a.Err
	}
}

// class is the kind of an error; "" for none.
func class(err error) string {
	var redis interface { // an answer of Redis, whose first word is its kind, such as OOM
		error
		RedisError()
	}
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return "timeout"
	case errors.Is(err, storage.ErrLayout):
		return "layout"
	case errors.Is(err, storage.ErrUnavailable):
		return "unreachable"
	case errors.As(err, &redis):
		kind, _, _ := strings.Cut(redis.Error(), " ")
		return kind
	}
	return "error"
}
