package testenv

import (
	"io"
	"net"
	"testing"
	"time"

	"kith/internal/must"
)

// SlowLink returns an address that leads to another one, until t ends. What the other side sends takes its time: so
// many bytes a second pass on each connection.
func SlowLink(t testing.TB, target string, bytesPerSecond int) string {
	t.Helper()
	return link(t, target, func(near, far net.Conn) {
		if tcp, ok := far.(*net.TCPConn); ok {
			_ = tcp.SetReadBuffer(64 << 10) // the rest waits at the server, as behind a slow link
		}
		const pause = 20 * time.Millisecond
		part := make([]byte, max(1, bytesPerSecond/int(time.Second/pause)))
		for {
			n, err := far.Read(part)
			if _, failed := near.Write(part[:n]); err != nil || failed != nil {
				return
			}
			if n > len(part)/2 { // answers to small questions are not held up
				time.Sleep(pause)
			}
		}
	})
}

// NarrowLink returns an address that leads to another one, until t ends. If what the other side sends comes in a part
// of more than so many bytes, nothing more arrives on that connection.
func NarrowLink(t testing.TB, target string, most int) string {
	t.Helper()
	return link(t, target, func(near, far net.Conn) {
		part := make([]byte, most+1)
		for {
			n, err := far.Read(part)
			if n > most {
				_, _ = io.Copy(io.Discard, far)
				return
			}
			if _, failed := near.Write(part[:n]); err != nil || failed != nil {
				return
			}
		}
	})
}

// link lets pass what comes from the near side, and back what pass lets pass.
func link(t testing.TB, target string, pass func(near, far net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	must.OK(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer near.Close()
				far, err := net.Dial("tcp4", target)
				if err != nil {
					return
				}
				defer far.Close()
				go func() { defer far.Close(); _, _ = io.Copy(far, near) }()
				pass(near, far)
			}()
		}
	}()
	return listener.Addr().String()
}
