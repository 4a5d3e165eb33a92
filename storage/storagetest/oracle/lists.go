package oracle

import (
	"context"
	"fmt"

	"kith/storage"
)

// UserLists implements [storage.ListStore].
func (s *Store) UserLists(ctx context.Context, queries []storage.ListsQuery) []storage.Result[[]storage.UserList] {
	return lookUp(ctx, s, queries, func(q storage.ListsQuery) (page []storage.UserList, found bool) {
		for _, l := range s.lists {
			if l.Owner == q.Owner && l.Number <= q.UpTo && (l.Public || !q.Public) {
				page = append(page, l)
			}
		}
		storage.SortLists(page)
		return page[:min(q.Limit, len(page))], true
	})
}

// CreateList implements [storage.ListStore].
func (s *Store) CreateList(ctx context.Context, list storage.UserList) (made storage.UserList, err error) {
	err = s.changeLists(ctx, list.Owner, func() error {
		n := 0
		number := list.Number
		for id := range s.lists {
			if id.Owner == list.Owner {
				n, number = n+1, max(number, id.Number+1)
			}
		}
		if n >= storage.MaxLists {
			return fmt.Errorf("create a list of user %d: %w", list.Owner, storage.ErrLimitReached)
		}
		made = list
		made.Number = number
		s.lists[made.ListID] = made
		return nil
	})
	return made, err
}

// UpdateList implements [storage.ListStore].
func (s *Store) UpdateList(ctx context.Context, list storage.UserList) (changed bool, err error) {
	err = s.changeLists(ctx, list.Owner, func() error {
		old, exists := s.lists[list.ListID]
		if !exists {
			return storage.ErrListUnknown
		}
		changed = old != list
		s.lists[list.ListID] = list
		return nil
	})
	return changed, err
}

// DeleteList implements [storage.ListStore].
func (s *Store) DeleteList(ctx context.Context, id storage.ListID) (deleted bool, err error) {
	err = s.changeLists(ctx, id.Owner, func() error {
		if _, exists := s.lists[id]; !exists {
			return storage.ErrListUnknown
		}
		if deleted = s.kinds[storage.OwnerKind{Owner: id.Owner, Kind: id.Kind().Number}].Outgoing == 0; deleted {
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
