package idset

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/properties"
	"kith/storage"
)

// drawPositions draws a list, newest first, with times that are often the same.
func drawPositions(t *rapid.T, c universe, random *rand.Rand) []storage.Position {
	n := min(len(c), rapid.SampledFrom([]int{0, 1, 300, 513, 2600, 9000}).Draw(t, "positions"))
	span := rapid.SampledFrom([]int64{1, 50, 1 << 20, 1 << 60}).Draw(t, "span of times")
	list := make([]storage.Position, n)
	for i, id := range c.exactly(n, random) {
		list[i] = storage.Position{UpdateTime: storage.Micros(random.Int64N(span)), Peer: id}
	}
	slices.SortFunc(list, storage.Position.Compare)
	return list
}

func everything(line *Timeline) []storage.Position {
	return line.Page(storage.Position{}, storage.Position{}, line.Len()+1, false)
}

// TestPages compares pages of lists that were built, changed, or both, with pages of a slice.
func TestPages(t *testing.T) {
	t.Parallel()
	properties.Check(t, 100, func(t *rapid.T) {
		random := drawRandom(t)
		c, d := drawUniverse(t, random, 10, 10_000)
		list := drawPositions(t, c, random)
		line := BuildTimeline(d, list)
		line, list = change(t, line, list, c, random)
		must.That(t, line.Len() == len(list) && slices.Equal(everything(line), list), "%d positions, want %d", line.Len(), len(list))
		for range 20 {
			after, before := drawBound(t, list), drawBound(t, list)
			limit := rapid.SampledFrom([]int{1, 20, 3000}).Draw(t, "limit")
			backward := rapid.Bool().Draw(t, "backward")
			want := slowPage(list, after, before, limit, backward)
			got := line.Page(after, before, limit, backward)
			must.That(t, slices.Equal(got, want), "behind %v, ahead of %v, %d, backward %t: %v, want %v", after, before, limit, backward, got, want)
		}
	})
}

// change inserts and removes at the head and anywhere, and checks that the earlier list has not
// changed.
func change(t *rapid.T, line *Timeline, list []storage.Position, c universe, random *rand.Rand) (*Timeline, []storage.Position) {
	before, was := line, slices.Clone(list)
	atHead := rapid.Bool().Draw(t, "at the head")
	steps := rapid.SampledFrom([]int{0, 10, 1000}).Draw(t, "changes")
	removing := rapid.SampledFrom([]float64{0, 0.5, 0.95}).Draw(t, "removing")
	for range steps {
		var p storage.Position
		if len(list) > 0 {
			p = list[random.IntN(len(list))]
		}
		if remove := len(list) > 0 && random.Float64() < removing; remove {
			at, _ := slices.BinarySearchFunc(list, p, storage.Position.Compare)
			list = slices.Delete(list, at, at+1)
			if next := line.Remove(p); next.Remove(p) != next {
				t.Fatal("what is not there is removed")
			} else {
				line = next
			}
			continue
		}
		if atHead && len(list) > 0 {
			p.UpdateTime = list[0].UpdateTime + storage.Micros(random.IntN(2))
		}
		p.Peer = c[random.IntN(len(c))]
		at, had := slices.BinarySearchFunc(list, p, storage.Position.Compare)
		if !had {
			list = slices.Insert(list, at, p)
		}
		next := line.Insert(p)
		must.That(t, (next == line) == had, "inserting %v, which was there: %t", p, had)
		line = next
	}
	must.That(t, slices.Equal(everything(before), was), "changes have changed the list before")
	return line, list
}

func drawBound(t *rapid.T, list []storage.Position) storage.Position {
	var p storage.Position
	switch rapid.IntRange(0, 3).Draw(t, "bound") {
	case 0:
	case 1:
		p = storage.Position{UpdateTime: storage.Micros(rapid.Int64Range(1, 1<<61).Draw(t, "time")), Peer: 5}
	default:
		if len(list) > 0 {
			p = rapid.SampledFrom(list).Draw(t, "position")
			p.Peer += storage.UserID(rapid.IntRange(-1, 1).Draw(t, "beside"))
		}
	}
	return p
}

func slowPage(list []storage.Position, after, before storage.Position, limit int, backward bool) []storage.Position {
	var page []storage.Position
	for _, p := range list {
		if after != (storage.Position{}) && p.Compare(after) <= 0 || before != (storage.Position{}) && p.Compare(before) >= 0 {
			continue
		}
		page = append(page, p)
	}
	if backward {
		return page[max(0, len(page)-limit):]
	}
	return page[:min(limit, len(page))]
}

// TestLists: the set and the order of time have the same users.
func TestLists(t *testing.T) {
	t.Parallel()
	d := NewDirectory()
	n := New(d, []storage.Position{{UpdateTime: 30, Peer: 1}, {UpdateTime: 20, Peer: 3}, {UpdateTime: 10, Peer: 2}})
	with := n.Insert(storage.Position{UpdateTime: 40, Peer: 9})
	without := with.Remove(storage.Position{UpdateTime: 20, Peer: 3})
	same := without.Remove(storage.Position{UpdateTime: 29, Peer: 1}) // an older version of that edge
	check.That(t, same == without, "an edge was removed by another position than its own")
	for name, c := range map[string]struct {
		n      List
		ids    []storage.UserID
		newest []storage.UserID
	}{
		"built":    {n, []storage.UserID{1, 2, 3}, []storage.UserID{1, 3, 2}},
		"inserted": {with, []storage.UserID{1, 2, 3, 9}, []storage.UserID{9, 1, 3, 2}},
		"removed":  {without, []storage.UserID{1, 2, 9}, []storage.UserID{9, 1, 2}},
	} {
		var newest []storage.UserID
		for _, p := range everything(c.n.Order) {
			newest = append(newest, p.Peer)
		}
		if !slices.Equal(c.n.Peers.IDs(), c.ids) || !slices.Equal(newest, c.newest) {
			t.Errorf("%s: %d, newest first %d", name, c.n.Peers.IDs(), newest)
		}
	}
}
