package bench

import (
	"math/rand/v2"
	"slices"
)

// Draw says which users the questions are about. The questions about famous users do not depend on it.
type Draw string

const (
	// DrawUsers draws all users equally often. "" means the same.
	DrawUsers Draw = "users"
	// DrawFollowers draws users in proportion to their followers, as they are met in feeds.
	DrawFollowers Draw = "followers"
	// DrawFollowings draws users in proportion to their followings: the busiest users have the answers that take longest.
	DrawFollowings Draw = "followings"
	// DrawZipf draws users by Zipf's law, the k-th in proportion to 1 / k. Who is the k-th is drawn at random, so that popular
	// users have no more followers than others.
	DrawZipf Draw = "zipf"
)

// someone draws a user to ask about.
func (g *Graph) someone(r *rand.Rand) int {
	switch g.Draw {
	case DrawFollowers:
		return g.followed(r)
	case DrawFollowings:
		g.onceDegrees.Do(g.addDegrees)
		at, _ := slices.BinarySearch(g.degrees, r.Float64()*g.degrees[len(g.degrees)-1])
		return 1 + at
	case DrawZipf:
		g.onceZipf.Do(func() { g.zipf, g.byRank = newZipf(g.Users, 1), g.random(purposePopular, 0).Perm(g.Users) })
		return 1 + g.byRank[g.zipf.draw(r)]
	}
	return g.anyone(r)
}

// followed draws a user as a follow of this graph does: a celebrity, a neighbour of anybody, or a popular user.
func (g *Graph) followed(r *rand.Rand) int {
	if g.Degrees == LogNormal {
		f := r.Float64() * float64(g.Degree)
		for c := 1; c <= Celebrities; c++ {
			if f -= shareOfFollowers(c); f < 0 {
				return c
			}
		}
	}
	if r.Float64() < near {
		return g.anyone(r)
	}
	return g.pickPopular(r)
}

// addDegrees adds up how many users each user follows.
func (g *Graph) addDegrees() {
	g.degrees = make([]float64, g.Users)
	sum := 0.0
	for n := 1; n <= g.Users; n++ {
		celebrities, others := g.degree(g.random(purposeEdges, n))
		sum += float64(len(celebrities) + others)
		g.degrees[n-1] = sum
	}
}
