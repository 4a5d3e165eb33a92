package storagetest_test

import (
	"context"
	"slices"

	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes about what is stored beside edges: visibility, marks, messages and so on.
var sideMistakes = []mistake{
	{"only own blocks are listed", answers(func(s *oracle.Store, _ storage.Side, user storage.UserID, r *storage.Result[[]storage.UserID]) {
		r.Value = slices.DeleteFunc(r.Value, func(id storage.UserID) bool {
			return storage.EdgeLookups[storage.Forward].Read(context.Background(), s, storage.Pair{From: user, To: id})[0].Value.Type != storage.Blocking
		})
	}, storage.BlockLookups), "blockLists/BothDirectionsAreListedOnce", promiseOnly},
	{"every row of type 2 is a block", answers(func(s *oracle.Store, _ storage.Side, user storage.UserID, r *storage.Result[[]storage.UserID]) {
		for _, row := range storage.RowLookups.Read(context.Background(), s, storage.RowsQuery{Side: storage.Requests, Owner: user, Limit: 1000})[0].Value {
			if row.Type == storage.Accepted {
				r.Value = append(r.Value, row.To)
			}
		}
	}, storage.BlockLookups), "blockLists/OnlyBlocksAreListed", promiseOnly},
	{"the end of a batch has no blocks", shortens(1000, storage.BlockLookups), "bundles/EachOfManyKeysIsAnsweredAsAlone", promiseOnly},
	{"the bound is tallied, too", asks(func(q *storage.EdgeCountQuery) { q.Since-- }, storage.EdgeCountLookups...), "count/OnlyNewerEdgesAreCounted", promiseOnly},
	{"a mark is replaced", func(s *oracle.Store, w *double.Store) {
		w.Instead.SetMark = func(ctx context.Context, pair storage.Pair, change storage.MarkChange) (storage.EdgeMark, bool, error) {
			if change.Remark == nil {
				change.Remark = new(string)
			}
			return s.SetMark(ctx, pair, change)
		}
	}, "marks/WhatIsGivenIsChanged", promiseOnly},
	{"an empty mark stays", answers(func(_ *oracle.Store, _ storage.Side, _ storage.Pair, r *storage.Result[storage.EdgeMark]) {
		r.Found = r.Err == nil
	}, storage.MarkLookups), "marks/OneWithNeitherIsRemoved", promiseOnly},
	{"marks outlive follows", marksStay(1), "marks/TheyGoWithTheFollow", promiseOnly},
	{"marks outlive many follows", marksStay(1000), "marks/ManyGoWithTheirFollows", promiseOnly},
	{"messages outlive requests", messagesStay, "messages/OnlyPendingRequestsHaveThem", promiseOnly},
	{"events leave messages", messagesStay, "messages/TheyGoWithTheRequest", promiseOnly},
	{"every request has a message", answers(func(_ *oracle.Store, _ storage.Side, _ storage.Pair, r *storage.Result[string]) {
		r.Found = true
	}, storage.MessageLookups), "messages/ARequestWithoutOneHasNone", promiseOnly},
	{"feeds are seen backward", func(s *oracle.Store, w *double.Store) {
		// It keeps what was seen last.
		var seen memory[storage.Seen, storage.Micros]
		w.Instead.See = func(ctx context.Context, what storage.Seen, upTo storage.Micros) (bool, error) {
			changed, err := s.See(ctx, what, upTo)
			if err == nil {
				seen.set(what, upTo)
			}
			return changed, err
		}
		answers(func(_ *oracle.Store, _ storage.Side, what storage.Seen, r *storage.Result[storage.Micros]) {
			r.Value, _ = seen.get(what)
		}, storage.SeenLookups)(s, w)
	}, "seen/ItOnlyMovesForward", promiseOnly},
	{"only type 1 has rows", answers(func(_ *oracle.Store, _ storage.Side, _ storage.RowsQuery, r *storage.Result[[]storage.Edge]) {
		r.Value = slices.DeleteFunc(r.Value, func(e storage.Edge) bool { return e.Type != 1 })
	}, storage.RowLookups), "rows/EveryTypeIsThere", promiseOnly},
}

// marksStay keeps the marks of follows that writes of some size end.
func marksStay(from int) spoil {
	return func(s *oracle.Store, w *double.Store) {
		var kept memory[storage.Pair, storage.EdgeMark]
		w.Instead.Apply = func(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
			if len(edges) >= from {
				for _, e := range edges {
					keepMark(ctx, s, &kept, e.Pair())
				}
			}
			return s.Apply(ctx, side, edges, rule)
		}
		answers(kept.remembered, storage.MarkLookups)(s, w)
	}
}

func keepMark(ctx context.Context, s *oracle.Store, kept *memory[storage.Pair, storage.EdgeMark], pair storage.Pair) {
	if mark := storage.MarkLookups.Read(ctx, s, pair)[0]; mark.Found {
		kept.set(pair, mark.Value)
	}
}

// messagesStay answers with every message that was sent.
func messagesStay(s *oracle.Store, w *double.Store) {
	var sent memory[storage.Pair, string]
	w.Instead.ChangeEdges = func(ctx context.Context, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
		if change := changes[0]; side == storage.Requests && change.Message != "" {
			sent.set(storage.Pair{From: user, To: change.To}, change.Message)
		}
		return s.ChangeEdges(ctx, side, user, changes, o)
	}
	answers(func(_ *oracle.Store, _ storage.Side, request storage.Pair, r *storage.Result[string]) {
		r.Value, r.Found = sent.get(request)
	}, storage.MessageLookups)(s, w)
}
