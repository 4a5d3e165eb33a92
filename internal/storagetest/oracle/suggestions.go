package oracle

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"kith/storage"
	"kith/storage/finding"
)

// activeOn remembers the last day on which a user has been active.
func (s *Store) activeOn(id storage.UserID, at storage.Micros) {
	s.active[id] = max(s.active[id], at.Day())
}

// findPopular answers [finding.PopularLookups].
func (s *Store) findPopular(q finding.PopularQuery) ([]finding.PopularUser, bool) {
	var sample []storage.UserID
	for id := range s.users {
		if day := s.active[id]; day > 0 && day >= q.Since && s.counts[id].Follower > 0 {
			sample = append(sample, id)
		}
	}
	class := func(id storage.UserID) int { return followerClass(s.counts[id].Follower) }
	slices.SortFunc(sample, func(a, b storage.UserID) int {
		return cmp.Or(cmp.Compare(class(b), class(a)), cmp.Compare(s.active[b], s.active[a]), cmp.Compare(b, a))
	})
	var popular []finding.PopularUser
	for _, id := range sample[:min(len(sample), finding.PopularSample)] {
		popular = append(popular, finding.PopularUser{User: id, Followers: s.counts[id].Follower})
	}
	slices.SortFunc(popular, func(a, b finding.PopularUser) int {
		return cmp.Or(cmp.Compare(b.Followers, a.Followers), cmp.Compare(a.User, b.User))
	})
	return popular[:min(len(popular), q.Limit)], true
}

// followerClass rises with the number of followers: the number of decimal digits times
// 100, and the first two digits. 101 is one follower, 514 are 14,000 to 14,999.
func followerClass(followers int64) int {
	digits := strconv.FormatInt(max(followers, 0), 10)
	first, _ := strconv.Atoi(digits[:min(2, len(digits))])
	return 100*len(digits) + first
}

// MarkActive implements [storage.Store].
func (s *Store) MarkActive(ctx context.Context, users []storage.UserID, day storage.Day) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range users {
		if _, counted := s.counts[id]; counted {
			s.active[id] = max(s.active[id], day)
		}
	}
	return nil
}
