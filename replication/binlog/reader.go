package binlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/go-mysql-org/go-mysql/mysql"
	binlog "github.com/go-mysql-org/go-mysql/replication"

	"kith/storage"
)

// ErrHistory means that a binlog does not continue from a position: it was purged, or the server
// was reset or replaced.
var ErrHistory = errHistory

// A Change is one row of a table of edges as a transaction left it. A deleted row has type None at
// time 0.
type Change struct {
	Side storage.Side
	Edge storage.Edge
}

// A Reader reads the changes of all tables of edges from the binlogs of a store's
// servers. It takes no lock and applies nothing, so any number may read at once.
type Reader struct{ logs []*Log }

// A Log is the binlog of one server.
type Log struct{ server *server }

// OpenReader asks every DSN for its server, until all have answered; the caller closes the reader.
// If a server's binlog does not say enough, the error is a [StopError].
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

// Logs returns the logs, one for each server.
func (r *Reader) Logs() []*Log { return r.logs }

// Close releases the connections.
func (r *Reader) Close() error {
	var errs []error
	for _, l := range r.logs {
		errs = append(errs, l.server.db.Close())
	}
	return errors.Join(errs...)
}

// Name distinguishes the log from those of other servers and stores, in a few characters.
func (l *Log) Name() string { return l.server.digest("checkpoint") }

// Server is the server's address.
func (l *Log) Server() string { return l.server.name }

// End is the position after everything that is in the log now.
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

// Read passes the changes after a position to take, transaction by transaction, in the order of the
// log. It ends at the position upTo or, if that is empty, when the context or the connection ends.
// take also gets a function that returns the position after the changes, and may call it only
// during the call. Transactions that change no edges are passed as well, with no changes, except
// Kith's own bookkeeping.
//
// Its errors: those of take; [ErrHistory]; a [StopError] if the log does not say row by row what
// was changed; others, after which a retry may succeed.
func (l *Log) Read(ctx context.Context, after, upTo string, take func(changes []Change, at func() (string, error)) error) error {
	at, err := l.position(after)
	if err != nil {
		return err
	}
	r := &reading{Log: l, tail: tail{server: l.server, at: at}, each: take}
	if upTo != "" {
		end, err := l.position(upTo)
		if err != nil {
			return err
		}
		r.end = end.set()
	}
	return r.tail.connection(ctx, r)
}

// reading is one stream of a log.
type reading struct {
	*Log
	tail tail          // what has been read; it passes nothing on
	end  mysql.GTIDSet // nil: no end
	each func([]Change, func() (string, error)) error
}

// complete implements [sink].
func (r *reading) complete() bool { return r.end != nil && r.tail.at.set().Contain(r.end) }

// hear implements [sink].
func (r *reading) hear() {}

// rotated implements [sink]: there are no changes, but a position from which to continue.
func (r *reading) rotated(context.Context) error { return r.give(nil) }

// take implements [sink].
func (r *reading) take(_ context.Context, done *transaction) error {
	r.tail.advance(done)
	if done.bookkeeping && !r.complete() {
		return nil
	}
	return r.give(done.changes)
}

func (r *reading) give(changes []Change) error {
	return r.each(changes, func() (string, error) { return r.text(r.tail.at) })
}

// sides collects the rows of any table of edges as they are after the change.
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
			edge = edge.Pair().Edge(storage.None, 0)
		}
		a.open.changes = append(a.open.changes, Change{t.side(), edge})
	}
	return nil
}
