package sqlstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/sqlstore"
)

// pausedEnv says what a process is to do (move, copy or abort) with which buckets, and before which step it stops itself.
const pausedEnv = "KITH_TEST_PAUSED"

// TestPausedMover is not a test by itself: it is the process that stops itself (SIGSTOP) in the tests below.
func TestPausedMover(t *testing.T) {
	var what, step string
	var plan sqlstore.Move
	if n, _ := fmt.Sscanf(os.Getenv(pausedEnv), "%s %d %d %d %d %q", &what, &plan.From, &plan.To, &plan.Buckets.First, &plan.Buckets.Last, &step); n != 6 {
		t.Skip("runs in processes that other tests start")
	}
	s := open(t, os.Getenv("KITH_TEST_LOCATION"))
	paused, woken := false, make(chan os.Signal, 1)
	signal.Notify(woken, syscall.SIGCONT)
	pause := func(at string) {
		if at == step && !paused {
			paused = true
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			<-woken // threads run on for a moment
		}
	}
	cfg := sqlstore.MoveConfig{
		Token: fmt.Sprint(os.Getpid()), Keep: time.Millisecond, Page: 20, Step: pause,
		OnProgress: func(p sqlstore.MoveProgress) { pause(progressOf(p)) },
	}
	var err error
	switch what {
	case "move":
		_, err = s.Move(t.Context(), plan, cfg)
	case "copy":
		_, err = s.CopyTo(t.Context(), open(t, "sqlite:"+filepath.Join(t.TempDir(), "copy.db")), cfg)
	case "abort":
		err = s.AbortMove(t.Context(), plan, cfg)
	}
	fmt.Println("ended:", err)
}

// progressOf names a phase, and whether it has come to any rows.
func progressOf(p sqlstore.MoveProgress) string {
	return fmt.Sprint(p.Phase, map[bool]string{false: " none", true: " some"}[p.Rows > 0])
}

// pausedProcess starts a process that moves or aborts, and returns once it has stopped itself. wake lets it go on, and returns
// how it ended.
func (g *grower) pausedProcess(what string, plan sqlstore.Move, step string) (wake func() string) {
	g.t.Helper()
	c := exec.CommandContext(g.t.Context(), os.Args[0], "-test.run=^TestPausedMover$", "-test.v")
	c.Env = append(os.Environ(), "KITH_TEST_LOCATION="+g.location, fmt.Sprintf("%s=%s %d %d %d %d %q", pausedEnv, what, plan.From, plan.To, plan.Buckets.First, plan.Buckets.Last, step))
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	must.OK(g.t, c.Start())
	var status syscall.WaitStatus
	_, err := syscall.Wait4(c.Process.Pid, &status, syscall.WUNTRACED, nil)
	// What it has written is read only if it did not stop: it may still write.
	must.That(g.t, err == nil && status.Stopped(), "%s did not stop before %q: %v\n%s", what, step, err, &out)
	return func() string { // also called by goroutines of a mover, which a Fatal would let wait for ever
		g.t.Helper()
		err := errors.Join(c.Process.Signal(syscall.SIGCONT), c.Wait())
		check.That(g.t, err == nil, "%v\n%s", err, &out)
		_, end, _ := strings.Cut(out.String(), "ended: ")
		end, _, _ = strings.Cut(end, "\n")
		g.t.Logf("%s, paused before %q, ended with: %s", what, step, end)
		return end
	}
}

// moveAfter carries a plan out, and calls f before one of the steps, or at the first progress in one of the phases.
func (g *grower) moveAfter(plan sqlstore.Move, token, step string, f func()) {
	g.t.Helper()
	reached := func(at string) {
		if at == step {
			f()
			f = func() {}
		}
	}
	report, err := g.mover.Move(g.t.Context(), plan, sqlstore.MoveConfig{
		Token: token, Keep: time.Millisecond, Page: 20, Step: reached, OnProgress: func(p sqlstore.MoveProgress) { reached(progressOf(p)) },
	})
	must.That(g.t, err == nil && report.Repaired == 0, "%+v, %v", report, err)
}

func (g *grower) abort(plan sqlstore.Move) {
	g.t.Helper()
	must.OK(g.t, g.mover.AbortMove(g.t.Context(), plan, sqlstore.MoveConfig{Token: "abort"}))
}

