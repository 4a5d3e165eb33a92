package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/gateway"
	"kith/gateway/documents"
	"kith/gateway/exchange"
	"kith/gateway/trusted"
	"kith/graph/limits"
	"kith/graph/selections"
	"kith/internal/must"
)

// known are trusted documents for the test's schema: `add` is known by its hash, `hello` by its hash and as "h1".
func known(t *testing.T) (registered *trusted.Documents, add, hello string) {
	t.Helper()
	add, hello = "query Add($n: Int) { add(n: $n) }", "query Hello { hello }"
	folder := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(folder, "a.json"), fmt.Appendf(nil, `{%q: %q, "h1": %q, "t": "mutation Touch { touch }"}`, sha(add), add, hello), 0o644))
	registered, err := trusted.Load(trusted.Folder(folder), selections.Schemas{Schema: newSchema(nil)}, limits.Limits{})
	must.OK(t, err)
	return registered, add, hello
}

// A document can be named by its id, by POST and GET and over both other transports. Every request can do so,
// not only the first, and has its own variables.
func TestDocumentIDs(t *testing.T) {
	registered, add, hello := known(t)
	s := serve(t, gateway.Config{Trusted: registered})
	for n := range 3 {
		for name, got := range map[string]reply{
			"POST":             s.post(fmt.Sprintf(`{"documentId":"sha256:%s","variables":{"n":%d}}`, sha(add), n)),
			"without a prefix": s.post(fmt.Sprintf(`{"variables":{"n":%d},"documentId":%q,"extensions":{"x":1}}`, n, sha(add))),
			"GET":              s.get("/graphql?documentId=" + sha(add) + "&variables=" + url.QueryEscape(fmt.Sprintf(`{"n":%d}`, n))),
			"as Apollo does":   s.post(fmt.Sprintf(`{"variables":{"n":%d},"extensions":{"persistedQuery":{"version":1,"sha256Hash":%q}}}`, n, sha(add))),
			"by its text":      s.post(fmt.Sprintf(`{"query":%q,"variables":{"n":%d}}`, add, n)),
		} {
			if fmt.Sprint(got.Data["add"]) != fmt.Sprint(n) {
				t.Errorf("%s, %d: %s", name, n, got.text)
			}
		}
	}
	if got := s.post(`{"documentId":"h1","operationName":"Hello"}`); got.Data["hello"] == nil {
		t.Errorf("by another id: %s", got.text)
	}
	if got := s.post(`{"documentId":"h2"}`, "Accept", "application/graphql-response+json"); got.status != 200 || got.code(t) != "PERSISTED_QUERY_NOT_FOUND" {
		t.Errorf("an unknown id: %d %s", got.status, got.text)
	}
	if got := s.post(fmt.Sprintf(`{"documentId":"h1","query":%q}`, hello)); got.code(t) != "BAD_USER_INPUT" {
		t.Errorf("with a text besides: %s", got.text)
	}
	if got := s.post(`{"documentId":7}`); got.code(t) != "BAD_USER_INPUT" {
		t.Errorf("an id that is no text: %s", got.text)
	}
	if got := s.get("/graphql?documentId=t"); got.status != 405 {
		t.Errorf("a mutation by GET: %d %s", got.status, got.text)
	}
	if got := s.post(`{"extensions":{"documentId":"h1"}}`); got.code(t) != "BAD_USER_INPUT" {
		t.Errorf("an id among the extensions: %s", got.text)
	}
	socket := s.joined()
	socket.send(`{"id":"1","type":"subscribe","payload":{"documentId":"h1"}}`)
	if got, err := socket.read(); err != nil || !strings.Contains(got, "world") {
		t.Errorf("over a WebSocket: %s", got)
	}
}

// If only trusted documents are answered, no other text is, on any transport.
func TestOnlyTrusted(t *testing.T) {
	registered, add, _ := known(t)
	registry := prometheus.NewRegistry()
	s := serve(t, gateway.Config{Trusted: registered, OnlyTrusted: documents.TrustKnown, Metrics: exchange.NewMetrics(registry), Gatherer: registry})
	other := "{ hello }"
	for range 2 {
		for name, got := range map[string]reply{
			"a text":              s.query(other),
			"by GET":              s.get("/graphql?query=" + url.QueryEscape(other)),
			"with its hash":       s.post(fmt.Sprintf(`{"query":%q,"extensions":{"persistedQuery":{"version":1,"sha256Hash":%q}}}`, other, sha(other))),
			"introspection":       s.query("{ __schema { queryType { name } } }"),
			"no query":            s.query("hello"),
			"a space more":        s.query(add + " "),
			"with a trusted hash": s.post(fmt.Sprintf(`{"query":%q,"extensions":{"persistedQuery":{"version":1,"sha256Hash":%q}}}`, other, sha(add))),
		} {
			if got.code(t) != "FORBIDDEN" || got.Data != nil {
				t.Errorf("%s: %s", name, got.text)
			}
		}
		if got := s.post(fmt.Sprintf(`{"extensions":{"persistedQuery":{"version":1,"sha256Hash":%q}}}`, sha(other))); got.code(t) != "PERSISTED_QUERY_NOT_FOUND" {
			t.Errorf("by its hash: %s", got.text)
		}
		if got := s.query(add); len(got.Errors) > 0 {
			t.Errorf("a trusted text: %s", got.text)
		}
		if got := s.post(`{"documentId":"h1"}`); got.Data["hello"] == nil {
			t.Errorf("by its id: %s", got.text)
		}
	}
	socket := s.joined()
	socket.send(`{"id":"1","type":"subscribe","payload":{"query":"{ hello }"}}`)
	if got, err := socket.read(); err != nil || !strings.Contains(got, "FORBIDDEN") {
		t.Errorf("over a WebSocket: %s", got)
	}
	metrics := s.operators("/metrics").text
	for _, line := range []string{
		`kith_graphql_untrusted_documents_total{outcome="refused"} 15`,
		`kith_graphql_operations_total{name="Hello",outcome="ok"} 2`,
		`kith_graphql_operations_total{name="Add",outcome="ok"} 2`,
		`kith_graphql_operation_duration_seconds_count{name="Add"} 2`,
	} {
		if !strings.Contains(metrics, line) {
			t.Errorf("the metrics have no %s", line)
		}
	}
}

