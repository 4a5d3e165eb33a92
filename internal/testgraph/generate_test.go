package testgraph

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
)

// A failure on one machine must be reproducible on another.
func TestASeedIsOneGraph(t *testing.T) {
	const want = "64487cbe9d608216b63d9a17bb0a18448957e6ac1a25b8bbcfc3a8f4bab06b7e"
	g := Generate(t, Small)
	text := sha256.New() // a digest of the text, not of the file: other versions of gzip may compress it differently
	for _, e := range g.Edges(t) {
		fmt.Fprintln(text, e.From, e.To)
	}
	check.Equal(t, "the SHA-256 of the small graph", fmt.Sprintf("%x", text.Sum(nil)), want)
	check.That(t, bytes.Equal(must.File(t, g.File), must.File(t, Generate(t, Small).File)), "one seed gives two files")
	other := Small
	other.Seed++
	check.That(t, !bytes.Equal(must.File(t, g.File), must.File(t, Generate(t, other).File)), "two seeds give one file")
}

// The graph has the properties that were measured on real follow graphs.
func TestGeneratedGraphsAreSkewed(t *testing.T) {
	for _, s := range []Shape{Small, Large} {
		t.Run(fmt.Sprint(s.Users, " users"), func(t *testing.T) {
			edges := s.Edges()
			there := map[Edge]bool{}
			followings, followers := map[int64]int{}, map[int64]int{}
			for _, e := range edges {
				must.That(t, e.From != e.To && e.From >= 1 && !there[e], "edge %v, which may be there twice: %t", e, there[e])
				there[e] = true
				followings[e.From]++
				followers[e.To]++
			}
			n := len(edges) / s.Users
			check.That(t, n >= 8 && n <= 25, "%d edges of %d users", len(edges), s.Users)
			powerLaw(t, "followings", followings, s.Users, len(edges))
			powerLaw(t, "followers", followers, s.Users, len(edges))
			most := largest(followers)
			check.That(t, most >= 800 && most <= s.Users/2, "the most followed user has %d followers, want at least 800", most)
			returned := 0
			for e := range there {
				if there[Edge{e.To, e.From}] {
					returned++
				}
			}
			share := float64(returned) / float64(len(edges))
			check.That(t, share >= 0.2 && share <= 0.4, "%.2f of all follows are returned, want 0.2 to 0.4", share)
			check.That(t, len(followings) != s.Users && len(followers) != s.Users, "nobody has an empty list")
		})
	}
}

// powerLaw checks that most users are far below the mean, and hubs far above it. From one power of
// two to the next, the share of users with that many falls to about a half to a quarter.
func powerLaw(t *testing.T, what string, degrees map[int64]int, users, edges int) {
	t.Helper()
	mean := edges / users
	median := slices.Sorted(func(yield func(int) bool) {
		for range users - len(degrees) {
			yield(0)
		}
		for _, n := range degrees {
			yield(n)
		}
	})[users/2]
	check.That(t, median <= mean*2/3, "%s: the median is %d, the mean %d", what, median, mean)
	atLeast := func(n int) (users float64) {
		for _, d := range degrees {
			if d >= n {
				users++
			}
		}
		return users
	}
	for n := 2 * mean; n <= 8*mean; n *= 2 {
		more, most := atLeast(2*n), atLeast(n)
		check.That(t, more >= most/5 && more <= most*2/3, "%s: %.0f users have at least %d, and %.0f at least %d", what, most, n, more, 2*n)
	}
	check.Least(t, what+": the most", largest(degrees), 30*mean)
}

func largest(degrees map[int64]int) (most int) {
	for _, n := range degrees {
		most = max(most, n)
	}
	return most
}

// A user follows friends of friends more often than in a random graph in which each user has as many
// followings and followers.
func TestGeneratedGraphsHaveTriads(t *testing.T) {
	edges := Small.Edges()
	anybody := slices.Clone(edges)
	r := rand.New(rand.NewPCG(1, 1))
	r.Shuffle(len(anybody), func(i, k int) { anybody[i].To, anybody[k].To = anybody[k].To, anybody[i].To })
	if have, chance := closed(edges), closed(anybody); have < 2*chance {
		t.Errorf("%.3f of all paths of two edges are closed by a third; by chance it would be %.3f", have, chance)
	} else {
		t.Logf("%.3f of all paths of two edges are closed; by chance it would be %.3f", have, chance)
	}
}

// closed is the share of paths a → b → c with a → c, among users who are not hubs.
func closed(edges []Edge) float64 {
	const hub = 50
	lists, there, followers := map[int64][]int64{}, map[Edge]bool{}, map[int64]int{}
	for _, e := range edges {
		lists[e.From] = append(lists[e.From], e.To)
		there[e] = true
		followers[e.To]++
	}
	paths, triads := 0, 0
	for _, e := range edges {
		for _, c := range lists[e.To] {
			if c == e.From || len(lists[e.From]) > hub || len(lists[e.To]) > hub || followers[c] > hub {
				continue
			}
			paths++
			if there[Edge{e.From, c}] {
				triads++
			}
		}
	}
	return float64(triads) / float64(paths)
}
