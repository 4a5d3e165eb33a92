package gateway

import (
	"net"
	"net/http"
	"net/netip"
	"time"
)

// HTTP/2 has many requests, each a stream, on one connection. net/http bounds what one connection does: it runs no more handlers
// than streams, including streams that the client resets at once (CVE-2023-44487), and closes a connection with many more resets,
// with headers without end (CVE-2023-45288), or with control frames whose answers it does not take.
const (
	// streamsOfOne is how many requests one connection may have in work. RFC 9113 advises at least 100.
	streamsOfOne = 100

	// Bytes of bodies that are received and not read yet. The first is what each stream may send
	// before the server has said anything (RFC 9113, section 6.9.2).
	receivedOfStream     = 64 << 10
	receivedOfConnection = 256 << 10

	// A connection whose client is gone is found by its silence.
	silence = 15 * time.Second

	// writtenToStream is how much of a long answer is written to a stream at a time. It becomes one frame, if the
	// client allows frames so long, and nothing else is sent on the connection until the client has taken that
	// frame.
	writtenToStream = 16 << 10
)

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
func (a *arrivals) streams(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor < 2 {
			next.ServeHTTP(w, r)
			return
		}
		address, _ := netip.ParseAddrPort(r.RemoteAddr)
		stream := &arrival{Conn: noConn{}, to: a, address: address.Addr().Unmap()}
		if !a.fits(stream) {
			a.metrics.turnedAway()
			refused := answer{w: w, exchange: &exchange{}, media: mediaJSON}
			refused.setHeaders()
			busy(w, refused, tooManyConnections)
			return
		}
		defer stream.Close()
		next.ServeHTTP(w, r)
	})
}

// noConn stands for the connection of a stream; closing it does nothing.
type noConn struct{ net.Conn }

func (noConn) Close() error { return nil }

// closing has the connection closed after the answer. A connection of HTTP/2 stays open: it has other
// requests on it.
func closing(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor < 2 {
		w.Header().Set("Connection", "close")
	}
}
