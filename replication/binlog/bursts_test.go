package binlog

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"
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
	conn := &counted{Conn: here}
	calm := &calmConn{Conn: conn, ctx: t.Context(), calm: new(atomic.Bool)}
	calm.calm.Store(true)

	const events = 300
	go func() {
		for range events {
			_, _ = there.Write([]byte{1})
			time.Sleep(time.Millisecond) // as if the reader did some work in between
		}
	}()
	began := time.Now()
	if _, err := io.ReadFull(calm, make([]byte, events)); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	if most := int64(took/bursts) + 2; conn.reads.Load() > most {
		t.Errorf("%d reads in %v, %d would be bursts", conn.reads.Load(), took, most)
	}

	much := make([]byte, 1<<18)
	go func() { _, _ = there.Write(much) }()
	began = time.Now()
	for left := len(much); left > 0; {
		n, err := calm.Read(make([]byte, 1024))
		if err != nil {
			t.Fatal(err)
		}
		left -= n
	}
	if took := time.Since(began); took > 128*bursts {
		t.Errorf("256 full reads took %v", took)
	}
}

// Before a stream has begun, no read waits.
func TestASignInIsNotReadInBursts(t *testing.T) {
	here, there := pipe(t)
	conn := &calmConn{Conn: here, ctx: t.Context(), calm: new(atomic.Bool)}
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
		if _, err := conn.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took > questions*bursts/2 {
		t.Errorf("%d questions took %v", questions, took)
	}
}

// pipe returns two ends of a connection with a buffer in between.
func pipe(t *testing.T) (here, there net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if here, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if there, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { here.Close(); there.Close() })
	return here, there
}
