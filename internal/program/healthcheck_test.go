package program_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"kith/internal/kithtest"
)

// TestHealthcheck: `kith healthcheck` takes the settings of a process, and tells by its exit code whether that process is up.
func TestHealthcheck(t *testing.T) {
	t.Parallel()
	g := kithtest.Start(t)
	up := strings.TrimPrefix(g.URL, "http://")
	_, port, _ := strings.Cut(up, ":")
	failing := httptest.NewServer(http.NotFoundHandler())
	defer failing.Close()
	broken := strings.TrimPrefix(failing.URL, "http://")
	proxy := kithtest.Env("HTTP_PROXY="+failing.URL, "http_proxy="+failing.URL)
	ask := func(code int, says string, env ...string) {
		t.Helper()
		end := kithtest.Run(t, kithtest.Dir(t.TempDir()), kithtest.Args("healthcheck", "--timeout=1s"), kithtest.Env("KITH_ADMIN_ADDR="), kithtest.Env(env...), proxy)
		if end.Code != code || end.Stdout != "" || !strings.Contains(end.Stderr, says) || code == 0 && end.Stderr != "" || end.Took > 20*time.Second {
			t.Errorf("%v: %+v", env, end)
		}
	}
	ask(0, "", "KITH_ADDR="+up)
	ask(0, "", "KITH_ADDR=0.0.0.0:"+port)
	ask(0, "", "KITH_ADDR="+broken, "KITH_ADMIN_ADDR=:"+port) // which is asked first
	ask(1, "--addr (KITH_ADDR): /healthz answers 404", "KITH_ADDR="+broken)
	ask(1, "--admin-addr (KITH_ADMIN_ADDR): ", "KITH_ADDR="+up, "KITH_ADMIN_ADDR="+silentPort(t))
	ask(1, "connection refused", "KITH_ADDR="+closedPort(t))
	ask(misused, "--addr (KITH_ADDR): ", "KITH_ADDR=8080")
	g.Interrupt(t)
	ask(1, "connection refused", "KITH_ADDR="+up)
}
