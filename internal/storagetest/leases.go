package storagetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// leases: numbered slots, each with one owner at a time. Every promise uses a kind
// of its own.
type leases struct{ *harness }

func (s leases) OwnersGetDistinctSlots(t *testing.T) {
	slots := make([]int, 5)
	for i := range slots {
		slots[i] = s.lease(t, "distinct", fmt.Sprint("owner ", i), 5, 0, 100)
	}
	slices.Sort(slots)
	wantList(t, "slots", slots, []int{0, 1, 2, 3, 4})
	s.wantNoLease(t, "distinct", "one more", 5, 1)
}

func (s leases) AnOwnerKeepsItsSlot(t *testing.T) {
	s.lease(t, "kept", "another", 3, 0, 100)
	slot := s.lease(t, "kept", "one", 3, 0, 100)
	for _, now := range []int{0, 50, 99, 150} { // also when it has expired, but still exists
		wantEqual(t, "slot", s.lease(t, "kept", "one", 3, now, now+100), slot)
	}
}

func (s leases) AnExpiredSlotIsTaken(t *testing.T) {
	slot := s.lease(t, "expired", "one", 1, 0, 100)
	s.wantNoLease(t, "expired", "another", 1, 99)
	wantEqual(t, "slot", s.lease(t, "expired", "another", 1, 100, 200), slot)
	s.wantNoLease(t, "expired", "one", 1, 101) // the slot belongs to the other now
	check.That(t, s.lease(t, "expired", "third", 2, 300, 400) != slot, "whose lease has expired is not among the holders any more, though another slot was free")
}

func (s leases) ARenewedSlotIsNotTaken(t *testing.T) {
	s.lease(t, "renewed", "one", 1, 0, 100)
	s.lease(t, "renewed", "one", 1, 90, 200)
	s.wantNoLease(t, "renewed", "another", 1, 150)
}

func (s leases) WhoLostItsSlotGetsAnother(t *testing.T) {
	lost := s.lease(t, "lost", "one", 2, 0, 100)
	s.lease(t, "lost", "another", 2, 0, 300)
	wantEqual(t, "slot", s.lease(t, "lost", "third", 2, 200, 300), lost)
	s.wantNoLease(t, "lost", "one", 2, 250)
	slot := s.lease(t, "lost", "one", 2, 350, 400)
	check.That(t, slot >= 0 && slot <= 1, "slot %d of 2", slot)
}

func (s leases) AReleasedSlotIsTaken(t *testing.T) {
	slot := s.lease(t, "released", "one", 1, 0, 100)
	for range 2 { // the second time there is nothing to release
		s.release(t, "released", "one")
	}
	wantEqual(t, "slot", s.lease(t, "released", "another", 1, 1, 100), slot)
	s.release(t, "released", "one") // the slot is no longer its own
	s.wantNoLease(t, "released", "third", 1, 2)
}

func (s leases) ALeaseThatHasBeenRenewedIsNotReleased(t *testing.T) {
	s.lease(t, "renewed", "one", 1, 0, 100)
	s.lease(t, "renewed", "one", 1, 50, 200)
	for _, until := range []int{100, 200} {
		s.wantHolders(t, "renewed", map[string]storage.Micros{"one": at(200)})
		must.OK(t, s.store.Release(t.Context(), "renewed", "one", at(until)))
	}
	s.wantHolders(t, "renewed", nil)
}

func (s leases) HoldersAreListedWithTheEndsOfTheirLeases(t *testing.T) {
	s.wantHolders(t, "listed", nil)
	s.lease(t, "listed", "one", 5, 0, 100)
	s.lease(t, "listed", "another", 5, 0, 200)
	s.lease(t, "listed elsewhere", "third", 5, 0, 200)
	s.wantHolders(t, "listed", map[string]storage.Micros{"one": at(100), "another": at(200)})
	s.lease(t, "listed", "another", 5, 150, 300) // by then the other's has expired
	s.release(t, "listed", "one")
	s.wantHolders(t, "listed", map[string]storage.Micros{"another": at(300)})
}

func (s leases) wantHolders(t *testing.T, kind string, want map[string]storage.Micros) {
	t.Helper()
	got, err := s.store.Holders(t.Context(), kind)
	check.That(t, err == nil && maps.Equal(got, want), "holders are %v (%v), want %v", got, err, want)
}

