package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"kith/gateway"
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
				return s.value("kith_subscription_connections") == 0 && s.value("kith_subscription_operations") == 0
			})
		})
	}
}

// TestSubscriptionsKeepWhatTheyNeed: of what a client has sent they once kept all extensions, the body, and the text of all variables, for as long as
// they ran.
func TestSubscriptionsKeepWhatTheyNeed(t *testing.T) {
	const query = `subscription ($id: ID!) { followerAdded { edge { node { relationship(to: $id) { following } } } } }`
	extensions := fmt.Sprintf(`{"query":%q,"extensions":{"a":[%s0]}}`, followersQuery, strings.Repeat(`{"a":[]},`, 13_000))
	variables := fmt.Sprintf(`{"query":%q,"variables":{"id":"5","other":%q}}`, query, strings.Repeat("x", 100_000))
	for name, tc := range map[string]struct {
		body     string
		isStream bool
	}{
		"extensions": {extensions, false}, "extensions of a stream": {extensions, true},
		"variables": {variables, false}, "variables of a stream": {variables, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLive()
			s := serve(t, l.config(gateway.Subscriptions{PingInterval: time.Minute})) // the client does not answer pings while it sends
			begin := func(int) {
				s.stream(s.request(http.MethodPost, "/graphql", tc.body, "Content-Type", "application/json"))
			}
			if !tc.isStream {
				c := s.joined()
				begin = func(i int) { c.send(fmt.Sprintf(`{"type":"subscribe","id":"%d","payload":%s}`, i, tc.body)) }
			}
			heap := func() int {
				var memory runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&memory)
				return int(memory.HeapAlloc)
			}
			before := heap()
			for i := range 100 {
				begin(i)
			}
			must.Soon(t, "all have begun", func() bool { return l.began.Load() == 100 })
			check.Most(t, "the bytes that 100 subscriptions hold", heap()-before, 5<<20)
		})
	}
}
