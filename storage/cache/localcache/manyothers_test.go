package localcache

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// Edges that come and go, thousands of them, are found as they are, and no list that was made before changes.
func TestOthersAreSharedInParts(t *testing.T) {
	const peers, changes = 3000, 20_000
	r := rand.New(rand.NewPCG(1, 2))
	all := map[storage.UserID]storage.Edge{}
	var before []storage.Edge
	for id := storage.UserID(1); id <= peers; id += 2 {
		all[id] = storage.Edge{From: id, To: 7, Type: storage.Blocking, UpdateTime: 1}
		before = append(before, all[id])
	}
	first := othersOf(slices.Clone(before))
	o := first
	for i := range changes {
		id := 1 + storage.UserID(r.IntN(peers))
		if i > changes/2 { // few are left in the end
			id = 1 + storage.UserID(r.IntN(peers/100)*100+i%100)
		}
		e, known := all[id]
		part, at, found := o.find(storage.Inverse, id)
		must.That(t, found == known && (!known || o[part][at] == e), "change %d: %v, %v, want %v", i, found, known, e)
		if found {
			o = o.without(part, at)
			delete(all, id)
		} else if i <= changes/2 {
			e = storage.Edge{From: id, To: 7, Type: storage.Requested, UpdateTime: storage.Micros(i)}
			o, all[id] = o.with(storage.Inverse, e), e
		}
		if i == changes/2 {
			check.Most(t, "parts", len(o), 2*peers/mostInPart+2)
		}
	}
	want := slices.SortedFunc(maps.Values(all), func(a, b storage.Edge) int { return cmp.Compare(a.From, b.From) })
	check.That(t, slices.Equal(slices.Concat(o...), want) && o.len() == len(want), "%d edges, want %d", o.len(), len(want))
	check.That(t, slices.Equal(slices.Concat(first...), before), "the first list has changed")
	o = others(nil).with(storage.Inverse, before[3])
	check.Equal(t, "the only one removed", len(o.without(0, 0)), 0)
}
