package idset

import "kith/storage"

// Holders returns for each of some users, who are distinct, the indices of the sets that hold it,
// ascending, most of them at most. It finds out which followings recommend a suggestion. Numbered
// sets are of one directory; others are converted first. It stops when all users have enough.
func Holders(sets []*Set, ids []storage.UserID, most int) [][]int {
	holds := func(s *Set, at int) bool { return s.Contains(ids[at]) }
	if dir := directoryOf(sets); dir != nil {
		sets = numbered(sets, dir)
		type number struct {
			ordinal
			known bool
		}
		numbers := storage.Each(ids, func(id storage.UserID) (n number) {
			n.ordinal, n.known = dir.find(id)
			return n
		})
		holds = func(s *Set, at int) bool { return numbers[at].known && s.has(numbers[at].ordinal) }
	}
	all := make([][]int, len(ids))
	open := len(ids) // users who have not enough yet; those without a number never have
	for i, s := range sets {
		if open == 0 || most <= 0 {
			break
		}
		for at := range ids {
			if len(all[at]) == most || !holds(s, at) {
				continue
			}
			if all[at] = append(all[at], i); len(all[at]) == most {
				open--
			}
		}
	}
	return all
}