// A process that takes a move back is stopped before it removes what has been copied. Another one takes the move back, and
// begins it anew. The first one, once it goes on, removes nothing of that.
func TestAStoppedAbortLeavesALaterMoveAlone(t *testing.T) {
	t.Parallel()
	grow(t, 200, func(g *grower) {
		g.preload(4)
		to, err := g.mover.AddShard(g.t.Context(), g.add)
		must.OK(g.t, err)
		plan := half(0, to)
		g.moveInAnotherProcess(0, to, "compare")
		wake := g.pausedProcess("abort", plan, "removing none")
		g.abort(plan)
		g.moveAfter(plan, "later", "decide", func() { // what has been copied is not looked at again
			check.That(g.t, wake() != "<nil>", "the stopped one says that it has taken the move back")
		})
		g.checkRows()
	})
}

// The same, if it is stopped before it gives the buckets back, and the other one goes on with the move.
func TestAStoppedAbortDoesNotGiveBucketsBack(t *testing.T) {
	t.Parallel()
	grow(t, 60, func(g *grower) {
		g.preload(4)
		to, err := g.mover.AddShard(g.t.Context(), g.add)
		must.OK(g.t, err)
		plan := half(0, to)
		g.moveInAnotherProcess(0, to, "compare")
		wake := g.pausedProcess("abort", plan, "give back")
		g.moveAfter(plan, "later", "compare", func() {
			check.That(g.t, wake() != "<nil>", "the stopped one says that it has taken the move back")
			moves := g.mover.Moves()
			check.That(g.t, len(moves) == 1 && moves[0] == plan, "being moved: %v", moves)
		})
		g.checkRows()
	})
}

// A mover is stopped before the old shard records that buckets leave. Another process takes the move back. The first one, once
// it goes on, does not let the buckets leave for a shard that does not await them.
func TestAStoppedMoverLeavesNoBucketsLeaving(t *testing.T) {
	t.Parallel()
	grow(t, 60, func(g *grower) {
		to, err := g.mover.AddShard(g.t.Context(), g.add)
		must.OK(g.t, err)
		plan := half(0, to)
		wake := g.pausedProcess("move", plan, "leave")
		g.abort(plan)
		check.That(g.t, wake() != "<nil>", "the stopped one says that it has moved the buckets")
		left := g.owners(g.mover.Addresses()[0], "SELECT state FROM kith_buckets WHERE state <> 0")
		check.That(g.t, len(left) == 0, "claims are in the states %v", left)
	})
}

// A mover is stopped while it copies. Its move is taken back, and one of other buckets begins. The first one, once it goes on,
// does not remove notes of what has been written to these.
func TestAStoppedMoverRemovesNoNotesOfOthers(t *testing.T) {
	t.Parallel()
	grow(t, 200, func(g *grower) {
		g.preload(4)
		t, ctx := g.t, g.t.Context()
		to, err := g.mover.AddShard(ctx, g.add)
		must.OK(t, err)
		first := sqlstore.Move{Buckets: storage.BucketRange{First: 0, Last: 511}, From: 0, To: to}
		wake := g.pausedProcess("move", first, "copying some")
		g.abort(first)
		user := storage.UserID(1)
		for !half(0, to).Buckets.Contains(user.Bucket()) {
			user++
		}
		bio := "written while the buckets move"
		g.moveAfter(half(0, to), "later", "close", func() {
			_, _, err := g.mover.UpdateProfile(ctx, user, storage.ProfileChange{Bio: &bio}, storage.MicrosOf(time.Now()))
			must.OK(t, err)
			wake()
		})
		r := storage.UserLookups.Read(ctx, g.mover, user)[0]
		check.That(t, r.Err == nil && r.Value.Bio == bio, "an acknowledged write is lost: %+v", r)
	})
}

