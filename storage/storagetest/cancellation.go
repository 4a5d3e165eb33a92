package storagetest

import (
	"context"
	"errors"
	"testing"

	"kith/storage"
)

// cancellation: a call whose context has ended answers every key with an error,
// and writes nothing.
type cancellation struct{ *harness }

func (s cancellation) ReadsAreRefused(t *testing.T) {
	known := s.people(t, 2)
	ids, handles := idsOf(known), handlesOf(known)
	rows := []storage.Edge{follow(storage.Forward, ids[0], ids[1], 1), follow(storage.Forward, ids[1], ids[0], 2)}
	ctx := ended(t)

	wantEnded(t, "users", s.store.Users(ctx, ids), 2)
	wantEnded(t, "handles", s.store.UserIDs(ctx, handles), 2)
	wantEnded(t, "counts", s.store.Counts(ctx, ids), 2)
	eachSide(t, func(t *testing.T, side storage.Side) {
		s.apply(t, side, rows...)
		wantEnded(t, "edges", s.store.Edges(ctx, side, pairsOf(rows)), 2)
		wantEnded(t, "neighbours", s.store.Neighbours(ctx, side, ids), 2)
		wantEnded(t, "pages", s.store.Pages(ctx, side, []storage.PageQuery{{Owner: ids[0], Limit: 1}, {Owner: ids[1], Limit: 1}}), 2)
		wantEnded(t, "walks", s.store.Walks(ctx, side, []storage.WalkQuery{{Owner: ids[0], Limit: 1}, {Owner: ids[1], Limit: 1}}), 2)
	})
}

func (s cancellation) NoUserIsMade(t *testing.T) {
	users := []storage.User{person(s.id()), person(s.id())}
	wantEnded(t, "users", s.store.CreateUsers(ended(t), users), 2)
	wantMissing(t, s.store.Users(t.Context(), idsOf(users)), 2)
	wantMissing(t, s.store.Counts(t.Context(), idsOf(users)), 2)
	wantList(t, "made later", answers(t, s.store.CreateUsers(t.Context(), users), 2), []bool{true, true})
}

func (s cancellation) NoEdgeIsWritten(t *testing.T) {
	eachSide(t, func(t *testing.T, side storage.Side) {
		owners, peer := s.ids(8), s.id()
		var rows []storage.Edge
		for _, owner := range owners {
			rows = append(rows, follow(side, owner, peer, 1))
		}
		wantEnded(t, "edges", s.store.Apply(ended(t), side, rows, storage.IfNewer), len(rows))
		wantMissing(t, s.store.Edges(t.Context(), side, pairsOf(rows)), len(rows))
		wantMissing(t, s.store.Counts(t.Context(), owners), len(owners))
	})
}

func (s cancellation) EmptyAndPingTellIt(t *testing.T) {
	if _, err := s.store.Empty(ended(t)); err == nil {
		t.Error("empty: no error")
	}
	for _, shard := range s.store.Ping(ended(t)) {
		if shard.Err == nil {
			t.Errorf("ping: shard %d has no error", shard.Shard)
		}
	}
}

// ended is a context that was cancelled already.
func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func wantEnded[V any](t *testing.T, what string, results []storage.Result[V], n int) {
	t.Helper()
	if len(results) != n {
		t.Fatalf("%s: %d results for %d keys", what, len(results), n)
	}
	for i, result := range results {
		if !errors.Is(result.Err, context.Canceled) && !errors.Is(result.Err, storage.ErrUnavailable) {
			t.Errorf("%s: key %d: error is %v, want %v or %v", what, i, result.Err, context.Canceled, storage.ErrUnavailable)
		}
		if result.Found {
			t.Errorf("%s: key %d: found in spite of an error", what, i)
		}
	}
}