func (s leases) KindsAreApart(t *testing.T) {
	for _, kind := range []string{"kind a", "kind b"} {
		wantEqual(t, "slot", s.lease(t, kind, "one", 1, 0, 100), 0)
	}
	s.release(t, "kind a", "one")
	s.wantNoLease(t, "kind b", "another", 1, 1)
	wantEqual(t, "slot", s.lease(t, "kind a", "another", 1, 1, 100), 0)
}

func (s leases) ThereMayBeFewerSlotsThanBefore(t *testing.T) {
	for i := range 4 {
		s.lease(t, "fewer", fmt.Sprint("owner ", i), 4, 0, 100*(i+1))
	}
	for i := range 4 { // an owner of a slot beyond these gets a lower one when one is free
		slot, err := s.store.Lease(t.Context(), "fewer", fmt.Sprint("owner ", i), 2, at(1), at(1000))
		check.That(t, err != nil || slot < 2, "slot %d of 2", slot)
		if err != nil {
			wantIs(t, err, storage.ErrNoLease)
		}
	}
	s.release(t, "fewer", "owner 0")
	s.release(t, "fewer", "owner 1")
	a := s.lease(t, "fewer", "owner 2", 2, 2, 1000)
	b := s.lease(t, "fewer", "owner 3", 2, 2, 1000)
	wantList(t, "slots", slices.Sorted(slices.Values([]int{a, b})), []int{0, 1})
}

func (s leases) ManyMayAskAtOnce(t *testing.T) {
	for round := range 5 {
		kind := fmt.Sprint("crowd ", round)
		taken := make([]int, crowd)
		crowded(func(worker int) {
			taken[worker] = s.leaseOr(t, kind, fmt.Sprint("owner ", worker), crowd)
			check.Equal(t, fmt.Sprint("the slot of owner ", worker), s.leaseOr(t, kind, fmt.Sprint("owner ", worker), crowd), taken[worker])
		})
		slices.Sort(taken)
		for i, slot := range taken {
			wantEqual(t, "slot", slot, i)
		}
	}
}

func (s leases) TooManyMayAskAtOnce(t *testing.T) {
	const slots = 5
	taken := make([]int, crowd)
	crowded(func(worker int) { taken[worker] = s.leaseOr(t, "too many", fmt.Sprint("owner ", worker), slots) })
	slices.Sort(taken)
	for i, slot := range taken {
		wantEqual(t, "slot", slot, max(-1, i-(crowd-slots)))
	}
}

func (s leases) OneOwnerMayAskAtOnce(t *testing.T) {
	for round := range 5 {
		kind := fmt.Sprint("one owner ", round)
		taken := make([]int, crowd)
		crowded(func(worker int) { taken[worker] = s.leaseOr(t, kind, "one", crowd) })
		slices.Sort(taken)
		wantEqual(t, "slots", fmt.Sprint(slices.Compact(taken)), fmt.Sprint(taken[:1]))
		s.lease(t, kind, "another", 2, 0, 100) // the first owner has not taken this slot as well
	}
}

// lease takes a slot at microsecond now.
func (s leases) lease(t *testing.T, kind, owner string, slots, now, until int) int {
	t.Helper()
	slot, err := s.store.Lease(t.Context(), kind, owner, slots, at(now), at(until))
	must.That(t, err == nil, "%s: %v", owner, err)
	must.That(t, slot >= 0 && slot < slots, "%s: slot %d of %d", owner, slot, slots)
	return slot
}

// leaseOr is lease for goroutines. It returns −1 when every slot is taken.
func (s leases) leaseOr(t *testing.T, kind, owner string, slots int) int {
	slot, err := s.store.Lease(t.Context(), kind, owner, slots, at(0), at(100))
	if errors.Is(err, storage.ErrNoLease) {
		return -1
	}
	if err != nil {
		t.Errorf("%s: %v", owner, err)
		return -2
	}
	return slot
}

func (s leases) release(t *testing.T, kind, owner string) {
	t.Helper()
	must.OK(t, s.store.Release(t.Context(), kind, owner, 0))
}

func (s leases) wantNoLease(t *testing.T, kind, owner string, slots, now int) {
	t.Helper()
	slot, err := s.store.Lease(t.Context(), kind, owner, slots, at(now), at(now+1000))
	check.That(t, errors.Is(err, storage.ErrNoLease), "%s: got slot %d, error %v; want %v", owner, slot, err, storage.ErrNoLease)
}
