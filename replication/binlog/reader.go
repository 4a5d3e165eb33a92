package binlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	driver "github.com/go-sql-driver/mysql"

	"kith/replication"
	"kith/replication/binlog/replica"
	"kith/storage"
	"kith/storage/sleep"
)

// A Reader reads the changes of all tables of edges from the binlogs of a store's
// servers. It takes no lock and applies nothing, so any number may read at once.
type Reader struct {
	logs    []*Log
	closing func() error
}

// A Log is the binlog of one server, as a [replication.Log].
type Log struct{ server *server }

// OpenReader asks every DSN for its server, until all have answered; the caller closes the reader.
// If a server's binlog does not say enough, the error is a [StopError].
func OpenReader(ctx context.Context, dsns []string, logger *slog.Logger) (*Reader, error) {
	asked, err := New(Config{DSNs: dsns, Logger: logger}).asked()
	if err != nil {
		return nil, err
	}
	r := &Reader{closing: asked.close}
	err = asked.identify(ctx, func(s *server, _ []string) { r.logs = append(r.logs, &Log{s}) })
	if err == nil {
		err = ctx.Err()
	}
	for i := 0; i < len(r.logs) && err == nil; i++ {
		err = r.logs[i].server.preflight(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// ByAddress are the indexes of DSNs, together where their servers have the same address.
func ByAddress(dsns []string) (servers [][]int) {
	at := map[string]int{}
	for i, dsn := range dsns {
		address := dsn
		if parsed, err := driver.ParseDSN(strings.TrimSpace(dsn)); err == nil {
			address = parsed.Addr
		}
		server, known := at[address]
		if !known {
			server, servers = len(servers), append(servers, nil)
			at[address] = server
		}
		servers[server] = append(servers[server], i)
	}
	return servers
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

// OpenLogs opens the logs of all shards of a store; the caller closes them. Its errors are [ErrNoLog] and those of [OpenReader].
func OpenLogs(ctx context.Context, store LoggedStore, logger *slog.Logger) (logs []replication.Log, closing func(), err error) {
	switch {
	case store.HasLog():
		for i := range store.Shards() {
			logs = append(logs, replication.RelationLog{Store: store, Shard: i})
		}
		return logs, func() {}, nil
	case !store.HasBinlog():
		return nil, nil, ErrNoLog
	}
	reader, err := OpenReader(ctx, store.Addresses(), logger)
	if err != nil {
		return nil, nil, err
	}
	logs = storage.Each(reader.Logs(), func(l *Log) replication.Log { return l })
	return logs, func() { _ = reader.Close() }, nil // what was read is read
}

// Logs returns the logs, one for each server.
func (r *Reader) Logs() []*Log { return r.logs }

// Close releases the connections.
func (r *Reader) Close() error { return r.closing() }

// Name implements [replication.Log].
func (l *Log) Name() string { return l.server.checkpointName() }

// Title implements [replication.Log].
func (l *Log) Title() string { return "binlog of " + l.server.name }

// Begin implements [replication.Log]: a server may be older than the store, and have been another store's.
func (l *Log) Begin() string { return "" }

// End implements [replication.Log].
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

// Read implements [replication.Log]. The position "" is the beginning of all that the server has ever logged. With users and posts also
// rows of databases are passed that have become shards of the store since the log was opened. Kith's own bookkeeping is left out.
func (l *Log) Read(ctx context.Context, from storage.Answerer, after, upTo string, take func(replication.Changed) error) error {
	var settled replica.Set
	r := &reading{Log: l, tail: tail{server: l.server, values: from != nil, joins: from != nil}}
	r.each = func(done *transaction) (err error) {
		c := replication.Changed{ID: done.gtid.String(), At: r.at}
		if from != nil {
			c.Change, c.Comments = done.change(), done.comments
			if len(c.Users)+len(c.Posts) > 0 {
				if settled, err = r.settle(ctx, from, done, settled); err != nil {
					return err
				}
			}
		}
		c.Rows = done.rows
		return take(c)
	}
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
	each func(*transaction) error
}

func (r *reading) complete() bool { return r.end != nil && r.tail.at.set().Contains(r.end) }

// rotated passes no rows, but a position from which to continue.
func (r *reading) rotated(context.Context) error { return r.each(&transaction{}) }

func (r *reading) take(done *transaction) error {
	if done.bookkeeping && !r.complete() {
		return nil
	}
	return r.each(done)
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
		return t.connection(ctx, sink{hear: sync.OnceFunc(heard), take: add})
	})
}
