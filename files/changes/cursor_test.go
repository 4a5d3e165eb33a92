package changes_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/uuid"

	"kith/files/changes"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/replication"
	"kith/storage"
)

// idle is a log of a server of MySQL in which nothing happens.
type idle struct{ server, at string }

func (l idle) Name() string                        { return "binlog/" + l.server }
func (l idle) Title() string                       { return l.Name() }
func (l idle) Begin() string                       { return "" }
func (l idle) End(context.Context) (string, error) { return l.at, nil }
func (l idle) Read(_ context.Context, _ storage.Answerer, after, _ string, _ func(replication.Changed) error) error {
	if after != l.at {
		return fmt.Errorf("%w: it is asked for what comes after %q", replication.ErrLost, after)
	}
	return nil
}

// young is the log of a server to which the databases of another one were restored: it has nothing of what that one has told.
type young struct{ idle }

func (y young) Read(_ context.Context, _ storage.Answerer, after, _ string, _ func(replication.Changed) error) error {
	if after != "" {
		return replication.ErrLost
	}
	return nil
}

// A server that has taken the place of another cannot tell what that one had still to tell. One that only has another name can.
func TestServersAreReplaced(t *testing.T) {
	store := &growing{oracle.New(), make(chan struct{})}
	read := func(after string, logs ...replication.Log) (at string, err error) {
		cfg := changes.Config{
			Store: store, After: after, UntilNow: true, Logger: slog.New(slog.DiscardHandler),
			Open: func(context.Context) ([]replication.Log, func(), error) { return logs, func() {}, nil },
		}
		return at, changes.Run(t.Context(), cfg, func(e changes.Event) error { at = e.Cursor; return nil })
	}
	a, b, c := idle{"a", `"1"`}, idle{"b", `"2"`}, idle{"c", `"3"`}
	at, err := read("", a, b)
	must.OK(t, err)
	for what, logs := range map[string][]replication.Log{
		"restored elsewhere": {a, young{c}}, "two restored elsewhere": {young{c}, young{idle{"d", `"4"`}}}, "restored to the other server": {b},
	} {
		_, err := read(at, logs...)
		check.That(t, errors.As(err, new(*changes.SnapshotNeeded)), "%s: %v", what, err)
	}
	_, err = read(at, b, idle{"with another name", a.at}, young{c})
	check.That(t, errors.As(err, new(*changes.SnapshotNeeded)), "another name, and an added shard: %v", err)
	renamed, err := read(at, b, idle{"with another name", a.at})
	check.That(t, err == nil, "another name: %v", err)
	again, err := read(renamed, b, idle{"with another name", a.at})
	check.That(t, err == nil && again == renamed, "from there on: %v", err)
	_, err = read(at, a, b, young{c})
	check.Is(t, "an added shard", err, nil)
}

// TestACursorOfEveryStoreIsTaken: with as many servers as a store may have, as an argument of a program (128 KiB on Linux) and in a message over
// a WebSocket (128 KiB); of hundreds of servers, as an argument of the API.
func TestACursorOfEveryStoreIsTaken(t *testing.T) {
	var logs []replication.Log
	store := &growing{oracle.New(), make(chan struct{})}
	read := func(after string) (at string, err error) {
		cfg := changes.Config{
			Store: store, After: after, UntilNow: true, Logger: slog.New(slog.DiscardHandler),
			Open: func(context.Context) ([]replication.Log, func(), error) { return logs, func() {}, nil },
		}
		return at, changes.Run(t.Context(), cfg, func(e changes.Event) error { at = e.Cursor; return nil })
	}
	var at string
	for len(logs) < storage.Buckets {
		server, i := uuid.NewString(), len(logs)
		logs = append(logs, idle{server, fmt.Sprintf(`{"flavor":"mysql","before":"%s:1-%d","last":"%[1]s:%[2]d","print":%d}`, server, 900_000_000+i, 1<<31+i)})
		if len(logs)%64 != 0 {
			continue
		}
		var err error
		at, err = read("")
		must.OK(t, err)
		most := 120 << 10
		if len(logs) <= 512 { // `after` of the API has at most 32 KiB
			most = 32 << 10
		}
		must.That(t, len(at) <= most, "a cursor of %d servers has %d bytes", len(logs), len(at))
	}
	again, err := read(at)
	check.That(t, err == nil && again == at, "a cursor of %d bytes: %v", len(at), err)
	for _, damaged := range []string{at[:len(at)/2], strings.ToUpper(at), "eJw" + strings.Repeat("A", 1000)} {
		_, err := read(damaged)
		check.Is(t, "a damaged cursor", err, changes.ErrCursor)
	}
}
