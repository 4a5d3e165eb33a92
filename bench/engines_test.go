package bench_test

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"kith/bench"
	"kith/bench/suite"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage/sqlstore"
)

var (
	engineNames  = flag.String("servers", "mariadb,tidb", "the database servers that BenchmarkEngines compares, the first with each other one")
	engineUsers  = flag.Int("engine-users", 5000, "users of BenchmarkEngines; each follows 50 on average")
	engineRounds = flag.Int("engine-rounds", 5, "how often BenchmarkEngines puts each question to each server, in turn")
	engineTime   = flag.Duration("engine-time", 2*time.Second, "how long each time")
)

// BenchmarkEngines asks the questions, and has users follow one another, on several database
// servers: one database on each, in the mode sync and without caches. The servers take turns, so
// that anything else on the machine affects all of them. It prints a table of medians, with the
// times and the CPU time of the database divided by the first server's.
//
//	scripts/install-engines.sh tidb
//	go test ./bench -run '^$' -bench Engines -benchtime 1x -timeout 30m
func BenchmarkEngines(b *testing.B) {
	graph := bench.NewGraph(*engineUsers, 42)
	var all []*compared
	for name := range strings.SplitSeq(*engineNames, ",") {
		all = append(all, startCompared(b, name, graph))
	}
	follows, err := bench.NewFollows([]byte(fameSecret))
	must.OK(b, err)
	for b.Loop() {
		table := &strings.Builder{}
		fmt.Fprint(table, "| |")
		for _, c := range all {
			fmt.Fprintf(table, " %s, p50 ms | p99 ms | database CPU, ms |", c.name)
		}
		for _, c := range all[1:] {
			fmt.Fprintf(table, " %s: p50 × | p99 × | CPU × |", c.name)
		}
		fmt.Fprintf(table, "\n|---|%s\n", strings.Repeat("---:|", 6*len(all)-3))
		for _, q := range bench.Questions {
			writeRow(table, inTurn(b, all, q))
		}
		writeRow(table, inTurn(b, all, follows))
		fmt.Printf("\n%s\n", table) // b.Log would cut it off
	}
	b.ReportMetric(0, "ns/op")
}

// compared is a gateway on a database server.
type compared struct {
	name   string
	server *testenv.MariaDBServer
	*kithtest.Gateway
	load bench.Load
}

// compareConnections is how many requests are under way. They are few, because the time of one
// request is measured, and not the largest rate of the machine.
const compareConnections = 2

func startCompared(b *testing.B, name string, graph *bench.Graph) *compared {
	b.Helper()
	c := &compared{name: name, server: testenv.Database(b, name)}
	location := "mysql:" + c.server.CreateDatabase(b, "kith")
	store, err := sqlstore.Open(b.Context(), sqlstore.Config{Location: location})
	must.OK(b, err)
	began := time.Now()
	edges, err := suite.Fill(b.Context(), store, graph)
	must.OK(b, err)
	_ = store.Close()
	b.Logf("%s: %d users and %d follows loaded in %s", name, graph.Users, edges, time.Since(began).Round(time.Second))
	c.server.Exec(b, "ANALYZE TABLE kith.users, kith.user_counts, kith.following, kith.follower")
	c.Gateway = kithtest.Start(b, kithtest.Args("--store", location, "--redundancy", "sync", "--log-level", "warn", "--max-following", "0"),
		kithtest.Env("KITH_CACHE_BYTES=0", "KITH_JWT_SECRET="+fameSecret))
	c.load = bench.Load{
		URL: c.URL + "/graphql", Graph: graph, Connections: compareConnections, Duration: *engineTime, Seed: 42,
		Databases: []int{c.server.PID()},
	}
	return c
}

// inTurn puts a load on all servers, round by round, and returns the results of each. The first
// round reads pages and makes plans, and is not counted.
func inTurn(b *testing.B, all []*compared, what bench.Workload) []bench.Result {
	b.Helper()
	rounds := make([][]bench.Result, len(all))
	for round := range *engineRounds + 1 {
		for i, c := range all {
			if r := c.ask(b, what, round); round > 0 {
				rounds[i] = append(rounds[i], r)
			}
		}
	}
	merged := make([]bench.Result, len(all))
	for i := range all {
		merged[i] = bench.Merge(rounds[i])
	}
	return merged
}

// ask puts one load on the gateway. A wrong answer fails the benchmark.
func (c *compared) ask(b *testing.B, what bench.Workload, round int) bench.Result {
	b.Helper()
	load := c.load
	load.Seed += uint64(round) << 32
	r, err := load.Run(b.Context(), what)
	if err == nil {
		err = r.Error
	}
	if err != nil {
		b.Fatalf("%s, %s: %v", c.name, r.Question, err)
	}
	return r
}

// writeRow writes the results of one load on each server: the medians, the 99th percentiles and the
// CPU time of the database, and these divided by the first server's.
func writeRow(table io.Writer, results []bench.Result) {
	fmt.Fprintf(table, "| %s |", results[0].Question)
	costs := make([][3]float64, len(results))
	for i, r := range results {
		costs[i] = [3]float64{
			r.Percentile(50).Seconds() * 1e3, r.Percentile(99).Seconds() * 1e3, r.Databases * 1e3 / float64(r.Requests),
		}
		fmt.Fprintf(table, " %.2f | %.2f | %.2f |", costs[i][0], costs[i][1], costs[i][2])
	}
	for _, cost := range costs[1:] {
		for i := range cost {
			fmt.Fprintf(table, " %.1f |", cost[i]/costs[0][i])
		}
	}
	fmt.Fprintln(table)
}
