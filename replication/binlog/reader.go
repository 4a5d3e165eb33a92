package binlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	binlog "github.com/go-mysql-org/go-mysql/replication"

	"kith/storage"
)

// ErrHistory means that a binlog does not go on from a position: it was purged, or
// the server was reset or replaced.
var ErrHistory = errHistory

// A Change is one row of a table of edges as a transaction left it. A row that
// was deleted has type None at time 0.
type Change struct {
	Side storage.Side
	Edge storage.Edge
}

// A Reader reads the changes of all tables of edges from the binlogs of a store's
// servers. It takes no lock and applies nothing, so any number may read at once.
type Reader struct{ logs []*Log }

// A Log is the binlog of one server.
type Log struct{ server *server }

// OpenReader asks every DSN for its server, until all have answered; the caller
// closes the reader. A server whose binlog does not say enough is a [StopError].
func OpenReader(ctx context.Context, dsns []string, logger *slog.Logger) (*Reader, error) {
	replicator := New(Config{DSNs: dsns, Logger: logger})
	servers, err := replicator.identify(ctx)
	if err == nil {
		err = ctx.Err()
	}
	r := &Reader{}
	for _, s := range servers {
		r.logs = append(r.logs, &Log{s})
		if err == nil {
			err = s.preflight(ctx)
		}
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Logs are those of the servers, one each.
func (r *Reader) Logs() []*Log { return r.logs }

// Close releases the connections.
func (r *Reader) Close() error {
	var errs []error
	for _, l := range r.logs {
		errs = append(errs, l.server.db.Close())
	}
	return errors.Join(errs...)
}

// Name tells the log from those of other servers and stores, in a few characters.
func (l *Log) Name() string { return l.server.digest("checkpoint") }

// Server is the server's address.
func (l *Log) Server() string { return l.server.name }

// End is the position behind all that is in the log now.
func (l *Log) End(ctx context.Context) (string, error) {
	set, err := l.server.serverPosition(ctx)
	if err != nil {
		return "", err
	}
	return l.text(position{before: set})
}

func (l *Log) text(p position) (string, error) {
	c := checkpoint{Server: l.server.name, Flavor: l.server.flavor, Databases: l.server.databases, Before: p.before.String(), Print: p.print}
	if p.last != (gtid{}) {
		c.Last = p.last.String()
	}
	value, err := json.Marshal(c)
	return string(value), err
}

func (l *Log) position(text string) (position, error) {
	var c checkpoint
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return position{}, fmt.Errorf("%w: the position cannot be read: %w", errHistory, err)
	}
	if c.Flavor != l.server.flavor {
		return position{}, fmt.Errorf("%w: it is of %s, not of %s", errHistory, c.Flavor, l.server.flavor)
	}
	p, err := c.position()
	if err != nil {
		return position{}, fmt.Errorf("%w: %w", errHistory, err)
	}
	return p, nil
}

// Read gives the changes behind a position to take, transaction by transaction, in
// the order of the log: up to a position, or, where that is empty, until the context
// ends or the connection does. With them comes the position behind them, which may
// be asked for only during the call. Transactions that change no edges are given as
// well, with no changes, but for Kith's own bookkeeping.
//
// Its errors: what take returns; [ErrHistory]; a [StopError] where the log does not
// say row by row what was changed; others, after which the same may succeed.
func (l *Log) Read(ctx context.Context, after, upTo string, take func(changes []Change, at func() (string, error)) error) error {
	at, err := l.position(after)
	if err != nil {
		return err
	}
	r := &reading{Log: l, tail: tail{server: l.server, at: at}, take: take}
	if upTo != "" {
		end, err := l.position(upTo)
		if err != nil {
			return err
		}
		r.end = end.set()
	}
	if err := l.server.continues(ctx, at); err != nil {
		return err
	}
	// As the replicator does: the last transaction is read again, to prove that the
	// binlog is still the one it was.
	if at.last != (gtid{}) {
		err := r.stream(ctx, at.before, true)
		if !errors.Is(err, errHistory) || r.tail.arrived || errors.Is(err, errOther) {
			return err
		}
	}
	if r.complete() {
		return nil
	}
	return r.stream(ctx, at.set(), false)
}

// reading is one stream of a log.
type reading struct {
	*Log
	tail tail          // what has been read; it hands nothing over
	end  mysql.GTIDSet // nil: there is none
	take func([]Change, func() (string, error)) error
}

func (r *reading) complete() bool { return r.end != nil && r.tail.at.set().Contain(r.end) }

func (r *reading) stream(ctx context.Context, from mysql.GTIDSet, again bool) error {
	s := r.server
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cfg := s.syncerConfig(ctx)
	// Another one than the replicator's and other readers': of two connections with
	// one id the server ends the older.
	cfg.ServerID = 1<<31 | rand.Uint32()
	calm := inBursts(ctx, &cfg)
	syncer := binlog.NewBinlogSyncer(cfg)
	defer syncer.Close()
	defer cancel(nil) // first, see [tail.stream]
	streamer, err := syncer.StartSyncGTID(from.Clone())
	if err != nil {
		return s.streamError(err)
	}
	calm.Store(true)
	defer func() { cancel(nil); drain(streamer) }()
	watching := make(chan struct{})
	defer func() { cancel(nil); <-watching }()
	go func() {
		defer close(watching)
		r.tail.watch(ctx, cancel)
	}()
	a := s.assembler()
	a.both = true
	d := newDecoder(s.flavor, a.tableOf)
	d.both = true
	for {
		e, err := streamer.GetEvent(ctx)
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return s.streamError(err)
		}
		if e.Header.EventType == binlog.ROTATE_EVENT && e.Header.Timestamp > 0 {
			if err := r.give(nil); err != nil {
				return err
			}
			continue
		}
		event, touched, err := d.decode(e.Header, e.RawData)
		if err != nil {
			return err
		}
		done, err := a.add(e.Header, event, touched, e.RawData)
		if err != nil {
			return err
		}
		if done == nil {
			continue
		}
		if again {
			again = false
			if done.gtid != r.tail.at.last || done.print != r.tail.at.print {
				return fmt.Errorf("%w: %w: %s", errHistory, errOther, done.gtid)
			}
			if r.complete() {
				return nil
			}
			continue
		}
		if complete, err := r.took(done); complete || err != nil {
			return err
		}
	}
}

