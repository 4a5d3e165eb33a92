package idset

import (
	"slices"

	"kith/storage"
)

// Of makes a set of ascending ids, each once, without numbering them; it keeps the slice. It is the
// form of a list that was read as rows for one question: numbering its users would take longer than
// the question. Such a set can be queried and combined, also with numbered sets; this numbers its
// users after all. It cannot be changed. O(1).
func Of(ids []storage.UserID) *Set { return &Set{plain: ids, n: len(ids)} }

// directoryOf returns the directory of the first numbered set; nil if all of them are plain.
func directoryOf(sets []*Set) *Directory {
	for _, s := range sets {
		if s.dir != nil {
			return s.dir
		}
	}
	return nil
}

// numbered returns the sets with the numbers of one directory.
func numbered(sets []*Set, dir *Directory) []*Set {
	if !slices.ContainsFunc(sets, func(s *Set) bool { return s.dir != dir }) {
		return sets
	}
	all := make([]*Set, len(sets))
	for i, s := range sets {
		all[i] = s.In(dir)
	}
	return all
}

// plain returns the users whom a term of plain sets means, ascending.
func (t Term) plain() []storage.UserID {
	if t.Set != nil {
		return t.Set.plain
	}
	var ids []storage.UserID
	for _, p := range t.Any {
		ids = unionIDs(ids, p.plain())
	}
	if len(t.All) > 0 {
		ids = allPlain(t.All)
	}
	return ids
}

// allPlain returns the users whom all of the terms mean. It begins with the shortest term.
func allPlain(terms []Term) []storage.UserID {
	var room [8][]storage.UserID
	lists := room[:0]
	for _, p := range terms {
		if !p.Not {
			lists = append(lists, p.plain())
		}
	}
	slices.SortFunc(lists, func(a, b []storage.UserID) int { return len(a) - len(b) })
	ids := lists[0]
	for _, list := range lists[1:] {
		ids = commonIDs(ids, list)
	}
	for _, p := range terms {
		if p.Not && len(ids) > 0 {
			ids = missingIDs(ids, p.plain())
		}
	}
	return ids
}

// commonIDs returns what two ascending lists have in common. The first must not be longer than the
// second. If the second is far longer, it gallops through it.
func commonIDs(a, b []storage.UserID) []storage.UserID {
	both := make([]storage.UserID, 0, min(len(a), 32))
	if 16*len(a) < len(b) {
		at := 0
		for _, id := range a {
			if at = gallop(b, at, id); at == len(b) {
				break
			}
			if b[at] == id {
				both = append(both, id)
			}
		}
		return both
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		x, y := a[i], b[j]
		if x == y {
			both = append(both, x)
		}
		var forward, onward int // without a branch, see commonLists
		if x <= y {
			forward = 1
		}
		if y <= x {
			onward = 1
		}
		i, j = i+forward, j+onward
	}
	return both
}

// missingIDs returns the ids of one ascending list that are not in another.
func missingIDs(a, b []storage.UserID) []storage.UserID {
	rest := make([]storage.UserID, 0, len(a))
	at := 0
	for _, id := range a {
		if at = gallop(b, at, id); at == len(b) || b[at] != id {
			rest = append(rest, id)
		}
	}
	return rest
}

// unionIDs returns the ids that are in either of two ascending lists.
func unionIDs(a, b []storage.UserID) []storage.UserID {
	if len(a) == 0 {
		return b
	}
	either := make([]storage.UserID, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			either, a = append(either, a[0]), a[1:]
		case b[0] < a[0]:
			either, b = append(either, b[0]), b[1:]
		default:
			either, a, b = append(either, a[0]), a[1:], b[1:]
		}
	}
	return append(append(either, a...), b...)
}

// above returns those of ascending ids that are greater than after.
func above(ids []storage.UserID, after storage.UserID) []storage.UserID {
	n, found := slices.BinarySearch(ids, after)
	if found {
		n++
	}
	return ids[n:]
}
