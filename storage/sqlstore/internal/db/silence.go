package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"kith/storage"
)

// A silence is of a server that has not answered several look-ups, one after another. Then what requests ask of it fails at once, until it answers a
// ping. If all waited for as long as a statement may take, those who wait would soon be all requests that a gateway works on, and the other servers'
// answers would wait for them (a circuit breaker: Nygard, "Release It!", 2007).
type silence struct {
	unanswered atomic.Int32 // look-ups, since the last answer

	mu     sync.Mutex
	pinged bool // again and again
	closed bool
}

const (
	silentAfter = 3 // look-ups: one may have had a connection that was lost
	pingAgain   = 250 * time.Millisecond
	pingTime    = time.Second
)

// errStillSilent is the error of what is not asked.
var errStillSilent = fmt.Errorf("%w: %w, and is asked again when it answers a ping", storage.ErrUnavailable, errSilent)

// isSilent returns an error if nothing is asked of the server.
func (n *Shard) isSilent() error {
	if n.silence.unanswered.Load() < silentAfter {
		return nil
	}
	return errStillSilent
}

// heard notes how a statement has ended.
func (n *Shard) heard(err error) {
	s, silent := &n.silence, errors.Is(err, errSilent)
	if !silent && (err != nil || s.unanswered.Load() == 0) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !silent {
		s.unanswered.Store(0)
	} else if s.unanswered.Add(1) >= silentAfter && !s.pinged {
		s.pinged = true
		time.AfterFunc(pingAgain, n.ping)
	}
}

// ping finds out whether a silent server answers again. It has no connection from before, which may be lost.
func (n *Shard) ping() {
	for _, pool := range [...]*sql.DB{n.Read, n.Write} {
		pool.SetMaxIdleConns(0)
		pool.SetMaxIdleConns(pool.Stats().MaxOpenConnections)
	}
	ctx, cancel := context.WithTimeout(context.Background(), pingTime)
	defer cancel()
	err := n.Read.PingContext(ctx)
	s := &n.silence
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.unanswered.Store(0)
	}
	if s.pinged = !s.closed && s.unanswered.Load() >= silentAfter; s.pinged {
		time.AfterFunc(pingAgain, n.ping)
	}
}
