package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"kith/storage"
	"kith/storage/sides"
)

// A slice is a batch of differing groups to be compared row by row at once, or one part of a group
// that is too large for that.
type slice struct {
	groups      []int
	part, parts uint64
}

// holds reports whether a row is in the slice, given that its group is.
func (s slice) holds(p storage.Pair) bool {
	if s.parts == 1 {
		return true
	}
	mixed := uint64(p.From)*0x9E3779B97F4A7C15 ^ uint64(p.To)*0xC2B2AE3D27D4EB4F ^ uint64(p.Item)*0xD6E8FEB86659FD93
	return mixed>>32%s.parts == s.part
}

// slices divides all differing groups of a summary into slices, each of at most limit rows. The
// same sums always give the same slices.
func (t *summary) slices(limit int64) []slice {
	var made []slice
	var rows int64
	open := false // whether the last slice takes more groups
	indexes, _ := t.differing()
	for _, i := range indexes {
		most, group := t.Sums[i].most(), t.groupAt(i)
		if most > limit {
			parts := uint64((most + limit - 1) / limit)
			for part := range parts {
				made = append(made, slice{[]int{group}, part, parts})
			}
			open = false
			continue
		}
		if !open || rows+most > limit {
			made = append(made, slice{parts: 1})
			open, rows = true, 0
		}
		last := &made[len(made)-1]
		last.groups = append(last.groups, group)
		rows += most
	}
	return made
}

// descend compares the rows of groups that differ.
func (f *full) descend(ctx context.Context) error {
	t := f.finest()
	made := t.slices(f.state.SliceRows)
	f.mu.Lock()
	f.slices = len(made)
	f.mu.Unlock()
	for i := f.state.NextSlice; i < len(made); i++ {
		suspects, read, err := f.compare(ctx, t.Cut, made[i])
		if err != nil {
			return err
		}
		c, err := f.confirm(ctx, suspects)
		if err != nil {
			return err
		}
		if err := f.mayEnd(c.found); err != nil {
			return err
		}
		if err := f.repair(ctx, &c); err != nil {
			return err
		}
		f.commit(ctx, func(s *state) {
			s.take(c, f.cfg.List)
			for shard, n := range f.missing(c.found) {
				s.Missing[shard] += n
			}
			s.Report.RowsRead += read
			s.Report.Bytes += read*rowBytes + 4*int64(len(suspects))*rowBytes
			s.NextSlice, s.Unsettled = i+1, nil
		})
	}
	return nil
}

// leastEnded is how many rows of a shard a repair may end whatever their share is, unless they are more than a tenth.
const leastEnded = 1000

// ErrRowsLost is the error of a repair that would end more rows than it may.
var ErrRowsLost = errors.New("has the shard lost rows, or is it being restored? Nothing more is repaired; with a higher --max-ended, the same command goes on from there")

// mayEnd returns an error if too many forward rows of a shard are missing, so that their inverse rows would be ended, those
// that were found before included.
func (f *full) mayEnd(found []Finding) error {
	if !f.cfg.Repair || f.cfg.MaxEnded >= 1 {
		return nil
	}
	for shard, missing := range f.missing(found) {
		missing += f.state.Missing[shard]
		rows := f.state.Truths[shard] + missing
		if most := max(min(leastEnded, rows/10), int64(f.cfg.MaxEnded*float64(rows))); missing > most {
			return fmt.Errorf("%d rows of %d of shard %d are missing, more than %d, and their other sides would be ended: %w", missing, rows, shard, most, ErrRowsLost)
		}
	}
	return nil
}

// missing counts the forward rows that are missing on each shard, the one that had their owners when it was digested: these may have moved.
func (f *full) missing(found []Finding) map[int]int64 {
	missing := make(map[int]int64)
	for _, d := range found {
		if d.Kind != Extra {
			continue
		}
		bucket := d.Pair().From.Bucket()
		at := slices.IndexFunc(f.state.Coarse.Digested[0], func(w walk) bool { return storage.ChooseBuckets(w.Buckets...).Has(bucket) })
		if at >= 0 {
			missing[f.state.Coarse.Digested[0][at].Shard]++
		}
	}
	return missing
}

// nextPair moves on to the next pair of tables.
func (f *full) nextPair(ctx context.Context) {
	t := f.finest()
	indexes, _ := t.differing()
	f.commit(ctx, func(s *state) {
		s.Report.Groups += t.Cut.Groups()
		s.Report.GroupsRead += len(indexes)
		f.behind += f.workOfPair()
		f.slices = 0
		s.Pair++
		s.beginPair()
	})
}

// A version is what an edge's row says besides its pair.
type version struct {
	time storage.Micros
	kind storage.EdgeType
}

// compare reads a slice on both sides, one after the other. It returns the pairs whose rows
// differed, by the key of the inverse side, and how many rows were read.
func (f *full) compare(ctx context.Context, cut sides.Cut, s slice) ([]Key, int64, error) {
	sides := f.sides()
	var mu sync.Mutex
	var read int64
	forward := make(map[storage.Pair]version)
	err := f.rows(ctx, cut, sides[0], s, func(e storage.Edge) {
		mu.Lock()
		defer mu.Unlock()
		read++
		forward[e.Pair()] = version{e.UpdateTime, e.Type}
	})
	if err != nil {
		return nil, 0, err
	}
	var suspects []storage.Pair
	err = f.rows(ctx, cut, sides[1], s, func(e storage.Edge) {
		mu.Lock()
		defer mu.Unlock()
		read++
		p := e.Pair()
		if v, ok := forward[p]; !ok || v != (version{e.UpdateTime, e.Type}) {
			suspects = append(suspects, p)
		}
		delete(forward, p)
	})
	if err != nil {
		return nil, 0, err
	}
	for p := range forward {
		suspects = append(suspects, p)
	}
	slices.SortFunc(suspects, sides[1].Compare)
	return KeysOf(sides[0], slices.Compact(suspects)), read, nil
}

// rows reads the rows of a slice on one side, from all shards. If a shard had to be asked again, or buckets
// have moved, a row may come twice, the second time as it is where it belongs.
func (f *full) rows(ctx context.Context, cut sides.Cut, side storage.Side, s slice, each func(storage.Edge)) error {
	groups := sides.Choose(cut.Groups(), s.groups)
	walks := newWalks()
	return f.everyWalk(ctx, &walks, func(ctx context.Context, w *walk) error {
		read := func(r sides.OwnerRange) error {
			return f.cfg.Store.GroupRows(ctx, side, w.Shard, r, cut, groups, func(e storage.Edge) {
				if !absent(e) && s.holds(e.Pair()) {
					each(e)
				}
			})
		}
		return f.goOn(ctx, side, w, read, func(upTo storage.UserID) error {
			w.UpTo = upTo
			return nil
		})
	})
}
