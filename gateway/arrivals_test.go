package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/gateway"
	"kith/gateway/exchange"
	"kith/internal/check"
	"kith/internal/metered"
	"kith/internal/must"
)

// serveFor serves a config until the test ends, and returns its address.
func serveFor(t *testing.T, cfg gateway.Config) string {
	t.Helper()
	return serveAt(t, cfg, func(l net.Listener) net.Listener { return l })
}

// serveAt is serveFor with a listener around that of the gateway.
func serveAt(t *testing.T, cfg gateway.Config, around func(net.Listener) net.Listener) string {
	t.Helper()
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	must.OK(t, err)
	cfg.Schema, cfg.Logger = newSchema(nil), slog.New(slog.DiscardHandler)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- gateway.Serve(ctx, cfg, around(listener), 0) }()
	t.Cleanup(func() { stop(); <-ended })
	return fmt.Sprint(listener.Addr().(*net.TCPAddr).Port)
}

// arriving is a listener whose connections come from given addresses, one after another.
type arriving struct {
	net.Listener
	from chan string
}

type arrived struct {
	net.Conn
	from *net.TCPAddr
}

func (a arriving) Accept() (net.Conn, error) {
	conn, err := a.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return arrived{conn, &net.TCPAddr{IP: net.ParseIP(<-a.from), Port: 1}}, nil
}

func (a arrived) RemoteAddr() net.Addr { return a.from }

// alive asks over a connection whether the gateway is up.
func alive(conn net.Conn) bool {
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return false
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	return err == nil && response.StatusCode == http.StatusOK
}

func dial(t *testing.T, from, port string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.Dial("tcp", "127.0.0.1:"+port)
	must.OK(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// closed waits until the other end has closed a connection.
func closed(conn net.Conn) bool {
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	_, err := conn.Read(make([]byte, 1))
	timeout, ok := err.(net.Error)
	return err != nil && !(ok && timeout.Timeout())
}

// TestOneAddressCannotTakeAllConnections: one address can do so neither with connections that send
// nothing, nor with connections that stay open.
func TestOneAddressCannotTakeAllConnections(t *testing.T) {
	registry := prometheus.NewRegistry()
	port := serveFor(t, gateway.Config{MaxConnections: 4, Metrics: exchange.NewMetrics(registry)})
	silent := []net.Conn{dial(t, "127.0.0.1", port), dial(t, "127.0.0.1", port)}
	check.That(t, closed(dial(t, "127.0.0.1", port)), "one address has more than half of the connections")
	check.Equal(t, "refused", metered.Value(t, registry, "kith_http_connections_refused_total"), 1)
	others := []net.Conn{dial(t, "127.0.0.2", port), dial(t, "127.0.0.2", port)}
	for i, other := range others {
		check.That(t, alive(other), "another address has no room")
		must.Soon(t, "it is idle", func() bool { return metered.Value(t, registry, "kith_http_connections_idle") == float64(i+1) })
	}
	// All connections are taken. The connection that has been idle for the longest time makes room
	// for another address.
	must.Soon(t, "an idle connection makes room", func() bool { return alive(dial(t, "127.0.0.3", port)) })
	check.That(t, closed(others[0]) && alive(others[1]), "another connection than the one idle for longest made room")
	check.That(t, alive(silent[0]), "a connection that was let in was closed")
	// One address also makes room for itself.
	must.Soon(t, "an address at its bound makes room for itself", func() bool { return alive(dial(t, "127.0.0.1", port)) })
	check.That(t, closed(silent[0]), "it made room by closing another than its own idle one")
}

// Whoever has one address of IPv6 has 2^64 of them, which count as one.
func TestManyAddressesOfOneNetworkAreOne(t *testing.T) {
	from := make(chan string, 1)
	port := serveAt(t, gateway.Config{MaxConnections: 4, Metrics: exchange.NewMetrics(prometheus.NewRegistry())}, func(l net.Listener) net.Listener { return arriving{l, from} })
	for _, silent := range []string{"2001:db8::1", "2001:db8::2"} {
		from <- silent
		dial(t, "127.0.0.1", port)
	}
	from <- "2001:db8::ffff:3"
	check.That(t, !alive(dial(t, "127.0.0.1", port)), "one network has more than half of the connections")
	from <- "2001:db8:0:1::1"
	check.That(t, alive(dial(t, "127.0.0.1", port)), "another network has no room")
}

// breaking is a listener whose connections break while something is written, once it is told so. It counts how often they are closed.
type breaking struct {
	net.Listener
	breaks, closes *atomic.Int32
}

type breakable struct {
	net.Conn
	of breaking
}

func (b breaking) Accept() (net.Conn, error) {
	conn, err := b.Listener.Accept()
	return breakable{conn, b}, err
}

func (b breakable) Write(text []byte) (int, error) {
	if b.of.breaks.Load() > 0 {
		return 0, net.ErrClosed
	}
	return b.Conn.Write(text)
}

func (b breakable) Close() error {
	b.of.closes.Add(1)
	return b.Conn.Close()
}

// TestBrokenConnectionsAreNotIdle: net/http closes a connection of HTTP/2 whose client has gone, and says that it is idle when its requests
// have ended, and closes it again.
func TestBrokenConnectionsAreNotIdle(t *testing.T) {
	registry, breaks, closes := prometheus.NewRegistry(), new(atomic.Int32), new(atomic.Int32)
	cfg := gateway.Config{RequestTimeout: 200 * time.Millisecond, Metrics: exchange.NewMetrics(registry)}
	port := serveAt(t, cfg, func(l net.Listener) net.Listener { return breaking{l, breaks, closes} })
	client := overHTTP2(t)
	answered := make(chan error, 1)
	go func() {
		response, err := client.Get("http://127.0.0.1:" + port + "/graphql?query=%7Bwait%7D")
		if err == nil {
			response.Body.Close()
		}
		answered <- err
	}()
	must.Soon(t, "it waits", func() bool { return metered.Value(t, registry, "kith_graphql_requests_in_flight") == 1 })
	breaks.Store(1)
	must.That(t, <-answered != nil, "the answer was written")
	must.Soon(t, "the connection has been closed again", func() bool { return closes.Load() >= 2 })
	check.Equal(t, "idle connections, of which none is open", metered.Value(t, registry, "kith_http_connections_idle"), 0)
}
