package bench_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kith/bench"
	"kith/files/importer"
	"kith/internal/apitest"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
)

func TestLoadOnAGateway(t *testing.T) {
	graph := bench.NewGraph(500, 42)
	file := filepath.Join(t.TempDir(), "graph.tsv")
	writeGraph(t, graph, file)
	store := oracle.New()
	if _, err := importer.Run(t.Context(), store, importer.Config{Files: []string{file}}); err != nil {
		t.Fatal(err)
	}
	url := apitest.New(t, store, apitest.Options{}).URL()

	for _, q := range bench.Questions {
		load := bench.Load{URL: url, Graph: graph, Connections: 2, Warmup: 20 * time.Millisecond, Duration: 200 * time.Millisecond, CheckEvery: 1}
		r, err := load.Run(t.Context(), q)
		must.OK(t, err)
		if r.Errors > 0 {
			t.Errorf("%s: %d of %d answers are wrong: %v", q.Name, r.Errors, r.Requests, r.Error)
		}
		if r.PerSecond() <= 0 || r.Percentile(50) <= 0 || r.Percentile(50) > r.Percentile(99) || r.Percentile(99) > r.Percentile(100) {
			t.Errorf("%s: %.0f req/s, %v, %v, %v", q.Name, r.PerSecond(), r.Percentile(50), r.Percentile(99), r.Percentile(100))
		}
	}
}

func TestLoadCountsWrongAnswers(t *testing.T) {
	const followings = `{"data":{"user":{"followings":{"edges":[
		{"followedAt":"2025-01-02T00:00:00.000000Z","node":{"id":"5","name":"u5"}},
		{"followedAt":"2025-01-03T00:00:00.000000Z","node":{"id":"6","name":"u6"}}],"complete":true}}}}`
	for name, c := range map[string]struct {
		status int
		answer string
		want   string
	}{
		"a refusal":         {503, `{}`, "status 503"},
		"errors":            {200, `{"errors":[{"message":"no"}],"data":{}}`, "no"},
		"nobody":            {200, `{"data":{"user":null}}`, "missing"},
		"an incomplete one": {200, `{"data":{"user":{"followings":{"edges":[],"complete":false}}}}`, "incomplete"},
		"a shape":           {200, `{"data":{"user":{}}}`, "missing"},
		"an order":          {200, followings, "out of order"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.answer)
			}))
			defer server.Close()
			load := bench.Load{URL: server.URL + "/graphql", Graph: bench.NewGraph(500, 42), Connections: 1, Duration: 50 * time.Millisecond, CheckEvery: 1}
			r, err := load.Run(t.Context(), bench.QuestionByName("q2"))
			must.OK(t, err)
			if r.Errors == 0 || r.Errors != r.Requests || !strings.Contains(r.Error.Error(), c.want) {
				t.Errorf("%d of %d answers are wrong: %v", r.Errors, r.Requests, r.Error)
			}
		})
	}
}

// EachOnce asks about every user, and ends before its time.
func TestLoadAsksAboutEachOnce(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct{ Variables struct{ ID string } }
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			return // this is a request for /metrics
		}
		mu.Lock()
		asked[request.Variables.ID]++
		mu.Unlock()
		fmt.Fprintf(w, `{"data":{"user":{"id":%q,"name":"n","followingCount":1,"followerCount":1}}}`, request.Variables.ID)
	}))
	defer server.Close()
	load := bench.Load{URL: server.URL + "/graphql", Graph: bench.NewGraph(500, 42), Connections: 3, Duration: time.Minute, EachOnce: true}
	r, err := load.Run(t.Context(), bench.QuestionByName("q1"))
	must.OK(t, err)
	if len(asked) != 500 || r.Requests != 500 || r.Errors != 0 || r.Elapsed >= time.Minute {
		t.Errorf("%d requests about %d users in %s, %d wrong: %v", r.Requests, len(asked), r.Elapsed, r.Errors, r.Error)
	}
}

func TestLoadWithoutAGateway(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	load := bench.Load{URL: server.URL + "/graphql", Graph: bench.NewGraph(500, 42), Connections: 1, Duration: time.Second}
	if r, err := load.Run(t.Context(), bench.Questions[0]); err == nil {
		t.Errorf("a gateway that is not there answers %d times", r.Requests)
	}
}

// A request that takes longer than the load lasts still gets an answer, and the rate is for the
// time that it took.
func TestLoadWaitsForAnAnswer(t *testing.T) {
	const slow = 60 * time.Millisecond
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct{ Variables struct{ ID string } }
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			return // this is a request for /metrics
		}
		time.Sleep(slow) // this is the time that is measured
		fmt.Fprintf(w, `{"data":{"user":{"id":%q,"name":"n","followingCount":1,"followerCount":1}}}`, request.Variables.ID)
	}))
	defer server.Close()
	load := bench.Load{URL: server.URL + "/graphql", Graph: bench.NewGraph(500, 42), Connections: 1, Warmup: 10 * time.Millisecond, Duration: 10 * time.Millisecond}
	r, err := load.Run(t.Context(), bench.QuestionByName("q1"))
	must.OK(t, err)
	if r.Requests != 1 || r.Errors != 0 || r.Elapsed < slow {
		t.Errorf("%d requests in %s: %v", r.Requests, r.Elapsed, r.Error)
	}
}
