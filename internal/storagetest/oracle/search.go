package oracle

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"kith/storage"
)

// readWords answers [storage.WordLookups].
func (s *Store) readWords(ctx context.Context, q storage.WordQuery) (ids []storage.UserID, err error) {
	if err := ctx.Err(); err != nil || q.Prefix == "" {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	type row struct {
		word string
		user storage.UserID
	}
	var rows []row
	for id, u := range s.users {
		for _, word := range u.Words() {
			if strings.HasPrefix(word, q.Prefix) {
				rows = append(rows, row{word, id})
			}
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(strings.Compare(a.word, b.word), cmp.Compare(a.user, b.user)) })
	return storage.Each(rows[:min(q.Limit, len(rows))], func(r row) storage.UserID { return r.user }), nil
}

// readUserWords answers [storage.UserWordLookups].
func (s *Store) readUserWords(ctx context.Context, q storage.UserWord) ([]storage.UserID, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.DeleteFunc(slices.Clone(q.Users), func(id storage.UserID) bool {
		u, ok := s.users[id]
		return !ok || q.Prefix == "" || !slices.ContainsFunc(u.Words(), func(word string) bool { return strings.HasPrefix(word, q.Prefix) })
	}), ctx.Err()
}
