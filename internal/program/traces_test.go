package program_test

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
)

// A receiver takes spans by OTLP over HTTP.
type receiver struct {
	*httptest.Server

	mu       sync.Mutex
	spans    []*otlp.Span
	services []string // one for each message
	keys     []string
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (c *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var message otlp.TracesData // the same message, without what serves it
	if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" || proto.Unmarshal(body, &message) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys = append(c.keys, r.Header.Get("X-Key"))
	for _, of := range message.ResourceSpans {
		c.services = append(c.services, text(of.Resource.Attributes, "service.name"))
		for _, scope := range of.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
}

// of returns the spans of a trace, in the order in which they ended.
func (c *receiver) of(traceID string) (spans []*otlp.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if hex.EncodeToString(s.TraceId) == traceID {
			spans = append(spans, s)
		}
	}
	return spans
}

func attribute(all []*common.KeyValue, key string) *common.AnyValue {
	for _, a := range all {
		if a.Key == key {
			return a.Value
		}
	}
	return nil
}

func text(all []*common.KeyValue, key string) string { return attribute(all, key).GetStringValue() }
func number(s *otlp.Span, key string) int64          { return attribute(s.Attributes, key).GetIntValue() }

func numbers(s *otlp.Span, key string) (list []int64) {
	for _, v := range attribute(s.Attributes, key).GetArrayValue().GetValues() {
		list = append(list, v.GetIntValue())
	}
	return list
}

// traced runs a query as a part of a trace, and returns the span that the answer names.
func traced(t *testing.T, g *kithtest.Gateway, body, traceID string, sampled bool) (span string) {
	t.Helper()
	flags := "00"
	if sampled {
		flags = "01"
	}
	request, _ := http.NewRequest(http.MethodPost, g.URL+"/graphql", strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Traceparent", "00-"+traceID+"-"+caller+"-"+flags)
	answer, err := http.DefaultClient.Do(request)
	must.OK(t, err)
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	must.That(t, err == nil && answer.StatusCode == http.StatusOK && !strings.Contains(string(all), "errors"), "%d: %s, %v", answer.StatusCode, all, err)
	return answer.Header.Get("Traceresponse")
}

// send posts a body. headers are names and values.
func send(g *kithtest.Gateway, body string, headers ...string) (status int, answer string, err error) {
	r, _ := http.NewRequest(http.MethodPost, g.URL+"/graphql", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	return got.StatusCode, string(text), err
}

// wholeAnswer returns the answer to a body, which must have no errors.
func wholeAnswer(t *testing.T, g *kithtest.Gateway, body string, headers ...string) string {
	t.Helper()
	status, answer, err := send(g, body, headers...)
	must.That(t, err == nil && status == http.StatusOK && !strings.Contains(answer, "errors"), "%d: %s, %v", status, answer, err)
	return answer
}

// caller is the span of the caller.
const caller = "00f067aa0ba902b7"

const tenUsers = `{"query":"query Ten { a: user(by: {id: 1}) { name } b: user(by: {id: 2}) { name } c: user(by: {id: 3}) { name } d: user(by: {id: 4}) { name } e: user(by: {id: 5}) { name }` +
	` f: user(by: {id: 6}) { name } g: user(by: {id: 7}) { name } h: user(by: {id: 8}) { name } i: user(by: {id: 9}) { name } j: user(by: {id: 10}) { name } }"}`

// TestTraces: a collector gets the spans of sampled requests. There is one span for the operation, which is a child of the
// caller's span, and below it are the spans of its look-ups and their statements, by shard.
func TestTraces(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	store := kithtest.DemoStore(t, 2)
	g := kithtest.Start(t, kithtest.Args("--store", store, "--jwt-secret", secret, "--log-level", "debug"),
		kithtest.Env("OTEL_EXPORTER_OTLP_ENDPOINT="+r.URL, "OTEL_TRACES_SAMPLER=always_off", "OTEL_BSP_SCHEDULE_DELAY=20", "OTEL_SERVICE_NAME=social", "OTEL_EXPORTER_OTLP_HEADERS=x-key=k%201"))
	id := func(n int) string { return fmt.Sprintf("%032x", n) }

	g.Until(t, "warm up", func() bool {
		users, reading := warmedUp(t, g)
		return users > 0 && !reading
	})
	file := written(t, "one.tsv", "1990\t1991\n")
	end := kithtest.Run(t, kithtest.Args("import", "--store", store, file))
	must.That(t, end.Code == 0, "%v", end.Stderr)  // gateways forget what they know
	g.Until(t, "answer from memory", func() bool { // it does so once the gateway knows that it is the only one on its store
		return strings.Contains(wholeAnswer(t, g, `{"query":"{ user(by: {id: 11}) { name } }"}`, "Authorization", "Bearer "+adminToken(t), "Kith-Cost", "1"), `"statements":0`)
	})
	traced(t, g, strings.ReplaceAll(tenUsers, "name", "name followerCount"), id(2), true)
	told := traced(t, g, tenUsers, id(3), true)
	check.Equal(t, "what the caller is told of a request that is not traced", traced(t, g, tenUsers, id(1), false), "")
	g.Query(t, "{ __typename }", nil, new(any)) // it is in no trace, and because of the ratio none is begun
	end = g.Interrupt(t)
	must.That(t, end.Code == 0, "%+v", end) // it sends the remaining spans

	got := r.of(id(1))
	check.That(t, len(got) == 0, "of a request that is not sampled: %v", got)
	check.Equal(t, "spans of the two requests, of all", len(r.of(id(2)))+len(r.of(id(3))), len(r.spans))
	check.That(t, !slices.Contains(r.keys, "") && r.keys[0] == "k 1" && r.services[0] == "social", "keys %q, services %q", r.keys, r.services)
	if !slices.ContainsFunc(r.of(id(3)), func(s *otlp.Span) bool {
		return s.Name == "query" && told == "00-"+id(3)+"-"+hex.EncodeToString(s.SpanId)+"-01"
	}) {
		t.Errorf("the caller is told of the span %q", told)
	}
	for n, reads := range map[int]bool{2: true, 3: false} {
		checkTree(t, r.of(id(n)), reads)
		check.Equal(t, fmt.Sprintf("lines of the log with trace %d", n), strings.Count(g.Stderr(), "trace_id="+id(n)), 1)
	}
}

// checkTree checks the spans of tenUsers. Its look-up reads from both shards, or is answered from memory.
func checkTree(t *testing.T, spans []*otlp.Span, reads bool) {
	t.Helper()
	of := map[string][]*otlp.Span{} // by the first word of their names
	for _, s := range spans {
		word, _, _ := strings.Cut(s.Name, " ")
		of[word] = append(of[word], s)
	}
	must.That(t, len(of["query"]) == 1 && len(of["plan"]) == 1 && len(of["look-up"]) == 1, "spans: %v", spans)
	query, lookUp := of["query"][0], of["look-up"][0]
	if hex.EncodeToString(query.ParentSpanId) != caller || query.Kind != otlp.Span_SPAN_KIND_SERVER || number(query, "http.response.status_code") != 200 ||
		text(query.Attributes, "graphql.operation.name") != "Ten" || text(query.Attributes, "graphql.operation.type") != "query" ||
		!strings.HasPrefix(text(query.Attributes, "graphql.document.hash"), "sha256:") || text(query.Attributes, "kith.outcome") != "ok" || number(query, "kith.cost") < 10 {
		t.Errorf("the operation: %v", query)
	}
	for _, child := range []*otlp.Span{of["plan"][0], lookUp} {
		if string(child.ParentSpanId) != string(query.SpanId) || child.StartTimeUnixNano < query.StartTimeUnixNano || child.EndTimeUnixNano > query.EndTimeUnixNano {
			t.Errorf("a child of the operation %v: %v", query, child)
		}
	}
	var rows, keys int64
	var shards []int64
	for _, s := range of["sql"] {
		if string(s.ParentSpanId) != string(lookUp.SpanId) || text(s.Attributes, "db.system.name") != "sqlite" || s.Kind != otlp.Span_SPAN_KIND_CLIENT {
			t.Errorf("a statement: %v", s)
		}
		rows += number(s, "db.response.returned_rows")
		keys += number(s, "kith.keys")
		shards = append(shards, number(s, "kith.shard"))
	}
	slices.Sort(shards)
	wantKeys, wantShards, wantHits := int64(0), []int64(nil), int64(0)
	if reads {
		wantKeys, wantShards = 10, []int64{0, 1}
	} else {
		wantHits = 10
	}
	// A statement reads a row for each of its keys, and more if its list of keys was filled up.
	if keys != wantKeys || rows < wantKeys || rows > 2*wantKeys || !slices.Equal(shards, wantShards) || !slices.Equal(numbers(lookUp, "kith.shards"), wantShards) ||
		number(lookUp, "kith.rows") != rows || number(query, "kith.rows") != rows || number(query, "kith.statements") != int64(len(shards)) ||
		number(lookUp, "kith.hits.memory") != wantHits || number(query, "kith.hits.memory") != wantHits {
		t.Errorf("%d keys and %d rows of shards %v, want %d of %v, and %d hits: %v %v", keys, rows, shards, wantKeys, wantShards, wantHits, query, lookUp)
	}
}

// TestCollectorIsDown: requests are answered, the log says once that traces cannot be sent, and the program ends when asked to.
func TestCollectorIsDown(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]string{"closed": closedPort(t), "silent": silentPort(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := kithtest.Start(t, kithtest.Args("--store", location(newSQLite(t, 1)...), "--drain", "1s"), kithtest.Env(
				"OTEL_EXPORTER_OTLP_ENDPOINT=http://"+address, "OTEL_BSP_SCHEDULE_DELAY=1", "OTEL_EXPORTER_OTLP_TIMEOUT=50"))
			const says = "cannot send traces"
			for range 20 {
				g.Query(t, "{ __typename }", nil, new(any))
			}
			g.Until(t, "report the failure", func() bool { return strings.Contains(g.Stderr(), says) })
			for range 20 {
				g.Query(t, "{ __typename }", nil, new(any))
			}
			g.Signal(syscall.SIGTERM)
			end := g.Wait(t)
			check.That(t, end.Code == 0 && strings.Count(end.Stderr, says) == 1, "%+v", end)
		})
	}
}
