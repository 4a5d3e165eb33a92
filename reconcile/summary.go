package reconcile

import (
	"context"
	"slices"

	"kith/storage"
	"kith/storage/sides"
)

// A summary is the sums of a cut's groups, for the groups of some classes. Its size is bounded
// whatever the number of shards and edges: a scan keeps two.
//
// The coarse summary covers all edges of a pair of tables. If it differs, its groups may still be
// large; then a finer one is made of the classes that differ, so that fewer rows have to be read.
type summary struct {
	Cut      sides.Cut // no parts: it has not been made yet
	Classes  []int     // ascending
	Sums     []sum     // see indexOf
	Digested [2][]walk // forward and inverse: of which owners the digests are in Sums
}

func newSummary(parts int, classes []int) summary {
	t := summary{Cut: sides.Cut{Parts: parts}, Classes: classes, Sums: make([]sum, len(classes)*parts)}
	for half := range t.Digested {
		t.Digested[half] = newWalks()
	}
	return t
}

// choice is the classes in the form that a store expects.
func (t *summary) choice() storage.Choice {
	if len(t.Classes) == sides.Classes {
		return nil
	}
	return sides.Choose(sides.Classes, t.Classes)
}

// indexOf returns the index of a group's sum among those of the classes.
func (t *summary) indexOf(group int) int {
	rank, _ := slices.BinarySearch(t.Classes, group/t.Cut.Parts)
	return rank*t.Cut.Parts + group%t.Cut.Parts
}

func (t *summary) groupAt(index int) int {
	return t.Classes[index/t.Cut.Parts]*t.Cut.Parts + index%t.Cut.Parts
}

// differing returns the indexes of the groups that differ, and the rows of the largest one.
func (t *summary) differing() (indexes []int, largest int64) {
	for i := range t.Sums {
		if s := &t.Sums[i]; s.differs() {
			indexes = append(indexes, i)
			largest = max(largest, s.most())
		}
	}
	return indexes, largest
}

// mostSums bounds a summary. As part of a state, each sum takes up to 20 bytes.
const mostSums = 1 << 17

// cuts are the numbers of parts that a class may be cut into. They are primes, as
// [sides.Classes] is.
var cuts = []int{1, 7, 31, 127, 1009}

// finer returns the summary to be made of the classes that differ in a coarse one, so that groups
// have at most the given rows, or as few as possible; false if the coarse one is already as good as
// it can be.
func (t *summary) finer(rows int64) (summary, bool) {
	classes, largest := t.differing()
	parts := 1
	for _, c := range cuts {
		if parts < c && largest > rows*int64(parts) && len(classes)*c <= mostSums {
			parts = c
		}
	}
	if parts == 1 {
		return summary{}, false
	}
	return newSummary(parts, classes), true
}

// A sum is the difference between the digests of a group's two sides, as far as they have been
// read, with the number of rows of each.
type sum struct {
	Rows  [2]int64 // forward and inverse
	Mixed uint64
}

func (s *sum) add(half int, d sides.Digest) {
	s.Rows[half] += d.Rows
	s.Mixed ^= d.Mixed
}

func (s *sum) differs() bool { return s.Rows[0] != s.Rows[1] || s.Mixed != 0 }

// most is the number of rows on the side that has more.
func (s *sum) most() int64 { return max(s.Rows[0], s.Rows[1]) }

// sides are the two tables that are being compared.
func (f *full) sides() [2]storage.Side {
	truth := pairs[f.state.Pair]
	return [2]storage.Side{truth, truth.Replica()}
}

// digest adds the digests of a walk on one of the sides to a summary.
func (f *full) digest(ctx context.Context, t *summary, half int, w *walk) error {
	side := f.sides()[half]
	var digests map[int]sides.Digest
	read := func(r sides.OwnerRange) (err error) {
		digests, err = f.cfg.Store.Digests(ctx, side, w.Shard, r, t.Cut, t.choice())
		return err
	}
	took := func(upTo storage.UserID) error {
		f.commit(ctx, func(s *state) {
			for g, d := range digests {
				t.Sums[t.indexOf(g)].add(half, d)
				if t == &s.Coarse {
					s.Report.Rows[side] += d.Rows
					if half == 0 {
						s.Truths[w.Shard] += d.Rows
					}
				}
			}
			s.Report.Bytes += int64(len(digests)) * digestBytes
			w.UpTo = upTo
		})
		return nil
	}
	return f.goOn(ctx, side, w, read, took)
}

// Estimated bytes on the wire for what is read. The figures are those of MySQL's text protocol for
// large ids.
const (
	digestBytes = 40
	rowBytes    = 50
	countBytes  = 25
)
