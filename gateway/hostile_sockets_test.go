package gateway_test

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/gateway"
	"kith/gateway/exchange"
	"kith/gateway/quota"
	"kith/internal/check"
	"kith/internal/hostile"
	"kith/internal/must"
)

// TestHostileSockets: under each attack the gateway answers other clients, and its memory stays small.
func TestHostileSockets(t *testing.T) {
	// Above this limit the collector runs, whatever GOGC allows.
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(100 << 20))
	for _, attack := range hostile.Sockets {
		t.Run(attack.Name, func(t *testing.T) {
			l := newLive()
			close(l.hold)
			l.tick(t)
			cfg := l.config(gateway.Subscriptions{Init: withToken, Bounds: quota.Bounds{Connections: 500}})
			cfg.RequestTimeout = 10 * time.Second
			registry := prometheus.NewRegistry()
			cfg.Metrics = exchange.NewMetrics(registry)
			s := serve(t, cfg)
			ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer stop()
			var attacking sync.WaitGroup
			for range 3 {
				attacking.Go(func() { attack.Run(ctx, "ws"+strings.TrimPrefix(s.url, "http")+"/graphql", "ann") })
			}
			most := uint64(0)
			for ctx.Err() == nil {
				s.query("{ __typename }").is(t, "an ordinary query", 200, "", `"Query"`)
				var memory runtime.MemStats
				runtime.ReadMemStats(&memory)
				most = max(most, memory.HeapInuse)
				time.Sleep(10 * time.Millisecond)
			}
			attacking.Wait()
			check.Most(t, "bytes in use", most, 200<<20)
			t.Logf("%d MB in use at most", most>>20)
			must.Soon(t, "all have gone", func() bool {
				return value(t, registry, "kith_subscription_connections") == 0 && value(t, registry, "kith_subscription_operations") == 0
			})
		})
	}
}

// TestExtensionsOfSubscriptionsAreNotKept: they once were, for as long as the subscription ran.
func TestExtensionsOfSubscriptionsAreNotKept(t *testing.T) {
	l := newLive()
	s := serve(t, l.config(gateway.Subscriptions{PingInterval: time.Minute})) // the client does not answer pings while it sends
	c := s.joined()
	extensions := `{"a":[` + strings.Repeat(`{"a":[]},`, 13_000) + `0]}`
	heap := func() int {
		var memory runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&memory)
		return int(memory.HeapAlloc)
	}
	before := heap()
	for i := range 100 {
		c.send(fmt.Sprintf(`{"type":"subscribe","id":"%d","payload":{"query":%q,"extensions":%s}}`, i, followersQuery, extensions))
	}
	must.Soon(t, "all have begun", func() bool { return l.began.Load() == 100 })
	check.Most(t, "the bytes that 100 subscriptions hold", heap()-before, 10<<20)
}
