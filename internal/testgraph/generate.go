package testgraph

import (
	"math/rand/v2"
	"slices"
)

// Shape is how large a generated graph is. A shape always gives the same graph, on every machine:
// all of its arithmetic is on integers.
type Shape struct {
	Users int
	Least int // the least number of followings that a user draws; see followings
	Seed  uint64
}

var (
	// Small has 26,758 edges, a quarter of wiki-vote's: enough to kill an import in its middle.
	Small = Shape{Users: 2500, Least: 2, Seed: 1}
	// Tiny is for tests that go over the whole graph again and again.
	Tiny = Shape{Users: 1000, Least: 2, Seed: 1}
	// Large has three quarters of the edges of ego-twitter, for the long fault tests.
	Large = Shape{Users: 80_000, Least: 3, Seed: 1}
)

// Shares of a hundred draws of whom to follow.
const (
	ofTriads     = 35 // somebody whom one of the followings follows
	reciprocated = 18 // are followed back: reciprocity is about 2 × 0.18 / 1.18
)

// withoutAny of a hundred users follow nobody.
const withoutAny = 10

// mostFollowings is the most that a user follows: real users are followed by many times more users
// than they follow, and suggestions read the followings of all followings.
const mostFollowings = 800

// Edges generates the graph. The numbers of followings and of followers each have a power law,
// triads are closed, some follows are returned, ids ascend with gaps; the edges are in no
// particular order.
func (s Shape) Edges() []Edge {
	m := maker{
		Shape: s, r: rand.New(rand.NewPCG(s.Seed, 13)),
		lists: make([][]int, s.Users), made: map[[2]int]bool{},
	}
	m.rank()
	for from := range s.Users {
		m.followings(from)
	}
	ids := make([]int64, s.Users)
	last := int64(2)
	for n := range ids {
		last += 1 + m.r.Int64N(3)
		ids[n] = last
	}
	edges := make([]Edge, 0, len(m.made))
	for from, list := range m.lists {
		for _, to := range list {
			edges = append(edges, Edge{ids[from], ids[to]})
		}
	}
	m.r.Shuffle(len(edges), func(i, k int) { edges[i], edges[k] = edges[k], edges[i] })
	return edges
}

// maker makes the edges of one graph, among users counted from 0.
type maker struct {
	Shape
	r     *rand.Rand
	lists [][]int // whom each user follows
	made  map[[2]int]bool

	ranked []int    // users, the most popular first
	upTo   []uint64 // by rank: the weights up to it, added up
}

// rank deals out popularity at random: the weight of a rank is one by the rank, so that
// the numbers of followers have a power law.
func (m *maker) rank() {
	const flatTop = 1 // the most popular user is drawn by one in nine, and not by all
	m.ranked = m.r.Perm(m.Users)
	sum := uint64(0)
	for rank := range m.ranked {
		sum += 1 << 32 / uint64(rank+flatTop)
		m.upTo = append(m.upTo, sum)
	}
}

// followings draws whom a user follows. The number is Least by a random part of one: half
// as many users draw twice as many.
func (m *maker) followings(from int) {
	const parts = 1 << 20
	if m.r.IntN(100) < withoutAny {
		return
	}
	n := min(m.Least*parts/(1+m.r.IntN(parts)), mostFollowings, m.Users/4)
	for range n {
		to := m.popular()
		if m.r.IntN(100) < ofTriads {
			to = m.triad(from, to)
		}
		m.follow(from, to)
		if m.r.IntN(100) < reciprocated && len(m.lists[to]) < mostFollowings {
			m.follow(to, from)
		}
	}
}

// follow adds an edge, unless it is there or the two are one.
func (m *maker) follow(from, to int) {
	edge := [2]int{from, to}
	if from == to || m.made[edge] {
		return
	}
	m.made[edge] = true
	m.lists[from] = append(m.lists[from], to)
}

// popular draws a user by popularity.
func (m *maker) popular() int {
	at, found := slices.BinarySearch(m.upTo, m.r.Uint64N(m.upTo[len(m.upTo)-1]))
	if found {
		at++ // a weight belongs to the rank above its lower end
	}
	return m.ranked[at]
}

// triad draws somebody whom a following of a user follows, otherwise if there is none.
func (m *maker) triad(from, otherwise int) int {
	if len(m.lists[from]) == 0 {
		return otherwise
	}
	by := m.lists[m.lists[from][m.r.IntN(len(m.lists[from]))]]
	if len(by) == 0 {
		return otherwise
	}
	return by[m.r.IntN(len(by))]
}
