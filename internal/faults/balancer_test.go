package faults_test

import (
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// balancer is a load balancer of the simplest kind. It asks /readyz of each gateway ten times a second, and
// takes a gateway that is not ready out at once. It sends requests to the others in turn, over connections
// that it keeps open. It repeats no request, not even one that no gateway has seen.
type balancer struct {
	gateways  []*node
	transport *http.Transport
	ready     []atomic.Pointer[life] // as the last check found them; nil takes no requests
	under     []atomic.Int64         // requests under way
	turn      atomic.Uint64
}

// balancer starts a load balancer, and waits until all gateways take requests.
func (d *deployment) balancer(t *testing.T) *balancer {
	t.Helper()
	n := len(d.gateways)
	b := &balancer{gateways: d.gateways, transport: &http.Transport{MaxIdleConnsPerHost: 100},
		ready: make([]atomic.Pointer[life], n), under: make([]atomic.Int64, n)}
	stop := make(chan struct{})
	var checks sync.WaitGroup
	for i := range b.gateways {
		checks.Go(func() {
			for {
				b.check(i)
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Millisecond):
				}
			}
		})
	}
	t.Cleanup(func() { close(stop); checks.Wait(); b.transport.CloseIdleConnections() })
	for i := range b.gateways {
		b.has(t, i, true)
	}
	return b
}

// check asks a gateway whether it is ready, on its own connection.
func (b *balancer) check(i int) {
	l := b.gateways[i].now.Load()
	if l == nil {
		b.ready[i].Store(nil)
		return
	}
	response, err := (&http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}).Get(l.gateway.Admin + "/readyz")
	if err == nil {
		response.Body.Close()
	}
	if err != nil || response.StatusCode != http.StatusOK {
		l = nil
	}
	b.ready[i].Store(l)
}

// RoundTrip implements [http.RoundTripper]. It ignores the request's host.
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	first := b.turn.Add(1)
	for next := range uint64(len(b.gateways)) {
		i := int((first + next) % uint64(len(b.gateways)))
		b.under[i].Add(1)
		defer b.under[i].Add(-1)
		if l := b.ready[i].Load(); l != nil {
			sent := r.Clone(r.Context())
			sent.URL.Host = l.gateway.URL[len("http://"):]
			sent.GetBody = nil // without it the transport cannot send it twice
			return b.transport.RoundTrip(sent)
		}
	}
	return nil, errors.New("no gateway is ready")
}

// has waits until a gateway, in its present life, takes requests, or takes none any more.
func (b *balancer) has(t *testing.T, i int, is bool) {
	t.Helper()
	until(t, b.gateways[i].name+" is known to the load balancer", func() bool {
		l := b.ready[i].Load()
		return is && l != nil && l == b.gateways[i].now.Load() || !is && l == nil && b.under[i].Load() == 0
	})
}
