package faults_test

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"

	"kith/internal/must"
)

// link is the connection of one process to Redis, or of all to one server. It can be interrupted while other processes
// still reach Redis.
type link struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	state linkState
	conns map[net.Conn]bool
	moved sync.Cond // when the state changes
	traps []trap
}

// trap makes the link hold when one piece of data contains all its texts.
type trap struct {
	texts  []string
	sprung chan struct{}
}

type linkState byte

const (
	whole   linkState = iota
	holding           // what is sent is kept, and is lost if the sender ends
	cut               // nothing gets through
)

// newLink makes a link to an address.
func newLink(t testing.TB, target string) *link {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	must.OK(t, err)
	l := &link{listener: listener, target: target, conns: map[net.Conn]bool{}}
	l.moved.L = &l.mu
	go l.serve()
	t.Cleanup(func() { listener.Close(); l.become(cut) })
	return l
}

// url is the URL that the process is given for its Redis.
func (l *link) url() string { return "redis://" + l.listener.Addr().String() + "/0" }

func (l *link) serve() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		go l.connect(near)
	}
}

func (l *link) connect(near net.Conn) {
	defer near.Close()
	l.mu.Lock()
	target := l.target
	l.mu.Unlock()
	far, err := net.Dial("tcp4", target)
	if err != nil {
		return
	}
	defer far.Close()
	if !l.enter(near, far) {
		return
	}
	defer l.leave(near, far)
	go func() { defer near.Close(); _, _ = io.Copy(near, far) }() // it ends when either connection ends
	part := make([]byte, 64<<10)
	for {
		n, err := near.Read(part)
		if n > 0 && l.passable(near, part[:n]) {
			_, err = far.Write(part[:n])
		}
		if err != nil {
			return
		}
	}
}

// set makes the link hold before a piece of data that contains all of some texts. The traps that
// were set before must first have let one such piece through each.
func (l *link) set(texts ...string) (sprung <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := trap{texts, make(chan struct{})}
	l.traps = append(l.traps, t)
	return t.sprung
}

// meet springs the first trap, if it is set for a piece. The lock is held.
func (l *link) meet(part []byte) {
	if len(l.traps) == 0 {
		return
	}
	for _, text := range l.traps[0].texts {
		if !bytes.Contains(part, []byte(text)) {
			return
		}
	}
	close(l.traps[0].sprung)
	if l.traps = l.traps[1:]; len(l.traps) == 0 {
		l.state = holding
	}
}

// passable waits while the link holds. It returns false if the connection has ended in the meantime.
func (l *link) passable(near net.Conn, part []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.meet(part)
	for l.state == holding && l.conns[near] {
		l.moved.Wait()
	}
	return l.conns[near]
}

func (l *link) enter(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == cut {
		return false
	}
	for _, c := range conns {
		l.conns[c] = true
	}
	return true
}

func (l *link) leave(conns ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		delete(l.conns, c)
	}
}

// become changes the state. Cutting the link ends all connections, and data that was held is lost.
func (l *link) become(state linkState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = state
	if state == cut {
		for c := range l.conns {
			c.Close()
		}
		clear(l.conns)
	}
	l.moved.Broadcast()
}

// leadTo makes the link whole, and lead to another address from now on.
func (l *link) leadTo(target string) {
	l.mu.Lock()
	l.target = target
	l.mu.Unlock()
	l.become(whole)
}
