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

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"kith/internal/testenv"
	"kith/storage"
)

// saved keeps a copy of the data that a Redis holds now, and returns how to restore it: the server is
// stopped, gets the copy and starts again. Then it also has the scripts, as if another gateway had been
// there first, because missing scripts would reveal the restart.
func saved(t testing.TB, server *testenv.RedisServer) (rollBack func()) {
	t.Helper()
	if err := admin(t, server).Save(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	dump := filepath.Join(filepath.Dir(server.Socket()), "dump.rdb")
	aside := filepath.Join(t.TempDir(), "dump.rdb")
	copyFile(t, dump, aside)
	return func() {
		server.Stop(t)
		copyFile(t, aside, dump)
		server.Restart(t)
		for _, text := range scripts {
			if err := admin(t, server).ScriptLoad(t.Context(), text).Err(); err != nil {
				t.Fatal(err)
			}
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
	before := a.epoch.Load()
	rollBack()
	// The old list exists again.
	held, err := admin(t, server).Get(t.Context(), before.list(storage.Forward, 1)).Result()
	if err != nil {
		t.Fatal(err)
	}
	if l, err := parseList(storage.Forward, 1, held); err != nil || len(l.Edges) != 0 {
		t.Fatalf("%+v, %v: the test shows nothing", l, err)
	}
	for range 5 {
		a.agrees(t, s, 1, 2)
		b.agrees(t, s, 1, 2)
		a.idle(t)
		b.idle(t)
	}
	eventually(t, "both use Redis again, in one epoch", func() bool {
		a.agrees(t, s, 1, 2)
		b.agrees(t, s, 1, 2)
		x, y := a.epoch.Load(), b.epoch.Load()
		return x != nil && y != nil && x.keys == y.keys && x.keys != before.keys
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
	a.cfg.Redis.AddHook(hook)
	s.write(t, 1, 2, storage.Following) // this is not reported, so the data in Redis is old
	hook.then.Store(ptr(func() { a.cfg.Runs.met("another") }))
	if p := a.profile(t, 1); p.Counts.Following != 1 {
		t.Errorf("%+v is from an epoch that is over", p.Counts)
	}
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

// current is the epoch of a gateway. On a busy machine the gateway may have given up on Redis for a moment.
func current(t testing.TB, c *Cache) (e *epoch) {
	t.Helper()
	eventually(t, "an epoch", func() bool { e = c.epoch.Load(); return e != nil })
	return e
}

// A gateway that cannot report a change to Redis reads nothing from Redis, and reports the change as soon as it can.
func TestChangesThatCannotBeReported(t *testing.T) {
	t.Parallel()
	for _, maxLate := range []int{100, 1} { // with 1 there are too many, so that a new epoch has to begin
		t.Run(fmt.Sprint("room for ", maxLate), func(t *testing.T) {
			t.Parallel()
			s := newSource(t, 1, 2)
			var mu sync.Mutex
			var corrected [][]storage.UserID
			server, a, b := pair(t, s, func(c *Config) {
				c.Timeout, c.MaxLate = 100*time.Millisecond, maxLate
				c.Corrected = func(users []storage.UserID) { mu.Lock(); defer mu.Unlock(); corrected = append(corrected, users) }
			})
			a.agrees(t, s, 1, 2)
			a.idle(t)
			b.agrees(t, s, 1, 2)
			b.idle(t)
			before := current(t, a).keys
			server.Freeze(t)
			s.write(t, 1, 2, storage.Following)
			a.Changed(t.Context(), s.both(1, 2))
			if !a.late.behind() {
				t.Fatal("it could be reported")
			}
			a.agrees(t, s, 1, 2)
			failures := func() float64 {
				return testutil.ToFloat64(a.cfg.Metrics.errors.WithLabelValues("change")) + testutil.ToFloat64(a.cfg.Metrics.errors.WithLabelValues("learn"))
			}
			eventually(t, "it was tried again, in vain", func() bool { return failures() >= 3 })
			server.Thaw(t)
			for a.late.behind() {
				a.agrees(t, s, 1, 2)
			}
			// The other gateway sees it at once, or when it sees that the epoch has changed.
			time.Sleep(verifyEvery)
			b.idle(t)
			b.agrees(t, s, 1, 2)
			a.agrees(t, s, 1, 2)
			if same := current(t, a).keys == before; same != (maxLate == 100) {
				t.Errorf("the same epoch: %v", same)
			}
			mu.Lock()
			slices.Sort(corrected[0])
			if want := []storage.UserID{1, 2}; len(corrected) != 1 || maxLate == 100 && !slices.Equal(corrected[0], want) || maxLate == 1 && len(corrected[0]) > 0 {
				t.Errorf("corrected were %v", corrected)
			}
			mu.Unlock()
			eventually(t, "both in one epoch", func() bool {
				b.agrees(t, s, 1, 2)
				e, other := b.epoch.Load(), a.epoch.Load()
				return e != nil && other != nil && e.keys == other.keys
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
	if _, err := b.learnEpoch(t.Context(), true); err != nil { // as happens after too many changes
		t.Fatal(err)
	}
	b.agrees(t, s, 1, 2)
	b.idle(t)
	s.write(t, 1, 2, storage.Following)
	a.Changed(t.Context(), s.both(1, 2))
	b.agrees(t, s, 1, 2)
	a.agrees(t, s, 1, 2)
}

// If two look-ups learn the epoch, one shortly after the other, both get the same epoch. Otherwise the values
// that the first one reads in between would not be trusted, and would be read from the store.
func TestTheEpochIsLearnedOnce(t *testing.T) {
	t.Parallel()
	_, a, _ := pair(t, newSource(t))
	first, err := a.learnEpoch(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := a.learnEpoch(t.Context(), false); err != nil || second != first || !a.holds(first) {
		t.Errorf("learned %v after %v, %v", second, first, err)
	}
	if fresh, err := a.learnEpoch(t.Context(), true); err != nil || fresh.keys == first.keys {
		t.Errorf("a fresh epoch is %v after %v, %v", fresh, first, err)
	}
}

// Deleting the epoch's key empties the cache of all gateways.
func TestDeletingTheEpochEmptiesTheCache(t *testing.T) {
	t.Parallel()
	s := newSource(t, 1)
	server, a, b := pair(t, s)
	a.agrees(t, s, 1)
	b.agrees(t, s, 1)
	s.write(t, 1, 2, storage.Following) // without any report
	if err := admin(t, server).Del(t.Context(), a.epochKey()).Err(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(verifyEvery)
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
	if err := admin(t, server).ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	s.write(t, 1, 2, storage.Following)
	a.Changed(t.Context(), s.both(1, 2))
	for range 2 {
		a.agrees(t, s, 1, 2)
		a.idle(t)
	}
	eventually(t, "the change was reported", func() bool { return !a.late.behind() })
	b.agrees(t, s, 1, 2)
	b.idle(t)
	calls := s.calls()
	a.agrees(t, s, 1, 2)
	if s.calls() != calls {
		t.Error("it is not used again")
	}
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
	if err := a.cfg.Redis.Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
	if n := testutil.ToFloat64(a.cfg.Metrics.errors.WithLabelValues("learn")); n == 0 {
		t.Error("it was used")
	}
}

// Redis goes away under load with all its data, and comes back. Answers stay correct, no more callers at a
// time ask the store than may, and nobody waits for long.
func TestRedisGoneUnderLoad(t *testing.T) {
	t.Parallel()
	var ids []storage.UserID
	for id := range storage.UserID(50) {
		ids = append(ids, id+1)
	}
	s := newSource(t, ids...)
	const bound = 3
	server, a, b := pair(t, s, func(c *Config) { c.MaxConcurrent, c.Timeout = bound, 100*time.Millisecond })
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
		eventually(t, what, func() bool { return answers.Load() > more && condition() || t.Failed() })
	}
	yes := func() bool { return true }
	wait("answers", yes)
	s.most.Store(0)
	for _, how := range []struct{ gone, back func(testing.TB) }{{server.Kill, server.Restart}, {server.Freeze, server.Thaw}} {
		how.gone(t)
		wait("Redis is left alone", func() bool { return !a.breaker.allow() && !b.breaker.allow() })
		wait("answers without Redis", yes)
		how.back(t)
		hits := a.lookups("user", "hit")
		wait("Redis is used again", func() bool { return a.lookups("user", "hit") > hits+50 })
	}
	stop()
	load.Wait()
	if most := s.most.Load(); most > 2*bound {
		t.Errorf("%d look-ups of the store at a time, by two gateways of %d each", most, bound)
	}
	if n := slow.Load(); n > 0 {
		t.Errorf("%d answers took more than 3 s", n)
	}
}

func TestBreaker(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	b := &breaker{now: func() time.Time { return now }, open: NewMetrics(nil).open}
	for range maxFailures {
		if !b.allow() {
			t.Fatal("too early")
		}
		b.done(false)
	}
	if b.allow() {
		t.Error("still asked")
	}
	now = now.Add(leftAlone)
	if !b.allow() || b.allow() {
		t.Error("one is to try")
	}
	b.done(false)
	if b.allow() {
		t.Error("asked after the try has failed")
	}
	now = now.Add(leftAlone)
	if !b.allow() {
		t.Error("nobody tries again")
	}
	b.done(true)
	for range 2 {
		if !b.allow() {
			t.Error("not closed again")
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{})
	defer client.Close()
	good := Config{Redis: client, Runs: NewRuns(), Prefix: "kith:x", Source: newSource(t)}
	if c, err := New(good); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
	for name, change := range map[string]func(*Config){
		"client": func(c *Config) { c.Redis = nil }, "runs": func(c *Config) { c.Runs = nil }, "source": func(c *Config) { c.Source = nil },
		"no prefix": func(c *Config) { c.Prefix = "" }, "braces": func(c *Config) { c.Prefix = "a{b}" },
	} {
		bad := good
		change(&bad)
		if _, err := New(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
