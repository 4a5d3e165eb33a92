package storagetest_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// caught says how a mistake is found.
type caught int

const (
	promiseOnly  caught = iota // its promise fails
	historiesToo               // random histories find it as well
	lostRace                   // its promise fails if a race is lost, which depends on luck
)

// A mistake is a wrong store, and what has to notice it.
type mistake struct {
	mistake string
	spoil   spoil
	broken  string // topic/promise, or topic/promise|promise
	caught  caught
}

// The suite is worth as much as it catches. Here it runs over stores that are the reference engine
// with one mistake each, and must name the broken promise. Without a mistake it passes: see the tests of package oracle.
var wrongStores = slices.Concat(
	readMistakes, writeMistakes, changeMistakes, blockMistakes, requestMistakes, reconcileMistakes, bundleMistakes, snapshotMistakes,
	accountMistakes, identityMistakes, stateMistakes, moderationMistakes, suggestionMistakes, listMistakes,
	sideMistakes, besideMistakes, attributeMistakes, relationMistakes, postMistakes, postRowMistakes, favoriteMistakes,
	checkpointMistakes, shardReaderMistakes, slipMistakes,
)

// wrongStore tells a child process which mistake to make.
const wrongStore = "STORAGETEST_MISTAKE"

// TestWrongStoresFail runs TestWrongStore once for each mistake. Each run needs a process of its own,
// because a test cannot fail without failing its parents.
func TestWrongStoresFail(t *testing.T) {
	for _, m := range wrongStores {
		t.Run(m.mistake, func(t *testing.T) {
			t.Parallel()
			// The promise alone, and the random histories only if they have to find the mistake.
			topic, promise, _ := strings.Cut(m.broken, "/")
			tests := fmt.Sprintf("^TestWrongStore$/^%s$/^(%s)$", topic, promise)
			if m.caught == historiesToo {
				tests = fmt.Sprintf("^TestWrongStore$/^(%s|histories)$/^(%s|Any.*)$", topic, promise)
			}
			failed, output := runChild(t, m.mistake, tests)
			for try := 1; m.caught == lostRace && !failsAt(m.broken, output) && try < 200; try++ {
				failed, output = runChild(t, m.mistake, tests)
			}
			must.That(t, failed, "the suite passes:\n%s", output)
			for broken := range strings.SplitSeq(promise, "|") {
				check.That(t, failsAt(topic+"/"+broken, output), "%s/%s did not fail:\n%s", topic, broken, output)
			}
			check.That(t, m.caught != historiesToo || failsAt("histories/", output), "random histories did not come across it")
		})
	}
}

// failsAt reports whether a promise failed.
func failsAt(promise, output string) bool {
	if !strings.HasSuffix(promise, "/") {
		promise += " " // so that the whole name is compared
	}
	return strings.Contains(output, "--- FAIL: TestWrongStore/"+promise)
}

// TestWrongStore is the suite over one wrong store, in a child process.
func TestWrongStore(t *testing.T) {
	name, ok := os.LookupEnv(wrongStore)
	if !ok {
		t.Skip("runs in processes that TestWrongStoresFail starts")
	}
	for _, m := range wrongStores {
		if m.mistake == name {
			storagetest.Run(t, func(*testing.T) storage.Store { return spoiled(oracle.New(), m.spoil) })
			return
		}
	}
	t.Fatalf("no store with the mistake %q", name)
}

// runChild runs some of this binary's tests and reports whether they failed. If the process ends
// in any other way than with success or failed tests, the calling test ends.
func runChild(t *testing.T, mistake, tests string) (failed bool, output string) {
	t.Helper()
	self, err := os.Executable()
	must.OK(t, err)
	child := exec.CommandContext(t.Context(), self, "-test.run="+tests, "-test.timeout=2m",
		"-rapid.seed=1", "-rapid.checks=30", "-rapid.nofailfile", "-rapid.shrinktime=0s")
	// A lost race needs two goroutines that run at the same time, also on one processor.
	child.Env = append(os.Environ(), wrongStore+"="+mistake, fmt.Sprintf("GOMAXPROCS=%d", max(4, runtime.GOMAXPROCS(0))))
	text, err := child.CombinedOutput()
	var exit *exec.ExitError
	must.That(t, err == nil || errors.As(err, &exit) && exit.ExitCode() == 1, "child: %v\n%s", err, text)
	must.That(t, !strings.Contains(string(text), "no tests to run"), "child ran nothing for %s", tests)
	return err != nil, string(text)
}
