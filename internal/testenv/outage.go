package testenv

import (
	"net"
	"sync"
	"testing"

	"kith/internal/must"
)

// Breakable is an address that leads to another one, until the test ends, and that breaks when the test wants it to.
type Breakable struct {
	Addr   string
	target string
	flow   sync.RWMutex // held while nothing may pass

	mu       sync.Mutex
	listener net.Listener
	conns    []net.Conn
}

// NewBreakable leads to an address.
func NewBreakable(t testing.TB, target string) *Breakable {
	t.Helper()
	b := &Breakable{Addr: "127.0.0.1:0", target: target}
	b.Up(t)
	t.Cleanup(b.Down)
	return b
}

// Silence makes it accept everything and pass nothing on, until what it returns is called.
func (b *Breakable) Silence() (end func()) {
	b.flow.Lock()
	return sync.OnceFunc(b.flow.Unlock)
}

// Down ends all connections, and refuses others.
func (b *Breakable) Down() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listener.Close()
	for _, c := range b.conns {
		c.Close()
	}
	b.conns = nil
}

// Up leads to the other address again, after Down.
func (b *Breakable) Up(t testing.TB) {
	t.Helper()
	listener, err := net.Listen("tcp4", b.Addr)
	must.OK(t, err)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listener, b.Addr = listener, listener.Addr().String()
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go b.connect(listener, near)
		}
	}()
}

func (b *Breakable) connect(listener net.Listener, near net.Conn) {
	far, err := net.Dial("tcp4", b.target)
	if err != nil {
		near.Close()
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.listener != listener { // it has been down
		near.Close()
		far.Close()
		return
	}
	b.conns = append(b.conns, near, far)
	go b.pass(near, far)
	go b.pass(far, near)
}

func (b *Breakable) pass(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	part := make([]byte, 32<<10)
	for {
		n, err := from.Read(part)
		b.flow.RLock()
		_, failed := to.Write(part[:n])
		b.flow.RUnlock()
		if err != nil || failed != nil {
			return
		}
	}
}
