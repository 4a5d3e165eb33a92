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
	byRank zipf
	ranked []int // the users' numbers
}

// NewPopular makes the load. The question must be about any one user: q1, q2 or q6.
func NewPopular(q *Question, g *Graph, shape float64) (*Popular, error) {
	if q.Name != "q1" && q.Name != "q2" && q.Name != "q6" {
		return nil, errors.New(q.Name + " is not a question about any one user")
	}
	p := &Popular{q, newZipf(g.Users, shape), g.random(purposePopular, 0).Perm(g.Users)}
	for rank := range p.ranked {
		p.ranked[rank]++
	}
	return p, nil
}

// draw draws a user's number.
func (p *Popular) draw(r *rand.Rand) int { return p.ranked[p.byRank.draw(r)] }

func (p *Popular) stream(load *Load, connection int) stream {
	s := p.Question.stream(load, connection).(*questions)
	s.popular = p
	return s
}
