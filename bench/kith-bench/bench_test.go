package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/alecthomas/kong"

	"kith/bench"
	"kith/files/importer"
	"kith/internal/apitest"
	"kith/internal/kithtest"
	"kith/storage/storagetest/oracle"
)

// benchCommand runs `kith bench …`. The commands that measure a program measure that of this tree.
func benchCommand(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	var program struct {
		Bench BenchCmd `cmd:""`
	}
	var out bytes.Buffer
	parser, err := kong.New(&program, vars, kong.Writers(&out, io.Discard), kong.BindTo(context.Background(), (*context.Context)(nil)))
	if err != nil {
		t.Fatal(err)
	}
	k, err := parser.Parse(append([]string{"bench"}, arguments...))
	if err != nil {
		return "", err
	}
	for _, flags := range []*benchFlags{&program.Bench.All.benchFlags, &program.Bench.Guard.benchFlags, &program.Bench.App.benchFlags} {
		flags.program, flags.self = kithtest.Binary(t), kithtest.BenchBinary(t)
	}
	err = k.Run()
	return out.String(), err
}

func TestBenchGenerate(t *testing.T) {
	plain, zipped := filepath.Join(t.TempDir(), "graph.tsv"), filepath.Join(t.TempDir(), "graph.tsv.gz")
	for _, file := range []string{plain, zipped} {
		if out, err := benchCommand(t, "generate", "--users", "300", file); err != nil || !strings.Contains(out, "300 users") {
			t.Fatalf("%q, %v", out, err)
		}
	}
	var want bytes.Buffer
	if _, err := bench.NewGraph(300, 42).WriteTo(&want); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(plain); err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("the plain file has %d bytes, want %d: %v", len(got), want.Len(), err)
	}
	file, err := os.Open(zipped)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zip, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(zip); err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("the gzipped file holds %d bytes, want %d: %v", len(got), want.Len(), err)
	}
	if out, err := benchCommand(t, "generate", "--users", "300", "-"); err != nil || out != want.String() {
		t.Errorf("standard output has %d bytes, want %d: %v", len(out), want.Len(), err)
	}
	spread, err := benchCommand(t, "generate", "--users", "300", "--sonyflake", "-")
	if id, _, _ := strings.Cut(spread, "\t"); err != nil || len(id) < 17 {
		t.Errorf("--sonyflake begins with %q, %v", id, err)
	}
}

func TestBenchRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "graph.tsv")
	if _, err := benchCommand(t, "generate", "--users", "300", "--sonyflake", file); err != nil {
		t.Fatal(err)
	}
	store := oracle.New()
	if _, err := importer.Run(t.Context(), store, importer.Config{Files: []string{file}}); err != nil {
		t.Fatal(err)
	}
	arguments := []string{"run", "--url", apitest.New(t, store, apitest.Options{}).URL(), "--users", "300", "--sonyflake",
		"--connections", "2", "--warmup", "10ms", "--duration", "100ms"}

	out, err := benchCommand(t, append(arguments, "--questions", "q1,q5c")...)
	if lines := strings.Split(out, "\n"); err != nil || len(lines) != 4 || !strings.Contains(lines[1], "q1 ") || !strings.Contains(lines[2], "q5c ") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = benchCommand(t, append(arguments, "--output=json")...)
	var results []struct {
		Question  string
		PerSecond float64
	}
	if err := json.Unmarshal([]byte(out), &results); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err != nil || len(results) != len(bench.Questions) || results[0].PerSecond <= 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// With --check-every 1 every answer is compared, and the error names the file in --histories with all that was asked.
func TestBenchRunKeepsHistories(t *testing.T) {
	var asked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost { // not for /metrics
			asked.Add(1)
		}
		_, _ = io.WriteString(w, `{"data":{"user":{"id":"1000000","name":"somebody else","followingCount":1,"followerCount":0}}}`)
	}))
	defer other.Close()
	folder := t.TempDir()
	_, err := benchCommand(t, "run", "--url", other.URL, "--users", "300", "--questions", "q1", "--connections", "2", "--warmup", "0s", "--duration", "50ms",
		"--check-every", "1", "--histories", folder)
	if err == nil {
		t.Fatal("wrong answers are no error")
	}
	files, _ := filepath.Glob(filepath.Join(folder, "*"))
	if len(files) != 1 || !strings.Contains(err.Error(), files[0]) {
		t.Fatalf("%v, want a history of %q", err, files)
	}
	text, fault := os.ReadFile(files[0])
	if fault != nil {
		t.Fatal(fault)
	}
	n := asked.Load()
	if all := fmt.Sprintf("%d of %d answers", n, n); !strings.Contains(err.Error(), all) {
		t.Errorf("%v, want %s", err, all)
	}
	// The history is of the users of twenty wrong answers.
	if lines := strings.Count(string(text), `"wrong":`); lines < 20 && int64(lines) < n || lines != strings.Count(string(text), "\n") {
		t.Errorf("%d of %d wrong answers are in the history", lines, n)
	}
}

func TestBenchRunFails(t *testing.T) {
	wrong := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"errors":[{"message":"no"}],"data":null}`)
	}))
	defer wrong.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, c := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"--url", wrong.URL}, "answers to q1 were wrong"},
		{[]string{"--url", gone.URL}, "refused"},
		{[]string{"--url", "ftp://127.0.0.1/graphql"}, "http://"},
		{[]string{"--questions", "q7"}, `"q7" is none of q1, `},
		{[]string{"--users", "10"}, "--users"},
		{[]string{"--connections", "0"}, "--connections"},
	} {
		_, err := benchCommand(t, append([]string{"run", "--warmup", "0s", "--duration", "50ms", "--histories", t.TempDir()}, c.arguments...)...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.arguments, err, c.want)
		}
	}
}
