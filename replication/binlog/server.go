package binlog

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"log/slog"
	"strings"
	"sync"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"kith/replication"
	"kith/storage"
	"kith/storage/doctor"
	"kith/storage/sleep"
)

// server is one server of the store, with the replication of its binlog.
type server struct {
	cfg       *Config
	name      string         // host:port, or the path of its socket
	identity  string         // unique to this server
	store     string         // UUID of the store
	dsn       *driver.Config // of one of its databases
	databases []string       // the store's on this server, in the order of their shards
	flavor    string         // mariaDB or mySQL
	resync    bool           // discard the checkpoint first

	db *sql.DB // for everything but the lock and the binlog

	own  string  // its identity as it says itself; empty: it has not answered. It and identity may change while run runs, under mu
	lost bool    // it does not answer, or is no shard of a store
	of   *server // the server that this database turned out to be of; nil: that is not known yet
	stop func()  // ends run, and waits for that; nil: it does not run

	before string // the name of the checkpoint with which to continue: that of the server that had the address before; empty: its own

	outage *replication.Feed // lets the lag grow while no replicator is known to work on the server
	alive  time.Time         // when a replicator was last known to

	mu    sync.Mutex
	state State
	err   error
}

// The flavors, as checkpoints have them.
const (
	mariaDB = "mariadb"
	mySQL   = "mysql"
)

// Pauses between tries: the first, and the limit to which it doubles.
const (
	firstPause = 100 * time.Millisecond
	longPause  = 2 * time.Second
)

// joined reports whether a database has become the store's.
func (s *server) joined(ctx context.Context, database string) (bool, error) {
	var store string
	err := s.db.QueryRowContext(ctx, `SELECT store_uuid FROM `+doctor.Quoted(database)+`.kith_meta LIMIT 1`).Scan(&store)
	if errors.Is(err, sql.ErrNoRows) || doctor.IsError(err, 1044, 1049, 1142, 1146) { // it is another's, or gone
		return false, nil
	}
	return store == s.store, err
}

// pool opens connections to the server that read and write committed data.
func (s *server) pool(conns int, silence time.Duration, variables map[string]string) (*sql.DB, error) {
	cfg := s.dsn.Clone()
	cfg.InterpolateParams = true
	cfg.Logger = &driver.NopLogger{} // errors are returned
	cfg.Timeout = dialTimeout
	cfg.ReadTimeout, cfg.WriteTimeout = silence, silence
	cfg.Params = variables
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(conns)
	db.SetConnMaxLifetime(lookAgain)
	return db, nil
}

// lookAgain is after how long it is found out where an address leads. A server that was demoted may go on running, and its stream would be
// silent without end: that the new one has written more shows on a new connection only.
const lookAgain = 10 * time.Second

const dialTimeout = 3 * time.Second

// digest names the server and the store in a few characters.
func (s *server) digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(append(parts, s.store, s.identity), "\x00")))
	return hex.EncodeToString(sum[:12])
}

// id is the server id under which the replicator requests the binlog. Because of the lock, only one
// replicator uses it; if a predecessor still hangs on, the server ends its connection. The id is in
// the upper half of the range, from which few people number their servers.
func (s *server) id() uint32 {
	return 1<<31 | crc32.ChecksumIEEE([]byte(s.digest("id")))
}

// account is the user in the form that GRANT needs.
func (s *server) account() string {
	var account string
	if s.db.QueryRow(`SELECT CURRENT_USER()`).Scan(&account) != nil {
		return "'" + s.dsn.User + "'"
	}
	user, host, _ := strings.Cut(account, "@")
	return "'" + user + "'@'" + host + "'"
}

func (s *server) log() *slog.Logger { return s.cfg.Logger.With("server", s.name) }

// run replicates until the context ends, or returns why it cannot.
func (s *server) run(ctx context.Context) error {
	if s.cfg.Watch {
		s.heard()
		return s.watch(ctx)
	}
	pause := firstPause
	s.alive = time.Now()
	for {
		began := time.Now()
		err := s.session(ctx)
		if ctx.Err() != nil {
			s.heard()
			return nil //nolint:nilerr // it ends because the context has ended
		}
		s.missed()
		if errors.As(err, new(*StopError)) {
			s.set(Stopped, err)
			s.log().Error("replication is stopped", "error", err)
			return err
		}
		if time.Since(began) > time.Minute {
			pause = firstPause
		}
		s.set(Connecting, err)
		s.log().Warn("replication is interrupted: retrying", "error", err)
		_ = sleep.For(ctx, pause)
		pause = min(2*pause, longPause)
	}
}

// missed begins an outage, unless one is under way.
func (s *server) missed() {
	if s.outage == nil {
		s.outage = s.cfg.Applier.Feed(s.source())
		s.outage.Silent(s.alive)
	}
}

// heard ends an outage: a replicator works on the server, here or elsewhere.
func (s *server) heard() {
	s.alive = time.Now()
	if s.outage != nil {
		s.outage.Close()
		s.outage = nil
	}
}

// source is the server's name in metrics.
func (s *server) source() string { return "binlog " + s.name }

// session is the work from taking the server's lock to losing it.
func (s *server) session(ctx context.Context) error {
	looking, cancelLooking := context.WithTimeout(ctx, 10*time.Second)
	err := s.preflight(looking)
	cancelLooking()
	if err != nil {
		return err
	}
	lock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.release()
	s.heard()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go lock.keep(ctx, cancel)

	feed := s.cfg.Applier.Feed(s.source())
	defer feed.Close()
	err = s.replicate(ctx, feed)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// replicate continues from the checkpoint, or begins again if there is none or the checkpoint is of
// no use.
func (s *server) replicate(ctx context.Context, feed *replication.Feed) error {
	if err := s.takeOver(ctx); err != nil {
		return err
	}
	if s.resync {
		if err := s.cfg.Checkpoints.DeleteCheckpoint(ctx, s.checkpointName()); err != nil {
			return err
		}
		s.resync = false
	}
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		at, err := s.load(ctx)
		if err != nil {
			return err
		}
		if at == nil {
			if at, err = s.begin(ctx); err != nil {
				return err
			}
		}
		if at.copy != nil { // whoever was killed while it copied may not have reported what it had written
			s.cfg.Changed(ctx, storage.Change{Gap: true})
		}
		if err := s.try(ctx); err != nil {
			return err
		}
		if err = s.follow(ctx, feed, at); !errors.Is(err, errHistory) {
			return err
		}
		s.log().Error("replication: the binlog no longer has the checkpoint: the edges are copied again", "error", err)
		if err := s.cfg.Checkpoints.DeleteCheckpoint(ctx, s.checkpointName()); err != nil {
			return err
		}
		_ = sleep.For(ctx, pause-time.Second) // a server that keeps losing its binlog
	}
}

func (s *server) set(state State, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.err = state, err
}

func (s *server) status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Status{Server: s.name, State: s.state, Err: s.err}
}
