package binlog

import (
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// deadlines counts how often a deadline was set.
type deadlines struct {
	net.Conn
	set []time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error { d.set = append(d.set, t); return nil }

func TestDeadlinesArePutOffNowAndThen(t *testing.T) {
	under := &deadlines{}
	c := &slackConn{Conn: under, came: new(atomic.Int64)}
	begin := time.Now()
	never := time.Time{}
	for _, at := range []time.Time{
		begin, begin.Add(slack / 2), begin.Add(slack), // the second deadline is left out
		never, begin.Add(slack), // a deadline after none was set
		begin, // an earlier deadline, which ends a wait
	} {
		_ = c.SetReadDeadline(at)
	}
	want := []time.Time{begin, begin.Add(slack), never, begin.Add(slack), begin}
	if len(under.set) != len(want) {
		t.Fatalf("%d deadlines were set, want %d", len(under.set), len(want))
	}
	for i, at := range under.set {
		if !at.Equal(want[i]) {
			t.Errorf("deadline %d is %s, want %s", i, at, want[i])
		}
	}
}
