package idset

import (
	"slices"
	"sync"

	"kith/storage"
)

// Directory is the one that numbers the set's users; nil for a plain set.
func (s *Set) Directory() *Directory { return s.dir }

// Known makes a set of those of the users who have numbers, in whatever order they come.
// Whoever has none is in no set that there is by now, so that it makes no difference to
// them; and asking about somebody numbers nobody.
func (d *Directory) Known(ids []storage.UserID) *Set {
	f := finder{view: d.view.Load()}
	ordinals := make([]ordinal, 0, len(ids))
	for _, id := range ids {
		if o, ok := f.find(id); ok {
			ordinals = append(ordinals, o)
		} else if o, ok := d.findLate(id); ok {
			ordinals = append(ordinals, o)
		}
	}
	if !slices.IsSorted(ordinals) {
		slices.Sort(ordinals)
	}
	return ofOrdinals(d, slices.Compact(ordinals))
}

// remembered is the set of a slice of users that is asked for again and again: of all who
// are hidden, say. It is safe for concurrent use.
type remembered struct {
	mu  sync.Mutex
	ids []storage.UserID
	set *Set
}

// Remember makes a set of users like [Build], and remembers it for as long as it is asked
// for the same slice, which nobody may change. There is one such slice for a directory:
// another one takes its place.
func (d *Directory) Remember(ids []storage.UserID) *Set {
	r := &d.remembered
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.set == nil || !isSame(r.ids, ids) {
		r.ids, r.set = ids, Build(d, ids)
	}
	return r.set
}

// isSame tells whether two slices are one and the same.
func isSame(a, b []storage.UserID) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
