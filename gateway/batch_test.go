package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/gateway"
	"kith/graph/limits"
)

// list sends operations as one list, and reads the list of their answers.
func (s site) list(operations []string, headers ...string) (reply, []reply) {
	s.t.Helper()
	r := s.request("POST", "/graphql", "["+strings.Join(operations, ",")+"]", append([]string{"Content-Type", "application/json"}, headers...)...)
	response := s.raw(r)
	var all []reply
	if strings.HasPrefix(response.text, "[") {
		if err := json.Unmarshal([]byte(response.text), &all); err != nil {
			s.t.Fatalf("%v in %s", err, response.text)
		}
		return response, all
	}
	if err := json.Unmarshal([]byte(response.text), &response); err != nil {
		s.t.Fatalf("%v in %s", err, response.text)
	}
	return response, nil
}

func operation(query string) string {
	text, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func TestListsAreOffByDefault(t *testing.T) {
	s := serve(t, gateway.Config{})
	for _, body := range []string{`[{"query":"{hello}"}]`, ` [ ]`, `[1`} {
		got := s.post(body)
		if got.status != 400 || got.code(t) != "BAD_USER_INPUT" || !strings.Contains(got.text, "--batch-limit") {
			t.Errorf("%s: %d %s", body, got.status, got.text)
		}
	}
}

// TestListsAreAnsweredInOrder, even if one operation is refused. Mutations see what the operations before
// them have done.
func TestListsAreAnsweredInOrder(t *testing.T) {
	var done []string
	note := func(name string) resolver {
		return func(context.Context, map[string]any) (any, error) {
			done = append(done, name)
			return strings.Join(done, " "), nil
		}
	}
	registry := prometheus.NewRegistry()
	s := serve(t, gateway.Config{
		BatchLimit: 10, Metrics: gateway.NewMetrics(registry), Gatherer: registry,
		Schema: newSchema(map[string]resolver{"hello": note("query"), "touch": note("mutation")}),
	})
	got, all := s.list([]string{
		operation("mutation A { touch }"), operation("{ nonsense }"), operation("{ hello }"), operation("mutation { touch }"),
		`{"query":"query A { hello } query B($n: Int) { add(n: $n) }","operationName":"B","variables":{"n":7}}`, operation("{ fail }"),
		operation("subscription { tick }"),
	})
	if got.status != 200 || len(all) != 7 || got.header.Get("Content-Type") != "application/json; charset=utf-8" {
		t.Fatalf("got %d %v %s", got.status, got.header, got.text)
	}
	if all[0].Data["touch"] != "mutation" || all[2].Data["hello"] != "mutation query" || all[3].Data["touch"] != "mutation query mutation" || all[4].Data["add"] != 7.0 {
		t.Errorf("got %s", got.text)
	}
	for i, code := range map[int]string{1: "BAD_USER_INPUT", 5: "INTERNAL_SERVER_ERROR", 6: "BAD_USER_INPUT"} {
		if all[i].code(t) != code {
			t.Errorf("answer %d: %v", i, all[i].Errors)
		}
	}
	if all[1].Data != nil || strings.Count(got.text, `"data"`) != 5 {
		t.Errorf("what was not executed has data: %s", got.text)
	}
	metrics := s.operators("/metrics").text
	for _, want := range []string{
		`requests_total{operation="mutation",outcome="ok"} 2`, `requests_total{operation="query",outcome="ok"} 2`, `requests_total{operation="query",outcome="partial"} 1`,
		`requests_total{operation="unknown",outcome="refused"} 1`, `requests_total{operation="subscription",outcome="refused"} 1`,
		`request_duration_seconds_count{operation="batch"} 1`, `requests_in_flight 0`,
	} {
		if !strings.Contains(metrics, "kith_graphql_"+want+"\n") {
			t.Errorf("no %s in\n%s", want, metrics)
		}
	}
	if !strings.Contains(s.log.String(), "operation=batch") {
		t.Errorf("the log: %s", s.log)
	}
}

// TestListsAreBounded: a list cannot be used to exceed the limits of one request.
func TestListsAreBounded(t *testing.T) {
	s := serve(t, gateway.Config{BatchLimit: 3, MaxAnswer: 12_000, Limits: limits.Limits{Cost: 4, TextBytes: 100}})
	hello := operation("{ hello }") // costs 1
	for name, tt := range map[string]struct {
		operations []string
		code, says string
	}{
		"none":                   {nil, "BAD_USER_INPUT", "empty"},
		"one too many":           {[]string{hello, hello, hello, hello}, "BAD_USER_INPUT", "at most 3"},
		"no object":              {[]string{hello, `"x"`}, "BAD_USER_INPUT", "object"},
		"a list in the list":     {[]string{"[" + hello + "]"}, "BAD_USER_INPUT", "object"},
		"no query":               {[]string{hello, "{}"}, "BAD_USER_INPUT", "operation 1"},
		"too costly together":    {[]string{operation("{ hello big }"), operation("{ hello big }"), hello}, "QUERY_TOO_COSTLY", "cost 5 together"},
		"too long texts":         {[]string{operation("{ hello } #" + strings.Repeat("x", 40)), operation("{ hello } #" + strings.Repeat("x", 40))}, "BAD_USER_INPUT", "100 bytes"},
		"as a stream":            {[]string{hello}, "BAD_USER_INPUT", "event-stream"},
		"broken off":             {[]string{hello, `{"query":"{ hello }"`}, "BAD_USER_INPUT", "JSON"},
		"something behind a one": {[]string{hello + "] ["}, "BAD_USER_INPUT", "JSON"},
	} {
		accept := "application/json"
		if name == "as a stream" {
			accept = "text/event-stream"
		}
		got, all := s.list(tt.operations, "Accept", accept)
		if got.status != 400 || all != nil || got.code(t) != tt.code || !strings.Contains(got.text, tt.says) {
			t.Errorf("%s: %d %s", name, got.status, got.text)
		}
	}
	if _, all := s.list([]string{operation("{ hello big }"), hello, hello}); len(all) != 3 || all[2].Data["hello"] == nil {
		t.Errorf("three that cost 4: %v", all)
	}
	big := operation("{ big }") // 5,010 bytes
	if _, all := s.list([]string{big, big, big}); len(all) != 3 || all[1].Errors != nil || all[2].code(t) != "QUERY_TOO_COSTLY" || all[2].Data != nil {
		t.Errorf("15 kB where 12 are allowed: %d answers, the last with %v", len(all), all[2].Errors)
	}
}

// TestListsHaveOneDeadline for all of their operations.
func TestListsHaveOneDeadline(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := serve(t, gateway.Config{BatchLimit: 50, RequestTimeout: time.Hour, Metrics: gateway.NewMetrics(registry)})
	wait := operation("{ wait }")
	got, all := s.list([]string{operation("{ hello }"), wait, wait, operation("mutation { touch }")}, "X-Request-Timeout", "20")
	if len(all) != 4 || all[0].Errors != nil || all[1].code(t) != "TIMEOUT" || all[2].code(t) != "TIMEOUT" || all[3].code(t) != "TIMEOUT" {
		t.Errorf("got %s", got.text)
	}
	if got := value(t, registry, "kith_graphql_caller_timeouts_total"); got != 3 {
		t.Errorf("counted %v", got)
	}
}

// TestPersistedQueriesInLists: an unknown hash does not keep the other operations from being answered.
func TestPersistedQueriesInLists(t *testing.T) {
	s := serve(t, gateway.Config{BatchLimit: 2})
	byHash := func(query, hash string) string {
		return fmt.Sprintf(`{"query":%q,"extensions":{"persistedQuery":{"version":1,"sha256Hash":%q}}}`, query, hash)
	}
	const query = "{ hello }"
	if _, all := s.list([]string{byHash("", sha(query)), byHash(query, sha(query))}); all[0].code(t) != "PERSISTED_QUERY_NOT_FOUND" || all[1].Data["hello"] == nil {
		t.Errorf("at first: %v", all)
	}
	if _, all := s.list([]string{byHash("", sha(query)), operation(query)}); all[0].Data["hello"] == nil || all[1].Data["hello"] == nil {
		t.Errorf("then: %v", all)
	}
}

// TestLongListsAreCompressed as a whole.
func TestLongListsAreCompressed(t *testing.T) {
	s := serve(t, gateway.Config{BatchLimit: 20})
	big := make([]string, 20)
	for i := range big {
		big[i] = operation("{ big }")
	}
	got, all := s.list(big) // the transport asks for gzip, and decompresses the answer
	if len(all) != 20 || len(got.text) < 100_000 {
		t.Errorf("%d answers in %d bytes", len(all), len(got.text))
	}
}
