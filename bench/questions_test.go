package bench_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"kith/bench"
)

var (
	users    = flag.Int("users", 50_000, "users of the graph that questions are asked about, 50 follows each")
	duration = flag.Duration("duration", 10*time.Second, "how long each question is asked")
)

// BenchmarkQuestions measures the six questions on SQLite and on MariaDB, each asked
// of Kith and then of the hand-written limit over the same tables, in processes of
// their own. The load shares the machine with them.
func BenchmarkQuestions(b *testing.B) {
	graph := bench.NewGraph(*users, 42)
	file := filepath.Join(b.TempDir(), "graph.tsv")
	writeGraph(b, graph, file)
	edges := countLines(b, file)
	programs := b.TempDir()
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", programs+"/", "kith", "kith/bench/limit").CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}

	b.Run("sqlite", func(b *testing.B) {
		store := "sqlite:" + filepath.Join(b.TempDir(), "kith.db")
		importFile(b, store, file, edges)
		askBoth(b, programs, store, graph, 0)
	})
	b.Run("mariadb", func(b *testing.B) {
		server := largeMariaDB(b)
		store := "mysql:" + server.CreateDatabase(b, "kith")
		importFile(b, store, file, edges)
		askBoth(b, programs, store, graph, server.PID())
	})
}

// askBoth asks every question of Kith and of the limit in turn. database is the
// process of the server behind them, 0 when they have none.
func askBoth(b *testing.B, programs, store string, graph *bench.Graph, database int) {
	peers := []struct{ name, url string }{
		{"kith", serve(b, filepath.Join(programs, "kith"), "serve", "--store="+store, "--log-level=warn", "--addr")},
		{"limit", serve(b, filepath.Join(programs, "limit"), "-store", store, "-addr")},
	}
	for _, q := range bench.Questions {
		for _, peer := range peers {
			b.Run(q.Name+"/"+peer.name, func(b *testing.B) {
				load := bench.Load{URL: peer.url, Graph: graph, Connections: 16, Warmup: *duration / 5, Duration: *duration, Seed: 7}
				for b.Loop() {
					before := processCPU(database)
					r, err := load.Run(b.Context(), q)
					if err != nil || r.Errors > 0 {
						b.Fatalf("%d of %d answers are wrong: %v %v", r.Errors, r.Requests, r.Error, err)
					}
					b.ReportMetric(r.PerSecond(), "req/s")
					b.ReportMetric(r.Percentile(50).Seconds()*1e3, "p50-ms")
					b.ReportMetric(r.Percentile(99).Seconds()*1e3, "p99-ms")
					b.ReportMetric(r.ServerCPU, "cores")
					b.ReportMetric(r.ClientCPU, "load-cores")
					if database != 0 {
						used := processCPU(database) - before
						b.ReportMetric(used.Seconds()/(load.Warmup+load.Duration).Seconds(), "database-cores")
					}
				}
				b.ReportMetric(0, "ns/op") // hidden: the load runs by the clock
			})
		}
	}
}

// serve starts a program on a free port, which is its last argument, and returns
// where it answers GraphQL.
func serve(b *testing.B, program string, args ...string) string {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	addr := listener.Addr().String()
	listener.Close()
	ctx, stop := context.WithCancel(context.Background())
	var log bytes.Buffer
	server := exec.CommandContext(ctx, program, append(args, addr)...)
	server.Stderr = &log
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		stop()
		_ = server.Wait() // killed
	})
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		response, err := http.Get("http://" + addr + "/metrics")
		if err == nil {
			response.Body.Close()
			return "http://" + addr + "/graphql"
		}
		if time.Now().After(end) {
			b.Fatalf("%s does not answer: %v", program, err)
		}
	}
}

// processCPU is how much CPU a process has used, by Linux's /proc; 0 elsewhere.
func processCPU(pid int) time.Duration {
	const tick = 10 * time.Millisecond // USER_HZ is 100 for all programs
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name before may hold blanks
	fields := strings.Fields(rest)
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick
}

func writeGraph(t testing.TB, graph *bench.Graph, path string) {
	t.Helper()
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := graph.WriteTo(out); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

func countLines(t testing.TB, path string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(text, []byte{'\n'})
}
