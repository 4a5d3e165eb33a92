package sqlstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

// moverEnv says what a process is to move, and before which step it is to die.
const moverEnv = "KITH_TEST_MOVER"

// TestMover is not a test by itself: it is the process that moves in [TestMoversAreKilled].
func TestMover(t *testing.T) {
	var from, to int
	var step string
	if n, _ := fmt.Sscanf(os.Getenv(moverEnv), "%d %d %q", &from, &to, &step); n != 3 {
		t.Skip("runs in processes that TestMoversAreKilled starts")
	}
	s := open(t, os.Getenv("KITH_TEST_LOCATION"))
	_, err := s.Move(t.Context(), half(from, to), sqlstore.MoveConfig{
		Token: fmt.Sprint(os.Getpid()), Keep: 1500 * time.Millisecond,
		Step: dieBefore(step),
	})
	must.OK(t, err)
}

func half(from, to int) sqlstore.Move {
	return sqlstore.Move{Buckets: storage.BucketRange{First: 512, Last: 1023}, From: from, To: to}
}

// steps are the names of a move's steps. A move reports a name before it runs the step.
var steps = []string{
	"begin", "leave", "copy users", "copy user_counts", "copy user_states", "copy moderation_log", "copy handles", "copy identities", "copy following", "copy follower", "copy friend_request",
	"copy friend_request_inbox", "copy edge_marks", "copy post", "copy post_counts", "copy comment", "compare", "close", "last rows", "decide", "wait", "open", "keep", "remove",
}

// Movers die by kill -9 before each step, and all writers continue. The next mover finishes what the one
// before has begun, and nothing that was acknowledged is lost.
func TestMoversAreKilled(t *testing.T) {
	t.Parallel()
	grow(t, 200, func(g *grower) {
		t, ctx := g.t, g.t.Context()
		if strings.HasPrefix(g.location, "sqlite:") {
			testenv.Long(t) // TestBucketsMoveUnderLoad moves buckets of a store
		}
		_, err := g.mover.AddShard(ctx, g.add)
		must.OK(t, err)
		writing, stop := context.WithCancel(ctx)
		writers := g.write(writing, 2)
		defer writers.Wait()
		defer stop()
		// The steps around the decision always, and some others. The long fault tests take all steps.
		chosen := slices.Clone(steps)
		if os.Getenv("KITH_TEST_LONG") != "1" {
			rand.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
			chosen = append(chosen[:1], "last rows", "wait")
		}
		from, to := 0, 1
		for _, step := range chosen {
			g.moveInAnotherProcess(from, to, step)
			g.goOn(100) // although no mover is running
			g.moveInAnotherProcess(from, to, "")
			from, to = to, from
		}
		stop()
		writers.Wait()
		g.check()
		left := g.mover.Moves()
		check.That(t, len(left) == 0, "moves are left: %v", left)
		t.Logf("movers died before %q; %d writes, the slowest took %d ms", chosen, g.writes.Load(), g.slowest.Load())
	})
}

// moveInAnotherProcess moves half of the buckets in a process that dies before a step, or in none.
func (g *grower) moveInAnotherProcess(from, to int, step string) {
	g.t.Helper()
	inAnotherProcess(g.t, "TestMover", step != "", fmt.Sprintf("%s=%d %d %q", moverEnv, from, to, step), "KITH_TEST_LOCATION="+g.location)
}

// inAnotherProcess runs a test in a process of its own, which kills itself if dies is set, and returns
// the output of the process.
func inAnotherProcess(t *testing.T, test string, dies bool, env ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$", "-test.v")
	c.Env = append(os.Environ(), env...)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	var exit *exec.ExitError
	killed := errors.As(err, &exit) && exit.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
	must.That(t, killed == dies && (err == nil || killed), "%s with %q: %v\n%s", test, env, err, out.String())
	return out.String()
}

// dieBefore prints each step, and kills the process before one.
func dieBefore(step string) func(string) {
	return func(name string) {
		fmt.Println("step:", name)
		if name == step {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
}
