package changes_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"kith/files/changes"
	"kith/internal/check"
	"kith/internal/storagetest/oracle"
	"kith/replication"
	"kith/storage"
)

// growing is a store that has more shards once the reader of its log has failed.
type growing struct {
	*oracle.Store
	grown chan struct{}
}

func (g *growing) UUID() string              { return "store" }
func (g *growing) HasLog() bool              { return false }
func (g *growing) HasBinlog() bool           { return true }
func (g *growing) Addresses() []string       { return nil }
func (g *growing) Grown(int) <-chan struct{} { return g.grown }

// numbered is a log of changes of a user's counts.
type numbered struct{ ended chan struct{} }

func (n *numbered) Name() string                        { return "log" }
func (n *numbered) Title() string                       { return "log" }
func (n *numbered) Begin() string                       { return "0" }
func (n *numbered) End(context.Context) (string, error) { return "0", nil }
func (n *numbered) Read(ctx context.Context, _ storage.Answerer, after, _ string, take func(replication.Changed) error) error {
	context.AfterFunc(ctx, func() { close(n.ended) })
	at := 0
	if _, err := fmt.Sscan(after, &at); err != nil {
		return err
	}
	for {
		at++
		c := storage.Change{}
		c.AddCounts(storage.UserChange{User: 1, Counts: storage.Counts{Version: int64(at)}})
		position := fmt.Sprint(at)
		if err := take(replication.Changed{Change: c, ID: position, At: func() (string, error) { return position, nil }}); err != nil {
			return err
		}
	}
}

// TestAReaderThatFailsIsToldNothingMore, also if the store has more shards just then, and all logs are read anew.
func TestAReaderThatFailsIsToldNothingMore(t *testing.T) {
	store := &growing{oracle.New(), make(chan struct{})}
	log := &numbered{make(chan struct{})}
	open := func(context.Context) ([]replication.Log, func(), error) {
		return []replication.Log{log}, func() {}, nil
	}
	full, told := errors.New("the disk is full"), 0
	cfg := changes.Config{Store: store, Open: open, Logger: slog.New(slog.DiscardHandler)}
	err := changes.Run(t.Context(), cfg, func(e changes.Event) error {
		if told++; told < 3 {
			return nil
		}
		if told == 3 {
			close(store.grown)
			<-log.ended
		}
		return full
	})
	check.That(t, errors.Is(err, full) && told == 3, "%v after %d events, want the reader's error after 3", err, told)
}

// TestMoreShardsWhileLogsAreOpened: the logs are opened again, as if shards had come a moment later.
func TestMoreShardsWhileLogsAreOpened(t *testing.T) {
	store, opened := &growing{oracle.New(), make(chan struct{})}, 0
	open := func(ctx context.Context) ([]replication.Log, func(), error) {
		if opened++; opened > 1 {
			return []replication.Log{&numbered{make(chan struct{})}}, func() {}, nil
		}
		close(store.grown)
		<-ctx.Done()
		store.grown = make(chan struct{})
		return nil, nil, ctx.Err()
	}
	full := errors.New("the disk is full")
	err := changes.Run(t.Context(), changes.Config{Store: store, Open: open, Logger: slog.New(slog.DiscardHandler)}, func(changes.Event) error { return full })
	check.That(t, errors.Is(err, full) && opened == 2, "%v after the logs were opened %d times", err, opened)
}

// cutOff is a log that cannot say where it ends.
type cutOff struct{ *numbered }

func (cutOff) End(context.Context) (string, error) { return "", errCut }

var errCut = errors.New("the connection is cut")

// TestLogsThatCannotBeOpenedAreOpenedLater: an error that may pass does not end the reading.
func TestLogsThatCannotBeOpenedAreOpenedLater(t *testing.T) {
	store, opened, closed := &growing{oracle.New(), make(chan struct{})}, 0, 0
	open := func(context.Context) ([]replication.Log, func(), error) {
		log := &numbered{make(chan struct{})}
		switch opened++; opened {
		case 1:
			return nil, nil, errCut
		case 2:
			return []replication.Log{cutOff{log}}, func() { closed++ }, nil
		}
		return []replication.Log{log}, func() { closed++ }, nil
	}
	full := errors.New("the disk is full")
	err := changes.Run(t.Context(), changes.Config{Store: store, Open: open, Logger: slog.New(slog.DiscardHandler)}, func(changes.Event) error { return full })
	check.That(t, errors.Is(err, full) && opened == 3 && closed == 2, "%v after the logs were opened %d times and closed %d times", err, opened, closed)
}
