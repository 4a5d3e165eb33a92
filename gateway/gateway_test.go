package gateway_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"kith/gateway"
	"kith/gateway/exchange"
	"kith/internal/check"
	"kith/internal/logged"
	"kith/internal/metered"
	"kith/internal/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a gateway that is served.
type site struct {
	t   *testing.T
	url string
	log *logged.Text

	metrics *prometheus.Registry // empty if the test has set Config.Metrics
	admin   http.Handler
}

// value is that of a metric, 0 if it has none.
func (s site) value(name string) float64 {
	s.t.Helper()
	sum, _ := metered.Sum(s.t, s.metrics, name)
	return sum
}

// prepared is a config with what a test has left out of it, with a log and metrics that can be read.
func prepared(cfg gateway.Config) (gateway.Config, *logged.Text, *prometheus.Registry) {
	log, metrics := &logged.Text{}, prometheus.NewRegistry()
	if cfg.Schema == nil {
		cfg.Schema = newSchema(nil)
	}
	if cfg.Metrics == nil {
		cfg.Metrics = exchange.NewMetrics(metrics)
	}
	cfg.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return cfg, log, metrics
}

func serve(t *testing.T, cfg gateway.Config) site {
	t.Helper()
	cfg, log, metrics := prepared(cfg)
	server := httptest.NewServer(gateway.New(cfg))
	t.Cleanup(func() {
		server.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return site{t, server.URL, log, metrics, cfg.Admin(t.Context()).Handler()}
}

// set sets headers, each with its value behind its name.
func set(h http.Header, headers []string) {
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
}

// operators asks for a page of the operators' address.
func (s site) operators(path string, headers ...string) reply {
	s.t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	set(r.Header, headers)
	w := httptest.NewRecorder()
	s.admin.ServeHTTP(w, r)
	return reply{status: w.Code, header: w.Header(), text: w.Body.String()}
}

// reply is an answer, read to its end.
type reply struct {
	status int
	header http.Header
	text   string
	Data   map[string]any   `json:"data"`
	Errors []map[string]any `json:"errors"`
	Extras map[string]any   `json:"extensions"`
}

// code is the code of the only error, or "" if there is no error.
func (r reply) code(t *testing.T) string {
	t.Helper()
	if len(r.Errors) == 0 {
		return ""
	}
	extensions, _ := r.Errors[0]["extensions"].(map[string]any)
	_, ok := extensions["retryable"].(bool)
	check.That(t, ok, "no extensions.retryable in %s", r.text)
	code, _ := extensions["code"].(string)
	return code
}

// is checks the status of an answer, the code of its error, "" for none, and what is in its text.
func (r reply) is(t *testing.T, what any, status int, code string, parts ...string) {
	t.Helper()
	check.That(t, r.status == status && r.code(t) == code, "%v: %d %.2000s, want %d %s", what, r.status, r.text, status, code)
	check.Has(t, what, r.text, parts...)
}

func (s site) do(r *http.Request) reply {
	s.t.Helper()
	out := s.raw(r)
	if strings.Contains(out.header.Get("Content-Type"), "json") {
		err := json.Unmarshal([]byte(out.text), &out)
		must.That(s.t, err == nil, "answer is not JSON: %v: %s", err, out.text)
	}
	return out
}

// raw sends a request without decoding the answer.
func (s site) raw(r *http.Request) reply {
	s.t.Helper()
	response, err := http.DefaultClient.Do(r)
	must.OK(s.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must.OK(s.t, err)
	return reply{status: response.StatusCode, header: response.Header, text: string(text)}
}

func (s site) request(method, path, body string, headers ...string) *http.Request {
	s.t.Helper()
	r, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	must.OK(s.t, err)
	set(r.Header, headers)
	return r
}

// post sends a body as JSON.
func (s site) post(body string, headers ...string) reply {
	s.t.Helper()
	return s.do(s.request(http.MethodPost, "/graphql", body, append([]string{"Content-Type", "application/json"}, headers...)...))
}

// query sends a query by POST.
func (s site) query(query string, headers ...string) reply {
	s.t.Helper()
	body, err := json.Marshal(map[string]any{"query": query})
	must.OK(s.t, err)
	return s.post(string(body), headers...)
}

func (s site) get(path string, headers ...string) reply {
	s.t.Helper()
	return s.do(s.request(http.MethodGet, path, "", headers...))
}

func TestQueryByPostAndGet(t *testing.T) {
	s := serve(t, gateway.Config{})
	for name, got := range map[string]reply{
		"POST": s.query("{ hello }"),
		"GET":  s.get("/graphql?query=%7Bhello%7D"),
	} {
		got.is(t, name, 200, "", `{"data":{"hello":"world`)
		check.That(t, got.header.Get("X-Request-Id") != "" && got.header.Get("X-Content-Type-Options") == "nosniff", "%s: headers %v", name, got.header)
	}
}

func TestVariablesKeepTheirDigits(t *testing.T) {
	s := serve(t, gateway.Config{})
	s.post(`{"query": "query A { hello } query B($n: Int) { add(n: $n) }", "operationName": "B", "variables": {"n": 2147483647}}`).is(t, "POST", 200, "", `{"add":2147483647}`)
	s.get("/graphql?query=query(%24n:Int)%7Badd(n:%24n)%7D&variables=%7B%22n%22:7%7D").is(t, "GET", 200, "", `{"add":7}`)
}

func TestPerRequestReachesResolvers(t *testing.T) {
	type key struct{}
	calls := 0
	s := serve(t, gateway.Config{
		Schema: newSchema(map[string]resolver{
			"hello": func(ctx context.Context, _ map[string]any) (any, error) { return ctx.Value(key{}), nil },
		}),
		PerRequest: func(ctx context.Context) context.Context {
			calls++
			return context.WithValue(ctx, key{}, "loaders")
		},
	})
	s.query("{ hello }").is(t, "what PerRequest has given", 200, "", `"loaders"`)
	s.query("{ nonsense }")
	check.Equal(t, "requests that were prepared: those that were executed", calls, 1)
}

func TestMutationsAndSubscriptions(t *testing.T) {
	s := serve(t, gateway.Config{})
	for range 2 { // the second time, the text is known
		s.query("mutation { touch }").is(t, "mutation by POST", 200, "", `"touched"`)
		got := s.get("/graphql?query=mutation+%7B+touch+%7D")
		got.is(t, "mutation by GET", 405, "BAD_USER_INPUT")
		check.Equal(t, "Allow", got.header.Get("Allow"), "POST")
	}
	s.query("subscription { tick }").is(t, "subscription", 400, "BAD_USER_INPUT")
}

func TestOtherPaths(t *testing.T) {
	web := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "page "+r.URL.Path) })
	s := serve(t, gateway.Config{Web: web})
	s.get("/").is(t, "/", 200, "", "page /")
	s.get("/assets/graphiql.js").is(t, "assets", 200, "", "page /assets/graphiql.js")
	s.get("/healthz").is(t, "healthz", 200, "", "ok\n")
	serve(t, gateway.Config{}).get("/").is(t, "without a web folder", 404, "")
}

