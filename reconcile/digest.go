package reconcile

import (
	"context"

	"kith/storage"
)

// A sum is the difference between the digests of a group's two sides, as far as they have been
// read, with the number of rows of each.
type sum struct {
	Rows  [2]int64 // forward and inverse
	Mixed uint64
}

func (s *sum) add(half int, d storage.Digest) {
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
	var digests map[int]storage.Digest
	read := func(r storage.OwnerRange) (err error) {
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
	return f.goOn(ctx, w, read, took)
}

// Estimated bytes on the wire for what is read. The figures are those of MySQL's text protocol for
// large ids.
const (
	digestBytes = 40
	rowBytes    = 50
	countBytes  = 25
)
