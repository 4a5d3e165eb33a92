package binlog

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"

	"kith/storage/sleep"
)

// bursts is how often a reader at the end of a binlog looks for more.
//
// A server sends each event at once, six or seven for a transaction, and each event wakes the
// reader, which costs more than everything else that a reader does. A reader that compares changes
// can wait longer than a replicator. Events that come in the meantime gather in the kernel.
const bursts = 50 * time.Millisecond

// inBursts makes a stream read in bursts once the function it returns is called: not earlier,
// because signing in consists of questions and answers.
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

// calmConn is a connection that is read in bursts once calm is set.
type calmConn struct {
	net.Conn
	ctx  context.Context
	calm *atomic.Bool
	full bool // the last read filled its buffer: there is more
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
