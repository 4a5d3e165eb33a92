package storagetest_test

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes about what is stored beside edges: marks, states and so on.
var sideMistakes = []mistake{
	{"visibility is not stored", func(s *oracle.Store) storage.Store { return visibleToAll{s} }, "profile/VisibilityComesBack", promiseOnly},
	{"false is none", func(s *oracle.Store) storage.Store { return falseIsNil{s} }, "profile/WhatIsGivenOfTheVisibilityIsChanged", promiseOnly},

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
	{"the end of a batch has no blocks", shortens(1000, storage.BlockLookups), "blockLists/EveryUserIsAnsweredAtItsIndex", promiseOnly},
	{"the bound is tallied, too", asks(func(q *storage.EdgeCountQuery) { q.Since-- }, storage.EdgeCountLookups...), "count/OnlyNewerEdgesAreCounted", promiseOnly},
	{"the end of a batch is not tallied", shortens(1000, storage.EdgeCountLookups...), "count/EveryQueryIsAnsweredAtItsIndex", promiseOnly},

	{"a mark is replaced", func(s *oracle.Store) storage.Store { return replacesMark{s} }, "marks/WhatIsGivenIsChanged", promiseOnly},
	{"an empty mark stays", answers(func(_ *oracle.Store, _ storage.Side, _ storage.Pair, r *storage.Result[storage.EdgeMark]) {
		r.Found = r.Err == nil
	}, storage.MarkLookups), "marks/OneWithNeitherIsRemoved", promiseOnly},
	{"anybody may be marked", func(s *oracle.Store) storage.Store { return marksAnybody{s} }, "marks/OnlyAFollowIsMarked", promiseOnly},
	{"the same mark is a change", func(s *oracle.Store) storage.Store { return marksAgain{s} }, "marks/TheVersionRisesWithAChange", promiseOnly},
	{"marks outlive follows", func(s *oracle.Store) storage.Store { return newMarksStay(s, 1) }, "marks/TheyGoWithTheFollow", promiseOnly},
	{"marks outlive many follows", func(s *oracle.Store) storage.Store { return newMarksStay(s, 1000) }, "marks/ManyGoWithTheirFollows", promiseOnly},
	{"the end of a batch has no marks", shortens(1000, storage.MarkLookups), "marks/ALargeBatchIsAnswered", promiseOnly},
	{"specials have no limit", func(s *oracle.Store) storage.Store { return specialsUnlimited{s} }, "marks/TheLimitOfSpecialsHolds", promiseOnly},
	{"messages outlive requests", func(s *oracle.Store) storage.Store { return &messagesStay{s, map[storage.Pair]string{}} }, "messages/OnlyPendingRequestsHaveThem", promiseOnly},
	{"events leave messages", func(s *oracle.Store) storage.Store { return &messagesStay{s, map[storage.Pair]string{}} }, "messages/TheyGoWithTheRequest", promiseOnly},
	{"every request has a message", answers(func(_ *oracle.Store, _ storage.Side, _ storage.Pair, r *storage.Result[string]) {
		r.Found = true
	}, storage.MessageLookups), "messages/ARequestWithoutOneHasNone", promiseOnly},

	{"feeds are seen backward", func(s *oracle.Store) storage.Store { return seesBackward{s, map[storage.Seen]storage.Micros{}} }, "seen/ItOnlyMovesForward", promiseOnly},

	{"only type 1 has rows", answers(func(_ *oracle.Store, _ storage.Side, _ storage.RowsQuery, r *storage.Result[[]storage.Edge]) {
		r.Value = slices.DeleteFunc(r.Value, func(e storage.Edge) bool { return e.Type != 1 })
	}, storage.RowLookups), "rows/EveryTypeIsThere", promiseOnly},

	{"ended contexts write beside edges", func(s *oracle.Store) storage.Store { return deafMark{s} }, "cancellation/NothingBesideEdgesIsChanged", promiseOnly},
}

type visibleToAll struct{ *oracle.Store }

func (s visibleToAll) CreateUsers(ctx context.Context, users []storage.User) []storage.Result[bool] {
	users = slices.Clone(users)
	for i := range users {
		users[i].FollowersVisibility = storage.ToEveryone
	}
	return s.Store.CreateUsers(ctx, users)
}

// seesBackward keeps what was seen last.
type seesBackward struct {
	*oracle.Store
	seen map[storage.Seen]storage.Micros
}

func (s seesBackward) See(ctx context.Context, what storage.Seen, upTo storage.Micros) (bool, error) {
	changed, err := s.Store.See(ctx, what, upTo)
	if err == nil {
		s.seen[what] = upTo
	}
	return changed, err
}

