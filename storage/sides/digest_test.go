package sides_test

import (
	"math/rand/v2"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/sides"
)

// Damage that a sum of weak checksums does not detect: the same change to two rows, or values that two
// rows have swapped.
var pairedDamage = map[string]func(a, b *storage.Edge){
	"times swapped": func(a, b *storage.Edge) { a.UpdateTime, b.UpdateTime = b.UpdateTime, a.UpdateTime },
	"types swapped": func(a, b *storage.Edge) { a.Type, b.Type = b.Type, a.Type },
	"versions swapped": func(a, b *storage.Edge) {
		a.Type, a.UpdateTime, b.Type, b.UpdateTime = b.Type, b.UpdateTime, a.Type, a.UpdateTime
	},
	"others swapped":      func(a, b *storage.Edge) { a.To, b.To = b.To, a.To },
	"types flipped alike": func(a, b *storage.Edge) { a.Type ^= 3; b.Type ^= 3 },
	"a bit of the time":   func(a, b *storage.Edge) { a.UpdateTime ^= 1 << 20; b.UpdateTime ^= 1 << 20 },
	"one later, one less": func(a, b *storage.Edge) { a.UpdateTime += 1000; b.UpdateTime -= 1000 },
	"a time past a prime": func(a, _ *storage.Edge) { a.UpdateTime += 4093082899 },
	"past the other":      func(a, _ *storage.Edge) { a.UpdateTime += 3367900313 },
	"one way, other way":  func(a, b *storage.Edge) { a.From, a.To = a.To, a.From; b.From, b.To = b.To, b.From },
	"ids as times":        func(a, _ *storage.Edge) { a.UpdateTime, a.From = storage.Micros(a.From), storage.UserID(a.UpdateTime) },
}

// Ids and times as they may occur: in small data sets, from machines that make them, and in
// hostile imports.
var manners = map[string]func(r *rand.Rand) storage.Edge{
	"small": func(r *rand.Rand) storage.Edge {
		return storage.Edge{From: id(1 + r.Int64N(30)), To: id(1 + r.Int64N(30)), UpdateTime: storage.Micros(1 + r.Int64N(30))}
	},
	"in turn": func(r *rand.Rand) storage.Edge {
		return storage.Edge{From: id(5e17 + r.Int64N(1000)<<16), To: id(5e17 + r.Int64N(1000)<<16), UpdateTime: storage.Micros(1.76e15 + float64(r.Int64N(1e6)))}
	},
	"any": func(r *rand.Rand) storage.Edge {
		return storage.Edge{From: id(r.Int64()), To: id(r.Int64()), UpdateTime: storage.Micros(r.Int64())}
	},
}

func id(n int64) storage.UserID { return storage.UserID(n) }

func TestADigestSeesPairedDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for manner, edgeOf := range manners {
		for name, damage := range pairedDamage {
			for range 200_000 {
				a, b := edgeOf(r), edgeOf(r)
				a.Type, b.Type = storage.EdgeType(r.IntN(3)), storage.EdgeType(r.IntN(3))
				x, y := a, b
				damage(&x, &y)
				if a.Pair() == b.Pair() || x.Pair() == y.Pair() {
					continue // a table has no such rows
				}
				same := x == a && y == b || x == b && y == a
				of := func(e storage.Edge) sides.Digest { return sides.Digest{Rows: 1, Mixed: e.Mix()} }
				must.That(t, (of(x).Plus(of(y)) == of(a).Plus(of(b))) == same, "%s, %s: %v and %v have the digest of %v and %v", manner, name, a, b, x, y)
			}
		}
	}
}

// There are many groups of similar sizes, whatever the ids look like.
func TestGroupsAreOfOneSize(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for manner, edgeOf := range manners {
		if manner == "small" {
			continue // thirty users are thirty groups
		}
		for _, cut := range []sides.Cut{{Parts: 1}, {Parts: 7}} {
			rows := make([]int, cut.Groups())
			const each = 50
			for range each * len(rows) {
				rows[cut.Group(edgeOf(r).Pair())]++
			}
			largest := 0
			for _, n := range rows {
				largest = max(largest, n)
			}
			check.That(t, largest <= 3*each, "%s, %d parts: a group has %d rows, %d would be even", manner, cut.Parts, largest, each)
		}
	}
}

// Rows with ids that no user can have are damage, but still have a group.
func TestEveryPairHasAGroup(t *testing.T) {
	for _, cut := range []sides.Cut{{Parts: 1}, {Parts: 31}} {
		for _, from := range []storage.UserID{-1 << 63, -5, 0, 1<<63 - 1} {
			for _, to := range []storage.UserID{-1 << 63, -7, 0, 1<<63 - 1} {
				g := cut.Group(storage.Pair{From: from, To: to})
				check.That(t, g >= 0 && g < cut.Groups(), "%d parts: %d → %d is in group %d", cut.Parts, from, to, g)
			}
		}
	}
}
