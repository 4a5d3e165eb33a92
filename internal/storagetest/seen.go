package storagetest

import (
	"testing"

	"kith/storage"
)

// seen is up to where users have seen something.
type seen struct{ *harness }

func (s seen) ItOnlyMovesForward(t *testing.T) {
	user, other := s.newUsers(t, 1)[0].ID, s.newUsers(t, 1)[0].ID
	s.wantSeen(t, user, 0)
	for _, step := range []struct {
		upTo, want storage.Micros
	}{{0, 0}, {at(5), at(5)}, {at(5), at(5)}, {at(3), at(5)}, {at(9), at(9)}} {
		before := one(t, s.harness, storage.SeenLookups, storage.Seen{User: user})
		changed, err := s.store.See(t.Context(), storage.Seen{User: user}, step.upTo)
		wantIs(t, err, nil)
		wantEqual(t, "changed", changed, step.upTo > before)
		s.wantSeen(t, user, step.want)
	}
	s.wantSeen(t, other, 0)
	wantEqual(t, "seen of something else", one(t, s.harness, storage.SeenLookups, storage.Seen{User: user, Activity: true}), 0)
}

func (s seen) NobodySeesAnything(t *testing.T) {
	nobody := s.id()
	changed, err := s.store.See(t.Context(), storage.Seen{User: nobody}, at(5))
	wantIs(t, err, storage.ErrUserUnknown)
	wantEqual(t, "changed", changed, false)
	s.wantSeen(t, nobody, 0)
}

func (s seen) ItEndsWithTheUser(t *testing.T) {
	user := s.newUsers(t, 1)[0]
	_, err := s.store.See(t.Context(), storage.Seen{User: user.ID}, at(5))
	wantIs(t, err, nil)
	s.setState(t, user.ID, storage.Deleting, 10, true)
	wantIs(t, s.store.Erase(t.Context(), user.ID, at(20)), nil)
	s.wantSeen(t, user.ID, 0)
}

func (s seen) ManyDevicesSeeItAtOnce(t *testing.T) {
	user := s.newUsers(t, 1)[0].ID
	together(func(worker int) {
		for i := range 5 {
			if _, err := s.store.See(t.Context(), storage.Seen{User: user}, at(1+i*workers+worker)); err != nil {
				t.Errorf("worker %d: %v", worker, err)
			}
		}
	})
	s.wantSeen(t, user, at(5*workers))
}

func (s seen) wantSeen(t *testing.T, user storage.UserID, want storage.Micros) {
	t.Helper()
	wantEqual(t, "seen up to", one(t, s.harness, storage.SeenLookups, storage.Seen{User: user}), want)
}
