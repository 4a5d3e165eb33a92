package demo

import (
	"math/rand/v2"
	"sort"
)

// dice draws from a fixed sequence. It uses only whole numbers and the raw output of PCG, so that
// every version of Go on every machine draws the same.
type dice struct{ source *rand.PCG }

func newDice(seed uint64) dice { return dice{rand.NewPCG(seed, 0x6b697468)} }

// under draws from 0 … n−1. Small n are not drawn quite evenly, which does not matter here.
func (d dice) under(n int) int { return int(d.source.Uint64() % uint64(n)) }

// percent is true in p of 100 draws.
func (d dice) percent(p int) bool { return d.under(100) < p }

func pick[T any](d dice, from []T) T { return from[d.under(len(from))] }

// shuffled returns 0 … n−1 in a drawn order.
func (d dice) shuffled(n int) []int {
	order := make([]int, n)
	for i := range order {
		j := d.under(i + 1)
		order[i], order[j] = order[j], i
	}
	return order
}

// urn holds users with weights.
type urn struct {
	users []int
	sums  []int // of the weights up to and with each user
}

func (u *urn) add(user, weight int) {
	if n := len(u.sums); n > 0 {
		weight += u.sums[n-1]
	}
	u.users, u.sums = append(u.users, user), append(u.sums, weight)
}

// draw draws a user with the probability of its weight, and leaves it in the urn.
func (u *urn) draw(d dice) int {
	at := d.under(u.sums[len(u.sums)-1])
	return u.users[sort.SearchInts(u.sums, at+1)]
}
