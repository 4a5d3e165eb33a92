// Package bench makes large graphs and measures Kith on them: how fast they are imported, and how
// fast the six questions are answered by which its speed is judged.
package bench

import (
	"bufio"
	"io"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"kith/files/graphfile"
	"kith/storage"
)

// A Graph is a synthetic social graph; the same fields always give the same graph. It has what makes social graphs hard to serve:
// communities, so that common lists and friends of friends are not empty; popularity that follows a power law; and a few celebrities whom
// half of all users follow.
//
// Each user's follows are drawn from a generator of the user's own, so a graph of any size is made in the memory that one user takes.
type Graph struct {
	Users   int    // how many
	Degree  int    // followings of a user, on average
	Seed    uint64 // another seed is another graph of the same kind
	Spread  bool   // ids as Sonyflake makes them, not 1 … Users
	Words   bool   // names have words that many share
	Degrees Degrees
	Draw    Draw // whom the questions are about; it does not change the graph

	once    sync.Once // for popular and ranked
	popular []float64 // the cumulated weights of all users except the celebrities
	ranked  []int     // the most popular of these, as indexes of popular

	onceZipf    sync.Once // for zipf and byRank
	zipf        zipf
	byRank      []int     // users, by how popular they are, as indexes
	onceDegrees sync.Once // for degrees
	degrees     []float64 // the cumulated followings of all users
}

// Degrees say how followings are distributed over users.
type Degrees int

const (
	// LogNormal degrees have the mean Degree; celebrities come on top.
	LogNormal Degrees = iota
	// PublishedDegrees are the degrees that LinkBench gives for Facebook's graph: a fifth of all users follow nobody, half follow one, one
	// in a thousand more than 500. Nobody is a celebrity, and Degree is not used.
	PublishedDegrees
)

// The first users, Celebrities of them, are celebrities. The question about famous users is asked
// of the Famous most followed users. A community has Community users with consecutive numbers.
const (
	Celebrities = 4
	Famous      = 40
	Community   = 250
)

// NewGraph returns the graph that speed is measured on, at any number of users from Community up: at 50,000 it has 2.5 M follows and
// celebrities with 21,000 to 32,000 followers.
func NewGraph(users int, seed uint64) *Graph {
	return &Graph{Users: max(users, Community), Degree: 50, Seed: seed}
}

// ID is the id of the n-th user, counted from 1. Ids ascend with n.
func (g *Graph) ID(n int) storage.UserID {
	if !g.Spread {
		return storage.UserID(n)
	}
	// Sonyflake: 39 bits of time in 10 ms, 8 of sequence, 16 of machine. As if one
	// of a few machines had registered a user every few seconds for some years.
	const firstDay, between = 7_000_000_000, 400
	r := g.random(purposeID, n)
	tick := int64(firstDay) + int64(n)*between + r.Int64N(between)
	return storage.UserID(tick<<24 | r.Int64N(2)<<16 | r.Int64N(8))
}

// WordsOfNames are those of which [Graph.Name] takes five: more than a third of all users have each.
var WordsOfNames = strings.Split("a b c d e f g h i k l m", " ")

// Name is the name of the n-th user: its handle, and words if the graph has them.
func (g *Graph) Name(n int) string {
	name, r := "u"+g.ID(n).String(), g.random(purposeName, n)
	for i := 0; g.Words && i < 5; i++ {
		name += " " + pick(r, WordsOfNames)
	}
	return name
}

// Edges yields every follow, user by user, each user's in no order, with times over the five years before 2026.
func (g *Graph) Edges() iter.Seq[storage.Edge] {
	return func(yield func(storage.Edge) bool) {
		const years = 5 * 365 * 24 * time.Hour
		begin := storage.MicrosOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(-years))
		ids := make([]storage.UserID, g.Users+1)
		for n := 1; n <= g.Users; n++ {
			ids[n] = g.ID(n)
		}
		for n := 1; n <= g.Users; n++ {
			r := g.random(purposeTime, n)
			for _, peer := range g.followings(n) {
				at := begin + storage.Micros(r.Int64N(years.Microseconds()))
				if !yield(storage.Edge{From: ids[n], To: ids[peer], Type: storage.Following, UpdateTime: at}) {
					return
				}
			}
		}
	}
}

