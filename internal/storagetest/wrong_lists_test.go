package storagetest_test

import (
	"context"
	"errors"

	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes about the lists of users.
var listMistakes = []mistake{
	{"every update of a list is a change", func(s *oracle.Store, w *double.Store) {
		w.Instead.UpdateList = func(ctx context.Context, id storage.ListID, change storage.ListChange) (storage.UserList, bool, error) {
			list, _, err := s.UpdateList(ctx, id, change)
			return list, err == nil, err
		}
	}, "userLists/TheyAreCreatedChangedAndDeleted", promiseOnly},
	{"a list is created again", func(s *oracle.Store, w *double.Store) {
		w.Instead.CreateList = func(ctx context.Context, list storage.UserList) (storage.UserList, bool, error) {
			made, created, err := s.CreateList(ctx, list)
			if err == nil && !created {
				list.Number = made.Number + 1
				created = s.Restore(ctx, storage.Restored{Lists: []storage.UserList{list}})[0].Value
				made = list
			}
			return made, created, err
		}
	}, "userLists/OneIsCreatedOnce", promiseOnly},
	{"anything may have members", items(func(ctx context.Context, s *oracle.Store, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
		results := s.ChangeEdges(ctx, side, user, changes, o)
		for i := range results {
			results[i].Err = nil
		}
		return results
	}), "userLists/MembersNeedAList", promiseOnly},
	{"lists have no limit", func(s *oracle.Store, w *double.Store) {
		w.Instead.CreateList = func(ctx context.Context, list storage.UserList) (storage.UserList, bool, error) {
			made, created, err := s.CreateList(ctx, list)
			if errors.Is(err, storage.ErrLimitReached) {
				made, created, err = list, true, nil
			}
			return made, created, err
		}
	}, "userLists/TheirNumberIsBounded", promiseOnly},
	{"anybody has lists", func(s *oracle.Store, w *double.Store) {
		w.Instead.CreateList = func(ctx context.Context, list storage.UserList) (storage.UserList, bool, error) {
			if r := storage.UserLookups.Read(ctx, s, list.Owner)[0]; !r.Found {
				return list, true, nil
			}
			return s.CreateList(ctx, list)
		}
	}, "userLists/NobodyHasLists", promiseOnly},
	{"lists are restored over those that there are", func(s *oracle.Store, w *double.Store) {
		w.Instead.Restore = func(ctx context.Context, r storage.Restored) []storage.Result[bool] {
			results := s.Restore(ctx, r)
			for _, l := range r.Lists {
				_, _, _ = s.UpdateList(ctx, l.ListID, storage.ListChange{Name: &l.Name, Public: &l.Public})
			}
			return results
		}
	}, "userLists/TheyAreRestored", promiseOnly},
	{"lists outlive users", func(s *oracle.Store, w *double.Store) {
		var of memory[storage.UserID, []storage.UserList]
		w.Instead.Erase = func(ctx context.Context, user storage.UserID, at storage.Micros) error {
			q := storage.ListsQuery{Owner: user, UpTo: 1 << 60, Limit: storage.MaxLists}
			of.set(user, storage.ListLookups.Read(ctx, s, q)[0].Value)
			return s.Erase(ctx, user, at)
		}
		answers(func(_ *oracle.Store, _ storage.Side, q storage.ListsQuery, r *storage.Result[[]storage.UserList]) {
			lists, _ := of.get(q.Owner)
			r.Value = append(r.Value, lists...)
		}, storage.ListLookups)(s, w)
	}, "userLists/TheyEndWithTheUser", promiseOnly},
}
