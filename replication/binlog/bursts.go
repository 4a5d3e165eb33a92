package binlog

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"

	"kith/internal/sleep"
)

// bursts is how often a reader that is at the end of a binlog looks for more.
//
// A server sends every event as it comes, six or seven to a transaction, and whoever
// waits for each is woken as often: that costs more than all else a reader does. Who
// compares what has happened is in no such hurry as who replicates. What comes in
// between gathers in the kernel.
const bursts = 50 * time.Millisecond

// inBursts has a stream read in bursts once what it returns is called: not before, since
// signing in is questions and answers.
func inBursts(ctx context.Context, cfg *replication.BinlogSyncerConfig) (begin func()) {
	calm, dial := new(atomic.Bool), cfg.Dialer
	cfg.Dialer = func(dialing context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(dialing, network, address)
		if err != nil {
			return nil, err
		}
		return &calmConn{Conn: conn, ctx: ctx, calm: calm}, nil
	}
	return func() { calm.Store(true) }
}

// calmConn is a connection of which is read in bursts, once it is calm.
type calmConn struct {
	net.Conn
	ctx  context.Context
	calm *atomic.Bool
	full bool // the last read left no room: there is more
	last time.Time
}

func (c *calmConn) Read(p []byte) (int, error) {
	if c.calm.Load() && !c.full {
		_ = sleep.For(c.ctx, time.Until(c.last.Add(bursts)))
	}
	n, err := c.Conn.Read(p)
	c.full, c.last = n == len(p), time.Now()
	return n, err
}
