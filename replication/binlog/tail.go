package binlog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"kith/replication"
	"kith/replication/binlog/replica"
	"kith/storage/sleep"
)

const (
	// heartbeat is how often an idle server sends something, and silence is how long it may send
	// nothing: a frozen server is noticed in that time. Without heartbeats, an idle server could
	// not be distinguished from a frozen one.
	heartbeat = time.Second
	silence   = 3 * time.Second

	// stall is how long nothing may arrive although the server has written more.
	stall = 10 * time.Second

	// trifle is the size below which data may be a heartbeat, and does not show that events arrive.
	trifle = 256
)

// tail reads a binlog, for replication and for a [Reader]. Events that it has read were passed on, but
// perhaps not applied yet.
type tail struct {
	server   *server
	feed     *replication.Feed // nil for a Reader
	progress *progress         // likewise
	values   bool              // a Reader wants what is no edge as well
	joins    bool              // and what is of databases that have become shards since it was opened

	heard     time.Time                 // when the server was last heard, heartbeats included
	connected bool                      // there is a connection, and something has come on it
	arrived   bool                      // a new transaction has arrived
	busy      atomic.Bool               // the sink is taking something
	came      atomic.Pointer[time.Time] // when events, or a part of one, came last, or were last dealt with: the clock of the machine may be set
	calm      atomic.Bool               // the connection is read in bursts

	mu      sync.Mutex // guards what watch reads, too
	at      position
	goal    replica.Set // what the server had written when it was asked; the zero value: it has not been
	noticed time.Time   // when it was asked
}

// sink receives a tail's transactions. All but take may be nil.
type sink struct {
	hear     func()                          // something has arrived, if only a heartbeat
	rotated  func(ctx context.Context) error // the server has begun another file
	take     func(*transaction) error        // a transaction, to which the tail has advanced
	complete func() bool                     // nothing after tail.at is wanted
}

func (s sink) isComplete() bool { return s.complete != nil && s.complete() }

// connection reads the binlog on one connection until that ends, or until the sink has all that it
// wants.
func (t *tail) connection(ctx context.Context, to sink) error {
	t.connected, t.arrived = false, false
	if err := t.server.continues(ctx, t.at); err != nil {
		return err
	}
	return t.pastTorn(ctx, t.goOn(ctx, to), to)
}

// goOn reads from the tail's position on.
func (t *tail) goOn(ctx context.Context, to sink) error {
	// Reading the last transaction again proves that the binlog is still the same. That transaction may
	// have been purged although nothing is missing: then only the server can tell whether the binlog
	// continues.
	if t.at.last != (replica.GTID{}) {
		err := t.stream(ctx, replica.Start{After: t.at.before}, true, to)
		if !errors.Is(err, errHistory) || t.arrived || errors.Is(err, errOther) {
			return err
		}
	}
	if to.isComplete() {
		return nil
	}
	return t.stream(ctx, replica.Start{After: t.at.set()}, false, to)
}

// errOther means that the transaction with this GTID is not the one that was read before.
var errOther = errors.New("another transaction bears this GTID: the server was reset")

// stream reads on one connection. With again, the first transaction is the last one that was read.
func (t *tail) stream(session context.Context, from replica.Start, again bool, to sink) error {
	s := t.server
	ctx, cancel := context.WithCancelCause(session)
	defer cancel(nil)
	t.came.Store(new(time.Now()))
	t.calm.Store(false)
	from.ID, from.Heartbeat = s.id(), heartbeat
	if t.feed == nil {
		// The id differs from those of the replicator and of other readers: if two connections have
		// the same id, the server ends the older one.
		from.ID = 1<<31 | rand.Uint32()
	}
	conn, err := t.open(ctx)
	if err == nil {
		err = conn.Start(from)
	}
	if err != nil {
		return s.streamError(err)
	}
	t.calm.Store(t.feed == nil) // not earlier, because signing in consists of questions and answers
	watching := make(chan struct{})
	defer func() { cancel(nil); <-watching }()
	go func() {
		defer close(watching)
		t.watch(ctx, cancel)
	}()
	a := &assembler{server: s.name, databases: s.databases, skip: s.cfg.Skip, both: t.feed == nil, values: t.feed != nil || t.values}
	if t.joins {
		a.joined = func(schema string) (bool, error) { return s.joined(ctx, schema) }
	}
	for {
		e, err := conn.Next()
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		if err != nil {
			return s.streamError(err)
		}
		if to.hear != nil {
			to.hear()
		}
		switch {
		case e.Kind == replica.RotateEvent && to.rotated == nil:
			continue
		case e.Kind == replica.RotateEvent && e.Time > 0: // not the one at the beginning of a stream
			if err := t.pass(func() error { return to.rotated(session) }); err != nil {
				return err
			}
			continue
		case e.Kind == replica.MariaGTIDListEvent && from.File != "":
			if err := t.begins(e); err != nil {
				return err
			}
		}
		done, err := a.add(e)
		if err != nil {
			return err
		}
		if done == nil {
			continue
		}
		if again {
			again = false
			if done.gtid != t.at.last || done.print != t.at.print {
				return fmt.Errorf("%w: %w: %s", errHistory, errOther, done.gtid)
			}
		} else if err := t.pass(func() error { t.advance(done); return to.take(done) }); err != nil {
			return err
		}
		if to.isComplete() {
			return nil
		}
	}
}

