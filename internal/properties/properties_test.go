package properties

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kith/internal/check"
	"kith/internal/must"
)

func TestAsManyCasesRunAsAreAskedFor(t *testing.T) {
	if isGiven("rapid.checks") {
		t.Skip("-rapid.checks asks for another number")
	}
	for _, c := range []struct {
		long        string
		cases, want int
	}{{"1", 1, 1}, {"1", 7, 7}, {"", 1, 1}, {"", 7, 2}} {
		t.Setenv("KITH_TEST_LONG", c.long)
		ran := 0
		Check(t, c.cases, func(t *rapid.T) {
			if rapid.IntRange(0, 3).Draw(t, "n") == 0 {
				t.Skip("one in four is no case")
			}
			ran++
		})
		check.That(t, ran == c.want, "%d cases of %d, want %d", ran, c.cases, c.want)
	}
}

// TestTheTimeOfAPropertyIsBounded: when the time is up, a property has had a few cases.
func TestTheTimeOfAPropertyIsBounded(t *testing.T) {
	for left, want := range map[time.Duration]int{-time.Second: few, time.Hour: 50} {
		ran := 0
		rapid.Check(t, atMost(50, time.Now().Add(left), func(*rapid.T) { ran++ }))
		check.That(t, ran == want, "with %v left, %d cases ran, want %d", left, ran, want)
	}
}

// TestTheCommandLineAsksForMore runs properties in separate processes. The command line can set
// more cases, and a property that fails is shrunk beyond the number of cases.
func TestTheCommandLineAsksForMore(t *testing.T) {
	if _, ok := os.LookupEnv("PROPERTIES_CHILD"); ok {
		ran := 0
		Check(t, 5, func(*rapid.T) { ran++ })
		t.Logf("ran %d", ran)
		Check(t, 5, func(t *rapid.T) {
			n := rapid.IntRange(0, 1_000_000).Draw(t, "n")
			must.That(t, n < 10, "failed at %d", n)
		})
		return
	}
	self, err := os.Executable()
	must.OK(t, err)
	for args, want := range map[string]string{"-rapid.checks=12": "ran 12\n", "-rapid.steps=30": "ran 5\n"} {
		child := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.v", "-rapid.nofailfile", args)
		child.Env = append(os.Environ(), "PROPERTIES_CHILD=1", "KITH_TEST_LONG=1")
		text, err := child.CombinedOutput()
		if err == nil || !strings.Contains(string(text), want) || !strings.Contains(string(text), "failed at 10\n") {
			t.Errorf("%s: %v, want %q and the smallest failure:\n%s", args, err, want, text)
		}
	}
}