// WriteTo writes the graph as an edge list that `kith import` reads: from, to and the time in seconds.
func (g *Graph) WriteTo(w io.Writer) (int64, error) { return WriteEdges(w, g.Edges()) }

// WriteEdges writes edges in the same form, and returns the number of bytes.
func WriteEdges(w io.Writer, edges iter.Seq[storage.Edge]) (int64, error) {
	out := bufio.NewWriterSize(w, 1<<20)
	var written int64
	line := make([]byte, 0, 64)
	for e := range edges {
		line = graphfile.AppendLine(line[:0], e)
		n, err := out.Write(line)
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
	return written, out.Flush()
}

// near is the share of a user's follows that are in the user's own community.
const near = 0.45

// followings draws whom the n-th user follows, as numbers in no order.
func (g *Graph) followings(n int) []int {
	r := g.random(purposeEdges, n)
	list := make([]int, 0, 2*g.Degree)
	seen := make(map[int]bool, 2*g.Degree)
	add := func(peer int) {
		if peer != n && !seen[peer] {
			seen[peer] = true
			list = append(list, peer)
		}
	}
	celebrities, degree := g.degree(r)
	for _, c := range celebrities {
		add(c)
	}
	wanted := len(list) + degree
	for try := 0; len(list) < wanted && try < 8*degree; try++ {
		if r.Float64() < near && degree < 2*Community {
			add(g.neighbour(n, r))
		} else {
			add(g.pickPopular(r))
		}
	}
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// degree draws the celebrities whom a user follows, and how many others. It is drawn before the rest of a user's followings.
func (g *Graph) degree(r *rand.Rand) (celebrities []int, others int) {
	const (
		spreadOfDegrees = 0.9  // sigma of a log-normal distribution
		atMost          = 3000 // followings beside the celebrities
	)
	if g.Degrees == PublishedDegrees {
		return nil, min(publishedDegree(r.Float64()), g.Users/2)
	}
	fame := 0.0
	for c := 1; c <= Celebrities; c++ {
		share := shareOfFollowers(c)
		fame += share
		if r.Float64() < share {
			celebrities = append(celebrities, c)
		}
	}
	mean := max(1, float64(g.Degree)-fame)
	others = int(math.Exp(r.NormFloat64()*spreadOfDegrees + math.Log(mean) - spreadOfDegrees*spreadOfDegrees/2))
	return celebrities, min(max(others, 1), atMost, g.Users/2)
}

// shareOfFollowers is the part of all users who follow the c-th celebrity: from 64 % down to 42 %.
func shareOfFollowers(c int) float64 { return 0.64 / math.Pow(float64(c), 0.30) }

// pickPopular draws a user who is not a celebrity, by popularity.
func (g *Graph) pickPopular(r *rand.Rand) int {
	g.once.Do(g.rank)
	at, _ := slices.BinarySearch(g.popular, r.Float64()*g.popular[len(g.popular)-1])
	return Celebrities + 1 + at
}

// famous is the n-th of the most followed users, counted from 0.
func (g *Graph) famous(n int) int {
	if n < Celebrities {
		return n + 1
	}
	g.once.Do(g.rank)
	return Celebrities + 1 + g.ranked[n-Celebrities]
}

// rank gives all users except the celebrities their popularity: a power law over ranks that are dealt out at random.
func (g *Graph) rank() {
	const exponent, flatTop = 0.75, 20 // so that no one else comes near the celebrities
	weights := make([]float64, g.Users-Celebrities)
	g.ranked = g.random(purposeRanks, 0).Perm(len(weights))
	for rank, i := range g.ranked {
		weights[i] = math.Pow(float64(rank+flatTop), -exponent)
	}
	for i := 1; i < len(weights); i++ {
		weights[i] += weights[i-1]
	}
	g.popular, g.ranked = weights, slices.Clone(g.ranked[:Famous])
}

// Purposes keep the random numbers of one user apart.
const (
	purposeEdges = iota + 1
	purposeTime
	purposeID
	purposeRanks
	purposeMix
	purposePopular
	purposePosts
	purposeReaders
	purposeName
)

func (g *Graph) random(purpose, n int) *rand.Rand {
	return rand.New(rand.NewPCG(g.Seed<<3+uint64(purpose), uint64(n)))
}
