package storage

import "bytes"

// To compare two sides of very many rows, the databases add them up by groups. What
// follows is that arithmetic: which group an edge is in, and what it adds. It is
// written here once; databases that compute it in SQL have to come to the same.

// Classes is how many classes edges fall into, by From. It is a prime, because ids
// have patterns: the low bits of those that machines give out in turn hardly differ.
const Classes = 1021

// Cut sorts edges into groups: each class into so many parts, by both ids. One part
// is the coarsest cut.
//
// A group is on all shards, on both sides, so that no row has to be asked for the
// shard of its other user.
type Cut struct{ Parts int }

// Groups is how many there are. They are numbered from 0, class by class.
func (c Cut) Groups() int { return Classes * c.Parts }

// Group returns the group of an edge.
func (c Cut) Group(p Pair) int {
	const positive = 1<<63 - 1 // a damaged row may have any id
	from, to, parts := uint64(p.From)&positive, uint64(p.To)&positive, uint64(c.Parts)
	return int(from%Classes*parts + (from%parts+to%parts)%parts)
}

// Choice tells some numbers, of groups or classes, from others: it is '1' at those,
// '0' at the others.
type Choice []byte

// Choose makes a choice among the numbers below n.
func Choose(n int, numbers []int) Choice {
	c := Choice(bytes.Repeat([]byte{'0'}, n))
	for _, i := range numbers {
		c[i] = '1'
	}
	return c
}

// Has tells whether a number is chosen.
func (c Choice) Has(i int) bool { return c[i] == '1' }

// Digest stands for a multitude of rows: equal rows have equal digests, and it is as
// good as impossible that others have. It sees every field of a row, and also damage
// that comes in pairs, such as two rows that have swapped their times.
//
// A tombstone at time 0 counts as no row; see [Repairer].
type Digest struct {
	Rows  int64
	Mixed uint64 // the exclusive or of all rows' [Mix]
}

// Plus adds digests of disjoint sets of rows.
func (d Digest) Plus(e Digest) Digest { return Digest{d.Rows + e.Rows, d.Mixed ^ e.Mixed} }

// Mix turns a row into 64 bits: the product of two remainders below 2^32, each of all
// its fields. Two moduli let one damage in 2^64 pass, as long as it is an accident. A
// remainder and a product are no linear functions of the bits, as a CRC is: otherwise
// an exclusive or would not see what comes in pairs. The primes are not near each
// other or a power of two: what is a multiple of one of them hardly differs in the
// other, then.
//
// From and To are shifted in one factor each, so that no other pair has both; the
// constant keeps factors of small numbers from being small.
func Mix(e Edge) uint64 {
	from, to, at := uint64(e.From), uint64(e.To), uint64(e.UpdateTime)
	a := (from ^ to<<21 ^ at ^ 7640891576956012809) % 4093082899
	b := (to ^ from<<13 ^ at<<7 ^ uint64(e.Type)<<50) % 3367900313
	return a * b
}
