package idset

import (
	"cmp"
	"slices"

	"kith/storage"
)

// Holders returns for each of some users, who are distinct, the indices of the sets that hold it,
// ascending, most of them at most. It finds out which followings recommend a suggestion. Numbered
// sets are of one directory; others are converted first. It stops when all users have enough: O(the
// lists' lengths together, and users for each set in chunks).
func Holders(sets []*Set, ids []storage.UserID, most int) [][]int {
	dir := directoryOf(sets)
	if dir == nil {
		itself := func(id storage.UserID) (storage.UserID, bool) { return id, true }
		return holders(sets, ids, most, itself, func(s *Set, wanted []storage.UserID, take func(storage.UserID)) { eachCommon(wanted, s.plain, take) })
	}
	return holders(numbered(sets, dir), ids, most, dir.find, func(s *Set, wanted []ordinal, take func(ordinal)) {
		if s.chunks == nil {
			eachCommon(wanted, s.few, take)
			return
		}
		for _, o := range wanted {
			if s.has(o) {
				take(o)
			}
		}
	})
}

// holders is Holders for users as the sets have them. in takes those of ascending users who are in a set.
func holders[T storage.UserID | ordinal](
	sets []*Set, ids []storage.UserID, most int, as func(storage.UserID) (T, bool), in func(s *Set, users []T, take func(T)),
) [][]int {
	all := make([][]int, len(ids))
	places := make([]int, 0, len(ids)) // of users whom a set may have
	wanted := make([]T, len(ids))
	for at, id := range ids {
		var known bool
		if wanted[at], known = as(id); known {
			places = append(places, at)
		}
	}
	slices.SortFunc(places, func(a, b int) int { return cmp.Compare(wanted[a], wanted[b]) })
	users := storage.Chosen(wanted, places)
	open := len(ids) // users who have not enough yet; those without a number never have
	for i, s := range sets {
		if open == 0 || most <= 0 {
			break
		}
		in(s, users, func(user T) {
			k, _ := slices.BinarySearch(users, user)
			if h := &all[places[k]]; len(*h) < most {
				if *h = append(*h, i); len(*h) == most {
					open--
				}
			}
		})
	}
	return all
}
