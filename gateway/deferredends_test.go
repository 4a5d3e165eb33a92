package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/gateway"
	"kith/gateway/trusted"
	"kith/graph/generated"
	"kith/graph/limits"
)

// slow is a query with two parts: one waits for hold, the other does not.
const slow = `{ user(id: 303) { id ... @defer(label: "slow") { viewerRelationship { id } } ... @defer(label: "quick") { handle } } }`

// reading is an answer in parts that is read while it comes.
type reading struct {
	t     *testing.T
	lines *bufio.Reader
}

func (s site) open(ctx context.Context, query string) reading {
	s.t.Helper()
	r := s.request(http.MethodPost, "/graphql", fmt.Sprintf(`{"query":%q}`, query), "Content-Type", "application/json", "Accept", byID)
	response, err := http.DefaultClient.Do(r.WithContext(ctx))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { response.Body.Close() })
	return reading{s.t, bufio.NewReader(response.Body)}
}

// next returns the next message, and "" at the end. It also reads the boundary after the message.
func (r reading) next() (message string) {
	r.t.Helper()
	for {
		line, err := r.lines.ReadString('\n')
		if err == io.EOF || line == "-----\r\n" {
			return ""
		}
		if err != nil {
			r.t.Fatal(err)
		}
		if strings.HasPrefix(line, "{") {
			boundary, err := r.lines.Peek(3)
			if err != nil || string(boundary) != "---" {
				r.t.Fatalf("behind %s comes %q, %v", line, boundary, err)
			}
			return strings.TrimSpace(line)
		}
	}
}

