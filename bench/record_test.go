package bench_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kith/bench"
)

// Of a wrong answer, everything that was asked about its user is kept, and the writes about those whom the
// same request has shown; of others, nothing.
func TestRecorder(t *testing.T) {
	const shown = "7"
	var lists, wrong atomic.Int64
	var victim atomic.Pointer[string]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Query     string
			Variables struct{ ID, With string }
		}
		if json.NewDecoder(r.Body).Decode(&request) != nil {
			return // a request for /metrics
		}
		const person = `{"data":{"follow":{"changed":true},"unfollow":{"changed":true},"setFollowMark":{"changed":true},"user":{"id":%q,"name":"a","followingCount":1}}}`
		list := `[{"followedAt":"2026-11-20T00:00:00Z","node":{"id":"` + shown + `","name":"a"}}]`
		if !strings.Contains(request.Query, "GetList") {
			fmt.Fprintf(w, person, request.Variables.ID)
			return
		}
		if victim.CompareAndSwap(nil, &request.Variables.ID); request.Variables.ID == *victim.Load() && lists.Add(1) == 2 {
			wrong.Add(1)
			list = `[{"followedAt":"2026-11-20T00:00:00Z","node":null}]`
		}
		fmt.Fprintf(w, `{"data":{"user":{"followings":{"edges":%s,"complete":true}}}}`, list)
	}))
	defer server.Close()
	recorder, err := bench.NewRecorder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	graph := bench.NewGraph(500, 42)
	mix, err := bench.NewMix(graph, []byte("a secret for tests of 32 bytes or more"))
	if err != nil {
		t.Fatal(err)
	}
	load := bench.Load{URL: server.URL + "/graphql", Graph: graph, Connections: 2, Duration: time.Second, CheckEvery: 1 << 30, Recorder: recorder}
	r, err := load.Run(t.Context(), mix)
	if err != nil {
		t.Fatal(err)
	}
	path, err := recorder.History(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	counted, last := map[string]int{}, int64(-1<<62)
	var lines []recordedLine
	about := map[string]bool{}
	for text := range strings.Lines(string(text)) {
		var l recordedLine
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if l.At < last {
			t.Error("not in the order of time")
		}
		last = l.At
		lines = append(lines, l)
		about[l.By] = about[l.By] || l.Wrong != ""
	}
	for _, l := range lines {
		switch q := l.Request; {
		case strings.Contains(q.Query, "GetList") && q.Variables.ID == *victim.Load():
			counted["lists"]++
			if l.Wrong != "" {
				counted["wrong"]++
			}
		case strings.HasPrefix(q.Query, "mutation"):
			counted["writes"]++
		case !about[l.By] && !slices.ContainsFunc(q.Variables.To, func(id string) bool { return about[id] }):
			counted["others"]++
		}
	}
	if int64(counted["wrong"]) != wrong.Load() || int64(counted["lists"]) != lists.Load() || wrong.Load() != 1 || counted["writes"] == 0 || counted["others"] > 0 {
		t.Errorf("%d requests, %d wrong, the first %v; the history has %v", r.Requests, r.Errors, r.Error, counted)
	}
	if err := recorder.Close(); err != nil {
		t.Fatal(err)
	}
}

type recordedLine struct {
	At      int64
	By      string
	Request struct {
		Query     string
		Variables struct {
			ID string
			To []string
		}
	}
	Wrong string
}
