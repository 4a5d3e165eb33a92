// Package changes tells others what has changed in a store, from the logs that its engine has: the binlogs of MySQL and MariaDB, and the
// relation_log of SQLite.
//
// Every change comes at least once, in the order of its log, and a cursor says where to go on. Nothing is kept in memory but the
// transaction that is passed on: a reader that stands still is one that the logs have to be kept for.
package changes

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"kith/replication"
	"kith/replication/binlog"
	"kith/storage"
	"kith/storage/sides"
	"kith/storage/sleep"
)

// Store is a store whose changes are read.
type Store interface {
	binlog.LoggedStore
	storage.Answerer
	sides.Comparer
	UUID() string
	// Look makes sure that what is read next is as new as what has been written before.
	Look(ctx context.Context)
}

// Config says what is read.
type Config struct {
	Store    Store
	After    string // a cursor; empty: from now on
	Kinds    []Kind // empty: all that the engine's log has, without [Digests]
	UntilNow bool   // ends with what is in the logs at the beginning; otherwise when the context does
	Open     Open   // nil: the logs of the engine
	Logger   *slog.Logger
}

// Open opens the logs of all shards; the caller closes them.
type Open func(context.Context) (logs []replication.Log, closing func(), err error)

// ErrKind: the engine's log does not have a kind.
var ErrKind = errors.New("SQLite's relation_log does not tell counts")

// SnapshotNeeded means that a log no longer has what came after the cursor: reading cannot go on without missing something.
type SnapshotNeeded struct {
	Log   string
	cause error
}

// Error says what to do.
func (e *SnapshotNeeded) Error() string {
	return "SNAPSHOT_NEEDED: the " + e.Log + " does not continue from the cursor: make a new export, and go on from the cursor in its manifest"
}

func (e *SnapshotNeeded) Unwrap() error { return e.cause }

// ExitCode tells scripts to make a new export.
func (*SnapshotNeeded) ExitCode() int { return 3 }

// Now is a cursor: everything before it can be read in the tables.
func Now(ctx context.Context, store Store, logger *slog.Logger) (string, error) {
	logs, closing, err := binlog.OpenLogs(ctx, store, logger)
	if err != nil {
		return "", err
	}
	defer closing()
	at, err := ends(ctx, logs)
	if err == nil && !store.HasLog() { // a binlog has a transaction a moment before the tables
		err = sleep.For(ctx, binlog.AllVisible)
	}
	if err != nil {
		return "", err
	}
	return cursor{store.UUID(), at}.text()
}

func ends(ctx context.Context, logs []replication.Log) (map[string]json.RawMessage, error) {
	at := make(map[string]json.RawMessage, len(logs))
	for _, l := range logs {
		end, err := l.End(ctx)
		if err != nil {
			return nil, fmt.Errorf("ask for the end of the %s: %w", l.Title(), err)
		}
		at[l.Name()] = json.RawMessage(end)
	}
	return at, nil
}

// Run passes events to give, one at a time, the first of them a [Position]. It goes on after errors that may pass. Its errors: those of give;
// [ErrCursor], [ErrKind], [binlog.ErrNoLog], *[SnapshotNeeded], [binlog.StopError].
func Run(ctx context.Context, cfg Config, give func(Event) error) error {
	s := &stream{Config: cfg, kinds: make(map[Kind]bool), turn: semaphore.NewWeighted(1), give: give}
	if s.Open == nil {
		s.Open = func(ctx context.Context) ([]replication.Log, func(), error) {
			return binlog.OpenLogs(ctx, s.Store, s.Logger)
		}
	}
	if len(s.Kinds) == 0 {
		s.Kinds = slices.DeleteFunc(Kinds(), func(k Kind) bool { return k == Counts && s.Store.HasLog() })
	}
	for _, k := range s.Kinds {
		s.kinds[k] = true
	}
	switch {
	case s.kinds[Counts] && s.Store.HasLog():
		return ErrKind
	case s.kinds[Digests] && !hasDigests(s.Kinds):
		return ErrDigests
	}
	if s.After != "" {
		var err error
		if s.at, err = parse(s.After, s.Store.UUID()); err != nil {
			return err
		}
	}
	if s.kinds[Digests] {
		err := s.round(ctx, true)
		if err == nil {
			err = s.prove(ctx)
		}
		if err != nil || s.UntilNow {
			return err
		}
	}
	for {
		if err := s.round(ctx, s.UntilNow); !errors.Is(err, errGrown) {
			return err
		}
	}
}

// stream is a reader's way through the changes.
type stream struct {
	Config
	kinds map[Kind]bool

	turn    *semaphore.Weighted // of whoever uses what follows, one at a time: so everything waits for a slow reader
	give    func(Event) error
	at      cursor
	told    time.Time // when the reader was last given a cursor
	news    bool      // at has changed since then
	touched touched   // by what was passed on since digests were begun

	gaveUp error // of give
}

// errGrown means that there are more shards than before.
var errGrown = errors.New("the store has more shards")

// round reads the logs of the shards that there are, to their present ends or until there are more shards.
func (s *stream) round(ctx context.Context, untilNow bool) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if !untilNow {
		replication.OnGrown(ctx, s.Store, s.Store.Shards(), func() { stop(errGrown) })
	}
	logs, closing, now, err := s.open(ctx, untilNow || s.at.Logs == nil)
	if err != nil {
		return cmp.Or(context.Cause(ctx), err) // there may be more shards meanwhile
	}
	defer closing()
	if err := s.begin(logs, now); err != nil {
		return err
	}
	var reading sync.WaitGroup
	for _, l := range logs {
		reading.Go(func() {
			upTo := ""
			if untilNow {
				upTo = string(now[l.Name()])
			}
			if err := s.follow(ctx, l, upTo); err != nil {
				stop(err)
			}
		})
	}
	reading.Wait()
	if s.gaveUp != nil {
		return s.gaveUp
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return s.tell(true)
}

