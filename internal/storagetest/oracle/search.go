package oracle

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"kith/storage"
	"kith/storage/finding"
)

// readWords answers [finding.WordLookups].
func (s *Store) readWords(ctx context.Context, q finding.WordQuery) (ids []storage.UserID, err error) {
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
		for _, word := range finding.Words(u) {
			if strings.HasPrefix(word, q.Prefix) {
				rows = append(rows, row{word, id})
			}
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(strings.Compare(a.word, b.word), cmp.Compare(a.user, b.user)) })
	return storage.Each(rows[:min(q.Limit, len(rows))], func(r row) storage.UserID { return r.user }), nil
}

// readUserWords answers [finding.UserWordLookups].
func (s *Store) readUserWords(ctx context.Context, q finding.UserWord) ([]storage.UserID, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.DeleteFunc(slices.Clone(q.Users), func(id storage.UserID) bool {
		u, ok := s.users[id]
		return !ok || q.Prefix == "" || !slices.ContainsFunc(finding.Words(u), func(word string) bool { return strings.HasPrefix(word, q.Prefix) })
	}), ctx.Err()
}
