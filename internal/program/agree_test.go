package program_test

import (
	"path/filepath"
	"strings"
	"testing"

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