// drain waits until the library has noticed that the connection is closed: closing
// the syncer while that reads is a data race within the library.
func drain(streamer *binlog.BinlogStreamer) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for {
		if _, err := streamer.GetEvent(ctx); err != nil {
			return
		}
	}
}

// took gives a transaction on, and tells whether it was the last that was asked for.
func (r *reading) took(done *transaction) (complete bool, err error) {
	r.tail.mu.Lock()
	r.tail.at.advance(done.gtid, done.print)
	r.tail.arrived = true
	r.tail.mu.Unlock()
	complete = r.complete()
	if complete || !done.bookkeeping {
		err = r.give(done.changes)
	}
	return complete, err
}

func (r *reading) give(changes []Change) error {
	return r.take(changes, func() (string, error) { return r.text(r.tail.at) })
}

// sides takes the rows of any table of edges as they are after the change.
func (a *assembler) sides(kind binlog.EventType, t table, e *binlog.RowsEvent) error {
	if !t.isEdges() {
		return nil
	}
	l := layoutOf(e.Table)
	for i, row := range e.Rows {
		edge, err := l.edge(row)
		if err != nil {
			return a.stop(err.Error(), "the table's columns have to be what this program's migrations made them")
		}
		before := isUpdate(kind) && i%2 == 0
		if before {
			after, err := l.edge(e.Rows[i+1])
			if err == nil && after.Pair() == edge.Pair() {
				continue
			}
		}
		if before || isDelete(kind) {
			edge = storage.Edge{From: edge.From, To: edge.To}
		}
		a.open.changes = append(a.open.changes, Change{t.side(), edge})
	}
	return nil
}
