package idset

import (
	"math/rand/v2"
	"testing"

	"kith/internal/must"
	"kith/storage"
)

func TestTimelineFindsUsers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 500, 513, 5000} {
		dir := NewDirectory()
		var positions []storage.Position
		for i := range n {
			positions = append(positions, storage.Position{UpdateTime: storage.Micros(random.IntN(3*n)) + 1, Peer: storage.UserID(3*i + 1)})
		}
		list := BuildTimeline(dir, positions)
		dir.Learn([]storage.UserID{storage.UserID(3*n + 2)}) // a user who is not on the list
		for _, p := range positions {
			got, ok := list.Find(p.Peer)
			must.That(t, ok && got == p, "of %d: Find(%d) = %v, %t; want %v", n, p.Peer, got, ok, p)
			must.That(t, list.Has(p), "of %d: Has(%v) is false", n, p)
			moved := (storage.Position{UpdateTime: p.UpdateTime + storage.Micros(4*n), Peer: p.Peer})
			must.That(t, !list.Has(moved), "of %d: Has(%v) is true", n, moved)
		}
		for _, id := range []storage.UserID{2, storage.UserID(3*n + 2)} {
			got, ok := list.Find(id)
			must.That(t, !ok, "of %d: Find(%d) = %v, and nobody is there", n, id, got)
		}
	}
}
