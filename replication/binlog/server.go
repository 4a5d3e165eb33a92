package binlog

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/google/uuid"

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

// identify asks every DSN to which server it leads, until all have answered, and groups the
// databases by server: many shards may share one server, also under different names. There are none if the context ends first.
func (r *Replicator) identify(ctx context.Context) (servers []*server, err error) {
	var opened []*server
	defer func() {
		for _, s := range opened {
			if !slices.Contains(servers, s) {
				_ = s.db.Close()
			}
		}
	}()
	for i, dsn := range r.cfg.DSNs {
		s, err := r.askUntilAnswered(ctx, i, strings.TrimSpace(dsn))
		if s != nil {
			opened = append(opened, s)
		}
		if err != nil || ctx.Err() != nil {
			return nil, err
		}
		known, err := s.among(ctx, servers)
		if err != nil {
			return nil, err
		}
		if known == nil {
			servers = append(servers, s)
			continue
		}
		known.databases = append(known.databases, s.databases...)
	}
	return servers, nil
}

// among returns which of the servers s is, if any. Two with the same identity at different
// addresses are one server if a lock taken on one is visible on the other: MariaDB has no identity
// that is certain to be unique.
func (s *server) among(ctx context.Context, servers []*server) (*server, error) {
	for _, other := range servers {
		if other.identity != s.identity {
			continue
		}
		if other.name == s.name {
			return other, nil
		}
		conn, err := other.db.Conn(ctx)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		name := "kith_same/" + uuid.NewString()
		var taken, seen sql.NullInt64
		if err := conn.QueryRowContext(ctx, `SELECT GET_LOCK(?, 0)`, name).Scan(&taken); err != nil {
			return nil, err
		}
		if err := s.db.QueryRowContext(ctx, `SELECT IS_USED_LOCK(?)`, name).Scan(&seen); err != nil {
			return nil, err
		}
		if _, err := conn.ExecContext(ctx, `DO RELEASE_LOCK(?)`, name); err != nil {
			return nil, err
		}
		if seen.Valid {
			return other, nil
		}
		s.identity += "@" + s.name
	}
	return nil, nil
}

func (r *Replicator) askUntilAnswered(ctx context.Context, ordinal int, dsn string) (*server, error) {
	parsed, err := driver.ParseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("shard %d: %w", ordinal, err)
	}
	if parsed.DBName == "" {
		return nil, fmt.Errorf("shard %d: the DSN names no database", ordinal)
	}
	s := &server{
		cfg:       &r.cfg,
		name:      parsed.Addr,
		dsn:       parsed,
		databases: []string{parsed.DBName},
		resync:    r.cfg.Resync,
		state:     Connecting,
	}
	if s.db, err = s.pool(4, 30*time.Second, nil); err != nil {
		return nil, fmt.Errorf("shard %d: %w", ordinal, err)
	}
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		err := s.ask(ctx)
		switch {
		case err == nil:
			return s, nil
		case ctx.Err() != nil:
			return nil, s.db.Close()
		case doctor.IsError(err, 1146): // no such table
			return nil, errors.Join(fmt.Errorf("%s/%s is no shard of a store: %w", s.name, parsed.DBName, err), s.db.Close())
		}
		r.cfg.Logger.Warn("replication: server does not answer: retrying", "server", s.name, "error", err)
		_ = sleep.For(ctx, pause)
	}
}

// Pauses between tries: the first, and the limit to which it doubles.
const (
	firstPause = 100 * time.Millisecond
	longPause  = 2 * time.Second
)

// ask learns which server this is.
func (s *server) ask(ctx context.Context) error {
	const sqlServer = `
SELECT @@version, CONCAT(@@hostname, ':', @@port), @@datadir, (
  SELECT store_uuid
  FROM kith_meta
  LIMIT 1
)`
	var version, host, folder string
	var store sql.NullString
	if err := s.db.QueryRowContext(ctx, sqlServer).Scan(&version, &host, &folder, &store); err != nil {
		return err
	}
	s.store = store.String
	s.flavor, s.identity = mariaDB, host+folder
	if doctor.FlavorOf(version) == "MariaDB" {
		return nil
	}
	s.flavor = mySQL
	return s.db.QueryRowContext(ctx, `SELECT @@server_uuid`).Scan(&s.identity)
}

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
	defer s.db.Close()
	if s.cfg.Watch {
		return s.watch(ctx)
	}
	pause := firstPause
	s.alive = time.Now()
	for {
		began := time.Now()
		err := s.session(ctx)
		if ctx.Err() != nil {
			s.heard()
			return nil
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
