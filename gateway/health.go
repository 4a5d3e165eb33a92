package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"kith/storage"
)

// readyWithin is how long /readyz waits for its checks.
const readyWithin = 2 * time.Second

// Check is something that the gateway depends on besides the store.
type Check struct {
	Name string // such as "redis"; shown in the answer
	Ask  func(context.Context) error

	// Advisory is shown, but does not make the gateway unready: it can still answer.
	Advisory bool

	// Details, if there are any, are shown as JSON. They hold no secrets.
	Details func() any
}

func serveHealth(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write([]byte("ok\n"))
}

// readiness answers /readyz.
type readiness struct {
	store    storage.Pinger
	checks   []Check
	stopping func() bool // if true, it is not ready, whatever answers
	within   time.Duration
	asking   singleflight.Group
}

func newReadiness(store storage.Pinger, checks []Check, stopping func() bool) *readiness {
	return &readiness{store: store, checks: checks, stopping: stopping, within: readyWithin}
}

// report is the body of the answer.
type report struct {
	Ready    bool          `json:"ready"`
	Stopping bool          `json:"stopping,omitempty"`
	Shards   []shardReport `json:"shards,omitempty"`
	Checks   []checkReport `json:"checks,omitempty"`
}

// shardReport and checkReport name kinds of errors, never their text: it may
// hold addresses and names of users.
type shardReport struct {
	Shard int    `json:"shard"`
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
}

type checkReport struct {
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
	ctx, cancel := context.WithTimeout(ctx, h.within)
	defer cancel()

	body := report{Ready: true, Checks: make([]checkReport, len(h.checks))}
	var wg sync.WaitGroup
	for i, check := range h.checks {
		wg.Go(func() {
			_, err := h.once(ctx, "check "+check.Name, func(ctx context.Context) (any, error) { return nil, check.Ask(ctx) })
			body.Checks[i] = checkReport{Name: check.Name, OK: err == nil, Error: class(err)}
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
	body.Ready = !stuck
	for _, s := range body.Shards {
		body.Ready = body.Ready && s.OK
	}
	for i, c := range h.checks {
		body.Ready = body.Ready && (body.Checks[i].OK || c.Advisory)
	}
	if stuck {
		body.Checks = append(body.Checks, checkReport{Name: "store", Error: "timeout"})
	}
	return body
}

// askShards reports each shard, or, if the store as a whole does not answer in time, that it is stuck.
func (h *readiness) askShards(ctx context.Context) (shards []shardReport, stuck bool) {
	found, err := h.once(ctx, "store", func(ctx context.Context) (any, error) { return h.store.Ping(ctx), nil })
	if err != nil {
		return nil, true
	}
	for _, s := range found.([]storage.ShardHealth) {
		shards = append(shards, shardReport{s.Shard, s.Name, s.Err == nil, class(s.Err)})
	}
	return shards, false
}

// once asks a question. If the same question is still open, it waits for that answer, so that
// something that hangs is not asked again with every probe.
func (h *readiness) once(ctx context.Context, name string, question func(context.Context) (any, error)) (any, error) {
	answer := h.asking.DoChan(name, func() (any, error) {
		// Not the context of the first probe: others may be waiting.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.within)
		defer cancel()
		return question(ctx)
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case a := <-answer:
		return a.Val, a.Err
	}
}

// class is the kind of an error; "" for none.
func class(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return "timeout"
	case errors.Is(err, storage.ErrUnavailable):
		return "unreachable"
	case errors.Is(err, storage.ErrLayout):
		return "layout"
	}
	return "error"
}
