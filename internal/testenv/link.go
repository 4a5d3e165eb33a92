package testenv

import (
	"bytes"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"kith/internal/must"
)

// Link is an address that leads to another one, until the test ends. A test can cut it, or have it hold what is sent, while others still reach
// the other address.
type Link struct {
	Addr string
	back func(l *Link, near, far net.Conn) // passes what the other side sends

	mu       sync.Mutex
	target   string
	others   []string     // where the next connections lead instead, if it leads to several in turn
	listener net.Listener // nil while it is cut
	conns    map[net.Conn]bool
	silent   bool
	changed  sync.Cond // when it is no longer silent, or cut
	traps    []trap
}

// trap makes a link silent when one piece of data contains all its texts.
type trap struct {
	texts  []string
	sprung chan struct{}
}

// NewLink leads to an address.
func NewLink(t testing.TB, target string) *Link {
	t.Helper()
	return newLink(t, target, func(l *Link, near, far net.Conn) { l.pass(far, near, false) })
}

// SlowLink returns the address of a link on which what the other side sends takes its time: so many bytes a second pass on each connection.
func SlowLink(t testing.TB, target string, bytesPerSecond int) string {
	t.Helper()
	return newLink(t, target, func(_ *Link, near, far net.Conn) {
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
	}).Addr
}

// NarrowLink returns the address of a link on which nothing more arrives on a connection once what the other side sends comes in a part of more
// than so many bytes.
func NarrowLink(t testing.TB, target string, most int) string {
	t.Helper()
	return newLink(t, target, func(_ *Link, near, far net.Conn) {
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
	}).Addr
}

func newLink(t testing.TB, target string, back func(l *Link, near, far net.Conn)) *Link {
	t.Helper()
	l := &Link{Addr: "127.0.0.1:0", back: back, conns: map[net.Conn]bool{}}
	l.changed.L = &l.mu
	l.LeadTo(t, target)
	t.Cleanup(l.Cut)
	return l
}

// Silence makes it accept everything and pass nothing on, until what it returns is called. What is sent is kept, and is lost if the sender ends.
func (l *Link) Silence() (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = true
	return l.speak
}

func (l *Link) speak() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = false
	l.changed.Broadcast()
}

// SilenceAt makes it silent before it passes a piece of data on that contains all of some texts. The traps that were set before must first have
// let one such piece through each.
func (l *Link) SilenceAt(texts ...string) (sprung <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	set := trap{texts, make(chan struct{})}
	l.traps = append(l.traps, set)
	return set.sprung
}

// Cut ends all connections, loses what was held, and refuses others.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener != nil {
		l.listener.Close()
	}
	l.listener, l.silent = nil, false
	for c := range l.conns {
		c.Close()
	}
	clear(l.conns)
	l.changed.Broadcast()
}

// Mend leads to the other address again, after Cut.
func (l *Link) Mend(t testing.TB) {
	t.Helper()
	l.LeadTo(t, l.target)
}

// LeadTo leads to another address from now on, after Cut.
func (l *Link) LeadTo(t testing.TB, target string) {
	t.Helper()
	listener, err := net.Listen("tcp4", l.Addr)
	must.OK(t, err)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listener, l.Addr, l.target = listener, listener.Addr().String(), target
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go l.connect(listener, near)
		}
	}()
}

// Turn leads new connections to another address, or to each of several in turn. Those that are open stay where they are, as when a name gets
// another address.
func (l *Link) Turn(targets ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.target, l.others = targets[0], targets[1:]
}

func (l *Link) connect(listener net.Listener, near net.Conn) {
	defer near.Close()
	l.mu.Lock()
	target := l.target
	if len(l.others) > 0 {
		l.target, l.others = l.others[0], append(l.others[1:len(l.others):len(l.others)], target)
	}
	l.mu.Unlock()
	far, err := net.Dial("tcp4", target)
	if err != nil {
		return
	}
	defer far.Close()
	l.mu.Lock()
	there := l.listener == listener // it has not been cut
	l.conns[near], l.conns[far] = there, there
	l.mu.Unlock()
	go func() { defer near.Close(); defer far.Close(); l.back(l, near, far) }()
	l.pass(near, far, true)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, near)
	delete(l.conns, far)
}

// pass passes on what comes from one side until either connection ends.
func (l *Link) pass(from, to net.Conn, trapped bool) {
	for part := make([]byte, 64<<10); ; {
		n, err := from.Read(part)
		if n > 0 && !l.passable(from, part[:n], trapped) {
			return
		}
		if _, failed := to.Write(part[:n]); err != nil || failed != nil {
			return
		}
	}
}

// passable waits while the link is silent. It returns false if the connection has ended in the meantime.
func (l *Link) passable(from net.Conn, part []byte, trapped bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if trapped && len(l.traps) > 0 && !slices.ContainsFunc(l.traps[0].texts, func(text string) bool { return !bytes.Contains(part, []byte(text)) }) {
		close(l.traps[0].sprung)
		l.traps = l.traps[1:]
		l.silent = len(l.traps) == 0
	}
	for l.silent && l.conns[from] {
		l.changed.Wait()
	}
	return l.conns[from]
}
