package social

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/properties"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/cache/idset"
)

// drawFilter draws a valid filter.
func drawFilter(t *rapid.T, levels int) Filter {
	kind := "on"
	if levels > 1 {
		kind = rapid.SampledFrom([]string{"on", "friends", "all", "any"}).Draw(t, "kind")
	}
	parts := func() (all []Filter) {
		for range rapid.IntRange(1, 3).Draw(t, "parts") {
			all = append(all, drawFilter(t, levels-1))
		}
		return all
	}
	switch kind {
	case "friends":
		user := drawList(t, "user").Owner
		return Filter{On: []List{{storage.Forward, user}, {storage.Inverse, user}}}
	case "any":
		return Filter{Any: parts()}
	case "all":
		f := Filter{All: parts()}
		for range rapid.IntRange(0, 2).Draw(t, "negated") {
			not := drawFilter(t, levels-1)
			f.All = append(f.All, Filter{Not: &not})
		}
		return Filter{All: rapid.Permutation(f.All).Draw(t, "order")}
	}
	lists := []List{drawList(t, "list")}
	if rapid.Bool().Draw(t, "two lists") {
		lists = append(lists, drawList(t, "other list"))
	}
	return Filter{On: lists}
}

// fits reports by brute force whether a user fits a filter.
func fits(store *oracle.Store, f Filter, empty func(List) bool, id storage.UserID) bool {
	here := func(p Filter) bool { return fits(store, p, empty, id) }
	elsewhere := func(p Filter) bool { return !here(p) }
	switch {
	case len(f.On) > 0:
		return !slices.ContainsFunc(f.On, func(l List) bool { return empty(l) || !slices.Contains(listOf(store, l), id) })
	case f.Not != nil:
		return !here(*f.Not)
	case len(f.Any) > 0:
		return slices.ContainsFunc(f.Any, here)
	}
	return !slices.ContainsFunc(f.All, elsewhere)
}

// Paging through people gives exactly the users whom the filter fits, for every plan, page size and budget.
func TestPeopleAreThoseWhomTheFilterFits(t *testing.T) {
	properties.Check(t, 600, func(t *rapid.T) {
		store := drawGraph(t)
		g := drawPlanner(t, store)
		f := drawFilter(t, 4)
		if len(f.Lists()) > MaxFilterLists {
			t.Skip("too many lists")
		}
		err := f.Check()
		must.That(t, err == nil, "%s: %v", f, err)
		none := storage.UserID(rapid.IntRange(0, people).Draw(t, "whose lists are empty"))
		empty := func(l List) bool { return l.Owner == none }
		var want []storage.UserID
		for id := storage.UserID(1); id <= people; id++ {
			if fits(store, f, empty, id) && !g.audience.Hides(id) {
				want = append(want, id)
			}
		}
		var got []storage.UserID
		var from Mark
		for page := 0; ; page++ {
			first := rapid.IntRange(0, 5).Draw(t, "first")
			if page > 500 {
				first = 5 // pages of 0 would never end
			}
			c := peopleOf(t, g, PeopleQuery{Filter: f, Empty: empty, From: from, First: first})
			if len(c.IDs) > first || c.Total > len(want) || c.Total < len(got)+len(c.IDs) || c.Complete && c.Total != len(want) || !c.Complete && !c.More {
				t.Fatalf("%s, page %d of at most %d: %+v; want %v in all", f, page, first, c, want)
			}
			got = append(got, c.IDs...)
			if first == 0 && !c.Complete { // if only the number is asked for, the next page goes on behind what has been counted
				for _, id := range want {
					if id > from.After && id <= c.Next.After {
						got = append(got, id)
					}
				}
			}
			must.That(t, !c.Complete || c.More == (len(got) < len(want)), "%s, after %d of %d: more %t", f, len(got), len(want), c.More)
			if !c.More {
				break
			}
			must.Most(t, "pages", page, 5000)
			from = c.Next
		}
		must.Equal(t, f, got, want)
	})
}

func TestFiltersThatAreRefused(t *testing.T) {
	on := Filter{On: []List{{storage.Forward, 1}}}
	not := Filter{Not: &on}
	deep := func(levels int) Filter {
		f := on
		for range levels - 1 {
			f = Filter{All: []Filter{f}}
		}
		return f
	}
	for name, c := range map[string]struct {
		filter Filter
		want   error
	}{
		"a list":              {on, nil},
		"negated alone":       {not, ErrFilterNot},
		"negated only":        {Filter{All: []Filter{not, not}}, ErrFilterNot},
		"negated in an or":    {Filter{Any: []Filter{on, not}}, ErrFilterNot},
		"negated twice":       {Filter{All: []Filter{on, {Not: &not}}}, ErrFilterNot},
		"negated, beside one": {Filter{All: []Filter{not, on}}, nil},
		"and of nothing":      {Filter{All: []Filter{}}, ErrFilterEmpty},
		"or of nothing":       {Filter{All: []Filter{on, {Any: []Filter{}}}}, ErrFilterEmpty},
		"eight levels":        {deep(MaxFilterLevels), nil},
		"nine levels":         {Filter{All: []Filter{deep(MaxFilterLevels)}}, ErrFilterLevels},
		"16 lists":            {Filter{Any: slices.Repeat([]Filter{on}, MaxFilterLists)}, nil},
		"17 lists":            {Filter{Any: slices.Repeat([]Filter{on}, MaxFilterLists+1)}, ErrFilterLists},
	} {
		check.Is(t, name, c.filter.Check(), c.want)
	}
}

// Different filters have different cursors.
func TestFiltersAreSpelledInOneWay(t *testing.T) {
	properties.Check(t, 100, func(t *rapid.T) {
		a, b := drawFilter(t, 3), drawFilter(t, 3)
		must.That(t, (a.String() == b.String()) == equal(a, b), "%s and %s", a, b)
		must.That(t, !strings.Contains(a.String(), "0x"), "%s is not the same in every run", a)
	})
}

func equal(a, b Filter) bool {
	return slices.Equal(a.On, b.On) && slices.EqualFunc(a.All, b.All, equal) && slices.EqualFunc(a.Any, b.Any, equal) &&
		(a.Not == nil) == (b.Not == nil) && (a.Not == nil || equal(*a.Not, *b.Not))
}

// Ids are cut at a mark. The mark itself belongs to the ids before.
func TestIDsAreCutAtAMark(t *testing.T) {
	ids := []storage.UserID{2, 4, 6}
	for mark, n := range []int{0, 0, 1, 1, 2, 2, 3, 3} {
		mark := storage.UserID(mark)
		a, b := before(slices.Clone(ids), mark), idset.Behind(ids, mark)
		check.That(t, slices.Equal(a, ids[:n]) && slices.Equal(b, ids[n:]), "at %d: %v and %v", mark, a, b)
	}
}
