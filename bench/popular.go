package bench

import "math/rand/v2"

// ranking is the users of a graph in the order in which they are popular, by Zipf's law: the user of the k-th rank with a weight of k^−shape.
// Ranks are assigned at random, so popular users are not neighbours and have no more followers than others.
type ranking struct {
	byRank zipf
	ranked []int // the users' numbers
}

func newRanking(g *Graph, shape float64) *ranking {
	p := &ranking{newZipf(g.Users, shape), g.random(purposePopular, 0).Perm(g.Users)}
	for rank := range p.ranked {
		p.ranked[rank]++
	}
	return p
}

// draw draws a user's number.
func (p *ranking) draw(r *rand.Rand) int { return p.ranked[p.byRank.draw(r)] }
