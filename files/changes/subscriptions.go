package changes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"kith/graph/apierr"
	"kith/graph/model"
	"kith/replication/binlog"
	"kith/storage"
)

// MaxSubscriptions is how many there may be at once on a gateway: each reads all logs for itself.
const MaxSubscriptions = 8

// Subscriptions are those of a gateway to the changes of a store.
type Subscriptions struct {
	Store  Store
	Logger *slog.Logger

	open    atomic.Int32
	proving atomic.Bool // by the one that has asked for [Digests]: they read whole tables
}

// Run passes changes to give, as the function [Run] does, until the context is done. Its other errors are for clients.
func (s *Subscriptions) Run(ctx context.Context, after *string, kinds []model.ChangeKind, give func(*model.ChangeEvent) error) error {
	defer s.open.Add(-1)
	cfg := Config{Store: s.Store, Kinds: storage.Each(kinds, func(k model.ChangeKind) Kind { return Kind(strings.ToLower(string(k))) }), Logger: s.Logger}
	if s.open.Add(1) > MaxSubscriptions {
		return apierr.TooManySubscriptions.Error("a gateway has at most %d subscriptions to changes", MaxSubscriptions)
	}
	var badKinds, badAfter error
	switch {
	case kinds != nil && len(kinds) == 0:
		badKinds = apierr.InvalidValue.Error("the list of kinds is empty: leave it out for all kinds").In("kinds")
	case len(kinds) > len(Kinds())+1:
		badKinds = apierr.TooLong.Error("there are %d kinds, and %d are given", len(Kinds())+1, len(kinds)).In("kinds")
	case slices.Contains(cfg.Kinds, Digests) && !hasDigests(cfg.Kinds):
		badKinds = apierr.InvalidValue.Error("%s", ErrDigests).In("kinds")
	case slices.Contains(cfg.Kinds, Counts) && s.Store.HasLog():
		badKinds = apierr.InvalidValue.Error("%s", ErrKind).In("kinds")
	}
	if after != nil {
		cfg.After = *after
		if _, err := parse(*after, s.Store.UUID()); err != nil {
			badAfter = apierr.CursorMalformed.Error("%s", ErrCursor).In("after")
		}
	}
	if err := apierr.All(badAfter, badKinds); err != nil {
		return err
	}
	if slices.Contains(cfg.Kinds, Digests) {
		if !s.proving.CompareAndSwap(false, true) {
			return apierr.TooManySubscriptions.Error("a gateway has one subscription to digests at a time")
		}
		defer s.proving.Store(false)
	}
	err := Run(ctx, cfg, func(e Event) error { return give(e.change()) })
	var shown *apierr.Error
	switch {
	case errors.As(err, new(*SnapshotNeeded)):
		shown = apierr.SnapshotNeeded.Error("the store does not have all that came after the cursor: make a new export, and go on from its cursor")
	case errors.Is(err, binlog.ErrNoLog):
		shown = apierr.NotPossible.Error("%s", binlog.ErrNoLog)
	case errors.As(err, new(*binlog.StopError)):
		shown = apierr.NotPossible.Error("the servers' binlogs do not tell all changes: kith doctor says why")
	default:
		return err
	}
	return fmt.Errorf("%w: %w", shown, err)
}

// change is the event as the API has it.
func (e Event) change() *model.ChangeEvent {
	c := &model.ChangeEvent{EventID: e.ID, Source: e.Source}
	if e.Cursor != "" {
		c.Cursor = &e.Cursor
	}
	if e.Type == Position {
		return c
	}
	kind := model.ChangeKind(strings.ToUpper(strings.TrimPrefix(e.Type, "kith.")))
	c.Kind, c.Subject, c.Data = &kind, &e.Subject, e.Data
	if !e.Time.IsZero() {
		c.Time = &e.Time
	}
	return c
}
