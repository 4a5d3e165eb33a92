package gateway

import (
	"container/list"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"kith/gateway/exchange"
)

// arrivals is a listener with a bound on open connections. One address may have half
// of them, so that clients in one place leave room for others, including health
// checks. If a connection exceeds the bound, the listener closes the one that has been idle for
// longest, which every client has to expect, or the new one if none is idle.
type arrivals struct {
	net.Listener
	most    int
	patient time.Duration // with a client that confirms nothing
	metrics *exchange.Metrics

	mu        sync.Mutex
	open      int
	addresses map[netip.Addr]*ofAddress
	idle      list.List // *arrival, longest first
}

// ofAddress is the connections of one address. It has its own list, because others may have tens of thousands that are idle.
type ofAddress struct {
	open int
	idle list.List // *arrival, longest first
}

// arrival is a connection that has been accepted.
type arrival struct {
	net.Conn
	to      *arrivals
	address netip.Addr
	closed  sync.Once
	gone    bool          // it has been closed
	waiting *list.Element // among those that are idle; nil: it is not
	near    *list.Element // among those of its address
	frames  frames
}

func newArrivals(listener net.Listener, most int, patient time.Duration, metrics *exchange.Metrics) *arrivals {
	return &arrivals{Listener: listener, most: most, patient: patient, metrics: metrics, addresses: make(map[netip.Addr]*ofAddress)}
}

// Accept implements [net.Listener].
func (a *arrivals) Accept() (net.Conn, error) {
	for {
		conn, err := a.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &arrival{Conn: conn, to: a, address: addressOf(conn.RemoteAddr().String())}
		longest, ok := a.admit(c.address, true)
		if longest != nil {
			_ = longest.Close()
		}
		if ok {
			endSilent(conn, a.patient)
			return c, nil
		}
		_ = conn.Close()
	}
}

// admit counts a connection from an address. If there are too many, it is refused, or another one, which is idle, has to be
// closed for it.
func (a *arrivals) admit(from netip.Addr, closes bool) (longest *arrival, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, idle := a.addresses[from], &a.idle
	if at == nil {
		at = new(ofAddress)
	}
	full := at.open >= max(1, a.most/2)
	if full {
		idle = &at.idle
	}
	if full || a.open >= a.most {
		if !closes || idle.Len() == 0 {
			a.metrics.Turned.Inc()
			return nil, false
		}
		longest = idle.Front().Value.(*arrival)
		longest.rest(false)
	}
	a.open++
	at.open++
	a.addresses[from] = at
	return longest, true
}

// left takes back what admit counted.
func (a *arrivals) left(from netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open--
	at := a.addresses[from]
	if at.open--; at.open == 0 {
		delete(a.addresses, from)
	}
}

// server is a server for these connections, which waits for its clients for a bounded time. It speaks HTTP/2 without TLS to clients that
// begin with it (prior knowledge), in addition to HTTP/1.1.
func (a *arrivals) server(handler http.Handler, writeTimeout time.Duration, logger *slog.Logger) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           a.streams(handler, logger),
		Protocols:         protocols,
		HTTP2:             boundsOfHTTP2(),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnState:         a.changed,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
}

// addressOf is the address that is counted: of IPv6 the first 64 bits, which one customer has.
func addressOf(remote string) netip.Addr {
	from, _ := netip.ParseAddrPort(remote)
	address := from.Addr().Unmap()
	if network, err := address.Prefix(64); err == nil { // IPv4 has no such prefix
		return network.Addr()
	}
	return address
}

// Close implements [net.Conn].
func (c *arrival) Close() error {
	c.closed.Do(func() {
		c.to.changed(c, http.StateClosed)
		c.to.left(c.address)
	})
	return c.Conn.Close()
}

// changed is the hook of [http.Server.ConnState]. A connection of HTTP/2 whose client has gone is closed first, and called idle when its
// requests have ended.
func (a *arrivals) changed(conn net.Conn, state http.ConnState) {
	if c, ok := conn.(*arrival); ok && state != http.StateNew {
		a.mu.Lock()
		defer a.mu.Unlock()
		c.gone = c.gone || state == http.StateClosed
		c.rest(state == http.StateIdle && !c.gone)
	}
}