// A dry run answers everything, counts each untrusted request, and logs each text once, without the text itself.
func TestUntrustedIsLogged(t *testing.T) {
	registered, add, _ := known(t)
	registry := prometheus.NewRegistry()
	s := serve(t, gateway.Config{Trusted: registered, OnlyTrusted: documents.TrustLog, Metrics: exchange.NewMetrics(registry), Gatherer: registry})
	const other = "query Mine { hello add(n: 4711) }"
	for range 4 {
		for name, got := range map[string]reply{
			"a text": s.query(other), "a trusted one": s.query(add),
			"with its hash": s.post(fmt.Sprintf(`{"query":%q,"extensions":{"persistedQuery":{"version":1,"sha256Hash":%q}}}`, other, sha(other))),
			"by its id":     s.post(`{"documentId":"h1"}`),
		} {
			if len(got.Errors) > 0 {
				t.Errorf("%s: %s", name, got.text)
			}
		}
	}
	if n := strings.Count(s.log.String(), "is not trusted"); n != 1 || !strings.Contains(s.log.String(), sha(other)) || strings.Contains(s.log.String(), "4711") {
		t.Errorf("logged %d times: %s", n, s.log)
	}
	metrics := s.operators("/metrics").text
	if !strings.Contains(metrics, `kith_graphql_untrusted_documents_total{outcome="answered"} 8`) || strings.Contains(metrics, "Mine") {
		t.Errorf("the metrics count otherwise: %s", metrics)
	}
}

// Documents that are registered while the gateway serves are answered. Documents that are removed are no longer
// answered, even if they have been used before.
func TestDocumentsComeAndGo(t *testing.T) {
	folder := t.TempDir()
	put := func(text string) {
		t.Helper()
		must.OK(t, os.WriteFile(filepath.Join(folder, "a.json"), []byte(text), 0o644))
	}
	put(`{"h": "query Hello { hello }"}`)
	registered, err := trusted.Load(trusted.Folder(folder), selections.Schemas{Schema: newSchema(nil)}, limits.Limits{})
	must.OK(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() { registered.Follow(ctx, time.Millisecond, slog.New(slog.DiscardHandler)) })
	defer func() { stop(); following.Wait() }()
	registry := prometheus.NewRegistry()
	strict := serve(t, gateway.Config{Trusted: registered, OnlyTrusted: documents.TrustKnown})
	lenient := serve(t, gateway.Config{Trusted: registered, OnlyTrusted: documents.TrustLog, Metrics: exchange.NewMetrics(registry), Gatherer: registry})
	const hello, add = "query Hello { hello }", "query Add { add(n: 41) }"
	ask := func(text, id string, answered bool) {
		t.Helper()
		for range 2 {
			if got := strict.query(text); (got.Data != nil) != answered || !answered && got.code(t) != "FORBIDDEN" {
				t.Errorf("%s: %s", text, got.text)
			}
			if got := strict.post(fmt.Sprintf(`{"documentId":%q}`, id)); (got.Data != nil) != answered {
				t.Errorf("%s: %s", id, got.text)
			}
			if got := lenient.query(text); len(got.Errors) > 0 {
				t.Errorf("%s: %s", text, got.text)
			}
		}
	}
	ask(hello, "h", true)
	ask(add, "add", false)
	put(fmt.Sprintf(`{"add": %q}`, add))
	must.Soon(t, "the document has come", func() bool { return registered.Has(add) })
	ask(add, "add", true)
	ask(hello, "h", false)
	metrics := lenient.operators("/metrics").text
	for _, line := range []string{
		`kith_graphql_untrusted_documents_total{outcome="answered"} 4`,
		`kith_graphql_operations_total{name="Hello",outcome="ok"} 2`, `kith_graphql_operations_total{name="Add",outcome="ok"} 2`,
	} {
		if !strings.Contains(metrics, line) {
			t.Errorf("the metrics have no %s", line)
		}
	}
}
