package prepared

import (
	"context"
	"database/sql/driver"
	"sync/atomic"
	"time"
)

// Generation is the connections that were opened while an address led to the same server, as far as is known. An error ends it: then
// connections are closed instead of being used again. Nil never ends.
type Generation struct {
	Ends func(error) bool // reports whether an error does so

	number atomic.Int64
	began  atomic.Pointer[time.Time] // by the monotonic clock; nil: none has ended
}

// generationTime is how long a generation lasts at least. While no server takes writes, each of them would close all connections.
const generationTime = time.Second

func (g *Generation) now() int64 {
	if g == nil {
		return 0
	}
	return g.number.Load()
}

// hear takes the answer of a server.
func (g *Generation) hear(err error) {
	if err == nil || g == nil || !g.Ends(err) {
		return
	}
	now, began := time.Now(), g.began.Load()
	if (began == nil || now.Sub(*began) >= generationTime) && g.began.CompareAndSwap(began, &now) {
		g.number.Add(1)
	}
}

// ResetSession implements [driver.SessionResetter].
func (c *conn) ResetSession(ctx context.Context) error {
	if c.born != c.of.Generation.now() {
		return driver.ErrBadConn
	}
	return c.connection.ResetSession(ctx)
}
