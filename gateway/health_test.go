package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/gateway"
	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// shards is a store that is only asked for the health of its shards.
type shards []storage.ShardHealth

func (s shards) Ping(context.Context) []storage.ShardHealth { return s }

type readyReport struct {
	Ready  bool
	Shards []struct {
		Shard       int
		Name, Error string
		OK          bool
	}
	Checks []struct {
		Name, Error string
		OK          bool
	}
}

func (s site) ready() (int, readyReport, string) {
	s.t.Helper()
	got := s.operators("/readyz")
	var body readyReport
	must.OK(s.t, json.Unmarshal([]byte(got.text), &body))
	return got.status, body, got.text
}

func TestReady(t *testing.T) {
	s := serve(t, gateway.Config{
		Store:  shards{{Shard: 0, Name: "db1/kith_0"}, {Shard: 1, Name: "db1/kith_1"}},
		Checks: []gateway.Check{{Name: "redis", Ask: func(context.Context) error { return nil }}},
	})
	status, body, text := s.ready()
	check.That(t, status == 200 && body.Ready && len(body.Shards) == 2 && body.Shards[1].OK && body.Shards[1].Name == "db1/kith_1" && body.Checks[0].OK, "%d %s", status, text)
	serve(t, gateway.Config{}).operators("/readyz").is(t, "with nothing to ask", 200, "", `"ready":true`)
	failing := gateway.Check{Name: "replication", Ask: func(context.Context) error { return errors.New("stopped") }}
	status, body, text = serve(t, gateway.Config{Checks: []gateway.Check{failing}}).ready()
	check.That(t, status == 503 && !body.Ready && !body.Checks[0].OK, "a process that has only checks, of which one fails: %d %s", status, text)
}

// TestDegraded: a gateway of which a shard or a check fails still gets requests. The answer lists each failing part by name, with the kind of its
// error, but without the error's text.
func TestDegraded(t *testing.T) {
	s := serve(t, gateway.Config{
		Store: shards{
			{Shard: 0, Name: "db1/kith_0"},
			{Shard: 1, Name: "db2/kith_1", Err: fmt.Errorf("dial %s: %w", secret, storage.ErrUnavailable)},
			{Shard: 2, Name: "db2/kith_2", Err: fmt.Errorf("ping %s: %w", secret, context.DeadlineExceeded)},
			{Shard: 3, Name: "db2/kith_3", Err: fmt.Errorf("ping %s: %w", secret, storage.ErrLayout)},
		},
		Checks: []gateway.Check{{Name: "redis", Ask: func(context.Context) error { return errors.New(secret) }}},
	})
	status, body, text := s.ready()
	check.Equal(t, "status", status, 200)
	check.Equal(t, "ready", body.Ready, true)
	check.Lacks(t, "the answer", text, "hunter2")
	for i, want := range []string{"", "unreachable", "timeout", "layout"} {
		got := body.Shards[i]
		check.Equal(t, fmt.Sprint("shard ", i), []any{got.Shard, got.Error, got.OK}, []any{i, want, want == ""})
	}
	got := body.Checks[0]
	check.That(t, got.Name == "redis" && !got.OK && got.Error == "error", "check: %+v", got)
	s.get("/healthz").is(t, "healthz", 200, "")
}

// TestNotReady: a gateway none of whose shards answers gets no requests.
func TestNotReady(t *testing.T) {
	down := errors.New("down")
	s := serve(t, gateway.Config{Store: shards{{Shard: 0, Err: down}, {Shard: 1, Err: down}}})
	s.operators("/readyz").is(t, "two shards are down", 503, "", `"ready":false`, `"shard":0`, `"shard":1`)
}

// TestMetricsOfReadiness: what /readyz shows is also in /metrics.
func TestMetricsOfReadiness(t *testing.T) {
	s := serve(t, gateway.Config{
		Gatherer: prometheus.NewRegistry(),
		Store:    shards{{Shard: 0}, {Shard: 1, Err: errors.New("down")}},
		Checks:   []gateway.Check{{Name: "redis", Ask: func(context.Context) error { return errors.New("down") }}, {Name: "replication", Ask: func(context.Context) error { return nil }}},
	})
	text := s.operators("/metrics").text
	check.Has(t, "/metrics", text, "kith_ready 1\n", `kith_degraded{part="shard0"} 0`+"\n", `kith_degraded{part="shard1"} 1`+"\n",
		`kith_degraded{part="redis"} 1`+"\n", `kith_degraded{part="replication"} 0`+"\n")
}

// hanging does not answer until it is released.
type hanging struct {
	release chan struct{}
	asked   atomic.Int32
}

func (h *hanging) Ping(context.Context) []storage.ShardHealth {
	h.asked.Add(1)
	<-h.release
	return nil
}

// TestReadyDoesNotHang: a part that does not answer in time is reported as a timeout. All waits run
// at the same time, and a check that hangs is not started again in the meantime.
func TestReadyDoesNotHang(t *testing.T) {
	t.Parallel()
	h := &hanging{release: make(chan struct{})}
	defer close(h.release)
	s := serve(t, gateway.Config{
		Store:  h,
		Checks: []gateway.Check{{Name: "redis", Ask: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}},
	})
	start := time.Now()
	for range 2 {
		status, body, text := s.ready()
		check.That(t, status == 503 && len(body.Checks) == 2 && body.Checks[0].Error == "timeout" && body.Checks[1].Name == "store" && body.Checks[1].Error == "timeout", "%d %s", status, text)
	}
	check.Most(t, "the time of two probes, of 2 s each", time.Since(start), 7*time.Second)
	check.Equal(t, "times that the store was asked", h.asked.Load(), 1)
}
