package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"kith/bench"
	"kith/internal/kithtest"
	"kith/internal/must"
)

// benchCommand runs `kith bench …`. The commands that measure a program measure that of this tree.
func benchCommand(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	var program struct {
		Bench BenchCmd `cmd:""`
	}
	var out bytes.Buffer
	parser, err := kong.New(&program, vars, kong.Writers(&out, io.Discard), kong.BindTo(context.Background(), (*context.Context)(nil)))
	must.OK(t, err)
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

// TestCtrlCIsOneSignal: a terminal sends it to all programs, and kith passes it on to kith-bench, which still removes what it has made.
func TestCtrlCIsOneSignal(t *testing.T) {
	self, err := os.FindProcess(os.Getpid())
	must.OK(t, err)
	ctx := untilStopped()
	for range 2 {
		must.OK(t, self.Signal(os.Interrupt))
		<-ctx.Done()
		time.Sleep(100 * time.Millisecond) // the second one would end this program
	}
}

func TestBenchGenerate(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "graph.tsv")
	if out, err := benchCommand(t, "generate", "--users", "300", plain); err != nil || !strings.Contains(out, "300 users") {
		t.Fatalf("%q, %v", out, err)
	}
	var want bytes.Buffer
	if _, err := bench.NewGraph(300, 42).WriteTo(&want); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(plain); err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("the plain file has %d bytes, want %d: %v", len(got), want.Len(), err)
	}
	if out, err := benchCommand(t, "generate", "--users", "300", "-"); err != nil || out != want.String() {
		t.Errorf("standard output has %d bytes, want %d: %v", len(out), want.Len(), err)
	}
	spread, err := benchCommand(t, "generate", "--users", "300", "--sonyflake", "-")
	if id, _, _ := strings.Cut(spread, " "); err != nil || len(id) < 17 {
		t.Errorf("--sonyflake begins with %q, %v", id, err)
	}
}
