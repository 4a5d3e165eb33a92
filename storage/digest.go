package storage

import "bytes"

// To compare two sides of very many rows, the databases sum them up by groups. This file is that
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
func (c Cut) Group(p Pair) int {
	const positive = 1<<63 - 1 // a damaged row may have any id
	from, to, parts := uint64(p.From)&positive, uint64(p.To)&positive, uint64(c.Parts)
	return int(from%Classes*parts + (from%parts+to%parts)%parts)
}

// Choice selects some of the numbers of groups or classes: it is '1' at those selected, '0' at the
// others.
type Choice []byte

// Choose selects the given numbers among those below n.
func Choose(n int, numbers []int) Choice {
	c := Choice(bytes.Repeat([]byte{'0'}, n))
	for _, i := range numbers {
		c[i] = '1'
	}
	return c
}

// Has reports whether a number is selected.
func (c Choice) Has(i int) bool { return c[i] == '1' }

// Without is what is selected, and not by others.
func (c Choice) Without(others Choice) Choice {
	rest := bytes.Clone(c)
	for i := range rest {
		if others.Has(i) {
			rest[i] = '0'
		}
	}
	return rest
}

// Digest stands for a set of rows: equal sets have equal digests, and different sets practically
// never do. It covers every field of a row, and it also shows damage that comes in pairs, such as
// two rows that have swapped their times.
//
// A tombstone at time 0 counts as no row; see [Repairer].
type Digest struct {
	Rows  int64
	Mixed uint64 // the exclusive or of all rows' [Edge.Mix]
}

// Plus adds digests of disjoint sets of rows.
func (d Digest) Plus(e Digest) Digest { return Digest{d.Rows + e.Rows, d.Mixed ^ e.Mixed} }

// Mix turns a row into 64 bits: the product of two remainders below 2^32, each of all its fields.
// With two moduli, one accidental damage in 2^64 goes unnoticed. A remainder and a product are not
// linear functions of the bits, as a CRC is: with a linear function, an exclusive or would not see
// damage that comes in pairs. The primes are not near each other or near a power of two: otherwise,
// a difference that is a multiple of one of them would hardly change the remainder of the other.
//
// One factor shifts To and the other From, so that no other pair gives both; the constant keeps the
// factors of small numbers from being small. A post goes into both, rotated in one, so that no other
// post of another user gives the same.
func (e Edge) Mix() uint64 {
	from, to, post, at := uint64(e.From), uint64(e.To), uint64(e.Item), uint64(e.UpdateTime)
	a := (from ^ to<<21 ^ post<<32 ^ post>>32 ^ at ^ 7640891576956012809) % 4093082899
	b := (to ^ from<<13 ^ post ^ at<<7 ^ uint64(e.Type)<<50) % 3367900313
	return a * b
}