// open opens the logs and asks for their present ends, if they are wanted.
func (s *stream) open(ctx context.Context, wantsEnds bool) (logs []replication.Log, closing func(), now map[string]json.RawMessage, err error) {
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		logs, closing, err = s.Open(ctx)
		if err == nil && wantsEnds {
			if now, err = ends(ctx, logs); err != nil {
				closing()
			}
		}
		if err == nil || ctx.Err() != nil || errors.Is(err, binlog.ErrNoLog) || errors.As(err, new(*binlog.StopError)) {
			return logs, closing, now, err
		}
		s.Logger.WarnContext(ctx, "the logs of changes cannot be opened: retrying", "error", err)
		_ = sleep.For(ctx, pause)
	}
}

// begin gives each log a place. A log that the cursor does not have is of a shard that was added since: it begins at its own beginning. If the
// cursor has a log that is gone, there are two cases: the server has another name now, and its log continues from the same place; or another
// server has taken its place, and the rest of the old log is lost.
func (s *stream) begin(logs []replication.Log, now map[string]json.RawMessage) error {
	places, first := now, s.told.IsZero()
	if s.at.Logs != nil {
		gone, added := maps.Clone(s.at.Logs), []string{}
		places = make(map[string]json.RawMessage, len(logs))
		for _, l := range logs {
			delete(gone, l.Name())
			if at := cmp.Or(string(s.at.Logs[l.Name()]), l.Begin()); at != "" {
				places[l.Name()] = json.RawMessage(at)
			} else {
				added = append(added, l.Name())
			}
		}
		for name, at := range gone {
			if len(gone) > 1 || len(added) != 1 {
				return &SnapshotNeeded{"log of a server that is gone", fmt.Errorf("%w: %s", replication.ErrLost, name)}
			}
			places[added[0]] = at
		}
	}
	s.at = cursor{s.Store.UUID(), maps.Clone(places)}
	if s.news = true; first {
		return s.tell(true)
	}
	return nil
}

// Pauses between tries to read a log: the first, and the limit to which it doubles.
const (
	firstPause = 100 * time.Millisecond
	longPause  = 5 * time.Second
)

// errGaveUp ends reading after an error of the reader.
var errGaveUp = errors.New("the reader has given up")

// pass passes an event on. After an error of the reader, nothing is passed to it.
func (s *stream) pass(e Event) error {
	if s.gaveUp == nil {
		s.gaveUp = s.give(e)
	}
	if s.gaveUp != nil {
		return fmt.Errorf("%w: %w", errGaveUp, s.gaveUp)
	}
	if e.Cursor != "" {
		s.told, s.news = time.Now(), false
	}
	return nil
}

// follow reads one log to a position or, if that is empty, until the context is done.
func (s *stream) follow(ctx context.Context, l replication.Log, upTo string) error {
	d := &describer{store: s.Store, source: "/kith/" + s.Store.UUID() + "/" + l.Name(), kinds: s.kinds}
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		err := s.read(ctx, l, upTo, func(c replication.Changed) error {
			pause = firstPause
			return s.take(ctx, l, d, c)
		})
		switch {
		case err == nil && upTo != "", ctx.Err() != nil:
			return nil //nolint:nilerr // whatever failed did so by the end of the context
		case errors.Is(err, errGaveUp):
			return err
		case errors.Is(err, replication.ErrLost):
			return &SnapshotNeeded{l.Title(), err}
		case errors.As(err, new(*binlog.StopError)):
			return err
		}
		s.Logger.WarnContext(ctx, "reading changes was interrupted: retrying", "log", l.Title(), "error", err)
		_ = sleep.For(ctx, pause)
	}
}

// read reads a log from its place on.
func (s *stream) read(ctx context.Context, l replication.Log, upTo string, take func(replication.Changed) error) error {
	if err := s.turn.Acquire(ctx, 1); err != nil {
		return err
	}
	place := string(s.at.Logs[l.Name()])
	s.turn.Release(1)
	return l.Read(ctx, s.Store, place, upTo, take)
}

// take passes on one transaction, with the cursor after it.
func (s *stream) take(ctx context.Context, l replication.Log, d *describer, c replication.Changed) error {
	events, err := d.describe(ctx, c)
	if err != nil {
		return err
	}
	at, err := c.At()
	if err != nil {
		return err
	}
	if err := s.turn.Acquire(ctx, 1); err != nil {
		return err
	}
	defer s.turn.Release(1)
	s.at.Logs[l.Name()], s.news = json.RawMessage(at), true
	s.touched.take(c.Rows)
	if len(events) == 0 {
		return s.tell(false)
	}
	if events[len(events)-1].Cursor, err = s.at.text(); err != nil {
		return err
	}
	for _, e := range events {
		if err := s.pass(e); err != nil {
			return err
		}
	}
	return nil
}

// tellEvery is how often a reader gets a cursor although nothing has come that it wants: with an old one, it would need logs that are
// removed one day.
const tellEvery = 10 * time.Second

// tell gives the reader a cursor if it has an older one, now or if it is time.
func (s *stream) tell(now bool) error {
	if !s.news || !now && time.Since(s.told) < tellEvery {
		return nil
	}
	text, err := s.at.text()
	if err != nil {
		return err
	}
	return s.pass(Event{SpecVersion: "1.0", ID: nameOf(text), Source: "/kith/" + s.Store.UUID(), Type: Position, Cursor: text})
}

// nameOf names an event that is of no log by its cursor.
func nameOf(cursor string) string {
	sum := sha256.Sum256([]byte(cursor))
	return hex.EncodeToString(sum[:12])
}
