package bench_test

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"kith/bench"
	"kith/files/importer"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

// BenchmarkImport measures `kith import` of graphs of a million and of five million follows, and of a real graph,
// including users and counts, into a new store. On MariaDB it first loads the same rows into tables
// of the same definition with LOAD DATA LOCAL INFILE. ×LOAD-DATA is how many times as long the
// import takes.
func BenchmarkImport(b *testing.B) {
	for _, set := range []struct {
		name string
		file func(testing.TB) string
	}{
		{"million", func(t testing.TB) string { return follows(t, 20_000) }},
		{"five-million", func(t testing.TB) string { return follows(t, 100_000) }},
		{"ego-twitter", func(t testing.TB) string { return testenv.Data(t, "ego-twitter.txt.gz") }},
	} {
		b.Run(set.name, func(b *testing.B) {
			file := set.file(b)
			edges := readEdges(b, file)
			b.Run("sqlite", func(b *testing.B) {
				for b.Loop() {
					importFile(b, "sqlite:"+filepath.Join(b.TempDir(), "kith.db"), file, len(edges))
				}
			})
			b.Run("mariadb", func(b *testing.B) {
				server := largeMariaDB(b)
				load := loadData(b, server, edges)
				for b.Loop() {
					took := importFile(b, "mysql:"+server.CreateDatabase(b, "kith"), file, len(edges))
					server.Exec(b, "DROP DATABASE kith")
					b.ReportMetric(took.Seconds()/load.Seconds(), "×LOAD-DATA")
				}
			})
		})
	}
}

// largeMariaDB is a server with enough memory for the graphs on which speed is measured.
func largeMariaDB(b *testing.B) *testenv.MariaDBServer {
	return testenv.MariaDB(b, "--innodb-buffer-pool-size=1G", "--innodb-log-file-size=512M")
}

// follows writes a graph with 50 follows a user.
func follows(t testing.TB, users int) string {
	path := filepath.Join(t.TempDir(), "follows.tsv")
	writeGraph(t, bench.NewGraph(users, 42), path)
	return path
}

// importFile does what `kith import` does, and returns how long it took.
func importFile(b *testing.B, location, file string, edges int) time.Duration {
	b.Helper()
	store, err := sqlstore.Open(context.Background(), sqlstore.Config{Location: location})
	must.OK(b, err)
	defer store.Close()
	began := time.Now()
	report, err := importer.Run(context.Background(), store, importer.Config{Files: []string{file}})
	took := time.Since(began)
	if err != nil || report.Edges != int64(edges) {
		b.Fatalf("import %s: %d of %d edges, %v", file, report.Edges, edges, err)
	}
	b.ReportMetric(float64(edges)/took.Seconds(), "edges/s")
	return took
}

// loadData returns how long LOAD DATA LOCAL INFILE takes for both tables, each from a file in the
// order of its primary key. That is the fastest way to fill tables with their indexes.
func loadData(b *testing.B, server *testenv.MariaDBServer, edges []storage.Edge) time.Duration {
	b.Helper()
	defer server.Exec(b, "DROP DATABASE load_data")
	location := "mysql:" + server.CreateDatabase(b, "load_data")
	store, err := sqlstore.Open(context.Background(), sqlstore.Config{Location: location}) // it creates the tables
	must.OK(b, err)
	store.Close()
	db := server.Open(b, "load_data")
	forward, inverse := loadFile(b, storage.Forward, edges), loadFile(b, storage.Inverse, edges)
	began := time.Now()
	loadTable(b, db, "following (from_user_id, to_user_id, type, update_time)", forward)
	loadTable(b, db, "follower (to_user_id, from_user_id, type, update_time)", inverse)
	took := time.Since(began)
	b.Logf("LOAD DATA of %d edges into both tables: %.1f s", len(edges), took.Seconds())
	return took
}

func loadTable(b *testing.B, db *sql.DB, table, file string) {
	b.Helper()
	mysql.RegisterLocalFile(file)
	defer mysql.DeregisterLocalFile(file)
	name, columns, _ := strings.Cut(table, " ")
	if _, err := db.Exec("LOAD DATA LOCAL INFILE '" + file + "' INTO TABLE " + name + " " + columns); err != nil {
		b.Fatal(err)
	}
}

func loadFile(b *testing.B, side storage.Side, edges []storage.Edge) string {
	b.Helper()
	edges = slices.Clone(edges)
	slices.SortFunc(edges, func(x, y storage.Edge) int {
		p, q := x.Pair(), y.Pair()
		return cmp.Or(cmp.Compare(side.Owner(p), side.Owner(q)), cmp.Compare(side.Peer(p), side.Peer(q)))
	})
	path := filepath.Join(b.TempDir(), side.String()+".tsv")
	file, err := os.Create(path)
	must.OK(b, err)
	out := bufio.NewWriter(file)
	for _, e := range edges {
		fmt.Fprintf(out, "%d\t%d\t%d\t%d\n", side.Owner(e.Pair()), side.Peer(e.Pair()), e.Type, e.UpdateTime)
	}
	must.OK(b, out.Flush())
	must.OK(b, file.Close())
	return path
}

// readEdges reads an edge list: each pair once, no self-follows, with invented times.
func readEdges(t testing.TB, path string) []storage.Edge {
	t.Helper()
	file, err := os.Open(path)
	must.OK(t, err)
	defer file.Close()
	var in io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(file); err != nil {
			t.Fatal(err)
		}
	}
	var edges []storage.Edge
	seen := map[storage.Pair]bool{}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var p storage.Pair
		if n, _ := fmt.Sscan(lines.Text(), &p.From, &p.To); n != 2 || p.From == p.To || seen[p] {
			continue
		}
		seen[p] = true
		edges = append(edges, storage.Edge{From: p.From, To: p.To, Type: storage.Following, UpdateTime: storage.Micros(1.7e15) + storage.Micros(len(edges))})
	}
	return edges
}

func writeGraph(t testing.TB, graph *bench.Graph, path string) {
	t.Helper()
	out, err := os.Create(path)
	must.OK(t, err)
	if _, err := graph.WriteTo(out); err != nil {
		t.Fatal(err)
	}
	must.OK(t, out.Close())
}
