package faults_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/reconcile"
	"kith/storage"
)

// checker is a command `kith reconcile …`, run as an operator runs it. It is killed as a crash
// kills it (kill -9), at random moments.
type checker struct {
	*graph
	random *rand.Rand
	kills  int
}

func (g *graph) checker(t testing.TB) *checker {
	t.Helper()
	return &checker{graph: g, random: rand.New(rand.NewPCG(seedOf(t), 6))}
}

func (c *checker) start(t testing.TB, args ...string) *kithtest.Command {
	t.Helper()
	args = append([]string{"reconcile"}, args...)
	return kithtest.Launch(t, kithtest.Args(append(args, "--store", c.location(), "--log-level", "warn")...))
}

// toItsEnd runs a command that nobody kills, and checks its exit code.
func (c *checker) toItsEnd(t testing.TB, code int, args ...string) kithtest.End {
	t.Helper()
	command := c.start(t, args...)
	if !command.EndsWithin(10 * time.Minute) {
		t.Fatalf("%v does not come to its end; it says %s", args, command.Stderr())
	}
	end := command.Wait(t)
	must.That(t, end.Code == code, "%v ended with code %d, not %d: %s\n%s", args, end.Code, code, end.Stderr, end.Stdout)
	return end
}

// oneLife starts a command and kills it after a random part of a span. If seen is given, it kills
// the command as soon as seen reports some work. The command may end by itself before.
func (c *checker) oneLife(t testing.TB, span time.Duration, seen func() bool, args ...string) {
	t.Helper()
	command := c.start(t, args...)
	until := time.Now().Add(time.Duration(c.random.Int64N(int64(span))))
	if seen != nil {
		until = time.Now().Add(patience)
	}
	for time.Now().Before(until) && (seen == nil || !seen()) {
		wait := time.Until(until)
		if seen != nil {
			wait = 2 * time.Millisecond
		}
		if command.EndsWithin(wait) {
			return
		}
	}
	if command.Kill(t).Code < 0 { // it may have ended by itself before
		c.kills++
	}
}

// manyLives starts a command until it has been killed a number of times, at random moments. If seen
// is given, every other one is killed as soon as it is seen at work. Lives that end by themselves
// do not count.
func (c *checker) manyLives(t testing.TB, lives int, span time.Duration, seen func() func() bool, args ...string) {
	t.Helper()
	for life, tries := c.kills, 0; c.kills < life+lives; tries++ {
		must.Most(t, fmt.Sprintf("tries of %v", args), tries, 5*lives)
		var look func() bool
		if seen != nil {
			if now := seen(); tries%2 == 1 {
				look = now
			}
		}
		c.oneLife(t, span, look, args...)
	}
}

// reportOf reads the report of a checker with --output=json, as far as both commands report the same.
func reportOf(t testing.TB, end kithtest.End) (r reconcile.Report) {
	t.Helper()
	var printed struct {
		Resumed   bool
		Found     map[reconcile.Kind]int
		Repaired  map[reconcile.Kind]int
		Unsettled int
		Findings  []struct {
			Kind     reconcile.Kind
			From, To storage.UserID `json:",string"`
			User     storage.UserID `json:",string"`
			Table    string
		}
	}
	must.OK(t, json.Unmarshal([]byte(end.Stdout), &printed))
	r = reconcile.Report{Resumed: printed.Resumed, Found: printed.Found, Repaired: printed.Repaired, Unsettled: printed.Unsettled}
	for _, f := range printed.Findings {
		found := reconcile.Finding{Kind: f.Kind, Forward: storage.Edge{From: f.From, To: f.To}, User: f.User}
		if f.Table == storage.Inverse.String() {
			found.Side = storage.Inverse
		}
		r.Findings = append(r.Findings, found)
	}
	return r
}
