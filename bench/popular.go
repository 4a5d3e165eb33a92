package bench

import (
	"errors"
	"math/rand/v2"
)

// Popular is a question about users of whom some are asked for far more often than others, by
// Zipf's law: the user of the k-th rank with a weight of k^−shape. Ranks are assigned at random, so
// popular users are not neighbours and have no more followers than others.
type Popular struct {
	*Question
	ranking *ranking
}

// NewPopular makes the load. The question must be about any one user: q1, q2 or q6.
func NewPopular(q *Question, g *Graph, shape float64) (*Popular, error) {
	if q.Name != "q1" && q.Name != "q2" && q.Name != "q6" {
		return nil, errors.New(q.Name + " is not a question about any one user")
	}
	return &Popular{q, newRanking(g, shape)}, nil
}

// ranking is the users of a graph in the order in which they are popular.
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

func (p *Popular) stream(load *Load, connection int) stream {
	s := p.Question.stream(load, connection).(*questions)
	s.popular = p
	return s
}
