package bench

import (
	"math"
	"math/rand/v2"
	"sort"
)

// These are LinkBench's published figures of Facebook's load: Armstrong, Ponnekanti, Borthakur and Callaghan, "LinkBench: a database
// benchmark based on the Facebook social graph", SIGMOD 2013; the figures to all their digits are in its config/FBWorkload.properties and
// config/Distribution.dat.

// An operation of the mix.
type operation int

const (
	getList operation = iota
	getNode
	addLink
	updateLink
	updateNode
	countLinks
	deleteLink
	addNode
	deleteNode
	getLinks
	operations // how many there are
)

// share of each operation, in percent.
var share = [operations]float64{
	getList: 50.7119145, getNode: 12.9326683, addLink: 8.9886601, updateLink: 8.0122125, updateNode: 7.366437,
	countLinks: 4.8863567, deleteLink: 2.9907664, addNode: 2.5732789, deleteNode: 1.0115914, getLinks: 0.5261142,
}

// drawOperation draws an operation by its share.
func drawOperation(r *rand.Rand) operation {
	at := r.Float64() * 100
	for op, percent := range share {
		if at -= percent; at < 0 {
			return operation(op)
		}
	}
	return getList // by rounding
}

// Users are accessed by Zipf's law with these shapes over ranks. A few ranks are by degree, the others are assigned at random.
const (
	shapeOfListReads   = 0.8
	shapeOfLinkWrites  = 0.741
	shapeOfNodeReads   = 0.625
	shapeOfNodeUpdates = 0.606

	readsByDegree  = 0.005
	writesByDegree = 0.05
)

// zipf draws ranks from 0 to its length − 1: the k-th, counted from 1, by a weight of k^−shape.
type zipf []float64

func newZipf(ranks int, shape float64) zipf {
	cumulated := make(zipf, ranks)
	total := 0.0
	for i := range cumulated {
		total += math.Pow(float64(i+1), -shape)
		cumulated[i] = total
	}
	return cumulated
}

func (z zipf) draw(r *rand.Rand) int {
	return min(sort.SearchFloat64s(z, r.Float64()*z[len(z)-1]), len(z)-1)
}

// linksAsked draws how many links one look-up asks for: a geometric distribution with a mean of 2.6, at most room.
func linksAsked(r *rand.Rand, room int) int {
	n := 1
	for n < room && r.Float64() >= 0.382 {
		n++
	}
	return n
}

// degreeShares are points of the distribution of degrees: which percentage of all nodes
// has at most how many links. (Distribution.dat has 5,000 of them.)
var degreeShares = []struct {
	degree  int
	percent float64
}{
	{0, 19.7474}, {1, 72.9846}, {2, 86.7375}, {3, 91.8168}, {4, 94.4591}, {5, 95.8686}, {6, 96.7778}, {8, 97.8167},
	{10, 98.3410}, {15, 98.9634}, {20, 99.2221}, {30, 99.4650}, {50, 99.6518}, {75, 99.7340}, {100, 99.7735},
	{150, 99.8128}, {200, 99.8398}, {300, 99.8696}, {400, 99.8879}, {500, 99.8996}, {700, 99.9164}, {3620, 99.9788},
	{5000, 99.9868}, {7500, 99.9932},
}

// publishedDegree is the degree at a quantile, 0 to 1.
func publishedDegree(quantile float64) int {
	percent := quantile * 100
	at := sort.Search(len(degreeShares), func(i int) bool { return degreeShares[i].percent > percent })
	switch {
	case at == 0:
		return 0
	case at == len(degreeShares):
		return degreeShares[at-1].degree
	}
	below, above := degreeShares[at-1], degreeShares[at]
	part := (percent - below.percent) / (above.percent - below.percent)
	return below.degree + int(math.Ceil(part*float64(above.degree-below.degree)))
}
