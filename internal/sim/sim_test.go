// Package sim runs a deployment in one process on virtual time: gateways as the program makes them, over shards, a Redis and a network that
// fail by a schedule. One seed gives one schedule. What is checked is what docs/reference/guarantees.md says.
package sim

import (
	"errors"
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

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
)

// TestMain has what happens at one moment of a bubble happen in the same order each time: on one processor, and without interrupting
// goroutines or collecting garbage in between.
func TestMain(m *testing.M) {
	const uninterrupted = "asyncpreemptoff=1"
	if !strings.Contains(os.Getenv("GODEBUG"), uninterrupted) {
		code := -1
		for tries := 0; code < 0 && tries < 3; tries++ {
			code = inAnother("GODEBUG=" + uninterrupted)
		}
		os.Exit(code)
	}
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// beat tells the parent of this process that it goes on: that it begins another run.
func beat() { _, _ = beats.Write([]byte{0}) }

var beats = os.NewFile(3, "beats")

// standstill is how long the process may be in one run. One in some thousands stands still: a queue of otter's spins while another goroutine,
// which gets no turn here, makes it longer. Where goroutines are interrupted, it does.
const standstill = 90 * time.Second

// inAnother runs the tests in another process. If one stands still, it ends it, and returns −1.
func inAnother(env string) (code int) {
	read, write, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	again := exec.Command(os.Args[0], os.Args[1:]...)
	again.Env, again.Stdout, again.Stderr, again.ExtraFiles = append(os.Environ(), env), os.Stdout, os.Stderr, []*os.File{write}
	if err := again.Start(); err != nil {
		panic(err)
	}
	_ = write.Close()
	for err == nil {
		_, err = read.Read(make([]byte, 1))
		_ = read.SetReadDeadline(time.Now().Add(standstill))
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		fmt.Fprintln(os.Stderr, "the simulator stands still: it is run again")
		_ = again.Process.Kill()
	}
	_ = again.Wait() // it has said why
	return again.ProcessState.ExitCode()
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
		beat()
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
		beat()
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

// TestOneSeedIsOneHistory runs seeds twice. Of the first ten, eight or nine have the same history again; without drawFrom, three. What still
// differs is the order of what happens at one moment: it also depends on caches of Go's that belong to the process.
func TestOneSeedIsOneHistory(t *testing.T) {
	must.That(t, drawsAt != 0, "runtime.m is not as drawFrom needs it")
	const seeds = 6
	var others []uint64
	for seed := range uint64(seeds) {
		beat()
		steps := schedule(seed, stepsOf)
		first, again := run(t, seed, steps).trace, run(t, seed, steps).trace
		must.That(t, len(first) >= stepsOf/2, "seed %d has %d lines", seed, len(first))
		slices.Sort(first) // what happens at the same moment is in no order
		slices.Sort(again)
		if !slices.Equal(first, again) {
			others = append(others, seed)
		}
	}
	t.Logf("of %d seeds, %v have another history the second time", seeds, others)
	check.That(t, len(others) <= seeds/2, "of %d seeds, %v have another history the second time", seeds, others)
}
