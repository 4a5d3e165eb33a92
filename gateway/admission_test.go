package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/gateway"
	"kith/graph/limits"
)

func TestAnswersAreBounded(t *testing.T) {
	s := serve(t, gateway.Config{MaxAnswer: 25})
	if got := s.query(`{hello}`); got.text != `{"data":{"hello":"world \u003c3"}}` { // 25 bytes
		t.Errorf("a short one: %s", got.text)
	}
	for name, got := range map[string]reply{
		"a query":    s.query(`{ hello more: hello }`),
		"a mutation": s.query(`mutation { touch more: touch }`),
	} {
		if got.status != http.StatusOK || got.code(t) != "QUERY_TOO_COSTLY" || len(got.Errors) != 1 || !strings.Contains(got.text, `"data":null`) {
			t.Errorf("%s that is too long: %d %s", name, got.status, got.text)
		}
	}
}

// blocking is a schema whose field `wait` lasts until end is called.
func blocking(more map[string]resolver) (_ gateway.Config, began chan struct{}, end func()) {
	began, ended := make(chan struct{}, 100), make(chan struct{})
	fields := map[string]resolver{"wait": func(ctx context.Context, _ map[string]any) (any, error) {
		began <- struct{}{}
		select {
		case <-ended:
		case <-ctx.Done():
		}
		return "waited", nil
	}}
	for name, r := range more {
		fields[name] = r
	}
	return gateway.Config{Schema: newSchema(fields)}, began, func() { close(ended) }
}

// A request above the bound waits for its turn. If its turn does not come, the client is asked to
// try again later.
func TestRequestsInWorkAreBounded(t *testing.T) {
	cfg, began, end := blocking(nil)
	cfg.MaxRequests = 2
	s := serve(t, cfg)
	answers := make(chan reply, 4)
	for range 2 {
		go func() { answers <- s.query(`{wait}`) }()
		<-began
	}
	start := time.Now()
	got := s.query(`{hello}`)
	if got.status != http.StatusServiceUnavailable || got.code(t) != "UNAVAILABLE" || got.header.Get("Retry-After") == "" {
		t.Errorf("one too many: %d %v %s", got.status, got.header, got.text)
	}
	if took := time.Since(start); took < 500*time.Millisecond {
		t.Errorf("it did not wait for its turn: %s", took)
	}
	go func() { answers <- s.query(`{hello}`) }()
	end()
	for range 3 {
		if got := <-answers; got.status != http.StatusOK {
			t.Errorf("one of those that were taken in, or waited: %d %s", got.status, got.text)
		}
	}
	if got := s.query(`{hello}`); got.status != http.StatusOK {
		t.Errorf("afterwards: %d %s", got.status, got.text)
	}
}

// Costly requests wait for one another. Cheap requests wait for none of them.
func TestCheapRequestsPassCostlyOnes(t *testing.T) {
	cfg, began, end := blocking(nil)
	cfg.Limits = limits.Limits{Tokens: 20_000, Overlaps: 1 << 20}
	s := serve(t, cfg)
	var costly strings.Builder
	costly.WriteString("{ wait")
	for i := range 980 { // each costs 101
		fmt.Fprintf(&costly, " p%d: page(first: 100)", i)
	}
	costly.WriteString(" }")
	answers := make(chan reply, runtime.GOMAXPROCS(0))
	room := max(1, runtime.GOMAXPROCS(0)/2)
	for range room {
		go func() { answers <- s.query(costly.String()) }()
		<-began
	}
	if got := s.query(costly.String()); got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
		t.Errorf("one too many of the costly ones: %d %.100s", got.status, got.text)
	}
	if got := s.query(`{hello}`); got.status != http.StatusOK {
		t.Errorf("a cheap one: %d %s", got.status, got.text)
	}
	end()
	for range room {
		if got := <-answers; got.status != http.StatusOK {
			t.Errorf("one that was taken in: %d %.100s", got.status, got.text)
		}
	}
	if got := s.query(costly.String()); got.status != http.StatusOK {
		t.Errorf("afterwards: %d %.100s", got.status, got.text)
	}
}

// A client that asks for a long answer and does not read it is cut off, long before the time of its
// request ends.
func TestClientsThatDoNotReadAreCutOff(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("kith ", 3<<20)
	registry := prometheus.NewRegistry()
	s := serve(t, gateway.Config{Metrics: gateway.NewMetrics(registry), Schema: newSchema(map[string]resolver{
		"big": func(context.Context, map[string]any) (any, error) { return long, nil },
	})})
	inFlight := func() float64 { return gauge(t, registry, "kith_graphql_requests_in_flight") }
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const body = `{"query": "{big}"}`
	fmt.Fprintf(conn, "POST /graphql HTTP/1.1\r\nHost: kith\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	start := time.Now()
	for inFlight() == 0 {
		time.Sleep(time.Millisecond)
	}
	for inFlight() > 0 {
		if time.Since(start) > 30*time.Second {
			t.Fatal("it is still being answered")
		}
		time.Sleep(10 * time.Millisecond)
	}
	n, err := io.Copy(io.Discard, conn)
	if n >= int64(len(long)) || err == nil && n == 0 {
		t.Errorf("%d bytes came: %v", n, err)
	}
	if got := s.query(`{big}`); len(got.Data["big"].(string)) != len(long) {
		t.Errorf("who reads gets %d bytes", len(got.text))
	}
}

// Clients that stand still hold up their own answers, and nobody else's. 16 of one address hold no more than two
// answers of the greatest length, and no turn.
func TestLongAnswersPassClientsThatStandStill(t *testing.T) {
	t.Parallel()
	const most = 8 << 20
	long, short := strings.Repeat("a", most-100), strings.Repeat("b", 100<<10)
	registry := prometheus.NewRegistry()
	cfg := gateway.Config{Metrics: gateway.NewMetrics(registry), MaxAnswer: most, Schema: newSchema(map[string]resolver{
		"big":   func(context.Context, map[string]any) (any, error) { return long, nil },
		"hello": func(context.Context, map[string]any) (any, error) { return short, nil },
	})}
	type address struct{}
	cfg.Identify = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), address{}, r.Header.Get("X-Address"))))
		})
	}
	cfg.Subscriptions.Party = func(ctx context.Context) gateway.Party {
		from, _ := ctx.Value(address{}).(string)
		return gateway.Party{Address: from}
	}
	s := serve(t, cfg)
	const body = `{"query": "{big}"}`
	for range 16 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		fmt.Fprintf(conn, "POST /graphql HTTP/1.1\r\nHost: kith\r\nX-Address: still\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	eventually(t, "refuse the others", func() bool {
		return value(t, registry, "kith_graphql_requests_overload_total") >= 14
	})
	for range 10 {
		if began, got := time.Now(), s.query(`{hello}`, "X-Address", "another"); got.status != http.StatusOK || time.Since(began) > 500*time.Millisecond {
			t.Errorf("%d after %s: %.100s", got.status, time.Since(began), got.text)
		}
	}
}

// gauge is the value of a metric without labels.
func gauge(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}
