package idset

import (
	"cmp"
	"slices"

	"kith/storage"
)

// Holders returns for each of some users, who are distinct, the indices of the sets that hold it,
// ascending, most of them at most. It finds out which followings recommend a suggestion. Numbered
// sets are of one directory; others are converted first. It stops when all users have enough: O(the
// lists' lengths together, and users for each set in chunks); for plain sets, a binary search for
// each user in each set.
func Holders(sets []*Set, ids []storage.UserID, most int) [][]int {
	holders := make([][]int, len(ids))
	if len(sets) == 0 || len(ids) == 0 || most <= 0 {
		return holders
	}
	room := make([]int, len(ids)*most)
	dir := directoryOf(sets)
	if dir == nil {
		for at, id := range ids {
			h := room[at*most : at*most : (at+1)*most]
			for i := 0; i < len(sets) && len(h) < most; i++ {
				if sets[i].Contains(id) {
					h = append(h, i)
				}
			}
			holders[at] = h
		}
		return holders
	}
	sets = numbered(sets, dir)
	w := wantedOf(dir, ids)
	open := len(w.ordinals)
	for i, s := range sets {
		if open == 0 {
			break
		}
		for k := range w.in(s) {
			at := w.at[k]
			h := holders[at]
			if h == nil {
				h = room[at*most : at*most : (at+1)*most]
			}
			if len(h) == most {
				continue
			}
			if h = append(h, i); len(h) == most {
				open--
			}
			holders[at] = h
		}
	}
	return holders
}

// wanted is a few users to be found in many sets.
type wanted struct {
	members
	ordinals []ordinal // ascending
	at       []int     // the index of each of them in the input
}

func wantedOf(dir *Directory, ids []storage.UserID) *wanted {
	type one struct {
		ordinal
		at int
	}
	known := make([]one, 0, len(ids))
	for at, id := range ids {
		if o, ok := dir.find(id); ok {
			known = append(known, one{o, at})
		}
	}
	slices.SortFunc(known, func(a, b one) int { return cmp.Compare(a.ordinal, b.ordinal) })
	w := &wanted{ordinals: make([]ordinal, len(known)), at: make([]int, len(known))}
	for k, u := range known {
		w.ordinals[k], w.at[k] = u.ordinal, u.at
	}
	w.members = *membersOf(&Set{dir: dir, few: w.ordinals})
	return w
}

// in yields the wanted users who are in a set.
func (w *wanted) in(s *Set) func(yield func(k int) bool) {
	return func(yield func(int) bool) {
		if s.chunks != nil || len(s.few) > 64*len(w.ordinals) {
			for k, o := range w.ordinals {
				if s.has(o) && !yield(k) {
					return
				}
			}
			return
		}
		for _, o := range s.few {
			if w.sketch[o>>6&63]>>(o&63)&1 == 0 {
				continue // nearly all end here
			}
			if k, found := slices.BinarySearch(w.ordinals, o); found && !yield(k) {
				return
			}
		}
	}
}
