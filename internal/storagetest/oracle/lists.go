package oracle

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"kith/storage"
)

// findUserLists answers [storage.ListLookups].
func (s *Store) findUserLists(q storage.ListsQuery) (page []storage.UserList, found bool) {
	for _, l := range s.lists {
		if l.Owner == q.Owner && l.Number <= q.UpTo && (l.Public || !q.Public) {
			page = append(page, l)
		}
	}
	slices.SortFunc(page, storage.UserList.Compare)
	return page[:min(q.Limit, len(page))], true
}

// CreateList implements [storage.Store].
func (s *Store) CreateList(ctx context.Context, list storage.UserList) (made storage.UserList, created bool, err error) {
	err = s.changeLists(ctx, list.Owner, func() error {
		n, number, same := 0, list.Number, int64(0)
		for id, l := range s.lists {
			if id.Owner != list.Owner {
				continue
			}
			n, number = n+1, max(number, id.Number+1)
			if l.Name == list.Name && l.Public == list.Public {
				same = max(same, id.Number)
			}
		}
		made, created = list, same == 0
		if made.Number = cmp.Or(same, number); !created {
			return nil
		}
		if n >= storage.MaxLists || number > storage.MaxListNumber {
			return fmt.Errorf("create a list of user %d: %w", list.Owner, storage.ErrLimitReached)
		}
		s.lists[made.ListID] = made
		return nil
	})
	return made, created && err == nil, err
}

func (s *Store) restoreList(l storage.UserList) storage.Result[bool] {
	if _, counted := s.counts[l.Owner]; !counted {
		return storage.Result[bool]{}
	}
	if _, exists := s.lists[l.ListID]; exists {
		return storage.Result[bool]{Found: true}
	}
	own := 0
	for id := range s.lists {
		if id.Owner == l.Owner {
			own++
		}
	}
	if own >= storage.MaxLists {
		return storage.Result[bool]{Err: storage.ErrLimitReached}
	}
	s.lists[l.ListID] = l
	return storage.Result[bool]{Value: true, Found: true}
}

// Lists implements [contents.Moment].
func (m *moment) Lists(ctx context.Context, after storage.ListID, limit int) ([]storage.UserList, error) {
	behind := func(a, b storage.ListID) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Number, b.Number))
	}
	page := slices.DeleteFunc(slices.Clone(m.lists), func(l storage.UserList) bool { return behind(l.ListID, after) <= 0 })
	slices.SortFunc(page, func(a, b storage.UserList) int { return behind(a.ListID, b.ListID) })
	return page[:min(limit, len(page))], ctx.Err()
}

// UpdateList implements [storage.Store].
func (s *Store) UpdateList(ctx context.Context, id storage.ListID, change storage.ListChange) (list storage.UserList, changed bool, err error) {
	err = s.changeLists(ctx, id.Owner, func() error {
		old, exists := s.lists[id]
		if !exists {
			return storage.ErrListUnknown
		}
		list = old
		change.Apply(&list)
		changed = old != list
		s.lists[id] = list
		return nil
	})
	return list, changed, err
}

// DeleteList implements [storage.Store].
func (s *Store) DeleteList(ctx context.Context, id storage.ListID) (deleted bool, err error) {
	err = s.changeLists(ctx, id.Owner, func() error {
		if _, exists := s.lists[id]; !exists {
			return storage.ErrListUnknown
		}
		if deleted = s.kinds[storage.OwnerKind{Owner: id.Owner, Kind: id.Kind()}].Outgoing == 0; deleted {
			delete(s.lists, id)
		}
		return nil
	})
	return deleted, err
}

func (s *Store) changeLists(ctx context.Context, owner storage.UserID, change func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	defer s.write(ctx)()
	if _, counted := s.counts[owner]; !counted {
		return fmt.Errorf("change the lists of user %d: %w", owner, storage.ErrUserUnknown)
	}
	return change()
}
