package storagetest

import (
	"testing"

	"kith/storage"
	"kith/storage/finding"
)

// The promises of cancellation about edges and users also hold for what is stored beside them.

func (s cancellation) ReadsBesideEdgesAreRefused(t *testing.T) {
	ids := idsOf(s.newUsers(t, 2))
	pairs := []storage.Pair{{From: ids[0], To: ids[1]}, {From: ids[1], To: ids[0]}}
	ctx := ended(t)

	wantEnded(t, "blocks", storage.BlockLookups.Read(ctx, s.store, ids...), 2)
	wantEnded(t, "marks", storage.MarkLookups.Read(ctx, s.store, pairs...), 2)
	wantEnded(t, "specials", storage.SpecialLookups.Read(ctx, s.store, ids...), 2)
	wantEnded(t, "messages", storage.MessageLookups.Read(ctx, s.store, pairs...), 2)
	wantEnded(t, "states", storage.StateLookups.Read(ctx, s.store, ids...), 2)
	_, err := finding.PopularLookups.Get(ctx, s.store, finding.PopularQuery{Since: 1, Limit: 10})
	wantEndedErr(t, "popular", err)
	wantEndedErr(t, "mark", s.store.MarkActive(ctx, []storage.UserID{1}, 1))
	_, err = finding.WordLookups.Get(ctx, s.store, finding.WordQuery{Prefix: "u", Limit: 10})
	wantEndedErr(t, "search", err)
	wantEnded(t, "words", finding.UserWordLookups.Read(ctx, s.store, finding.UserWord{Users: ids, Prefix: "u"}), 1)
	_, err = storage.StateChangeLookups.Get(ctx, s.store, storage.ShardQuery[storage.StateChange]{Shard: 0, After: storage.StateChange{}, Limit: 10})
	wantEndedErr(t, "state changes", err)
	eachSide(t, func(t *testing.T, side storage.Side) {
		wantEnded(t, "count", storage.EdgeCountLookups[side].Read(ctx, s.store, storage.EdgeCountQuery{Owner: ids[0], Limit: 1}, storage.EdgeCountQuery{Owner: ids[1], Limit: 1}), 2)
		wantEnded(t, "rows", storage.RowLookups.Read(ctx, s.store, storage.RowsQuery{Side: side, Owner: ids[0], Limit: 1}, storage.RowsQuery{Side: side, Owner: ids[1], Limit: 1}), 2)
	})
}

func (s cancellation) NothingBesideEdgesIsChanged(t *testing.T) {
	user, peer := s.newUsers(t, 1)[0], s.id()
	pair := storage.Pair{From: user.ID, To: peer}
	s.apply(t, storage.Forward, follow(storage.Forward, user.ID, peer, 1))
	counts := s.countsOf(t, user.ID)

	_, _, err := s.store.SetMark(ended(t), pair, special(true))
	wantEndedErr(t, "mark", err)
	_, err = s.store.SetState(ended(t), user.ID, storage.Deactivated, at(1))
	wantEndedErr(t, "state", err)
	wantMissing(t, storage.MarkLookups.Read(t.Context(), s.store, pair), 1)
	s.wantState(t, user.ID, storage.Active)
	wantEqual(t, "counts", s.countsOf(t, user.ID), counts)

	s.setState(t, user.ID, storage.Deleting, 1, true)
	wantEndedErr(t, "erase", s.store.Erase(ended(t), user.ID, at(2)))
	wantEqual(t, "user", s.userOf(t, user.ID), user)
	wantEqual(t, "the handle's owner", found(t, storage.HandleLookups.Read(t.Context(), s.store, user.Handle), 1)[0], user.ID)
	s.wantState(t, user.ID, storage.Deleting)
}