// rest notes whether a connection is idle. The caller holds the lock.
func (c *arrival) rest(idle bool) {
	switch {
	case idle && c.waiting == nil:
		c.waiting, c.near = c.to.idle.PushBack(c), c.to.addresses[c.address].idle.PushBack(c)
		c.to.metrics.Resting.Inc()
	case !idle && c.waiting != nil:
		c.to.idle.Remove(c.waiting)
		c.to.addresses[c.address].idle.Remove(c.near)
		c.waiting, c.near = nil, nil
		c.to.metrics.Resting.Dec()
	}
}

// HTTP/2 has many requests, each a stream, on one connection. net/http bounds what one connection does: it runs no more handlers
// than streams, including streams that the client resets at once (CVE-2023-44487), and closes a connection with many more resets,
// with headers without end (CVE-2023-45288), or with control frames whose answers it does not take. If the client takes the
// answers, net/http has no bound on control frames: [frames] has.
const (
	// streamsOfOne is how many requests one connection may have in work. RFC 9113 advises at least 100.
	streamsOfOne = 100

	// Bytes of bodies that are received and not read yet. The first is what each stream may send
	// before the server has said anything (RFC 9113, section 6.9.2).
	receivedOfStream     = 64 << 10
	receivedOfConnection = 256 << 10

	// A connection whose client is gone is found by its silence.
	silence = 15 * time.Second

	// How many frames one connection may send that belong to no request, such as SETTINGS and PING. Clients send a few at the
	// beginning, and a PING now and then: Go's sends one for requests that it has cancelled, and waits for the answer.
	controlASecond = 100
	controlAtOnce  = 1_000

	preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
)

var errControlFrames = errors.New("the client sends too many control frames")

// frames follows what arrives on a connection, and counts its control frames if it is HTTP/2: 9 bytes of head with the length
// of the rest and the type (RFC 9113, section 4.1).
type frames struct {
	head    [len(preface)]byte // of the frame that arrives, and first the preface
	have    int                // bytes of the head
	rest    int                // bytes of the frame that are still to come
	control *rate.Limiter      // nil: the preface has not arrived
	foreign bool               // it is not HTTP/2
}

// take follows some bytes; false if they have too many control frames.
func (f *frames) take(b []byte) bool {
	for len(b) > 0 && !f.foreign {
		skipped := min(f.rest, len(b))
		f.rest, b = f.rest-skipped, b[skipped:]
		length := 9
		if f.control == nil {
			length = len(preface)
		}
		n := copy(f.head[f.have:length], b)
		f.have, b = f.have+n, b[n:]
		if f.have < length {
			break
		}
		f.have = 0
		if f.control == nil {
			f.foreign = string(f.head[:]) != preface
			f.control = rate.NewLimiter(controlASecond, controlAtOnce)
			continue
		}
		f.rest = int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2])
		switch f.head[3] {
		case 0, 1, 3, 8, 9: // DATA, HEADERS, RST_STREAM, WINDOW_UPDATE and CONTINUATION are of requests
		default:
			if !f.control.Allow() {
				return false
			}
		}
	}
	return true
}

// Read implements [net.Conn].
func (c *arrival) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.frames.take(b[:n]) {
		return 0, errControlFrames
	}
	return n, err
}

func boundsOfHTTP2() *http.HTTP2Config {
	return &http.HTTP2Config{
		MaxConcurrentStreams:          streamsOfOne,
		MaxReceiveBufferPerStream:     receivedOfStream,
		MaxReceiveBufferPerConnection: receivedOfConnection,
		SendPingTimeout:               silence,
		PingTimeout:                   silence,
		WriteByteTimeout:              writeTimeout,
	}
}

// streams counts each request over HTTP/2 as if it had come over a connection of its own. Otherwise the
// bounds on connections would mean nothing: each connection may hold a hundred bodies, headers and
// handlers.
func (a *arrivals) streams(next http.Handler, logger *slog.Logger) http.Handler {
	refusing := exchange.Handler(new(atomic.Bool), logger, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		answering(r, exchange.Of(r.Context()), nil, a.metrics).refuse(exchange.Busy(exchange.TooManyConnections))
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor < 2 {
			next.ServeHTTP(w, r)
			return
		}
		from := addressOf(r.RemoteAddr)
		if _, ok := a.admit(from, false); !ok {
			refusing.ServeHTTP(w, r)
			return
		}
		defer a.left(from)
		next.ServeHTTP(w, r)
	})
}
