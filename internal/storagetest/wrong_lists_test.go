package storagetest_test

import (
	"context"
	"errors"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes about the lists of users.

var listMistakes = []mistake{
	{"every update of a list is a change", func(s *oracle.Store) storage.Store { return updatesAgain{s} }, "userLists/TheyAreCreatedChangedAndDeleted", promiseOnly},
	{"a list is created again", func(s *oracle.Store) storage.Store { return createsAgain{s} }, "userLists/OneIsCreatedOnce", promiseOnly},
	{"anything may have members", items(func(ctx context.Context, s *oracle.Store, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
		results := s.ChangeEdges(ctx, side, user, changes, o)
		for i := range results {
			results[i].Err = nil
		}
		return results
	}), "userLists/MembersNeedAList", promiseOnly},
	{"lists have no limit", func(s *oracle.Store) storage.Store { return listsUnlimited{s} }, "userLists/TheirNumberIsBounded", promiseOnly},
	{"anybody has lists", func(s *oracle.Store) storage.Store { return anybodysLists{s} }, "userLists/NobodyHasLists", promiseOnly},
	{"lists are restored over those that there are", func(s *oracle.Store) storage.Store { return restoresOver{s} }, "userLists/TheyAreRestored", promiseOnly},
	{"lists outlive users", func(s *oracle.Store) storage.Store { return &listsStay{s, map[storage.UserID][]storage.UserList{}} }, "userLists/TheyEndWithTheUser", promiseOnly},
}

type updatesAgain struct{ *oracle.Store }

func (s updatesAgain) UpdateList(ctx context.Context, id storage.ListID, change storage.ListChange) (storage.UserList, bool, error) {
	list, _, err := s.Store.UpdateList(ctx, id, change)
	return list, err == nil, err
}

type createsAgain struct{ *oracle.Store }

func (s createsAgain) CreateList(ctx context.Context, list storage.UserList) (storage.UserList, bool, error) {
	made, created, err := s.Store.CreateList(ctx, list)
	if err == nil && !created {
		list.Number = made.Number + 1
		created = s.Restore(ctx, storage.Restored{Lists: []storage.UserList{list}})[0].Value
		made = list
	}
	return made, created, err
}

type listsUnlimited struct{ *oracle.Store }

func (s listsUnlimited) CreateList(ctx context.Context, list storage.UserList) (storage.UserList, bool, error) {
	made, created, err := s.Store.CreateList(ctx, list)
	if errors.Is(err, storage.ErrLimitReached) {
		made, created, err = list, true, nil
	}
	return made, created, err
}

type restoresOver struct{ *oracle.Store }

func (s restoresOver) Restore(ctx context.Context, r storage.Restored) []storage.Result[bool] {
	results := s.Store.Restore(ctx, r)
	for _, l := range r.Lists {
		_, _, _ = s.UpdateList(ctx, l.ListID, storage.ListChange{Name: &l.Name, Public: &l.Public})
	}
	return results
}

type anybodysLists struct{ *oracle.Store }

func (s anybodysLists) CreateList(ctx context.Context, list storage.UserList) (storage.UserList, bool, error) {
	if r := storage.UserLookups.Read(ctx, s, list.Owner)[0]; !r.Found {
		return list, true, nil
	}
	return s.Store.CreateList(ctx, list)
}

type listsStay struct {
	*oracle.Store
	of map[storage.UserID][]storage.UserList
}

func (s *listsStay) Erase(ctx context.Context, user storage.UserID, at storage.Micros) error {
	q := storage.ListsQuery{Owner: user, UpTo: 1 << 60, Limit: storage.MaxLists}
	s.of[user] = storage.ListLookups.Read(ctx, s.Store, q)[0].Value
	return s.Store.Erase(ctx, user, at)
}

func (s *listsStay) userLists(ctx context.Context, queries []storage.ListsQuery) []storage.Result[[]storage.UserList] {
	results := storage.ListLookups.Read(ctx, s.Store, queries...)
	for i, q := range queries {
		results[i].Value = append(results[i].Value, s.of[q.Owner]...)
	}
	return results
}

func (s *listsStay) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.ListLookups.Instead(ctx, b, s.userLists)
	s.Store.Bundle(ctx, b)
}
