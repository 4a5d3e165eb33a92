package gateway_test

import (
	"context"
	"net"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"kith/gateway"
	"kith/internal/must"
)

// The public address serves nothing for operators, and the operators' address serves no graph.
func TestOperatorsHaveAnAddressOfTheirOwn(t *testing.T) {
	s := serve(t, gateway.Config{Gatherer: prometheus.NewRegistry()})
	for _, path := range []string{"/metrics", "/readyz", "/schema.graphql", "/debug/pprof/", "/debug/pprof/heap"} {
		if got := s.get(path); got.status != http.StatusNotFound {
			t.Errorf("%s is public: %d", path, got.status)
		}
		if got := s.operators(path); got.status != http.StatusOK {
			t.Errorf("operators get %d for %s", got.status, path)
		}
	}
	for path, want := range map[string]int{"/healthz": 200, "/graphql": 404, "/": 404, "/debug/pprof/cmdline": 404} {
		if got := s.operators(path); got.status != want {
			t.Errorf("%s: %d, want %d", path, got.status, want)
		}
	}
}

// Profiles are bounded: a request for one of an hour is refused.
func TestProfilesAreBounded(t *testing.T) {
	s := serve(t, gateway.Config{})
	for _, path := range []string{"profile?seconds=121", "trace?seconds=3600", "heap?seconds=1e9", "profile?seconds=NaN", "profile?seconds=-1", "profile?seconds=x"} {
		if got := s.operators("/debug/pprof/" + path); got.status != http.StatusBadRequest {
			t.Errorf("%s: %d", path, got.status)
		}
	}
	if got := s.operators("/debug/pprof/trace?seconds=0.01"); got.status != http.StatusOK || got.text == "" {
		t.Errorf("a short trace: %d", got.status)
	}
}

// The pages are served until the process ends.
func TestOperatorsPagesEnd(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); gateway.Config{}.Admin(ctx).Serve(ctx, listener) }()
	answer, err := http.Get("http://" + listener.Addr().String() + "/healthz")
	must.OK(t, err)
	answer.Body.Close()
	stop()
	<-ended
	if answer, err := http.Get("http://" + listener.Addr().String() + "/healthz"); err == nil {
		answer.Body.Close()
		t.Error("it still answers")
	}
}
