// Package demo makes a small social network to try Kith on: users with names,
// and follows as skewed as real ones.
package demo

import (
	"time"

	"kith/storage"
)

// How large the network is.
const (
	Users = 2_000
	Edges = 40_000
)

// Seed and Base are those of the network that [Load] loads.
const Seed = 1

// Base is the moment that the network leads up to.
var Base = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

const (
	communityCount = 24
	celebrities    = 12 // the most popular, who rarely follow back
)

// Graph makes the users 1 … Users, ascending, and the edges between them, all of
// type Following, in the order of their times: over the two years before
// the base. The same seed and base always give the same network.
func Graph(seed uint64, base time.Time) ([]storage.User, []storage.Edge) {
	d := newDice(seed)
	n := newNetwork(d)
	users := people(d, n.community, base)
	n.grow(d)
	return users, n.timed(d, base)
}

// network grows by users who follow others of their community, users whom everybody follows, and
// followings of their followings.
type network struct {
	community []int
	fame      []int // rank of each user's popularity, 0 first
	active    urn   // who follows next
	famous    urn   // users whom any user may come across
	locals    [communityCount]urn
	edges     [][2]int
	back      []bool // whether an edge follows back the one before it
	known     map[[2]int]bool
	followed  [][]int // by each user
}

func newNetwork(d dice) *network {
	n := &network{
		community: make([]int, Users),
		fame:      d.shuffled(Users),
		known:     map[[2]int]bool{},
		followed:  make([][]int, Users),
	}
	var sizes urn
	for c := range communityCount {
		sizes.add(c, 1000/(c+6))
	}
	diligence := d.shuffled(Users)
	// The examples show the first two users: well known, busy, of one circle.
	rankAs(n.fame, 0, 45)
	rankAs(n.fame, 1, 90)
	rankAs(diligence, 0, 25)
	rankAs(diligence, 1, 50)
	for user := range n.community {
		n.community[user] = sizes.draw(d)
		if user == 1 {
			n.community[1] = n.community[0]
		}
		// Zipf's law, with a floor so that nobody is quite alone.
		n.active.add(user, 400_000/(diligence[user]+30)+100)
		weight := 1_000_000/(n.fame[user]+4) + 250
		n.famous.add(user, weight)
		n.locals[n.community[user]].add(user, weight)
	}
	return n
}

// rankAs gives a user a rank, and the user of that rank the old one.
func rankAs(ranks []int, user, rank int) {
	for other := range ranks {
		if ranks[other] == rank {
			ranks[other], ranks[user] = ranks[user], rank
			return
		}
	}
}

// grow adds edges until there are enough.
func (n *network) grow(d dice) {
	for len(n.edges) < Edges {
		from := n.active.draw(d)
		to := n.choose(d, from)
		if !n.add(from, to, false) {
			continue
		}
		answers := 15 // in 100
		if n.fame[to] < celebrities {
			answers = 2
		}
		if d.percent(answers) && len(n.edges) < Edges {
			n.add(to, from, true)
		}
	}
}

func (n *network) choose(d dice, from int) int {
	switch way := d.under(100); {
	case way < 25 && len(n.followed[from]) > 0:
		friend := pick(d, n.followed[from])
		if len(n.followed[friend]) > 0 {
			return pick(d, n.followed[friend])
		}
		return n.famous.draw(d)
	case way < 75:
		return n.locals[n.community[from]].draw(d)
	default:
		return n.famous.draw(d)
	}
}

func (n *network) add(from, to int, back bool) bool {
	edge := [2]int{from, to}
	if from == to || n.known[edge] {
		return false
	}
	n.known[edge] = true
	n.followed[from] = append(n.followed[from], to)
	n.edges, n.back = append(n.edges, edge), append(n.back, back)
	return true
}

// timed spreads the edges over two years in the order in which they came; users who follow back do
// so within three days.
func (n *network) timed(d dice, base time.Time) []storage.Edge {
	edges := make([]storage.Edge, len(n.edges))
	step := 2 * year / Edges
	first := storage.MicrosOf(base) - 2*year
	for i, edge := range n.edges {
		at := first + step*storage.Micros(i) + storage.Micros(d.under(int(step)))
		if n.back[i] {
			at = min(at+storage.Micros(d.under(int(3*day))), storage.MicrosOf(base)-second)
		}
		edges[i] = storage.Edge{
			From:       storage.UserID(edge[0] + 1),
			To:         storage.UserID(edge[1] + 1),
			Type:       storage.Following,
			UpdateTime: at - at%second,
		}
	}
	return edges
}
