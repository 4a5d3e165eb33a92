package epoch_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage/epoch"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// The epoch is learned once, by whoever asks first, and is the same for all until it is over: because one was demanded, the key is gone,
// or Redis is another process.
func TestAllAgreeOnTheEpoch(t *testing.T) {
	server := testenv.Redis(t)
	var clocks [2]*epoch.Clock
	for i := range clocks {
		runs := new(epoch.Runs)
		client := redis.NewClient(&redis.Options{Addr: server.Addr(), OnConnect: runs.OnConnect, ContextTimeoutEnabled: true})
		t.Cleanup(func() { client.Close() })
		clocks[i] = epoch.NewClock(client, runs, "kith:test")
	}
	now := func(c *epoch.Clock) *epoch.Epoch {
		t.Helper()
		e, err := c.Now(t.Context())
		must.That(t, err == nil && e.Holds(), "%+v, %v", e, err)
		return e
	}
	first := now(clocks[0])
	again, err := clocks[0].Known(t.Context())
	check.That(t, err == nil && again == first, "learned %+v after %+v, %v", again, first, err)
	for what, end := range map[string]func() error{
		"one is demanded":  func() error { return clocks[0].Begin(t.Context()) },
		"the key is gone":  func() error { return clocks[0].Redis.Del(t.Context(), "kith:test:epoch").Err() },
		"another process":  func() error { server.Restart(t); return nil },
		"memory is lost":   func() error { return clocks[0].Redis.FlushAll(t.Context()).Err() },
		"scripts are gone": func() error { defer clocks[0].Forget(); return clocks[0].Redis.ScriptFlush(t.Context()).Err() },
	} {
		before := now(clocks[1])
		err := end()
		must.That(t, err == nil, "%s: %v", what, err)
		a, b := now(clocks[1]), now(clocks[0])
		check.That(t, a.Name == b.Name && a.Keys == b.Keys, "%s: one gateway is in %+v, the other in %+v", what, a, b)
		if isNew := a.Name != before.Name; isNew == (what == "scripts are gone") || isNew && before.Holds() {
			t.Errorf("%s: %+v after %+v, which holds: %t", what, a, before, before.Holds())
		}
	}
}

// An epoch can be ended while Redis is full, and the next one begins when it has room.
func TestAnEpochEndsBesideAFullRedis(t *testing.T) {
	runs := new(epoch.Runs)
	client := redis.NewClient(&redis.Options{Addr: testenv.Redis(t).Addr(), OnConnect: runs.OnConnect, ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	c, other := epoch.NewClock(client, runs, "kith:test"), epoch.NewClock(client, runs, "kith:test")
	before, err := other.Now(t.Context())
	must.OK(t, err)
	must.OK(t, client.ConfigSet(t.Context(), "maxmemory", "100kb").Err())
	must.OK(t, c.Begin(t.Context()))
	for _, one := range []*epoch.Clock{c, other} {
		e, err := one.Now(t.Context())
		check.That(t, err != nil, "while Redis is full, it is %+v, after %s", e, before.Name)
	}
	must.OK(t, client.ConfigSet(t.Context(), "maxmemory", "0").Err())
	e, err := other.Now(t.Context())
	check.That(t, err == nil && e.Name != before.Name, "%+v after %s, %v", e, before.Name, err)
}
