package binlog

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/google/uuid"

	"kith/storage"
	"kith/storage/doctor"
	"kith/storage/sleep"
)

// asked are the databases of a store, one for each DSN, whose servers are to be found out: many shards may share one server, also under
// different names.
type asked struct {
	cfg       *Config
	databases []*server
	show      func([]*server) // is told of the servers, and of addresses whose servers are not known yet
}

// asked opens the databases, and asks nothing yet.
func (r *Replicator) asked() (*asked, error) {
	a := &asked{cfg: &r.cfg, show: r.show}
	for ordinal, dsn := range r.cfg.DSNs {
		parsed, err := driver.ParseDSN(strings.TrimSpace(dsn))
		if err == nil && parsed.DBName == "" {
			err = errors.New("the DSN names no database")
		}
		s := &server{cfg: &r.cfg, dsn: parsed, resync: r.cfg.Resync, state: Connecting, alive: time.Now()}
		if err == nil {
			s.name = parsed.Addr
			s.db, err = s.pool(4, 30*time.Second, nil)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("shard %d: %w", ordinal, err), a.close())
		}
		a.databases = append(a.databases, s)
	}
	return a, nil
}

// close releases all connections.
func (a *asked) close() error {
	return errors.Join(storage.Each(a.databases, func(s *server) error { return s.db.Close() })...)
}

// identify asks every database to which server it leads, until all have answered or the context ends, and passes the servers to found. While
// some are away, it passes those that are known all the same. found is called again, with more databases, for a server that turns out to have
// them. An error names databases that are no store's; it ends the asking if nothing has been found.
func (a *asked) identify(ctx context.Context, found func(s *server, more []string)) (err error) {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, longPause) {
		err = errors.Join(err, a.ask(ctx))
		if err != nil && !slices.ContainsFunc(a.databases, func(s *server) bool { return s.of != nil }) || a.place(ctx, found) {
			break
		}
		_ = sleep.For(ctx, pause)
	}
	return err
}

// askTime bounds how long a server may take to say which it is: one that hangs must not hold up the others.
const askTime = 15 * time.Second

// ask asks those that have not answered yet, each once. Its errors say which are none of a store's.
func (a *asked) ask(ctx context.Context) error {
	errs := make([]error, len(a.databases))
	var asking sync.WaitGroup
	for i, s := range a.databases {
		if s.of == nil && s.own == "" && !s.lost {
			asking.Go(func() { errs[i] = s.ask(ctx) })
		}
	}
	asking.Wait()
	for i, err := range errs {
		switch s := a.databases[i]; {
		case err == nil, ctx.Err() != nil:
			errs[i] = nil
		case doctor.IsError(err, 1146): // no such table
			errs[i] = fmt.Errorf("%s/%s is no shard of a store: %w", s.name, s.dsn.DBName, err)
			s.lost = true
			s.set(Stopped, errs[i])
		default:
			s.set(Connecting, err)
			a.cfg.Logger.Warn("replication: server does not answer: retrying", "server", s.name, "error", err)
			errs[i] = nil
		}
	}
	return errors.Join(errs...)
}

// ask learns which server this is.
func (s *server) ask(ctx context.Context) error {
	const sqlServer = `
SELECT @@version, (
  SELECT store_uuid
  FROM kith_meta
  LIMIT 1
)`
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var version string
	var store sql.NullString
	if err := s.db.QueryRowContext(ctx, sqlServer).Scan(&version, &store); err != nil {
		return err
	}
	s.store, s.flavor = store.String, mySQL
	if doctor.FlavorOf(version) == "MariaDB" {
		s.flavor = mariaDB
	}
	own, err := s.ownOf(ctx, s.db)
	if err == nil {
		s.own = own
	}
	return err
}

// ownOf is what the server of a connection says of itself.
func (s *server) ownOf(ctx context.Context, conn interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}) (own string, err error) {
	text := `SELECT CONCAT(@@hostname, ':', @@port, @@datadir)`
	if s.flavor == mySQL {
		text = `SELECT @@server_uuid`
	}
	err = conn.QueryRowContext(ctx, text).Scan(&own)
	return own, err
}

// becomes notes which server the address leads to by now, whose lock whoever works on it takes. If that is another one, as after a failover, it
// returns the name of the checkpoint of the server before.
func (s *server) becomes(own string) (before string, another bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, another = s.checkpointName(), own != s.own
	if another {
		s.own, s.identity = own, own
	}
	return before, another
}

