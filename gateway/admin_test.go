package gateway_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"kith/gateway"
	"kith/internal/check"
	"kith/internal/must"
)

// The public address serves nothing for operators, and the operators' address serves no graph.
func TestOperatorsHaveAnAddressOfTheirOwn(t *testing.T) {
	s := serve(t, gateway.Config{Gatherer: prometheus.NewRegistry()})
	for _, path := range []string{"/metrics", "/readyz", "/schema.graphql", "/debug/pprof/", "/debug/pprof/heap"} {
		s.get(path).is(t, path, 404, "")
		check.Equal(t, path, s.operators(path).status, 200)
	}
	for path, want := range map[string]int{"/healthz": 200, "/graphql": 404, "/": 404, "/debug/pprof/cmdline": 404} {
		check.Equal(t, path, s.operators(path).status, want)
	}
}

// Profiles are bounded: a request for one of an hour is refused.
func TestProfilesAreBounded(t *testing.T) {
	s := serve(t, gateway.Config{})
	for _, path := range []string{"profile?seconds=121", "trace?seconds=3600", "heap?seconds=1e9", "profile?seconds=NaN", "profile?seconds=-1", "profile?seconds=x"} {
		check.Equal(t, path, s.operators("/debug/pprof/"+path).status, 400)
	}
	got := s.operators("/debug/pprof/trace?seconds=0.01")
	check.That(t, got.status == http.StatusOK && got.text != "", "a short trace: %d", got.status)
}

// The pages are served until the process ends.
func TestOperatorsPagesEnd(t *testing.T) {
	listener := loopback(t)
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
