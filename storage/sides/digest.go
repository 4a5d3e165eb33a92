package sides

import (
	"bytes"

	"kith/storage"
)

// To compare two sides of very many rows, databases sum them up by groups. This file is that
// arithmetic: which group an edge is in, and what the edge adds to it. Databases that compute it in
// SQL must come to the same results.

// Classes is the number of classes of edges, by From. It is a prime because ids have patterns: the
// low bits of ids that machines give out in turn hardly differ.
const Classes = 1021

// Cut sorts edges into groups: it divides each class into Parts, by both ids. One part is the
// coarsest cut.
//
// A group spans all shards, on both sides, so that the shard of a row's other user need not be
// known.
type Cut struct{ Parts int }

// Groups is the number of groups. They are numbered from 0, class by class.
func (c Cut) Groups() int { return Classes * c.Parts }

// Group returns the group of an edge.
func (c Cut) Group(p storage.Pair) int {
	const positive = 1<<63 - 1 // a damaged row may have any id
	from, to, parts := uint64(p.From)&positive, uint64(p.To)&positive, uint64(c.Parts)
	return int(from%Classes*parts + (from%parts+to%parts)%parts)
}

// Choose selects the given numbers among those below n.
func Choose(n int, numbers []int) storage.Choice {
	c := storage.Choice(bytes.Repeat([]byte{'0'}, n))
	for _, i := range numbers {
		c[i] = '1'
	}
	return c
}

// Digest stands for a set of rows: equal sets have equal digests, and different sets practically
// never do. It covers every field of a row, and it also shows damage that comes in pairs, such as
// two rows that have swapped their times.
//
// A tombstone at time 0 counts as no row; see [Repairer].
type Digest struct {
	Rows  int64
	Mixed uint64 // the exclusive or of all rows' [storage.Edge.Mix]
}

// Plus adds digests of disjoint sets of rows.
func (d Digest) Plus(e Digest) Digest { return Digest{d.Rows + e.Rows, d.Mixed ^ e.Mixed} }
