package testenv_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
)

func TestChromiumIsAProgram(t *testing.T) {
	path := testenv.Chromium(t)
	_, err := exec.LookPath(path)
	check.That(t, err == nil, "%v", err)
}

func TestLongSkipsUnlessAsked(t *testing.T) {
	for value, want := range map[string]bool{"": true, "0": true, "1": false} {
		t.Run("KITH_TEST_LONG="+value, func(t *testing.T) {
			t.Setenv("KITH_TEST_LONG", value)
			check.Equal(t, "whether it is skipped", outcome(t, testenv.Long) == "skipped", want)
		})
	}
}

func TestMissingProgramSkipsAndFailsUnderCI(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	chromium := func(t testing.TB) { testenv.Chromium(t) }
	t.Setenv("CI", "")
	check.Equal(t, "without CI", outcome(t, chromium), "skipped")
	t.Setenv("CI", "true")
	check.Equal(t, "with CI=true", outcome(t, chromium), "failed")
}

func TestDataIsFoundOrSkipped(t *testing.T) {
	t.Setenv("CI", "true") // even there the data may be missing
	dir := t.TempDir()
	t.Setenv("KITH_TEST_DATA", dir)
	const name = "expected/g.pairs.jsonl"
	check.Equal(t, "absent data", outcome(t, func(t testing.TB) { testenv.Data(t, name) }), "skipped")

	want := filepath.Join(dir, "expected", "g.pairs.jsonl")
	must.OK(t, os.MkdirAll(filepath.Dir(want), 0o700))
	must.OK(t, os.WriteFile(want, nil, 0o600))
	check.Equal(t, "the path", testenv.Data(t, name), want)
}

func TestDataIsLookedForWhereItIsSaid(t *testing.T) {
	t.Setenv("KITH_TEST_DATA", "")
	check.Equal(t, "without a folder", outcome(t, func(t testing.TB) { testenv.Data(t, "wiki-vote.txt.gz") }), "skipped")
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
	check.That(t, probe.reason != "", "%s without a reason", probe.end)
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
