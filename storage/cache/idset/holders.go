package idset

import (
	"cmp"
	"iter"
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
	holdersIn := func(s *Set) iter.Seq[int] { return plainHolders(s, ids) }
	if dir := directoryOf(sets); dir != nil {
		sets = numbered(sets, dir)
		holdersIn = wantedOf(dir, ids).in
	}
	open := len(ids) // users who have not enough yet; those without a number never have
	for i, s := range sets {
		if open == 0 {
			break
		}
		for at := range holdersIn(s) {
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

// plainHolders yields the indices of the ids that are in a plain set.
func plainHolders(s *Set, ids []storage.UserID) iter.Seq[int] {
	return func(yield func(int) bool) {
		for at, id := range ids {
			if s.Contains(id) && !yield(at) {
				return
			}
		}
	}
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

// in yields the indices of the wanted users who are in a set.
func (w *wanted) in(s *Set) iter.Seq[int] {
	return func(yield func(int) bool) {
		if s.chunks != nil || len(s.few) > 64*len(w.ordinals) {
			for k, o := range w.ordinals {
				if s.has(o) && !yield(w.at[k]) {
					return
				}
			}
			return
		}
		for _, o := range s.few {
			if w.sketch[o>>6&63]>>(o&63)&1 == 0 {
				continue // nearly all end here
			}
			if k, found := slices.BinarySearch(w.ordinals, o); found && !yield(w.at[k]) {
				return
			}
		}
	}
}
