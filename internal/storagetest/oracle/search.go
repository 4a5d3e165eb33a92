package oracle

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"kith/storage"
)

// WithWord implements [storage.WordReader].
func (s *Store) WithWord(ctx context.Context, prefix string, limit int) (ids []storage.UserID, err error) {
	if err := ctx.Err(); err != nil || prefix == "" {
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
		for _, word := range storage.WordsOf(u.Handle, u.Name) {
			if strings.HasPrefix(word, prefix) {
				rows = append(rows, row{word, id})
			}
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(strings.Compare(a.word, b.word), cmp.Compare(a.user, b.user)) })
	return storage.Each(rows[:min(limit, len(rows))], func(r row) storage.UserID { return r.user }), nil
}

// HaveWord implements [storage.WordReader].
func (s *Store) HaveWord(ctx context.Context, prefix string, ids []storage.UserID) []storage.Result[bool] {
	return lookUp(ctx, s, ids, func(id storage.UserID) (bool, bool) {
		u, ok := s.users[id]
		has := ok && prefix != "" && slices.ContainsFunc(storage.WordsOf(u.Handle, u.Name), func(word string) bool { return strings.HasPrefix(word, prefix) })
		return has, has
	})
}
