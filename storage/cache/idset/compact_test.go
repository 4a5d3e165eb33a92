package idset_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"kith/internal/check"
	"kith/storage"
	"kith/storage/cache/idset"
)

// A compact set has the same users when it is expanded, whatever its length, including users who were
// numbered late.
func TestCompactSetsExpandToTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	dir := idset.NewDirectory()
	users := make([]storage.UserID, 300_000)
	for i := range users {
		users[i] = storage.UserID(i*3 + 1)
	}
	dir.Learn(users)
	var lists [][]storage.UserID
	var compact []idset.Compact
	for _, n := range []int{0, 1, 2, 50, 127, 128, 2048, 2049, 5000, 100_000} {
		list := make([]storage.UserID, 0, n)
		for range n {
			list = append(list, storage.UserID(1+r.IntN(900_000))) // two of three users are late
		}
		slices.Sort(list)
		list = slices.Compact(list)
		lists, compact = append(lists, list), append(compact, idset.CompactOf(dir, list))
	}
	for i, c := range compact {
		s := c.Set(dir)
		check.That(t, s.Len() == len(lists[i]) && slices.Equal(s.IDs(), lists[i]), "a list of %d comes back as one of %d", len(lists[i]), s.Len())
	}
}

// A list of 50 users among a million takes some 100 bytes.
func TestCompactSetsAreSmall(t *testing.T) {
	dir := idset.NewDirectory()
	users := make([]storage.UserID, 1_000_000)
	for i := range users {
		users[i] = storage.UserID(i + 1)
	}
	dir.Learn(users)
	r := rand.New(rand.NewPCG(1, 2))
	list := make([]storage.UserID, 50)
	for i := range list {
		list[i] = storage.UserID(1 + r.IntN(len(users)))
	}
	slices.Sort(list)
	check.Most(t, "bytes", len(idset.CompactOf(dir, slices.Compact(list))), 130)
}