// Each part comes when it is ready. Neither the first answer nor another part waits for it.
func TestPartsDoNotWaitForEachOther(t *testing.T) {
	l, s := deferring(t, nil)
	r := s.open(t.Context(), slow)
	for _, want := range []string{
		`{"data":{"user":{"id":"303"}},"pending":[{"id":"0","path":["user"],"label":"slow"},{"id":"1","path":["user"],"label":"quick"}],"hasNext":true}`,
		`{"incremental":[{"id":"1","data":{"handle":"u303"}}],"completed":[{"id":"1"}],"hasNext":true}`,
	} {
		if got := r.next(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	close(l.hold)
	if got := r.next(); got != `{"incremental":[{"id":"0","data":{"viewerRelationship":null}}],"completed":[{"id":"0"}],"hasNext":false}` {
		t.Errorf("got %s", got)
	}
	if got := r.next(); got != "" {
		t.Errorf("after the last part comes %s", got)
	}
}

// If a client disconnects, the work on its parts ends, and the request is logged as canceled.
func TestClientLeavesBetweenParts(t *testing.T) {
	registry := prometheus.NewRegistry()
	l, s := deferring(t, func(cfg *gateway.Config) {
		cfg.Metrics, cfg.Gatherer = gateway.NewMetrics(registry), registry
		cfg.MaxRequests = 1
	})
	ctx, leave := context.WithCancel(t.Context())
	r := s.open(ctx, slow)
	r.next()
	eventually(t, "it is noted", func() bool { return l.working.Load() == 1 })
	if got := s.operators("/metrics").text; !strings.Contains(got, "kith_graphql_requests_in_flight 1") {
		t.Error("a request whose parts are executed is not in flight")
	}
	leave()
	eventually(t, "it is noted", func() bool { return strings.Contains(s.log.String(), "outcome=canceled") })
	if got := s.log.String(); !strings.Contains(got, "parts=2") {
		t.Errorf("log: %s", got)
	}
	close(l.hold)
	if got := s.query(named, "Accept", byID); got.status != http.StatusOK { // its place among the requests is free again
		t.Errorf("the next request: %d %s", got.status, got.text)
	}
	metrics := s.operators("/metrics").text
	for _, want := range []string{
		`kith_graphql_requests_total{operation="query",outcome="canceled"} 1`,
		`kith_graphql_requests_total{operation="query",outcome="ok"} 1`,
		`kith_graphql_deferred_fragments_total{outcome="ok"} `,
		`kith_graphql_requests_in_flight 0`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

// A shard that does not answer in time costs only the part that needs it, when the time of the
// request ends.
func TestPartsEndWithTheTimeOfTheRequest(t *testing.T) {
	_, s := deferring(t, func(cfg *gateway.Config) { cfg.RequestTimeout = 300 * time.Millisecond })
	_, got := s.parts(byID, `{ user(id: 408) { id ... @defer(label: "slow") { viewerRelationship { id } } ... @defer { handle } } }`)
	last := got[len(got)-1]
	if got[0][:strings.Index(got[0], ",\"pending")] != `{"data":{"user":{"id":"408"}}` || !strings.Contains(last, `"code":"TIMEOUT"`) || !strings.Contains(last, `"completed":[{"id":"0"`) ||
		!strings.Contains(strings.Join(got, ""), `"data":{"handle":"u408"}`) {
		t.Errorf("got %s", strings.Join(got, "\n"))
	}
	if log := s.log.String(); !strings.Contains(log, "outcome=timeout") {
		t.Errorf("log: %s", log)
	}
}

// All parts together may not be longer than one answer may be.
func TestPartsThatAreTooLong(t *testing.T) {
	_, s := deferring(t, func(cfg *gateway.Config) { cfg.MaxAnswer = 50 })
	const both = `{ user(id: 1) { aaaaaaaaaaaaaaa: handle ... @defer { bbbbbbbbbbbbbbb: handle } } }`
	if got := s.query(both); got.code(t) != "QUERY_TOO_COSTLY" {
		t.Errorf("as a whole: %s", got.text)
	}
	_, got := s.parts(byID, both)
	if len(got) != 2 || !strings.Contains(got[0], `"aaaaaaaaaaaaaaa":"u1"`) || !strings.Contains(got[1], `"completed":[{"id":"0","errors":[{`) || !strings.Contains(got[1], "QUERY_TOO_COSTLY") {
		t.Errorf("in parts: %s", got)
	}
}

// A part is executed in the context of its request.
func TestPartsAreOfTheirRequest(t *testing.T) {
	l, s := deferring(t, func(cfg *gateway.Config) {
		cfg.PerPart = func(ctx context.Context) context.Context {
			return context.WithValue(ctx, viewerKey{}, fmt.Sprint(" again ", ctx.Value(loaderKey{})))
		}
	})
	_, got := s.parts(byID, `{ user(id: 1) { followings { edges { cursor } } ... @defer { later: followings { edges { cursor } } } } }`)
	if l.attached.Load() != 1 || len(got) != 2 || !strings.Contains(got[0], `"cursor":"1"`) || !strings.Contains(got[1], `"cursor":"1 again 1"`) {
		t.Errorf("%d requests: %s", l.attached.Load(), got)
	}
}

func TestPartsOfRegisteredDocuments(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "a.json"), fmt.Appendf(nil, `{"mine": %q}`, named), 0o600); err != nil {
		t.Fatal(err)
	}
	documents, err := trusted.Load(t.Context(), trusted.Folder(folder), generated.NewSchema(generated.Config{}).Schema(), limits.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	_, s := deferring(t, func(cfg *gateway.Config) { cfg.Trusted = documents })
	for range 2 {
		for name, r := range map[string]*http.Request{
			"POST":     s.request("POST", "/graphql", `{"documentId":"mine"}`, "Content-Type", "application/json", "Accept", byID),
			"GET":      s.request("GET", "/graphql?documentId=mine", "", "Accept", byID, "Content-Type", "application/json"),
			"its text": s.request("GET", "/graphql?query="+url.QueryEscape(named), "", "Accept", byID, "Content-Type", "application/json"),
		} {
			if got := s.do(r); !strings.Contains(got.text, `"pending":[{"id":"0"`) || got.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: %v %s", name, got.header, got.text)
			}
		}
		if got := s.post(`{"documentId":"mine"}`); got.text != `{"data":{"user":{"id":"1","handle":"u1"}}}` {
			t.Errorf("as a whole: %s", got.text)
		}
	}
}

// These are the rules of graphql-js 17.
func TestRulesOfDefer(t *testing.T) {
	_, s := deferring(t, nil)
	for query, want := range map[string]string{
		`{ user(id: 1) { ... @defer(label: "a") { id } ... @defer(label: "b") { handle } } }`: "",
		`{ user(id: 1) { ...F ...F } } fragment F on User { ... @defer(label: "a") { id } }`:  "",
		`query($l: String) { user(id: 1) { ... @defer(label: $l) { id } } }`:                  "static string",
		`{ user(id: 1) { ... @defer(label: "a") { id } ... @defer(label: "a") { handle } } }`: "unique",
		`{ user(id: 1) { id @defer } }`:                                                                                                  "FIELD",
		`{ user(id: 1) { ... @defer @defer { id } } }`:                                                                                   "only be used once",
		`{ user(id: 1) { ... @defer(if: 1) { id } } }`:                                                                                   "Boolean",
		`mutation { ... @defer { unfollow(userId: 1) { changed } } }`:                                                                    "root type of a mutation",
		`mutation { ...F @defer } fragment F on Mutation { unfollow(userId: 1) { changed } }`:                                            "root type of a mutation",
		`subscription { ... @defer { newFollowers { cursor } } }`:                                                                        "root type of a subscription",
		`subscription { newFollowers { cursor ... @defer { node { id } } } }`:                                                            "subscription operations",
		`subscription { newFollowers { ...F } } fragment F on UserEdge { cursor ... @defer { node { id } } }`:                            "subscription operations",
		`subscription { newFollowers { cursor ... @defer(if: true) { node { id } } } }`:                                                  "subscription operations",
		`subscription { newFollowers { cursor ... @defer(if: false) { node { id } } } }`:                                                 "need a WebSocket",
		`subscription($d: Boolean!) { newFollowers { cursor ... @defer(if: $d) { node { id } } } }`:                                      "must be defined",
		`query A { user(id: 1) { id } } subscription B { newFollowers { cursor ... @defer { node { id } } } } fragment F on User { id }`: "subscription operations",
	} {
		got := s.query(query)
		switch {
		case want == "":
			if got.Errors != nil {
				t.Errorf("%s: %s", query, got.text)
			}
		case got.code(t) != "BAD_USER_INPUT" || !strings.Contains(got.text, want):
			t.Errorf("%s: %s", query, got.text)
		}
	}
}
