package storagetest_test

import (
	"context"

	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes about the lists of users.
var listMistakes = []mistake{
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
