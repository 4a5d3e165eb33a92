package binlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"kith/replication"
	"kith/replication/binlog/replica"
	"kith/storage"
	"kith/storage/sleep"
)

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

// LoggedStore is a store whose engine may log its changes.
type LoggedStore interface {
	replication.LogStore
	HasLog() bool
	HasBinlog() bool
	Addresses() []string
}

// ErrNoLog: the engine has no log of its changes.
var ErrNoLog = errors.New("TiDB has no log that tells its changes")

// OpenLogs opens the logs of all shards of a store; the caller closes them. They are each a [Log] or, on an engine without a binlog, a
// [replication.RelationLog], as the interface L that a reader needs of both. Its errors are [ErrNoLog] and those of [OpenReader].
func OpenLogs[L any](ctx context.Context, store LoggedStore, logger *slog.Logger) (logs []L, closing func(), err error) {
	switch {
	case store.HasLog():
		for i := range store.Shards() {
			logs = append(logs, any(replication.RelationLog{Store: store, Shard: i}).(L))
		}
		return logs, func() {}, nil
	case !store.HasBinlog():
		return nil, nil, ErrNoLog
	}
	reader, err := OpenReader(ctx, store.Addresses(), logger)
	if err != nil {
		return nil, nil, err
	}
	for _, l := range reader.Logs() {
		logs = append(logs, any(l).(L))
	}
	return logs, func() { _ = reader.Close() }, nil // what was read is read
}

// Logs returns the logs, one for each server.
func (r *Reader) Logs() []*Log { return r.logs }

// Close releases the connections.
func (r *Reader) Close() error {
	return errors.Join(storage.Each(r.logs, func(l *Log) error { return l.server.db.Close() })...)
}

// Name distinguishes the log from those of other servers and stores.
func (l *Log) Name() string { return l.server.checkpointName() }

// Title names the log for people.
func (l *Log) Title() string { return "binlog of " + l.server.name }

// Begin is empty: a server may be older than the store, and have been another store's.
func (l *Log) Begin() string { return "" }

// End is the position after everything that is in the log now.
func (l *Log) End(ctx context.Context) (string, error) {
	set, err := l.server.serverPosition(ctx)
	if err != nil {
		return "", err
	}
	return l.text(position{before: set})
}

func (l *Log) text(p position) (string, error) {
	c := l.server.checkpoint(p)
	c.Server, c.Databases = "", nil // of no use here
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

// Read passes the rows after a position to take, transaction by transaction, in the order of the
// log. It ends at the position upTo or, if that is empty, when the context or the connection ends.
// take also gets a function that returns the position after the rows, and may call it
// only during the call. A deleted row has type None at time 0. Transactions that change no edges are passed as well, with no rows, except
// Kith's own bookkeeping.
//
// Its errors: those of take; [replication.ErrLost]; others, after which a retry may succeed.
func (l *Log) Read(ctx context.Context, after, upTo string, take func(rows []storage.Row, at func() (string, error)) error) error {
	return l.read(ctx, after, upTo, false, func(r *reading, done *transaction) error { return take(done.rows, r.at) })
}

// Changes passes what is committed after a position to take, in the order of the log and after others can read it. The position "" is
// the beginning of all that the server has ever logged. Otherwise it is as Read; users and posts are among what is passed, and rows of
// databases that have become shards of the store since the log was opened.
func (l *Log) Changes(ctx context.Context, from storage.Answerer, after, upTo string, take func(replication.Changed) error) error {
	var settled replica.Set
	return l.read(ctx, after, upTo, true, func(r *reading, done *transaction) (err error) {
		c := done.change()
		if c.Rows = done.rows; len(c.Users)+len(c.Posts) > 0 {
			if settled, err = r.settle(ctx, from, done, settled); err != nil {
				return err
			}
		}
		return take(replication.Changed{Change: c, Comments: done.comments, ID: done.gtid.String(), At: r.at})
	})
}

// settle waits until others can read what a transaction has written. If that does not show, all that the server had logged when the wait began
// can be read, and is not waited for.
func (r *reading) settle(ctx context.Context, from storage.Answerer, done *transaction, settled replica.Set) (replica.Set, error) {
	own := replica.Set{}
	own.Add(done.gtid)
	if settled.Contains(own) {
		return settled, nil
	}
	logged, err := r.server.serverPosition(ctx)
	if err != nil {
		return settled, err
	}
	if done.left.Author != 0 && done.left.await(ctx, from) {
		return settled, nil
	}
	if done.left.Author == 0 {
		err = sleep.For(ctx, AllVisible)
	}
	return logged, err
}

func (l *Log) read(ctx context.Context, after, upTo string, values bool, take func(*reading, *transaction) error) error {
	r := &reading{Log: l, tail: tail{server: l.server, values: values, joins: values}, each: take}
	err := l.begin(r, after, upTo)
	if err == nil {
		err = r.tail.connection(ctx, sink{rotated: r.rotated, take: r.take, complete: r.complete})
	}
	var unreadable *StopError
	if errors.Is(err, errHistory) || errors.As(err, &unreadable) && unreadable.GTID != "" {
		return fmt.Errorf("%w: %w", replication.ErrLost, err)
	}
	return err
}

// begin sets where a reading begins and ends.
func (l *Log) begin(r *reading, after, upTo string) (err error) {
	if r.tail.at.before = (replica.Set{}); after != "" {
		r.tail.at, err = l.position(after)
	}
	if err == nil && upTo != "" {
		var end position
		end, err = l.position(upTo)
		r.end = end.set()
	}
	return err
}

// reading is one stream of a log.
type reading struct {
	*Log
	tail tail        // what has been read; it passes nothing on
	end  replica.Set // nil: no end
	each func(*reading, *transaction) error
}

func (r *reading) complete() bool { return r.end != nil && r.tail.at.set().Contains(r.end) }

// rotated passes no rows, but a position from which to continue.
func (r *reading) rotated(context.Context) error { return r.each(r, &transaction{}) }

func (r *reading) take(_ context.Context, done *transaction) error {
	r.tail.advance(done)
	if done.bookkeeping && !r.complete() {
		return nil
	}
	return r.each(r, done)
}

func (r *reading) at() (string, error) { return r.text(r.tail.at) }

// Follow passes what is committed from now on to take, once others can read it, until the context or the connection ends. heard is called
// once, when the log has been heard: nothing is missed from then on. Its errors are those of Read; it does not return nil.
func (l *Log) Follow(ctx context.Context, from storage.Answerer, heard func(), take func(storage.Change)) error {
	set, err := l.server.serverPosition(ctx)
	if err != nil {
		return err
	}
	t := &tail{server: l.server, at: position{before: set}, values: true}
	pass := func(done *transaction) {
		if c := done.change(); !c.IsEmpty() {
			take(c)
		}
	}
	return onceVisible(ctx, from, pass, func(add func(*transaction) error) error {
		return t.connection(ctx, sink{hear: sync.OnceFunc(heard), take: func(_ context.Context, done *transaction) error {
			t.advance(done)
			return add(done)
		}})
	})
}