func (s seesBackward) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.SeenLookups.Instead(ctx, b, storage.OneByOne(func(_ context.Context, what storage.Seen) (storage.Micros, error) { return s.seen[what], nil }))
	s.Store.Bundle(ctx, b)
}

type falseIsNil struct{ *oracle.Store }

func (s falseIsNil) UpdateProfile(ctx context.Context, id storage.UserID, change storage.ProfileChange, at storage.Micros) (storage.User, bool, error) {
	if change.Undiscoverable != nil && !*change.Undiscoverable {
		change.Undiscoverable = nil
	}
	return s.Store.UpdateProfile(ctx, id, change, at)
}

type replacesMark struct{ *oracle.Store }

func (s replacesMark) SetMark(ctx context.Context, pair storage.Pair, change storage.MarkChange) (storage.EdgeMark, bool, error) {
	if change.Remark == nil {
		change.Remark = new(string)
	}
	return s.Store.SetMark(ctx, pair, change)
}

type marksAnybody struct{ *oracle.Store }

func (s marksAnybody) SetMark(ctx context.Context, pair storage.Pair, change storage.MarkChange) (storage.EdgeMark, bool, error) {
	mark, changed, err := s.Store.SetMark(ctx, pair, change)
	if errors.Is(err, storage.ErrNoEdge) {
		err = nil
	}
	return mark, changed, err
}

type marksAgain struct{ *oracle.Store }

func (s marksAgain) SetMark(ctx context.Context, pair storage.Pair, change storage.MarkChange) (storage.EdgeMark, bool, error) {
	mark, _, err := s.Store.SetMark(ctx, pair, change)
	return mark, err == nil, err
}

// marksStay keeps the marks of follows that writes of some size end.
type marksStay struct {
	*oracle.Store
	from int
	kept map[storage.Pair]storage.EdgeMark
}

func newMarksStay(s *oracle.Store, from int) storage.Store {
	return &marksStay{s, from, map[storage.Pair]storage.EdgeMark{}}
}

func (s *marksStay) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Changed] {
	if len(edges) >= s.from {
		for _, e := range edges {
			if mark := storage.MarkLookups.Read(ctx, s.Store, e.Pair())[0]; mark.Found {
				s.kept[e.Pair()] = mark.Value
			}
		}
	}
	return s.Store.Apply(ctx, side, edges, rule)
}

func (s *marksStay) marks(ctx context.Context, pairs []storage.Pair) []storage.Result[storage.EdgeMark] {
	results := storage.MarkLookups.Read(ctx, s.Store, pairs...)
	for i, pair := range pairs {
		if mark, ok := s.kept[pair]; ok {
			results[i] = storage.Result[storage.EdgeMark]{Value: mark, Found: true}
		}
	}
	return results
}

func (s *marksStay) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.MarkLookups.Instead(ctx, b, s.marks)
	s.Store.Bundle(ctx, b)
}

type specialsUnlimited struct{ *oracle.Store }

func (s specialsUnlimited) SetMark(ctx context.Context, pair storage.Pair, change storage.MarkChange) (storage.EdgeMark, bool, error) {
	mark, changed, err := s.Store.SetMark(ctx, pair, change)
	if errors.Is(err, storage.ErrLimitReached) {
		return storage.EdgeMark{Special: true}, true, nil
	}
	return mark, changed, err
}

type messagesStay struct {
	*oracle.Store
	sent map[storage.Pair]string
}

func (s *messagesStay) ChangeEdges(ctx context.Context, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
	if change := changes[0]; side == storage.Requests && change.Message != "" {
		s.sent[storage.Pair{From: user, To: change.To}] = change.Message
	}
	return s.Store.ChangeEdges(ctx, side, user, changes, o)
}

func (s *messagesStay) messages(_ context.Context, requests []storage.Pair) []storage.Result[string] {
	results := make([]storage.Result[string], len(requests))
	for i, request := range requests {
		results[i].Value, results[i].Found = s.sent[request]
	}
	return results
}

func (s *messagesStay) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.MessageLookups.Instead(ctx, b, s.messages)
	s.Store.Bundle(ctx, b)
}

type deafMark struct{ *oracle.Store }

func (s deafMark) SetMark(ctx context.Context, pair storage.Pair, change storage.MarkChange) (storage.EdgeMark, bool, error) {
	mark, changed, err := s.Store.SetMark(context.WithoutCancel(ctx), pair, change)
	return mark, changed, cmp.Or(err, ctx.Err())
}

func keepMark(ctx context.Context, s *oracle.Store, kept *memory[storage.Pair, storage.EdgeMark], pair storage.Pair) {
	if mark := storage.MarkLookups.Read(ctx, s, pair)[0]; mark.Found {
		kept.set(pair, mark.Value)
	}
}
