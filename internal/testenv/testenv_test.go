package testenv_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"kith/internal/must"
	"kith/internal/testenv"
)

func TestChromiumIsAProgram(t *testing.T) {
	path := testenv.Chromium(t)
	if _, err := exec.LookPath(path); err != nil {
		t.Error(err)
	}
}

func TestLongSkipsUnlessAsked(t *testing.T) {
	for value, want := range map[string]bool{"": true, "0": true, "1": false} {
		t.Run("KITH_TEST_LONG="+value, func(t *testing.T) {
			t.Setenv("KITH_TEST_LONG", value)
			if got := outcome(t, testenv.Long) == "skipped"; got != want {
				t.Errorf("skipped: %t, want %t", got, want)
			}
		})
	}
}

func TestMissingProgramSkipsAndFailsUnderCI(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	chromium := func(t testing.TB) { testenv.Chromium(t) }
	t.Setenv("CI", "")
	if got := outcome(t, chromium); got != "skipped" {
		t.Errorf("without CI: %s", got)
	}
	t.Setenv("CI", "true")
	if got := outcome(t, chromium); got != "failed" {
		t.Errorf("with CI=true: %s", got)
	}
}

func TestDataIsFoundOrSkipped(t *testing.T) {
	t.Setenv("CI", "true") // even there the data may be missing
	dir := t.TempDir()
	t.Setenv("KITH_TEST_DATA", dir)
	const name = "expected/g.pairs.jsonl"
	if got := outcome(t, func(t testing.TB) { testenv.Data(t, name) }); got != "skipped" {
		t.Errorf("absent data: %s", got)
	}

	want := filepath.Join(dir, "expected", "g.pairs.jsonl")
	must.OK(t, os.MkdirAll(filepath.Dir(want), 0o700))
	must.OK(t, os.WriteFile(want, nil, 0o600))
	if got := testenv.Data(t, name); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestDataIsLookedForWhereItIsSaid(t *testing.T) {
	t.Setenv("KITH_TEST_DATA", "")
	if got := outcome(t, func(t testing.TB) { testenv.Data(t, "wiki-vote.txt.gz") }); got != "skipped" {
		t.Errorf("without a folder: %s", got)
	}
}

// outcome runs f with its own test, and reports how that ended: "skipped", "failed" or "passed".
func outcome(t *testing.T, f func(testing.TB)) string {
	t.Helper()
	probe := &probe{TB: t}
	done := make(chan struct{})
	go func() { // FailNow and SkipNow end their goroutine
		defer close(done)
		f(probe)
	}()
	<-done
	if probe.end == "" {
		return "passed"
	}
	if probe.reason == "" {
		t.Errorf("%s without a reason", probe.end)
	}
	return probe.end
}

// probe is used in place of a test. It records how it was ended, and why.
type probe struct {
	testing.TB
	end, reason string
}

func (p *probe) Helper() {}

func (p *probe) Skip(args ...any)                  { p.stop("skipped", fmt.Sprint(args...)) }
func (p *probe) Skipf(format string, args ...any)  { p.stop("skipped", fmt.Sprintf(format, args...)) }
func (p *probe) Fatal(args ...any)                 { p.stop("failed", fmt.Sprint(args...)) }
func (p *probe) Fatalf(format string, args ...any) { p.stop("failed", fmt.Sprintf(format, args...)) }

func (p *probe) stop(end, reason string) {
	p.end, p.reason = end, reason
	runtime.Goexit()
}
