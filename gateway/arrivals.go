package gateway

import (
	"container/list"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// arrivals is a listener with a bound on open connections. One address may have half
// of them, so that clients in one place leave room for others, including health
// checks. If a connection exceeds the bound, the listener closes the one that has been idle for
// longest, which every client has to expect, or the new one if none is idle.
type arrivals struct {
	net.Listener
	most    int
	metrics *Metrics

	mu        sync.Mutex
	open      int
	addresses map[netip.Addr]int
	idle      list.List // *arrival, longest first
}

// arrival is a connection that has been accepted.
type arrival struct {
	net.Conn
	to      *arrivals
	address netip.Addr
	left    sync.Once
	waiting *list.Element // among those that are idle; nil: it is not
	frames  frames
}

func newArrivals(listener net.Listener, most int, metrics *Metrics) *arrivals {
	return &arrivals{Listener: listener, most: most, metrics: metrics, addresses: make(map[netip.Addr]int)}
}

// Accept implements [net.Listener].
func (a *arrivals) Accept() (net.Conn, error) {
	for {
		conn, err := a.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address, _ := netip.ParseAddrPort(conn.RemoteAddr().String())
		c := &arrival{Conn: conn, to: a, address: address.Addr().Unmap()}
		longest, ok := a.admit(c)
		if longest != nil {
			_ = longest.Close()
		}
		if ok {
			return c, nil
		}
		a.metrics.turnedAway()
		_ = conn.Close()
	}
}

// admit counts a connection, or refuses it. If there are too many, another has to be closed for it.
func (a *arrivals) admit(c *arrival) (longest *arrival, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.addresses[c.address] >= max(1, a.most/2):
		longest = a.longestIdle(func(other *arrival) bool { return other.address == c.address })
		ok = longest != nil
	case a.open >= a.most:
		longest = a.longestIdle(func(*arrival) bool { return true })
		ok = longest != nil
	default:
		ok = true
	}
	if ok {
		a.open++
		a.addresses[c.address]++
	}
	return longest, ok
}

// fits counts an arrival if there is room for it. No connection is closed for it.
func (a *arrivals) fits(c *arrival) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open >= a.most || a.addresses[c.address] >= max(1, a.most/2) {
		return false
	}
	a.open++
	a.addresses[c.address]++
	return true
}

// longestIdle takes off the list the connection that is closed for another one; nil if there is
// none.
func (a *arrivals) longestIdle(fits func(*arrival) bool) *arrival {
	for e := a.idle.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*arrival); fits(c) {
			c.rest(false)
			return c
		}
	}
	return nil
}

// Close implements [net.Conn].
func (c *arrival) Close() error {
	c.left.Do(func() {
		c.to.mu.Lock()
		defer c.to.mu.Unlock()
		c.rest(false)
		c.to.open--
		if c.to.addresses[c.address]--; c.to.addresses[c.address] == 0 {
			delete(c.to.addresses, c.address)
		}
	})
	return c.Conn.Close()
}

// changed is the hook of [http.Server.ConnState].
func (a *arrivals) changed(conn net.Conn, state http.ConnState) {
	if c, ok := conn.(*arrival); ok && (state == http.StateIdle || state == http.StateActive || state == http.StateHijacked) {
		a.mu.Lock()
		defer a.mu.Unlock()
		c.rest(state == http.StateIdle)
	}
}

// rest notes whether a connection is idle. The caller holds the lock.
func (c *arrival) rest(idle bool) {
	switch {
	case idle && c.waiting == nil:
		c.waiting = c.to.idle.PushBack(c)
		c.to.metrics.rests(1)
	case !idle && c.waiting != nil:
		c.to.idle.Remove(c.waiting)
		c.waiting = nil
		c.to.metrics.rests(-1)
	}
}
