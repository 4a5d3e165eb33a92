package gateway_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"kith/gateway"
	"kith/gateway/traces"
	"kith/internal/check"
	"kith/internal/must"
)

// TestSpansWhereverOneAsks: each operation has spans, over plain HTTP, in a list, as a stream and on a WebSocket.
// Subscriptions have none.
func TestSpansWhereverOneAsks(t *testing.T) {
	var mu sync.Mutex
	var spans []*otlp.Span
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var message otlp.TracesData // the same message, without what serves it
		body, err := io.ReadAll(r.Body)
		check.That(t, err == nil && proto.Unmarshal(body, &message) == nil, "not OTLP")
		for _, of := range message.ResourceSpans {
			for _, scope := range of.ScopeSpans {
				spans = append(spans, scope.Spans...)
			}
		}
	}))
	defer receiver.Close()
	for name, c := range map[string]struct {
		ask  func(site)
		want []string // the names of spans after those of their parents, sorted; ! marks an error
	}{
		"a query":    {func(s site) { s.query("{ hello }") }, []string{"/query", "query/plan"}},
		"a mutation": {func(s site) { s.query("mutation { touch }") }, []string{"/mutation", "mutation/plan"}},
		"a failure":  {func(s site) { s.query(`{ fail(name: "unknown") }`) }, []string{"/query!", "query/plan"}},
		"refused":    {func(s site) { s.query("{ nonsense }") }, []string{"/request", "request/plan"}},
		"no GraphQL": {func(s site) { s.post("nonsense") }, []string{"/request"}},
		"a stream":   {func(s site) { s.post(operation("{ hello }"), "Accept", "text/event-stream") }, []string{"/query", "query/plan"}},
		"a WebSocket": {func(s site) {
			c := s.joined()
			c.subscribe("a", "{ hello }")
			for range 2 { // the answer, and the message that it is complete
				_, err := c.read()
				must.OK(t, err)
			}
		}, []string{"/query"}},
		"health": {func(s site) { s.get("/healthz") }, nil},
	} {
		spans = nil
		settings := traces.Settings{Endpoint: receiver.URL, Ratio: 1}
		tracer, err := traces.Open(t.Context(), traces.Config{Settings: settings, Logger: slog.New(slog.DiscardHandler)})
		must.OK(t, err)
		s := serve(t, gateway.Config{Schema: newSchema(nil), Traces: tracer})
		c.ask(s)
		tracer.Close(context.Background())
		mu.Lock()
		check.Equal(t, name, namesOf(spans), c.want)
		mu.Unlock()
	}
}

func namesOf(spans []*otlp.Span) (names []string) {
	of := map[string]string{}
	for _, s := range spans {
		of[string(s.SpanId)] = s.Name
	}
	for _, s := range spans {
		name := of[string(s.ParentSpanId)] + "/" + s.Name
		if s.Status.GetCode() == otlp.Status_STATUS_CODE_ERROR {
			name += "!"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