func TestPanicOutsideOfGraphQL(t *testing.T) {
	s := serve(t, gateway.Config{Web: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(secret) })})
	got := s.get("/")
	got.is(t, "/", 500, "")
	check.Lacks(t, "the answer", got.text, secret)
	check.Has(t, "the stack in the log", s.log.String(), secret, "goroutine")
}

func TestCompression(t *testing.T) {
	s := serve(t, gateway.Config{})
	encoding := func(query string) string {
		return s.encodingOf(s.request("POST", "/graphql", `{"query":"`+query+`"}`, "Content-Type", "application/json", "Accept-Encoding", "gzip"))
	}
	check.Equal(t, "the encoding of a long answer", encoding("{big}"), "gzip")
	check.Equal(t, "the encoding of a short answer", encoding("{hello}"), "")
	check.Equal(t, "bytes", len(s.query("{big}").Data["big"].(string)), 5000)
}

// encodingOf returns the encoding of an answer. The client decompresses answers by itself, unless
// the test has asked for compression.
func (s site) encodingOf(r *http.Request) string {
	s.t.Helper()
	response, err := http.DefaultClient.Do(r)
	must.OK(s.t, err)
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.Header.Get("Content-Encoding")
}

func TestRequestID(t *testing.T) {
	s := serve(t, gateway.Config{})
	check.Equal(t, "the caller's id", s.query("{hello}", "X-Request-Id", "from-the.edge_7").header.Get("X-Request-Id"), "from-the.edge_7")
	check.Equal(t, "the length of an id in the place of a bad one", len(s.query("{hello}", "X-Request-Id", "a b\"c").header.Get("X-Request-Id")), 16)
	check.Has(t, "the log", s.log.String(), "request_id=from-the.edge_7")
}

func TestAccessLog(t *testing.T) {
	s := serve(t, gateway.Config{})
	s.query("query Mine { hello }")
	s.get("/graphql?query=%7Bhello%7D")
	lines := strings.Split(strings.TrimSpace(s.log.String()), "\n")
	must.Equal(t, "lines of the log", len(lines), 2)
	check.Has(t, "the first line", lines[0], "level=DEBUG", "method=POST", "path=/graphql", "status=200", "operation=query", "name=Mine", "outcome=ok")
	check.Lacks(t, "the second line, with the text of the query", lines[1], "hello")
}
