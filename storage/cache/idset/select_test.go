package idset

import (
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/properties"
	"kith/storage"
)

// drawTerm draws a term over some lists, and a slow function that reports which users it means.
func drawTerm(t *rapid.T, levels int, sets []*Set, lists [][]storage.UserID, c universe) (Term, func(storage.UserID) bool) {
	kind := "set"
	if levels > 1 {
		kind = rapid.SampledFrom([]string{"set", "nobody", "all", "any"}).Draw(t, "kind")
	}
	var parts []Term
	var mean []func(storage.UserID) bool
	if kind == "all" || kind == "any" {
		for range rapid.IntRange(1, 3).Draw(t, "parts") {
			p, m := drawTerm(t, levels-1, sets, lists, c)
			parts, mean = append(parts, p), append(mean, m)
		}
	}
	switch kind {
	case "all":
		for i := 1; i < len(parts); i++ {
			if rapid.Bool().Draw(t, "not") {
				m := mean[i]
				parts[i].Not, mean[i] = true, func(id storage.UserID) bool { return !m(id) }
			}
		}
		if last := len(parts) - 1; rapid.Bool().Draw(t, "last first") {
			parts[0], parts[last], mean[0], mean[last] = parts[last], parts[0], mean[last], mean[0]
		}
		return Term{All: parts}, func(id storage.UserID) bool {
			return !slices.ContainsFunc(mean, func(m func(storage.UserID) bool) bool { return !m(id) })
		}
	case "any":
		return Term{Any: parts}, func(id storage.UserID) bool {
			return slices.ContainsFunc(mean, func(m func(storage.UserID) bool) bool { return m(id) })
		}
	case "nobody":
		return Term{}, func(storage.UserID) bool { return false }
	}
	i := rapid.IntRange(0, len(sets)-1).Draw(t, "which")
	return Term{Set: sets[i]}, func(id storage.UserID) bool {
		_, found := slices.BinarySearch(lists[i], id)
		return found
	}
}

// TestSelect compares the users that a term means with a look at every user.
func TestSelect(t *testing.T) {
	t.Parallel()
	properties.Check(t, 100, func(t *rapid.T) {
		random := drawRandom(t)
		c, d := drawUniverse(t, random, 10, 3000, 150_000)
		var lists [][]storage.UserID
		var sets []*Set
		isPlain := drawPlain(t)
		for range rapid.IntRange(1, 4).Draw(t, "sets") {
			ids := drawSome(t, c, random, "share")
			s := setOf(d, ids, isPlain())
			if rapid.IntRange(0, 9).Draw(t, "other directory") == 0 {
				s = s.In(NewDirectory())
			}
			lists, sets = append(lists, ids), append(sets, s)
		}
		term, isMeant := drawTerm(t, 3, sets, lists, c)
		var want []storage.UserID
		for _, id := range c {
			if isMeant(id) {
				want = append(want, id)
			}
		}
		after, first := drawAfter(t, c), rapid.IntRange(0, 50).Draw(t, "first")
		page := Behind(want, after)
		page = page[:min(first, len(page))]
		for range 2 { // the second run uses what the first one has returned
			if got, total := Select(term, after, first); total != len(want) || !slices.Equal(got, page) {
				t.Fatalf("%d are meant, want %d; the first %d above %d are %d, want %d", total, len(want), first, after, got, page)
			}
		}
	})
}

// TestKnownUsers: sets of known users leave out users for whom the directory has no number, and give no
// user a number.
func TestKnownUsers(t *testing.T) {
	t.Parallel()
	properties.Check(t, 100, func(t *rapid.T) {
		random := drawRandom(t)
		c, d := drawUniverse(t, random, 10, 3000)
		some := drawSome(t, c, random, "share")
		Build(d, some)
		asked := slices.Clone(c)
		random.Shuffle(len(asked), func(i, j int) { asked[i], asked[j] = asked[j], asked[i] })
		if n := d.Len(); d.Known(asked).Len() != n || d.Len() != n {
			t.Fatalf("%d are known of %d, and there are %d by now", d.Known(asked).Len(), n, d.Len())
		}
		ids := drawSome(t, c, random, "asked for")
		first := d.Remember(ids)
		must.That(t, slices.Equal(first.IDs(), ids) && d.Remember(ids) == first, "it is another set, or not remembered")
		more := slices.Concat(ids, c[len(c)-1:])
		must.That(t, d.Remember(more).Len() == len(slices.Compact(more)), "what is remembered is of another slice")
		for range 3 {
			other := drawSome(t, c, random, "asked for next")
			must.That(t, slices.Equal(d.Remember(other).IDs(), other) && slices.Equal(first.IDs(), ids), "a set that was remembered has changed, or not as it should")
		}
	})
}

// Of hundreds of thousands who are hidden, few differ from those of a second ago: the others are not looked up again.
func TestFewChangesToWhatIsRemembered(t *testing.T) {
	const users, times = 500_000, 20
	d, ids := NewDirectory(), make([]storage.UserID, users)
	for i := range ids {
		ids[i] = storage.UserID(2 + 2*i)
	}
	d.Remember(ids)
	var next [times][]storage.UserID
	for i := range next {
		at := users / times * i
		ids = slices.Insert(slices.Clone(ids), at, storage.UserID(1+2*at))
		ids = slices.Delete(ids, at+7, at+8)
		next[i] = ids
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, ids := range next {
		d.Remember(ids)
	}
	runtime.ReadMemStats(&after)
	check.Most(t, "bytes that a change takes", (after.TotalAlloc-before.TotalAlloc)/times, users/5)
	must.That(t, slices.Equal(d.Remember(ids).IDs(), ids), "the users differ")
}
