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
	return storage.Each(sets, func(s *Set) *Set { return s.In(dir) })
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
		both := make([]storage.UserID, 0, min(len(ids), 32))
		eachCommon(ids, list, func(id storage.UserID) { both = append(both, id) })
		ids = both
	}
	for _, p := range terms {
		if p.Not && len(ids) > 0 {
			ids = missingIDs(ids, p.plain())
		}
	}
	return ids
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

// Behind returns those of ascending ids that are greater than after.
func Behind(ids []storage.UserID, after storage.UserID) []storage.UserID {
	n, found := slices.BinarySearch(ids, after)
	if found {
		n++
	}
	return ids[n:]
}

// countPlain counts the users of plain sets.
func (p TopK) countPlain(top *topList, excluded []int) {
	rows := 0
	for _, s := range p.Sets {
		rows += s.n
	}
	counts := make(map[storage.UserID]int, max(rows/2, 16))
	for i, s := range p.Sets {
		weight := int(p.weight(i))
		for _, id := range s.plain {
			counts[id] += weight
		}
	}
	for i, ids := range p.Except {
		for _, id := range ids {
			if counts[id] > 0 {
				delete(counts, id)
				p.exclude(i, id, excluded)
			}
		}
	}
	for id, n := range counts {
		if p.Boosted != nil && n*p.Boost >= top.least && p.Boosted.Contains(id) {
			n *= p.Boost
		}
		if n >= top.least {
			top.enter(Candidate{id, n})
		}
	}
}
