package reconcile

import (
	"context"

	"kith/storage"
	"kith/storage/shard"
)

// A sum is the difference of the digests of a group's two sides, as far as they have
// been read, with the rows of each.
type sum struct {
	Rows [2]int64 // by storage.Side
	A, B uint64   // forward less inverse; they wrap around
}

func (s *sum) add(side storage.Side, d storage.Digest) {
	s.Rows[side] += d.Rows
	if side == storage.Inverse {
		d.SumA, d.SumB = -d.SumA, -d.SumB
	}
	s.A += d.SumA
	s.B += d.SumB
}

func (s *sum) differs() bool {
	return s.Rows[storage.Forward] != s.Rows[storage.Inverse] || s.A != 0 || s.B != 0
}

// most is how many rows the group has on the side that has more.
func (s *sum) most() int64 { return max(s.Rows[0], s.Rows[1]) }

// A sum lies at the index of its group: by bucket, then by shard of To.
func (f *full) indexOf(g storage.Group) int { return g.Bucket*f.shards + g.ToShard }
func (f *full) groupAt(index int) (g storage.Group) {
	return storage.Group{Bucket: index / f.shards, ToShard: index % f.shards}
}

func groups(shards int) int { return shard.Buckets * shards }

// digest adds up what one shard has on both sides.
func (f *full) digest(ctx context.Context, shard int) error {
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		var digests map[storage.Group]storage.Digest
		read := func(r storage.OwnerRange) (err error) {
			digests, err = f.cfg.Store.Digests(ctx, side, shard, r)
			return err
		}
		took := func(upTo storage.UserID) error {
			f.commit(ctx, func(s *state) {
				for g, d := range digests {
					s.Sums[f.indexOf(g)].add(side, d)
					s.Report.Rows[side] += d.Rows
				}
				s.Report.Bytes += int64(len(digests)) * digestBytes
				s.Digested[side][shard] = upTo
			})
			return nil
		}
		err := f.walk(ctx, shard, f.state.Digested[side][shard], read, took)
		if err != nil {
			return err
		}
	}
	return nil
}

// What is read takes about so many bytes on the wire. The figures are those of
// MySQL's text protocol for large ids.
const (
	digestBytes = 60
	rowBytes    = 50
	countBytes  = 25
)
