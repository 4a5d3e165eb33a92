// Package sim runs a deployment in one process on virtual time: gateways as the program makes them, over shards, a Redis and a network that
// fail by a schedule. One seed gives one schedule. What is checked is what docs/reference/guarantees.md says.
package sim

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kith/internal/testenv"
)

// TestMain has what happens at one moment of a bubble happen in the same order each time: on one processor, and without interrupting
// goroutines or collecting garbage in between.
func TestMain(m *testing.M) {
	const uninterrupted = "asyncpreemptoff=1"
	if !strings.Contains(os.Getenv("GODEBUG"), uninterrupted) {
		again := exec.Command(os.Args[0], os.Args[1:]...)
		again.Env, again.Stdout, again.Stderr = append(os.Environ(), "GODEBUG="+uninterrupted), os.Stdout, os.Stderr
		_ = again.Run() // it has said why
		os.Exit(again.ProcessState.ExitCode())
	}
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// stepsOf is how many steps a schedule has.
const stepsOf = 300

// TestGuarantees runs schedules for some seconds, for an hour with the long tests, or for KITH_SIM_FOR, from the seed KITH_SIM_SEED on.
func TestGuarantees(t *testing.T) {
	lasts, seed := 10*time.Second, uint64(1)
	if testenv.AllTests() {
		lasts = time.Hour
	}
	if text := os.Getenv("KITH_SIM_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	if text := os.Getenv("KITH_SIM_FOR"); text != "" {
		lasts, _ = time.ParseDuration(text)
	}
	began, steps, simulated := time.Now(), 0, time.Duration(0)
	first := seed
	for ; time.Since(began) < lasts; seed++ {
		all := schedule(seed, stepsOf)
		w := run(t, seed, all)
		steps, simulated = steps+w.steps, simulated+w.simulated
		if len(w.failures) > 0 {
			report(t, seed, all, w.failures[0])
			break
		}
	}
	t.Logf("%d seeds from %d, %d steps, %s simulated in %s", seed-first, first, steps, simulated, time.Since(began))
}

// report tells the shortest schedule that fails in the same way.
func report(t *testing.T, seed uint64, steps []step, failed failure) {
	same := func(steps []step) bool {
		for _, f := range run(t, seed, steps).failures {
			if f.property == failed.property {
				return true
			}
		}
		return false
	}
	if os.Getenv("KITH_SIM_WHOLE") == "" { // it takes some times as long as finding it
		steps = shortest(steps, same)
	}
	var text strings.Builder
	for _, s := range steps {
		fmt.Fprintln(&text, s)
	}
	for _, f := range run(t, seed, steps).failures {
		fmt.Fprintf(&text, "%s: %s\n", f.property, f.text)
	}
	t.Errorf("seed %d: %q does not hold: %s\nThe shortest schedule that fails:\n%s", seed, failed.property, failed.text, text.String())
}

// TestOneSeedIsOneHistory runs seeds until a history has come twice, or four times. What Go draws, such as the order of a map, puts
// two things of one moment into another order: in most histories once, in those of these seeds seldom. All histories of one of them may differ.
func TestOneSeedIsOneHistory(t *testing.T) {
	others := 0
	for _, seed := range []uint64{0, 3, 5} {
		steps, known, again := schedule(seed, stepsOf), map[string]bool{}, false
		for runs := 0; runs < 4 && !again; runs++ {
			trace := run(t, seed, steps).trace
			if len(trace) < stepsOf/2 {
				t.Fatalf("seed %d has %d lines", seed, len(trace))
			}
			slices.Sort(trace) // what happens at the same moment is in no order
			history := strings.Join(trace, "\n")
			again, known[history] = known[history], true
		}
		if !again {
			others++
		}
	}
	if others > 1 {
		t.Errorf("%d of 3 seeds have another history each time", others)
	}
}
