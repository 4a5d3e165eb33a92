package oracle

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"kith/storage"
)

// Dismissals implements [storage.RelationReader].
func (s *Store) Dismissals(ctx context.Context, queries []storage.DismissalQuery) []storage.Result[[]storage.UserID] {
	return lookUp(ctx, s, queries, func(q storage.DismissalQuery) ([]storage.UserID, bool) {
		var list []storage.UserID
		for dismissed, at := range s.dismissed[q.User] {
			if at >= q.Since {
				list = append(list, dismissed)
			}
		}
		slices.Sort(list)
		return list, true
	})
}

// Dismiss implements [storage.SuggestionStore].
func (s *Store) Dismiss(ctx context.Context, user, dismissed storage.UserID, at, forget storage.Micros) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	defer s.write(ctx)()
	if _, counted := s.counts[user]; !counted {
		return fmt.Errorf("dismiss %d for user %d: %w", dismissed, user, storage.ErrUserUnknown)
	}
	maps.DeleteFunc(s.dismissed[user], func(_ storage.UserID, at storage.Micros) bool { return at < forget })
	if at >= forget {
		s.dismiss(user, dismissed, at)
	}
	s.besideChanged(user)
	return nil
}

// EndDismissal implements [storage.SuggestionStore].
func (s *Store) EndDismissal(ctx context.Context, user, dismissed storage.UserID) (ended bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	defer s.write(ctx)()
	if _, counted := s.counts[user]; !counted {
		return false, fmt.Errorf("end the dismissal of %d for user %d: %w", dismissed, user, storage.ErrUserUnknown)
	}
	if _, ended = s.dismissed[user][dismissed]; ended {
		delete(s.dismissed[user], dismissed)
		s.besideChanged(user)
	}
	return ended, nil
}

// dismiss keeps the newest dismissals of a user.
func (s *Store) dismiss(user, dismissed storage.UserID, at storage.Micros) {
	list := s.dismissed[user]
	if list == nil {
		list = make(map[storage.UserID]storage.Micros)
		s.dismissed[user] = list
	}
	list[dismissed] = max(list[dismissed], at)
	if len(list) <= storage.MaxDismissals {
		return
	}
	newest := slices.SortedFunc(maps.Keys(list), func(a, b storage.UserID) int {
		return cmp.Or(cmp.Compare(list[b], list[a]), cmp.Compare(b, a))
	})
	for _, surplus := range newest[storage.MaxDismissals:] {
		delete(list, surplus)
	}
}

// activeOn remembers the last day on which a user has been active.
func (s *Store) activeOn(id storage.UserID, at storage.Micros) {
	s.active[id] = max(s.active[id], storage.DayOf(at))
}

// Popular implements [storage.SuggestionStore].
func (s *Store) Popular(ctx context.Context, since storage.Day, limit int) ([]storage.PopularUser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	var sample []storage.UserID
	for id := range s.users {
		if day := s.active[id]; day > 0 && day >= since && s.counts[id].Follower > 0 {
			sample = append(sample, id)
		}
	}
	class := func(id storage.UserID) int { return followerClass(s.counts[id].Follower) }
	slices.SortFunc(sample, func(a, b storage.UserID) int {
		return cmp.Or(cmp.Compare(class(b), class(a)), cmp.Compare(s.active[b], s.active[a]), cmp.Compare(b, a))
	})
	var popular []storage.PopularUser
	for _, id := range sample[:min(len(sample), storage.PopularSample)] {
		popular = append(popular, storage.PopularUser{User: id, Followers: s.counts[id].Follower})
	}
	slices.SortFunc(popular, func(a, b storage.PopularUser) int {
		return cmp.Or(cmp.Compare(b.Followers, a.Followers), cmp.Compare(a.User, b.User))
	})
	return popular[:min(len(popular), limit)], nil
}

// followerClass rises with the number of followers: the number of decimal digits times
// 100, and the first two digits. 101 is one follower, 514 are 14,000 to 14,999.
func followerClass(followers int64) int {
	digits := strconv.FormatInt(max(followers, 0), 10)
	first, _ := strconv.Atoi(digits[:min(2, len(digits))])
	return 100*len(digits) + first
}

// MarkActive implements [storage.SuggestionStore].
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
