package testenv

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kith/internal/child"
	"kith/internal/must"
)

// Server is what every kind of server can do: end, restart, freeze. Its methods fail the test if
// they cannot do so. They must not be called by several goroutines at once on one server.
type Server struct {
	kind   string
	bin    string
	dir    string
	port   int
	taken  *os.File               // the lock of the port, see freePort
	args   func(*Server) []string // the command line, for a port and folder
	answer func(*Server) error    // nil once the server answers on its own socket
	child  *child.Process
	shared bool // belongs to the test binary: tests must hand it back running
}

// Addr returns the server's address, "127.0.0.1:port". It stays the same over a Restart.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Socket returns the path of the server's unix socket.
func (s *Server) Socket() string { return filepath.Join(s.dir, "sock") }

// PID returns the process id of the server as it runs now.
func (s *Server) PID() int { return s.child.PID() }

// Log returns the path of the server's error log.
func (s *Server) Log() string { return filepath.Join(s.dir, "log") }

// Stop ends the server properly and waits until it has ended. If the server is down, it stays down.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	s.handBack(t)
	must.OK(t, s.end(syscall.SIGTERM))
}

// Kill ends the server as a crash does (kill -9) and waits until it is gone.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	s.handBack(t)
	must.OK(t, s.end(syscall.SIGKILL))
}

// Restart starts the server again on the same data and port, stopping it first if
// it runs, and returns when it answers.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	must.OK(t, s.end(syscall.SIGTERM))
	must.OK(t, s.run())
}

// Freeze stops the server's process (SIGSTOP): its port accepts connections and nothing answers.
// The server is thawed at the end of the test at the latest.
func (s *Server) Freeze(t testing.TB) {
	t.Helper()
	t.Cleanup(func() { _ = s.child.Signal(syscall.SIGCONT) })
	err := s.child.Signal(syscall.SIGSTOP)
	must.That(t, err == nil, "freeze %s: %v", s.kind, err)
	must.That(t, poll(func() bool { return stopped(s.PID()) || !s.child.Running() }) && s.child.Running(), "freeze %s: it did not come to a stop", s.kind)
}

// Thaw lets a frozen server continue.
func (s *Server) Thaw(t testing.TB) {
	t.Helper()
	err := s.child.Signal(syscall.SIGCONT)
	must.That(t, err == nil, "thaw %s: %v", s.kind, err)
}

// handBack makes sure that a shared server runs again for the next test.
func (s *Server) handBack(t testing.TB) {
	if !s.shared {
		return
	}
	t.Cleanup(func() {
		if !s.child.Running() {
			s.Restart(t)
		}
	})
}

// start runs the server for the first time, on a free port.
func (s *Server) start() error {
	const attempts = 10
	for attempt := 1; ; attempt++ {
		port, lock, err := freePort()
		if err != nil {
			return err
		}
		s.port, s.taken = port, lock
		err = s.run()
		// A program that does not use the locks may have taken the port since it was found free.
		if err == nil || attempt == attempts || !strings.Contains(child.Tail(s.Log(), 50), "ddress already in use") {
			return err
		}
		_ = lock.Close()
		if err := os.Truncate(s.Log(), 0); err != nil {
			return err
		}
	}
}

// run starts the program and waits until it answers.
func (s *Server) run() (err error) {
	// A killed server leaves its socket; only the new one's may answer below.
	if err := os.Remove(s.Socket()); err != nil && !os.IsNotExist(err) {
		return err
	}
	if s.child, err = child.StartLogged(s.Log(), exec.Command(s.bin, s.args(s)...)); err != nil {
		return err
	}
	if err = s.child.Answers(context.Background(), func(context.Context) error { return s.answer(s) }); err != nil {
		_ = s.end(syscall.SIGKILL)
	}
	return err
}

// end sends how (SIGTERM or SIGKILL) and waits until the program is gone. A frozen
// program is woken, or it would never see SIGTERM.
func (s *Server) end(how syscall.Signal) error {
	if s.child == nil || !s.child.Running() {
		return nil
	}
	for _, sig := range []syscall.Signal{how, syscall.SIGCONT} {
		if err := s.child.Signal(sig); err != nil {
			return fmt.Errorf("end %s: %w", s.kind, err)
		}
	}
	if !s.child.Ends() {
		return fmt.Errorf("end %s: still there %s after %s; its log ends:\n%s", s.kind, child.Patience, how, child.Tail(s.Log(), 20))
	}
	return nil
}

// remove ends the server the fast way, because its data are not needed, and deletes them.
func (s *Server) remove() error {
	if err := s.end(syscall.SIGKILL); err != nil {
		return err
	}
	_ = s.taken.Close()
	return os.RemoveAll(s.dir)
}

// poll asks done every few milliseconds until it says yes or [child.Patience] ends.
func poll(done func() bool) bool {
	deadline := time.Now().Add(child.Patience)
	for !done() {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(5 * time.Millisecond)
	}
	return true
}

// FreeAddress is an address of this machine on which no program listens, and that no other test gets until this one ends.
func FreeAddress(t testing.TB) string {
	t.Helper()
	port, lock, err := freePort()
	must.OK(t, err)
	t.Cleanup(func() { lock.Close() })
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// freePort finds a port on which no program listens, below the range that the kernel gives to
// outgoing connections, and locks it: until the lock is closed, or this process ends, no other
// server of the tests gets it. So a server that is down for a while finds its port still free. The
// port 10,000 above, which a Redis of a cluster uses to talk to the others, is not given to another
// server, either.
func freePort() (int, *os.File, error) {
	const low, high, attempts = 12000, 22000, 200
	base, err := baseIn("/tmp") // all test processes share the ports, also those with temporary files elsewhere
	if err != nil {
		return 0, nil, err
	}
	folder := filepath.Join(base, "ports")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return 0, nil, err
	}
	var last error
	for range attempts {
		port := strconv.Itoa(low + rand.IntN(high-low))
		lock, err := lockFile(filepath.Join(folder, port), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != nil {
			last = err
			continue
		}
		listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", port))
		if err == nil {
			number, _ := strconv.Atoi(port)
			return number, lock, listener.Close()
		}
		last = err
		_ = lock.Close()
	}
	return 0, nil, fmt.Errorf("find a free port: %w", last)
}
