package binlog

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"kith/storage/sleep"
)

// lock is the right to work on a server: a named lock of one connection. The server gives it to the
// next replicator as soon as that connection is gone.
type lock struct {
	server *server
	own    string // what that says of itself
	name   string
	db     *sql.DB
	conn   *sql.Conn
}

const (
	// lockCheck is how often the holder checks that it still has the lock. The server drops the
	// connection if it is silent for lockSilence, so a machine that vanishes loses the lock within
	// that time.
	lockCheck   = time.Second
	lockSilence = "6" // seconds

	// lockPatience is how long the server may take to answer such a check.
	lockPatience = 3 * time.Second

	// unattended is how long nobody may have the lock, as when one replicator takes over from another.
	unattended = 10 * time.Second
)

func (s *server) lockName() string { return "kith_replicate/" + s.digest("lock") }

// watch lets the lag grow while no replicator has the server's lock, until the context ends.
func (s *server) watch(ctx context.Context) error {
	feed := s.cfg.Applier.Feed(s.source())
	defer feed.Close()
	for alive := time.Now(); ctx.Err() == nil; _ = sleep.For(ctx, 2*lockCheck) {
		var holder sql.NullInt64
		err := s.db.QueryRowContext(ctx, `SELECT IS_USED_LOCK(?)`, s.lockName()).Scan(&holder)
		switch {
		case err == nil && holder.Valid:
			alive = time.Now()
			feed.Silent(time.Time{})
			s.set(Waiting, nil)
			continue
		case err != nil:
			s.set(Connecting, err)
		case time.Since(alive) > unattended && s.status().State != NoReplicator:
			s.set(NoReplicator, errNobody)
			s.log().Warn("replication: no replicator works on this server: none runs, or it has stopped")
		}
		if own, err := s.ownOf(ctx, s.db); err == nil {
			s.becomes(own)
		}
		feed.Silent(alive)
	}
	return nil
}

// lock waits until no other replicator works on the server.
func (s *server) lock(ctx context.Context) (*lock, error) {
	db, err := s.pool(2, lockPatience+2*time.Second, map[string]string{"wait_timeout": lockSilence})
	if err != nil {
		return nil, err
	}
	l := &lock{server: s, db: db}
	if l.conn, err = db.Conn(ctx); err == nil {
		l.own, err = s.ownOf(ctx, l.conn)
	}
	if err != nil {
		l.release()
		return nil, err
	}
	if before, another := s.becomes(l.own); another && s.before == "" {
		s.before = before
	}
	l.name = s.lockName()
	for {
		var got sql.NullInt64
		if err := l.conn.QueryRowContext(ctx, `SELECT GET_LOCK(?, 2)`, l.name).Scan(&got); err != nil {
			l.release()
			return nil, fmt.Errorf("take the lock: %w", err)
		}
		if got.Int64 == 1 {
			return l, nil
		}
		s.before = "" // the other one continues
		s.heard()
		if s.status().State != Waiting {
			s.set(Waiting, nil)
			s.log().Info("replication: another replicator is active on this server: standing by")
		}
	}
}

// keep checks the lock until the context ends, and cancels the work if the lock is lost.
func (l *lock) keep(ctx context.Context, cancel context.CancelCauseFunc) {
	for ; ctx.Err() == nil; _ = sleep.For(ctx, lockCheck) {
		err := l.check(ctx)
		if err == nil {
			err = l.stays(ctx)
		}
		if err != nil {
			cancel(err)
			return
		}
	}
}

// check asks whether the connection has the lock. A question that is under way when the context ends is answered all the same:
// to cancel it would close the connection, and another replicator would begin before the last checkpoint is saved.
func (l *lock) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockPatience)
	defer cancel()
	var mine sql.NullBool
	err := l.conn.QueryRowContext(ctx, `SELECT IS_USED_LOCK(?) = CONNECTION_ID()`, l.name).Scan(&mine)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errLostLock, err)
	case !mine.Bool:
		return errLostLock
	}
	return nil
}

// stays returns an error if a new connection leads to another server: one that was demoted may keep this one, and the lock with it, while others
// work on the new one.
func (l *lock) stays(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	own, err := l.server.ownOf(ctx, l.db)
	if err == nil && own != l.own {
		return fmt.Errorf("%w: the address leads to another server", errLostLock)
	}
	return nil
}

// release releases the lock by closing its connection, once a check has been answered.
func (l *lock) release() {
	if l.conn != nil {
		l.conn.Close()
	}
	l.db.Close()
}
