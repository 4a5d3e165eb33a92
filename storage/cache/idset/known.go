package idset

import (
	"slices"
	"sync"

	"kith/storage"
)

// Directory returns the directory that numbers the set's users; nil for a plain set.
func (s *Set) Directory() *Directory { return s.dir }

// Known makes a set of those users who have numbers, in any order. A user without a number is in no
// set that exists by now, so leaving it out makes no difference; and asking about users does not
// number them.
func (d *Directory) Known(ids []storage.UserID) *Set { return ofOrdinals(d, d.known(ids)) }

// known returns the numbers of those users who have some, ascending.
func (d *Directory) known(ids []storage.UserID) []ordinal {
	if !slices.IsSorted(ids) { // else each search begins at the first user
		ids = slices.Clone(ids)
		slices.Sort(ids)
	}
	f := d.finder()
	ordinals := make([]ordinal, 0, len(ids))
	for _, id := range ids {
		if o, ok := f.find(id); ok {
			ordinals = append(ordinals, o)
		}
	}
	return storage.Distinct(ordinals)
}

// remembered is the set of a slice of users that is asked for again and again, such as all hidden
// users. It is safe for concurrent use.
type remembered struct {
	mu  sync.Mutex
	ids []storage.UserID
	set *Set
}

// Remember makes a set of users like [Build], and keeps it as long as callers ask for the same
// slice, which nobody may change. A directory remembers one such slice: another one replaces it.
func (d *Directory) Remember(ids []storage.UserID) *Set {
	r := &d.remembered
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.set != nil && isSame(r.ids, ids) {
		return r.set
	}
	set := r.set
	if set != nil {
		set = set.changed(r.ids, ids)
	}
	if set == nil {
		set = Build(d, ids)
	}
	r.ids, r.set = ids, set
	return set
}

// mostChanged is how many users are put in or taken out one by one.
const mostChanged = 1000

// changed makes the set of some users, as they were, the set of those that they are: millions may be hidden, and few of them since a
// second ago. It returns nil if too many differ.
func (s *Set) changed(were, are []storage.UserID) *Set {
	if !ascend(were) || !ascend(are) {
		return nil
	}
	for n := 0; ; n++ {
		same := 0
		for same < min(len(were), len(are)) && were[same] == are[same] {
			same++
		}
		were, are = were[same:], are[same:]
		switch {
		case len(were) == 0 && len(are) == 0:
			return s
		case n == mostChanged:
			return nil
		case len(are) == 0 || len(were) > 0 && were[0] < are[0]:
			s, were = s.Remove(were[0]), were[1:]
		default:
			s, are = s.Insert(are[0]), are[1:]
		}
	}
}

// ascend reports whether users are in ascending order, each once.
func ascend(ids []storage.UserID) bool {
	for i := 1; i < len(ids); i++ {
		if ids[i-1] >= ids[i] {
			return false
		}
	}
	return true
}

// isSame reports whether two slices are one and the same.
func isSame(a, b []storage.UserID) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
