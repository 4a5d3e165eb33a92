package program_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"kith/internal/kithtest"
	"kith/internal/testenv"
)

// A process whose settings are not those of the processes on the store does not start, and names the setting. The operator
// changes rules for all by kith agree, and restarts one process after another.
func TestProcessesAgree(t *testing.T) {
	t.Parallel()
	redis := testenv.Redis(t)
	with := func(more ...string) kithtest.Option {
		return kithtest.Args(append([]string{"--redis", redis.URL()}, more...)...)
	}
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "kith.db")
	first := kithtest.Serve(t, with(store))
	refused := func(want string, args ...string) {
		t.Helper()
		c := kithtest.Launch(t, with(append(args, store)...))
		c.Until(t, "it is refused", func() bool { return c.Ended() })
		if end := c.Wait(t); end.Code != 1 || !strings.Contains(end.Stderr, want) || strings.Count(end.Stderr, "\n") != 1 {
			t.Errorf("%v: %+v", args, end)
		}
	}
	gateway := []string{"serve", "--addr=127.0.0.1:0"}
	refused("--redis-cache (KITH_REDIS_CACHE): it is false here, and true for", append(gateway, "--no-redis-cache")...)
	refused("--friend-request-ttl (KITH_FRIEND_REQUEST_TTL): it is 1h0m0s here, and 2160h0m0s for", append(gateway, "--friend-request-ttl=1h")...)
	refused("--max-following (KITH_MAX_FOLLOWING): it is 6 here, and 5000 for", append(gateway, "--max-following=6")...)
	refused("--friend-request-ttl", "reconcile", "full", "--friend-request-ttl=1h")
	refused("--redis-cache", "agree", "--no-redis-cache")
	kithtest.Serve(t, with(store)).Interrupt(t) // one with the same starts

	doctor := kithtest.Run(t, with("doctor", "--max-following=6", store))
	if !strings.Contains(doctor.Stdout, "warn  settings: --max-following") {
		t.Errorf("doctor: %s", doctor.Stdout)
	}
	if end := kithtest.Run(t, with("agree", "--max-following=6", store)); end.Code != 0 {
		t.Fatal(end.Stderr)
	}
	second := kithtest.Serve(t, with(store, "--max-following=6"))
	refused("--max-following (KITH_MAX_FOLLOWING): it is 5000 here, and 6 for", gateway...)
	first.Until(t, "the old one says so", func() bool {
		_, ready := first.Get(t, "/readyz")
		return strings.Contains(ready, `{"name":"settings","ok":false`) && strings.Contains(first.Stderr(), "it is 5000 here, and 6 for")
	})
	first.Interrupt(t)
	second.Interrupt(t)
	kithtest.Serve(t, with(store, "--max-following=7")) // nothing else runs
}

// Processes on one store have one Redis, or none, by whatever address they reach it. One that answers late, or has lost its data,
// is compared once it answers.
func TestProcessesAgreeOnTheRedis(t *testing.T) {
	t.Parallel()
	redis, other := testenv.Redis(t), testenv.Redis(t)
	away := testenv.Redis(t)
	away.Kill(t)
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "kith.db")
	gateway := []string{"serve", "--addr=127.0.0.1:0", store}
	refused := func(want string, args ...string) {
		t.Helper()
		end := kithtest.Run(t, kithtest.Args(args...))
		if end.Code != 1 || !strings.Contains(end.Stderr, "--redis (KITH_REDIS): it is "+want) || strings.Count(end.Stderr, "\n") != 1 {
			t.Errorf("%v: %+v", args, end)
		}
	}
	agrees := func(g *kithtest.Gateway, want bool) {
		t.Helper()
		g.Until(t, fmt.Sprintf("its settings are those of the others: %t", want), func() bool {
			_, ready := g.Get(t, "/readyz")
			return strings.Contains(ready, fmt.Sprintf(`{"name":"settings","ok":%t`, want))
		})
	}
	first := kithtest.Serve(t, kithtest.Args("--redis", redis.URL(), "--no-redis-cache", store))
	refused("none here, and one whose kith:id is ", append(gateway, "--no-redis-cache")...)
	refused("one whose kith:id is ", append(gateway, "--no-redis-cache", "--redis", other.URL())...)
	refused("none here, and one whose kith:id is ", "reconcile", "full", store)
	refused("none here, and one whose kith:id is ", "agree", store)
	doctor := kithtest.Run(t, kithtest.Args("doctor", "--no-redis-cache", "--redis", other.URL(), store))
	if !strings.Contains(doctor.Stdout, "warn  settings: --redis (KITH_REDIS): it is one whose") {
		t.Errorf("doctor: %s", doctor.Stdout)
	}

	late := kithtest.Serve(t, kithtest.Args("--redis", away.URL(), "--no-redis-cache", store))
	agrees(late, true)
	away.Restart(t)
	late.Until(t, "it says that it has another Redis", func() bool { return strings.Contains(late.Stderr(), "--redis (KITH_REDIS): it is one whose") })
	agrees(late, false)
	agrees(first, true)
	late.Interrupt(t)

	options, err := goredis.ParseURL(redis.URL())
	if err != nil {
		t.Fatal(err)
	}
	client := goredis.NewClient(options)
	defer client.Close()
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	second := kithtest.Serve(t, kithtest.Args("--redis", strings.Replace(redis.URL(), "127.0.0.1", "localhost", 1), "--no-redis-cache", store))
	agrees(first, true)
	agrees(second, true)
}

// A gateway does not join a store on which others propagate in another mode.
func TestProcessesAgreeOnTheMode(t *testing.T) {
	t.Parallel()
	testenv.NeedsBinlog(t)
	store := "--store=mysql:" + testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0]
	kithtest.Serve(t, kithtest.Args("--redundancy=binlog", store))
	for _, args := range [][]string{{"--redundancy=sync"}, {}} {
		end := kithtest.Run(t, kithtest.Args(append([]string{"serve", "--addr=127.0.0.1:0", store}, args...)...))
		if want := "--redundancy (KITH_REDUNDANCY): it is sync"; end.Code != 1 || !strings.Contains(end.Stderr, want) || !strings.Contains(end.Stderr, "and binlog for") {
			t.Errorf("%v: %+v", args, end)
		}
	}
}