// pass lets the sink take something, which may make it wait. The sink gets the session's context: a transaction that is
// taken in part, because the connection ends meanwhile, would hold up the checkpoint.
func (t *tail) pass(take func() error) error {
	t.busy.Store(true)
	defer t.busy.Store(false)
	defer func() { t.came.Store(new(time.Now())) }()
	return take()
}

func (t *tail) advance(done *transaction) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at.advance(done.gtid, done.print)
	t.arrived = true
}

// continues refuses a server whose binlog lacks what has been read of it. After a reset, MariaDB
// itself would skip as many transactions as were read before, if it had written none yet.
func (s *server) continues(ctx context.Context, at position) error {
	ctx, cancel := context.WithTimeout(ctx, 2*silence)
	defer cancel()
	read := at.set()
	for began := time.Now(); ; _ = sleep.For(ctx, firstPause) {
		set, err := s.serverPosition(ctx)
		if err != nil || set.Contains(read) {
			return err
		}
		// MySQL counts a transaction as executed slightly after sending it.
		if s.flavor == mariaDB || time.Since(began) > silence {
			return fmt.Errorf("%w: %s has been read, the server is at %s", errHistory, read, set)
		}
	}
}

// watch runs beside the stream and compares what the server has written with what has been read: a
// server that was reset may leave the stream open and silent without end.
func (t *tail) watch(ctx context.Context, cancel context.CancelCauseFunc) {
	var ahead time.Time // since when the same position has been ahead of the server's
	var last string
	for sleep.For(ctx, lockCheck) == nil {
		read := t.read()
		set, err := t.server.serverPosition(ctx)
		if err != nil {
			ahead = time.Time{}
			continue // the stream has the same error
		}
		noticed := t.see(set)
		if t.feed != nil {
			t.feed.Silent(t.unread())
		}
		if !read.Contains(set) || read.Equal(set) || ahead.IsZero() || read.String() != last {
			ahead, last = time.Now(), read.String()
		}
		switch {
		case time.Since(ahead) > silence && read.Contains(set):
			// Reading came first, the question later: the server cannot be behind.
			cancel(fmt.Errorf("%w: %s has been read, the server is at %s", errHistory, read, set))
			return
		case time.Since(noticed) > stall && time.Since(*t.came.Load()) > stall && !t.busy.Load():
			cancel(fmt.Errorf("nothing has arrived for %s although the server is at %s and %s was read last", stall, set, read))
			return
		}
	}
}

// read is what has been read.
func (t *tail) read() replica.Set {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.at.set()
}

// see notes what the server has written, once everything has been read that it had written before. It returns when
// that was seen.
func (t *tail) see(written replica.Set) time.Time {
	unread := t.unread()
	t.mu.Lock()
	defer t.mu.Unlock()
	if unread.IsZero() {
		t.goal, t.noticed = written, time.Now()
	}
	return t.noticed
}

// unread is since when something is known that has not been read, also on earlier connections; zero if nothing is.
func (t *tail) unread() (since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.goal != nil && !t.at.set().Contains(t.goal) {
		since = t.noticed
	}
	return since
}
