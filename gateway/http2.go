package gateway

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/time/rate"
)

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

	// writtenToStream is how much of a long answer is written to a stream at a time. It becomes one frame, if the
	// client allows frames so long, and nothing else is sent on the connection until the client has taken that
	// frame.
	writtenToStream = 16 << 10

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
