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
	"kith/internal/check"
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
			check.Equal[any](t, name, got.Data["add"], float64(n))
		}
	}
	s.post(`{"documentId":"h1","operationName":"Hello"}`).is(t, "by another id", 200, "", `"hello":"`)
	s.post(`{"documentId":"h2"}`, "Accept", "application/graphql-response+json").is(t, "an unknown id", 200, "PERSISTED_QUERY_NOT_FOUND")
	s.post(fmt.Sprintf(`{"documentId":"h1","query":%q}`, hello)).is(t, "with a text besides", 200, "BAD_USER_INPUT")
	s.post(`{"documentId":7}`).is(t, "an id that is no text", 400, "BAD_USER_INPUT")
	s.get("/graphql?documentId=t").is(t, "a mutation by GET", 405, "BAD_USER_INPUT")
	s.post(`{"extensions":{"documentId":"h1"}}`).is(t, "an id among the extensions", 400, "BAD_USER_INPUT")
	socket := s.joined()
	socket.send(`{"id":"1","type":"subscribe","payload":{"documentId":"h1"}}`)
	socket.reads("world")
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
			got.is(t, name, 200, "FORBIDDEN")
			check.Equal(t, name, got.Data, nil)
		}
		s.post(fmt.Sprintf(`{"extensions":{"persistedQuery":{"version":1,"sha256Hash":%q}}}`, sha(other))).is(t, "by its hash", 200, "PERSISTED_QUERY_NOT_FOUND")
		s.query(add).is(t, "a trusted text", 200, "")
		s.post(`{"documentId":"h1"}`).is(t, "by its id", 200, "", `"hello":"`)
	}
	socket := s.joined()
	socket.send(`{"id":"1","type":"subscribe","payload":{"query":"{ hello }"}}`)
	socket.reads("FORBIDDEN")
	metrics := s.operators("/metrics").text
	check.Has(t, "the metrics", metrics,
		`kith_graphql_untrusted_documents_total{outcome="refused"} 15`,
		`kith_graphql_operations_total{name="Hello",outcome="ok"} 2`,
		`kith_graphql_operations_total{name="Add",outcome="ok"} 2`,
		`kith_graphql_operation_duration_seconds_count{name="Add"} 2`,
	)
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
			got.is(t, name, 200, "")
		}
	}
	check.Equal(t, "lines of the log", strings.Count(s.log.String(), "is not trusted"), 1)
	check.Has(t, "the log", s.log.String(), sha(other))
	check.Lacks(t, "the log", s.log.String(), "4711")
	metrics := s.operators("/metrics").text
	check.Has(t, "the metrics", metrics, `kith_graphql_untrusted_documents_total{outcome="answered"} 8`)
	check.Lacks(t, "the metrics", metrics, "Mine")
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
			got := strict.query(text)
			check.That(t, (got.Data != nil) == answered && (answered || got.code(t) == "FORBIDDEN"), "%s: %s", text, got.text)
			check.Equal(t, id, strict.post(fmt.Sprintf(`{"documentId":%q}`, id)).Data != nil, answered)
			lenient.query(text).is(t, text, 200, "")
		}
	}
	ask(hello, "h", true)
	ask(add, "add", false)
	put(fmt.Sprintf(`{"add": %q}`, add))
	must.Soon(t, "the document has come", func() bool { return registered.Has(add) })
	ask(add, "add", true)
	ask(hello, "h", false)
	metrics := lenient.operators("/metrics").text
	check.Has(t, "the metrics", metrics,
		`kith_graphql_untrusted_documents_total{outcome="answered"} 4`,
		`kith_graphql_operations_total{name="Hello",outcome="ok"} 2`, `kith_graphql_operations_total{name="Add",outcome="ok"} 2`,
	)
}
