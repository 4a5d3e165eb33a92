package rediscache

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
)

// saved keeps a copy of the data that a Redis holds now, and returns how to restore it: the server is
// stopped, gets the copy and starts again. Then it also has the scripts, as if another gateway had been
// there first, because missing scripts would reveal the restart.
func saved(t testing.TB, server *testenv.RedisServer) (rollBack func()) {
	t.Helper()
	must.OK(t, admin(t, server).Save(t.Context()).Err())
	dump := filepath.Join(filepath.Dir(server.Socket()), "dump.rdb")
	aside := filepath.Join(t.TempDir(), "dump.rdb")
	copyFile(t, dump, aside)
	return func() {
		server.Stop(t)
		copyFile(t, aside, dump)
		server.Restart(t)
		for _, script := range []*redis.Script{get, fill, changed} {
			must.OK(t, script.Load(t.Context(), admin(t, server)).Err())
		}
	}
}

// Data that a Redis loads from its disk is not used, because changes are missing in it.
func TestRestartWithOldData(t *testing.T) {
	t.Parallel()
	s := newSource(t, 1, 2)
	server, a, b := pair(t, s)
	a.agrees(t, s, 1, 2)
	a.idle(t)
	b.agrees(t, s, 1, 2)
	b.idle(t)
	rollBack := saved(t, server)
	s.write(t, 1, 2, storage.Following)
	a.Changed(t.Context(), s.both(1, 2))
	before := a.epoch(t)
	rollBack()
	// The old list exists again.
	must.That(t, admin(t, server).HGet(t.Context(), key(before, "following", 1), "d"+form).Val() != "", "it does not: the test shows nothing")
	for range 5 {
		a.agrees(t, s, 1, 2)
		b.agrees(t, s, 1, 2)
		a.idle(t)
		b.idle(t)
	}
	must.Soon(t, "both use Redis again, in one epoch", func() bool {
		a.agrees(t, s, 1, 2)
		b.agrees(t, s, 1, 2)
		return a.epoch(t).Keys == b.epoch(t).Keys && a.epoch(t).Keys != before.Keys
	})
}

// If the epoch ends while an answer is on its way, the answer is not trusted.
func TestAnswersOfAnEpochThatEnds(t *testing.T) {
	t.Parallel()
	s := newSource(t, 1)
	_, a, _ := pair(t, s)
	a.profile(t, 1)
	a.idle(t)
	hook := &afterPipelines{}
	a.clock.Redis.AddHook(hook)
	s.write(t, 1, 2, storage.Following) // this is not reported, so the data in Redis is old
	hook.then.Store(ptr(a.clock.Forget))
	p := a.profile(t, 1)
	check.That(t, p.Counts.Following == 1, "%+v is from an epoch that is over", p.Counts)
}

func ptr[T any](v T) *T { return &v }

// afterPipelines calls a function when Redis has answered, before the answer is looked at.
type afterPipelines struct {
	then atomic.Pointer[func()]
}

func (h *afterPipelines) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *afterPipelines) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (h *afterPipelines) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		err := next(ctx, commands)
		if then := h.then.Swap(nil); then != nil {
			(*then)()
		}
		return err
	}
}

// A gateway that cannot report a change to Redis reads nothing from Redis, and reports the change as soon as it can.
func TestChangesThatCannotBeReported(t *testing.T) {
	t.Parallel()
	for _, mostLate := range []int{100, 1} { // with 1 there are too many, so that a new epoch has to begin
		t.Run(fmt.Sprint("room for ", mostLate), func(t *testing.T) {
			t.Parallel()
			s := newSource(t, 1, 2)
			var mu sync.Mutex
			var corrected [][]storage.UserID
			server, a, b := pair(t, s, func(c *Cache) {
				c.timeout, c.mostLate = timeout, mostLate
				c.corrected = func(users []storage.UserID) { mu.Lock(); defer mu.Unlock(); corrected = append(corrected, users) }
			})
			a.agrees(t, s, 1, 2)
			a.idle(t)
			b.agrees(t, s, 1, 2)
			b.idle(t)
			before := a.epoch(t).Keys
			server.Freeze(t)
			s.write(t, 1, 2, storage.Following)
			a.Changed(t.Context(), s.both(1, 2))
			must.That(t, a.Behind(), "it could be reported")
			a.agrees(t, s, 1, 2)
			hook := &afterPipelines{}
			a.clock.Redis.AddHook(hook)
			tried := make(chan struct{})
			hook.then.Store(ptr(func() { close(tried) }))
			<-tried // again, in vain
			server.Thaw(t)
			for a.Behind() {
				a.agrees(t, s, 1, 2)
			}
			b.idle(t)
			b.agrees(t, s, 1, 2)
			a.agrees(t, s, 1, 2)
			check.Equal(t, "the same epoch", a.epoch(t).Keys == before, mostLate == 100)
			mu.Lock()
			slices.Sort(corrected[0])
			if want := []storage.UserID{1, 2}; len(corrected) != 1 || mostLate == 100 && !slices.Equal(corrected[0], want) || mostLate == 1 && len(corrected[0]) > 0 {
				t.Errorf("corrected were %v", corrected)
			}
			mu.Unlock()
			must.Soon(t, "both in one epoch", func() bool {
				b.agrees(t, s, 1, 2)
				return a.epoch(t).Keys == b.epoch(t).Keys
			})
		})
	}
}

