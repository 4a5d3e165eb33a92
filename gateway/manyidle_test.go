package gateway

import (
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/gateway/exchange"
	"kith/internal/check"
)

// An address that has all connections it may have is refused another one as quickly beside many idle connections of others as beside few.
func TestIdleConnectionsOfOthersAreNotGoneThrough(t *testing.T) {
	refused := func(idle int) time.Duration {
		a := newArrivals(nil, 2*(idle+10), 0, exchange.NewMetrics(prometheus.NewRegistry()))
		for i := range idle + 10 {
			others := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
			if _, ok := a.admit(others, true); ok && i < idle {
				a.changed(&arrival{to: a, address: others}, http.StateIdle)
			}
			a.admit(netip.AddrFrom4([4]byte{192, 0, 2, 1}), true)
		}
		shortest := time.Hour
		for range 10 {
			began := time.Now()
			for range 20 {
				_, ok := a.admit(netip.AddrFrom4([4]byte{192, 0, 2, 1}), true)
				check.Equal(t, "it is admitted", ok, false)
			}
			shortest = min(shortest, time.Since(began))
		}
		return shortest
	}
	few, many := refused(10), refused(50_000)
	t.Logf("20 times: %s beside few, %s beside many", few, many)
	check.Most(t, "how much longer it takes", int(many/max(few, time.Microsecond)), 30)
}