// named is what the server says of itself, and its identity.
func (s *server) named() (own, identity string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own, s.identity
}

// isKnown reports whether it stands for a server that has been found; others may be further addresses of it.
func (s *server) isKnown() bool { return s.of == s }

// place finds the servers of the databases that have answered, and passes on those that are known. It returns false if databases are left.
func (a *asked) place(ctx context.Context, found func(s *server, more []string)) (all bool) {
	all = true
	known, fresh := storage.Filter(a.databases, (*server).isKnown), []*server(nil)
	members := map[*server][]*server{}
	for _, s := range a.databases {
		if s.of != nil || s.lost {
			continue
		}
		if s.own == "" {
			all = false
			continue
		}
		s.databases = []string{s.dsn.DBName}
		of, err := s.among(ctx, slices.Concat(known, fresh))
		if err != nil {
			all = false
			s.set(Connecting, err)
			a.cfg.Logger.Warn("replication: cannot tell whether two addresses lead to one server: retrying", "server", s.name, "error", err)
			continue
		}
		if of == nil {
			of, fresh = s, append(fresh, s)
		}
		members[of] = append(members[of], s)
	}
	for _, s := range slices.Concat(known, fresh) {
		names := storage.Each(members[s], func(m *server) string { return m.dsn.DBName })
		if len(names) == 0 || s.of == nil && !all && !s.recognise(ctx, names) {
			continue
		}
		for _, m := range members[s] {
			if m.of = s; m != s {
				m.heard()
				_ = m.db.Close()
			}
		}
		if slices.Contains(fresh, s) {
			s.databases, names = names, nil
		}
		found(s, names)
	}
	a.tell()
	return all
}

// among returns which of the servers s is, if any. Two that say the same of themselves at different addresses are one server if a lock taken on
// one is visible on the other: MariaDB has no identity that is certain to be unique.
func (s *server) among(ctx context.Context, servers []*server) (*server, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	s.identity = s.own
	for _, other := range servers {
		own, identity := other.named()
		if own != s.own {
			continue
		}
		if is, err := s.is(ctx, other); is || err != nil {
			return other, err
		}
		if identity == s.own {
			s.identity = s.own + "@" + s.name
		}
	}
	return nil, nil
}

func (s *server) is(ctx context.Context, other *server) (bool, error) {
	if other.name == s.name {
		return true, nil
	}
	conn, err := other.db.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	name := "kith_same/" + uuid.NewString()
	var taken, seen sql.NullInt64
	if err := conn.QueryRowContext(ctx, `SELECT GET_LOCK(?, 0)`, name).Scan(&taken); err != nil {
		return false, err
	}
	if err := s.db.QueryRowContext(ctx, `SELECT IS_USED_LOCK(?)`, name).Scan(&seen); err != nil {
		return false, err
	}
	_, err = conn.ExecContext(ctx, `DO RELEASE_LOCK(?)`, name)
	return seen.Valid, err
}

// recognise reports whether the store has a checkpoint of a server with just these databases at this address. Then it is known which server this
// is although others have not answered: which of two with the same identity, and that none of the databases that are away was on it.
func (s *server) recognise(ctx context.Context, databases []string) bool {
	if s.cfg.Checkpoints == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var as []string
	for _, identity := range []string{s.own, s.own + "@" + s.name} {
		s.identity = identity
		value, found, err := s.cfg.Checkpoints.LoadCheckpoint(ctx, s.checkpointName())
		if err != nil {
			return false
		}
		var c checkpoint
		if found && json.Unmarshal(value, &c) == nil && c.Server == s.name && slices.EqualFunc(c.Databases, databases, strings.EqualFold) {
			as = append(as, identity)
		}
	}
	if len(as) == 1 {
		s.identity = as[0]
	}
	return len(as) == 1
}

// tell lets the lag of servers that are not known yet grow, and shows the state of each address.
func (a *asked) tell() {
	shown := storage.Filter(a.databases, (*server).isKnown)
	for _, s := range a.databases {
		if s.of != nil || slices.ContainsFunc(shown, func(other *server) bool { return other.name == s.name }) {
			continue
		}
		if shown = append(shown, s); s.cfg.Applier != nil {
			s.missed()
		}
	}
	a.show(shown)
}