// A gateway that has reported a change in an epoch that has ended reports it again in the new epoch.
func TestChangesReportedInAnEpochThatIsOver(t *testing.T) {
	t.Parallel()
	s := newSource(t, 1, 2)
	_, a, b := pair(t, s)
	a.agrees(t, s, 1, 2)
	a.idle(t)
	must.OK(t, b.Empty(t.Context())) // as happens after too many changes
	b.agrees(t, s, 1, 2)
	b.idle(t)
	s.write(t, 1, 2, storage.Following)
	a.Changed(t.Context(), s.both(1, 2))
	b.agrees(t, s, 1, 2)
	a.agrees(t, s, 1, 2)
}

// Deleting the epoch's key empties the cache of all gateways.
func TestDeletingTheEpochEmptiesTheCache(t *testing.T) {
	t.Parallel()
	s := newSource(t, 1)
	server, a, b := pair(t, s)
	a.agrees(t, s, 1)
	b.agrees(t, s, 1)
	s.write(t, 1, 2, storage.Following) // without any report
	must.OK(t, admin(t, server).Del(t.Context(), "kith:test:epoch").Err())
	a.idle(t)
	b.idle(t)
	a.agrees(t, s, 1)
	b.agrees(t, s, 1)
}

// The scripts are removed.
func TestScriptsAreLoadedAgain(t *testing.T) {
	t.Parallel()
	s := newSource(t, 1, 2)
	server, a, b := pair(t, s)
	a.agrees(t, s, 1, 2)
	a.idle(t)
	must.OK(t, admin(t, server).ScriptFlush(t.Context()).Err())
	s.write(t, 1, 2, storage.Following)
	a.Changed(t.Context(), s.both(1, 2))
	for range 2 {
		a.agrees(t, s, 1, 2)
		a.idle(t)
	}
	must.Soon(t, "the change was reported", func() bool { return !a.Behind() })
	b.agrees(t, s, 1, 2)
	b.idle(t)
	calls := s.calls()
	a.agrees(t, s, 1, 2)
	check.That(t, s.calls() == calls, "it is not used again")
}

// A Redis that does not report its run id is not used, and does not harm other users of the same
// client.
func TestRedisThatDoesNotReportItsRun(t *testing.T) {
	t.Parallel()
	s := newSource(t, 1)
	server := testenv.Redis(t, "--rename-command", "INFO", "")
	a := connect(t, s, []*testenv.RedisServer{server})
	for range 2 {
		a.agrees(t, s, 1)
		s.write(t, 1, 2, storage.Following)
		a.Changed(t.Context(), s.both(1, 2))
		a.idle(t)
	}
	err := a.clock.Redis.Ping(t.Context()).Err()
	check.That(t, err == nil, "%v", err)
	check.That(t, a.looked("user", "failed") == 2, "it was used")
}

// Redis goes away under load with all its data, and comes back. Answers stay correct, and nobody waits for long.
func TestRedisGoneUnderLoad(t *testing.T) {
	t.Parallel()
	var ids []storage.UserID
	for id := range storage.UserID(50) {
		ids = append(ids, id+1)
	}
	s := newSource(t, ids...)
	server, a, b := pair(t, s, func(c *Cache) { c.timeout = timeout })
	s.after = func() { time.Sleep(time.Millisecond) }
	a.agrees(t, s, ids...)
	b.agrees(t, s, ids...)
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	var answers, slow atomic.Int64
	for i := range 24 {
		c := []*Cache{a, b}[i%2]
		load.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				id := ids[n%len(ids)]
				began := time.Now()
				if text := c.disagreement(s, id); text != "" {
					t.Error(text)
					return
				}
				if time.Since(began) > 10*time.Second {
					slow.Add(1)
				}
				answers.Add(1)
			}
		})
	}
	wait := func(what string, condition func() bool) {
		more := answers.Load() + 200
		must.Soon(t, what, func() bool { return answers.Load() > more && condition() || t.Failed() })
	}
	yes := func() bool { return true }
	wait("answers", yes)
	for _, how := range []struct{ gone, back func(testing.TB) }{{server.Kill, server.Restart}, {server.Freeze, server.Thaw}} {
		how.gone(t)
		wait("Redis is left alone", func() bool { return a.Behind() && b.Behind() })
		wait("answers without Redis", yes)
		how.back(t)
		hits := a.looked("user", "hit")
		wait("Redis is used again", func() bool { return a.looked("user", "hit") > hits+50 })
	}
	stop()
	load.Wait()
	check.Equal(t, "answers took more than 10 s", slow.Load(), 0)
}
