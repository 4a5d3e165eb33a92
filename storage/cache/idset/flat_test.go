package idset

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/must"
	"kith/internal/properties"
	"kith/storage"
)

// A list is the same in flat form, after changes and with late users, and can be changed further. Another
// directory does not read it.
func TestFlatLists(t *testing.T) {
	t.Parallel()
	properties.Check(t, 100, func(t *rapid.T) {
		random := drawRandom(t)
		c, d := drawUniverse(t, random, 10, 10_000)
		n := min(len(c), rapid.SampledFrom([]int{0, 1, 5, 300, 600, FlatLength}).Draw(t, "positions"))
		span := rapid.SampledFrom([]int64{1, 50, 1 << 20, 1 << 60}).Draw(t, "span of times")
		var list []storage.Position
		for _, id := range c.exactly(n, random) {
			list = append(list, storage.Position{UpdateTime: storage.Micros(random.Int64N(span)), Peer: id})
		}
		slices.SortFunc(list, storage.Position.Compare)
		l := New(d, list)
		for range rapid.SampledFrom([]int{0, 20}).Draw(t, "changes") {
			if len(list) == 0 {
				break
			}
			at := random.IntN(len(list))
			p := list[at]
			l, list = l.Remove(p), slices.Delete(list, at, at+1)
			if random.IntN(2) == 0 {
				p.UpdateTime = storage.Micros(random.Int64N(span))
				l = l.Insert(p)
				at, _ := slices.BinarySearchFunc(list, p, storage.Position.Compare)
				list = slices.Insert(list, at, p)
			}
		}
		bytes := l.AppendFlat(make([]byte, 8))[8:]
		must.That(t, len(bytes)%8 == 0, "%d bytes", len(bytes))
		was := slices.Clone(bytes)
		again, ok := FlatList(d, bytes)
		holds := func(l List, list []storage.Position) {
			t.Helper()
			must.That(t, slices.Equal(everything(l.Order), list) && l.Len() == len(list), "%v, want %v", everything(l.Order), list)
			peers := make([]storage.UserID, len(list))
			for i, p := range list {
				peers[i] = p.Peer
				must.That(t, l.Peers.Contains(p.Peer) && l.Order.Has(p), "%v is missing", p)
			}
			if slices.Sort(peers); !slices.Equal(l.Peers.IDs(), peers) {
				t.Fatalf("%v, want %v", l.Peers.IDs(), peers)
			}
		}
		must.That(t, ok, "it is not read")
		holds(again, list)
		if len(list) > 0 {
			p := list[random.IntN(len(list))]
			fewer := again.Remove(p)
			p.UpdateTime++
			more := fewer.Insert(p)
			holds(fewer, slices.DeleteFunc(slices.Clone(list), func(q storage.Position) bool { return q.Peer == p.Peer }))
			at, found := more.Order.Find(p.Peer)
			must.That(t, found && at == p, "%v, want %v", at, p)
			holds(again, list)
		}
		must.That(t, slices.Equal(bytes, was), "a change has changed the bytes")
		_, ok = FlatList(NewDirectory(), bytes)
		must.That(t, !ok, "another directory reads it")
	})
}
