package oracle

import (
	"context"
	"fmt"
	"slices"

	"kith/storage"
)

// A lease says who has a slot until when.
type lease struct {
	owner string
	until storage.Micros
}

// Lease implements [storage.Leaser]. It takes the lowest of the slots that are free, or else of those that have expired.
func (s *Store) Lease(ctx context.Context, kind, owner string, slots int, now, until storage.Micros) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leases[kind] == nil {
		s.leases[kind] = make(map[int]lease)
	}
	slot, held := s.slotOf(kind, owner)
	if !held || slot >= slots {
		delete(s.leases[kind], slot)
		all := storage.Indexes(slots)
		if slot = slices.IndexFunc(all, func(slot int) bool { _, taken := s.leases[kind][slot]; return !taken }); slot < 0 {
			slot = slices.IndexFunc(all, func(slot int) bool { return s.leases[kind][slot].until <= now })
		}
	}
	if slot < 0 {
		return 0, fmt.Errorf("lease one of %d slots of kind %s: %w", slots, kind, storage.ErrNoLease)
	}
	s.leases[kind][slot] = lease{owner, until}
	return slot, nil
}

// Release implements [storage.Leaser].
func (s *Store) Release(ctx context.Context, kind, owner string, until storage.Micros) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slot, held := s.slotOf(kind, owner); held && (until == 0 || until == s.leases[kind][slot].until) {
		delete(s.leases[kind], slot)
	}
	return nil
}

// Holders implements [storage.Leaser].
func (s *Store) Holders(ctx context.Context, kind string) (map[string]storage.Micros, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	holders := make(map[string]storage.Micros)
	for _, l := range s.leases[kind] {
		holders[l.owner] = l.until
	}
	return holders, nil
}

func (s *Store) slotOf(kind, owner string) (slot int, held bool) {
	for slot, l := range s.leases[kind] {
		if l.owner == owner {
			return slot, true
		}
	}
	return -1, false
}