// The same, for copies to another store.
func TestAStoppedCopierRemovesNoNotesOfOthers(t *testing.T) {
	t.Parallel()
	grow(t, 200, func(g *grower) {
		t, ctx := g.t, g.t.Context()
		wake := g.pausedProcess("copy", sqlstore.Move{}, "copying some")
		must.OK(t, g.mover.AbortCopy(ctx))
		bio := "written while the store is copied"
		copied := open(t, sqlite(t, 1))
		once := sync.OnceFunc(func() { // the shards are closed once more if this takes too long
			_, _, err := g.mover.UpdateProfile(ctx, 1, storage.ProfileChange{Bio: &bio}, storage.MicrosOf(time.Now()))
			check.That(t, err == nil, "%v", err)
			wake()
		})
		_, err := g.mover.CopyTo(ctx, copied, sqlstore.MoveConfig{Token: "later", Step: func(at string) {
			if at == "close 0" {
				once()
			}
		}})
		must.OK(t, err)
		r := storage.UserLookups.Read(ctx, copied, 1)[0]
		check.That(t, r.Err == nil && r.Value.Bio == bio, "an acknowledged write is lost: %+v", r)
	})
}

// A mover is stopped before it removes the rows of a move that is decided. The buckets come back and leave again meanwhile. The
// first one, once it goes on, does not take the removal from the last mover.
func TestAStoppedRemoverEndsNoLaterMove(t *testing.T) {
	t.Parallel()
	grow(t, 60, func(g *grower) {
		g.preload(4)
		to, err := g.mover.AddShard(g.t.Context(), g.add)
		must.OK(g.t, err)
		plan := half(0, to)
		wake := g.pausedProcess("move", plan, "removing some")
		g.moveAfter(plan, "a", "", nil)
		g.moveAfter(half(to, 0), "b", "", nil)
		g.moveAfter(plan, "c", "remove", func() {
			check.That(g.t, wake() != "<nil>", "the stopped one says that it has removed the rows")
		})
		g.checkRows()
	})
}

// A mover is stopped before it closes the buckets. Its move is taken back, and begun anew. The first one, once it goes on, does
// not close, decide and open what has been copied in part.
func TestAStoppedMoverClosesNoLaterMove(t *testing.T) {
	t.Parallel()
	stoppedMover(t, "close", func(g *grower, plan sqlstore.Move) { g.abort(plan) })
}

// A mover is stopped before it opens the buckets. Another one does, the buckets come back, and leave again. The first one, once
// it goes on, does not open them while they are being copied.
func TestAStoppedMoverOpensNoLaterMove(t *testing.T) {
	t.Parallel()
	stoppedMover(t, "open", func(g *grower, plan sqlstore.Move) {
		g.moveAfter(plan, "a", "", nil)
		g.moveAfter(half(plan.To, plan.From), "b", "", nil)
	})
}

// stoppedMover stops a mover before a step, lets others move meanwhile, and lets it go on once a later move has copied some rows.
func stoppedMover(t *testing.T, step string, meanwhile func(*grower, sqlstore.Move)) {
	grow(t, 200, func(g *grower) {
		g.preload(4)
		to, err := g.mover.AddShard(g.t.Context(), g.add)
		must.OK(g.t, err)
		plan := half(0, to)
		wake := g.pausedProcess("move", plan, step)
		meanwhile(g, plan)
		g.moveAfter(plan, "later", "copying some", func() {
			check.That(g.t, wake() != "<nil>", "the stopped one says that it has moved the buckets")
		})
		g.checkRows()
	})
}

// Buckets that leave for a shard that does not await them, as one that has been restored, are shown, and either command ends that.
func TestBucketsThatLeaveForNobodyAreShown(t *testing.T) {
	t.Parallel()
	grow(t, 60, func(g *grower) {
		g.preload(4)
		t, ctx := g.t, g.t.Context()
		to, err := g.mover.AddShard(ctx, g.add)
		must.OK(t, err)
		plan := half(0, to)
		for name, end := range map[string]func(){
			"abort":  func() { g.abort(plan) },
			"resume": func() { g.moveAfter(plan, "later", "", nil); g.moveAfter(half(to, 0), "back", "", nil) },
		} {
			g.moveInAnotherProcess(0, to, "compare")
			execOn(t, g.mover.Addresses()[to], "DELETE FROM kith_buckets")
			must.OK(t, g.mover.Refresh(ctx))
			moves := g.mover.Moves()
			must.That(t, len(moves) == 1 && moves[0] == plan, "shown are %v, want %v", moves, plan)
			end()
			moves = g.mover.Moves()
			check.That(t, len(moves) == 0, "after %s: %v", name, moves)
			g.checkRows()
		}
	})
}
