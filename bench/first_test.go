package bench_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"kith/bench"
	"kith/gateway"
	"kith/gateway/trusted"
	"kith/graph/generated"
	"kith/graph/limits"
	"kith/graph/selections"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
)

// BenchmarkFirstRequest measures the first request of a trusted document, and the later ones, in the way in which
// BenchmarkHandler measures requests. It asks for 1,000 documents in turn, which differ in the names of their
// operations. load-µs is the time that reading, parsing and validating each of them took before that. All times are
// CPU time, the lowest of all runs.
//
//	go test ./bench -run '^$' -bench FirstRequest -benchtime 20x
func BenchmarkFirstRequest(b *testing.B) {
	const documents = 1000
	graph := bench.NewGraph(2_000, 42)
	store := fill(b, oracle.New(), graph)
	for _, q := range bench.Questions[:3] {
		b.Run(q.Name, func(b *testing.B) {
			random := rand.New(rand.NewPCG(7, 7))
			manifest, bodies := map[string]string{}, make([][]byte, documents)
			for i := range bodies {
				id, text := fmt.Sprint("d", i), strings.Replace(q.Query, "(", fmt.Sprintf("_%d(", i), 1)
				manifest[id] = text
				var body struct{ Variables json.RawMessage }
				must.OK(b, json.Unmarshal(q.AppendBody(nil, q.Draw(graph, random)), &body))
				bodies[i] = fmt.Appendf(nil, `{"documentId":%q,"variables":%s}`, id, body.Variables)
			}
			folder := b.TempDir()
			content, err := json.Marshal(manifest)
			if err == nil {
				err = os.WriteFile(filepath.Join(folder, "a.json"), content, 0o600)
			}
			must.OK(b, err)
			least := map[string]float64{}
			took := func(name string, since float64) {
				if µs := (bench.OwnCPU() - since) * 1e6 / documents; least[name] == 0 || µs < least[name] {
					least[name] = µs
				}
				runtime.GC()
			}
			for b.Loop() {
				began := bench.OwnCPU()
				known, err := trusted.Load(trusted.Folder(folder), selections.Schemas{Schema: generated.NewSchema(generated.Config{})}, limits.Limits{})
				must.OK(b, err)
				took("load-µs", began)
				config := configOf(b, store, nil)
				config.Trusted = known
				h := gateway.New(config)
				for _, pass := range []string{"first-µs", "next-µs"} {
					began = bench.OwnCPU()
					askEach(b, h, bodies)
					took(pass, began)
				}
			}
			for name, µs := range least {
				b.ReportMetric(µs, name)
			}
		})
	}
}

func askEach(b *testing.B, h http.Handler, bodies [][]byte) {
	b.Helper()
	for _, body := range bodies {
		request := httptest.NewRequest(http.MethodPost, "/graphql", io.NopCloser(bytes.NewReader(body)))
		request.ContentLength = int64(len(body))
		request.Header.Set("Content-Type", "application/json")
		answer := discarding{header: http.Header{}}
		h.ServeHTTP(&answer, request)
		if answer.status != http.StatusOK || answer.failed {
			b.Fatalf("%s is answered with %d", body, answer.status)
		}
	}
}
