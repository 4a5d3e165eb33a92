package db_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// groups is a group commit whose groups end when the test lets them.
type groups struct {
	db.GroupCommit[storage.UserID]
	running chan []storage.UserID // each group as it begins
	end     chan struct{}
	calls   sync.WaitGroup
}

// do lets a user write to itself and to others.
func (g *groups) do(t *testing.T, user storage.UserID, others ...storage.UserID) {
	t.Helper()
	g.calls.Go(func() {
		err := g.Do(context.Background(), 0, append(others, user), user, g.write)
		check.That(t, err == nil, "%v", err)
	})
}

// write is a group that runs.
func (g *groups) write(_ context.Context, jobs []storage.UserID) {
	g.running <- slices.Sorted(slices.Values(jobs))
	<-g.end
}

// waits returns once n calls wait.
func (g *groups) waits(t *testing.T, n int) {
	t.Helper()
	must.Soon(t, fmt.Sprint(n, " wait"), func() bool { waiting, _ := g.Waiting(0); return waiting == n })
}

// ends returns once nothing waits and no group is served. A group still counts as served when its calls return.
func (g *groups) ends(t *testing.T) {
	t.Helper()
	must.Soon(t, "nobody waits or is served", func() bool { waiting, serving := g.Waiting(0); return waiting+serving == 0 })
}

func (g *groups) wantGroup(t *testing.T, want ...storage.UserID) {
	t.Helper()
	check.Equal(t, "users who share a transaction", <-g.running, want)
}

func TestStrangersShareATransactionIfNoneIsFree(t *testing.T) {
	g := &groups{GroupCommit: db.GroupCommit[storage.UserID]{AtOnce: 2}, running: make(chan []storage.UserID, 8), end: make(chan struct{})}
	g.do(t, 1)
	g.wantGroup(t, 1)
	g.do(t, 2)
	g.wantGroup(t, 2)
	for i, user := range []storage.UserID{3, 4, 5} {
		g.do(t, user)
		g.waits(t, i+1)
	}
	g.end <- struct{}{}
	g.wantGroup(t, 3, 4, 5)
	close(g.end)
	g.calls.Wait()
	g.ends(t)
}

func TestAnAccountIsWrittenToByOneTransactionAtATime(t *testing.T) {
	const famous = 9
	g := &groups{GroupCommit: db.GroupCommit[storage.UserID]{AtOnce: 2}, running: make(chan []storage.UserID, 8), end: make(chan struct{})}
	g.do(t, 1, famous)
	g.wantGroup(t, 1)
	g.do(t, 2, famous) // it waits, although another group could run
	g.waits(t, 1)
	g.do(t, 3) // a user who shares no account does not wait
	g.wantGroup(t, 3)
	g.do(t, 4)
	g.waits(t, 2)
	g.do(t, 5, famous)
	g.waits(t, 3)
	g.end <- struct{}{} // either of the two that are running
	if got := <-g.running; !slices.Equal(got, []storage.UserID{4}) && !slices.Equal(got, []storage.UserID{2, 4, 5}) {
		t.Errorf("users %v share a transaction: some of those of the famous one, while another is under way", got)
	}
	close(g.end)
	g.calls.Wait()
}

// TestTheOldestWriteIsNotPassed: a write of two popular accounts would hardly ever find both free at once. Neither writes that come later
// nor others that wait take one of them while the other is being written to.
func TestTheOldestWriteIsNotPassed(t *testing.T) {
	const famous, popular = 9, 8
	g := &groups{GroupCommit: db.GroupCommit[storage.UserID]{AtOnce: 2}, running: make(chan []storage.UserID, 8), end: make(chan struct{})}
	g.do(t, 1, famous)
	g.wantGroup(t, 1)
	g.do(t, 2, famous, popular)
	g.waits(t, 1)
	g.do(t, 3, popular)
	g.waits(t, 2)
	g.do(t, 4) // a stranger goes on
	g.wantGroup(t, 4)
	g.end <- struct{}{} // either of the two that are running
	g.end <- struct{}{}
	g.wantGroup(t, 2, 3)
	g.end <- struct{}{}
	g.ends(t)

	g.do(t, 1, famous)
	g.wantGroup(t, 1)
	g.do(t, 2, popular)
	g.wantGroup(t, 2)
	for i, accounts := range [][]storage.UserID{{famous, popular}, {famous}, {popular}} {
		g.do(t, storage.UserID(3+i), accounts...)
		g.waits(t, 1+i)
	}
	g.end <- struct{}{}
	g.end <- struct{}{}
	g.wantGroup(t, 3, 4, 5)
	close(g.end)
	g.calls.Wait()
	g.ends(t)
}

// Popular is kept for the write that is given up: neither who waits behind it nor who comes later waits for the other group.
func TestAWriteThatWasGivenUpHoldsNobodyUp(t *testing.T) {
	const famous, popular = 9, 8
	for _, behind := range []bool{false, true} {
		g := &groups{GroupCommit: db.GroupCommit[storage.UserID]{AtOnce: 2}, running: make(chan []storage.UserID, 8), end: make(chan struct{})}
		g.do(t, 1, famous)
		g.wantGroup(t, 1)
		ctx, giveUp := context.WithCancelCause(t.Context())
		gaveUp := make(chan error)
		go func() { gaveUp <- g.Do(ctx, 0, []storage.UserID{famous, popular}, 2, g.write) }()
		g.waits(t, 1)
		if behind {
			g.do(t, 3, popular)
			g.waits(t, 2)
		}
		giveUp(errors.New("gave up"))
		err := <-gaveUp
		check.That(t, err != nil && err.Error() == "gave up", "%v", err)
		if !behind {
			g.do(t, 3, popular)
		}
		g.wantGroup(t, 3)
		close(g.end)
		g.calls.Wait()
		g.ends(t)
	}
}

// TestFewWaitForAShardThatStalls: while no group ends, as many writes wait as one group takes, and others fail at once.
func TestFewWaitForAShardThatStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &groups{GroupCommit: db.GroupCommit[storage.UserID]{AtOnce: 1}, running: make(chan []storage.UserID, 200), end: make(chan struct{})}
		for user := range storage.UserID(101) { // one that is served, a hundred that wait
			g.do(t, 1+user)
			synctest.Wait()
		}
		refused := func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := g.Do(ctx, 0, []storage.UserID{1000}, 1000, g.write)
			check.That(t, errors.Is(err, storage.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded), "%v", err)
			return errors.Is(err, storage.ErrUnavailable)
		}
		check.That(t, !refused(), "a write does not wait, although a group may still end in time")
		time.Sleep(2 * time.Second)
		began := time.Now()
		check.That(t, refused() && time.Since(began) == 0, "a write waits for a shard that takes none")
		g.end <- struct{}{}
		synctest.Wait()
		check.That(t, !refused(), "a write does not wait, although a group has just ended")
		close(g.end)
		g.calls.Wait()
	})
}
