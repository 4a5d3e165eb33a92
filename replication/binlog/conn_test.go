package binlog

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
)

// counted counts the reads of a connection.
type counted struct {
	net.Conn
	reads atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	c.reads.Add(1)
	return c.Conn.Read(p)
}

// Events that come one by one are read in bursts, and none is lost. If more data has arrived than one read
// takes, the next read does not wait.
func TestACalmConnectionIsReadInBursts(t *testing.T) {
	here, there := pipe(t)
	reads := &counted{Conn: here}
	calm := &conn{Conn: reads, ctx: t.Context(), came: new(atomic.Pointer[time.Time]), calm: new(atomic.Bool)}
	calm.calm.Store(true)

	const events = 300
	go func() {
		for range events {
			_, _ = there.Write([]byte{1})
			time.Sleep(time.Millisecond) // as if the reader did some work in between
		}
	}()
	began := time.Now()
	_, err := io.ReadFull(calm, make([]byte, events))
	must.OK(t, err)
	took := time.Since(began)
	most := int64(took/bursts) + 2
	check.That(t, reads.reads.Load() <= most, "%d reads in %v, %d would be bursts", reads.reads.Load(), took, most)

	much := make([]byte, 1<<18)
	go func() { _, _ = there.Write(much) }()
	began = time.Now()
	for left := len(much); left > 0; {
		n, err := calm.Read(make([]byte, 1024))
		must.OK(t, err)
		left -= n
	}
	check.Most(t, "256 full reads took", time.Since(began), 128*bursts)
}

// Before a stream has begun, no read waits.
func TestASignInIsNotReadInBursts(t *testing.T) {
	here, there := pipe(t)
	asking := &conn{Conn: here, ctx: t.Context(), came: new(atomic.Pointer[time.Time]), calm: new(atomic.Bool)}
	go func() {
		answer := make([]byte, 1)
		for {
			if _, err := there.Read(answer); err != nil {
				return
			}
			if _, err := there.Write(answer); err != nil {
				return
			}
		}
	}()
	const questions = 100
	began := time.Now()
	for range questions {
		_, err := asking.Write([]byte{1})
		must.OK(t, err)
		_, err = asking.Read(make([]byte, 10))
		must.OK(t, err)
	}
	check.Most(t, "the time of all questions", time.Since(began), questions*bursts/2)
}

// pipe returns two ends of a connection with a buffer in between.
func pipe(t *testing.T) (here, there net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	defer l.Close()
	here, err = net.Dial("tcp", l.Addr().String())
	must.OK(t, err)
	there, err = l.Accept()
	must.OK(t, err)
	t.Cleanup(func() { here.Close(); there.Close() })
	return here, there
}

// deadlines counts how often a deadline was set.
type deadlines struct {
	net.Conn
	set int
}

func (d *deadlines) SetReadDeadline(t time.Time) error { d.set++; return d.Conn.SetReadDeadline(t) }

// The deadline is put off now and then, not with every read, and a connection on which nothing comes fails in time.
func TestASilentConnectionFails(t *testing.T) {
	here, there := pipe(t)
	under := &deadlines{Conn: here}
	c := &conn{Conn: under, ctx: t.Context(), came: new(atomic.Pointer[time.Time]), calm: new(atomic.Bool)}
	began := time.Now()
	for range 1000 {
		_, err := there.Write([]byte{1})
		must.OK(t, err)
		_, err = c.Read(make([]byte, 1))
		must.OK(t, err)
	}
	most := 2 + int(time.Since(began)/(silence/20))
	check.That(t, under.set <= most, "%d deadlines were set, want at most %d", under.set, most)
	last := time.Now()
	_, err := c.Read(make([]byte, 1))
	check.That(t, errors.Is(err, os.ErrDeadlineExceeded), "%v", err)
	check.Least(t, "it failed after", time.Since(last), silence-silence/10)
}
