package reconcile

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"kith/storage"
)

// A slice is as many groups that differ as are compared row by row at once, or one
// part of a group that is too large for that.
type slice struct {
	groups      map[storage.Group]bool
	part, parts uint64
}

// holds tells whether a row is in the slice, given that its group is.
func (s slice) holds(p storage.Pair) bool {
	if s.parts == 1 {
		return true
	}
	mixed := uint64(p.From)*0x9E3779B97F4A7C15 ^ uint64(p.To)*0xC2B2AE3D27D4EB4F
	return mixed>>32%s.parts == s.part
}

// cut makes slices of all groups that differ. Of the same sums it makes the same.
func (f *full) cut() []slice {
	var cut []slice
	var rows int64
	open := false // whether the last slice takes more groups
	limit := f.state.SliceRows
	for i := range f.state.Sums {
		s := &f.state.Sums[i]
		if !s.differs() {
			continue
		}
		group := f.groupAt(i)
		if s.most() > limit {
			parts := uint64((s.most() + limit - 1) / limit)
			for part := range parts {
				cut = append(cut, slice{map[storage.Group]bool{group: true}, part, parts})
			}
			open = false
			continue
		}
		if !open || rows+s.most() > limit {
			cut = append(cut, slice{groups: make(map[storage.Group]bool), parts: 1})
			open, rows = true, 0
		}
		cut[len(cut)-1].groups[group] = true
		rows += s.most()
	}
	return cut
}

// descend compares the rows of groups that differ.
func (f *full) descend(ctx context.Context) error {
	cut := f.cut()
	f.mu.Lock()
	f.slices = len(cut)
	f.state.Report.GroupsRead = f.differing()
	f.mu.Unlock()
	for i := f.state.NextSlice; i < len(cut); i++ {
		suspects, read, err := f.compare(ctx, cut[i])
		if err != nil {
			return err
		}
		c, err := f.confirm(ctx, suspects)
		if err != nil {
			return err
		}
		if err := f.mend(ctx, &c); err != nil {
			return err
		}
		f.commit(ctx, func(s *state) {
			s.take(c, f.cfg.List)
			s.Report.RowsRead += read
			s.Report.Bytes += read*rowBytes + 4*int64(len(suspects))*rowBytes
			s.NextSlice = i + 1
		})
	}
	return nil
}

func (f *full) differing() int {
	n := 0
	for i := range f.state.Sums {
		if f.state.Sums[i].differs() {
			n++
		}
	}
	return n
}

// A version is what an edge's row says besides its pair.
type version struct {
	time storage.Micros
	kind storage.EdgeType
}

// compare reads a slice on both sides, one after the other, and returns the pairs
// whose rows differed, by the key of the inverse side, with how many rows were read.
func (f *full) compare(ctx context.Context, s slice) ([]storage.Pair, int64, error) {
	var mu sync.Mutex
	var read int64
	forward := make(map[storage.Pair]version)
	err := f.rows(ctx, storage.Forward, s, func(e storage.Edge) {
		mu.Lock()
		defer mu.Unlock()
		read++
		forward[e.Pair()] = version{e.UpdateTime, e.Type}
	})
	if err != nil {
		return nil, 0, err
	}
	var suspects []storage.Pair
	err = f.rows(ctx, storage.Inverse, s, func(e storage.Edge) {
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
	slices.SortFunc(suspects, func(a, b storage.Pair) int {
		return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From))
	})
	return slices.Compact(suspects), read, nil
}

// rows reads the rows of a slice on one side, from all shards that have any. A row
// may come twice if a shard had to be asked again.
func (f *full) rows(ctx context.Context, side storage.Side, s slice, each func(storage.Edge)) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(shardsAtOnce)
	for shard, groups := range f.byShard(side, s) {
		g.Go(func() error {
			read := func(r storage.OwnerRange) error {
				return f.cfg.Store.GroupRows(ctx, side, shard, r, groups, func(e storage.Edge) {
					if !absent(e) && s.holds(e.Pair()) {
						each(e)
					}
				})
			}
			return f.walk(ctx, shard, 0, read, func(storage.UserID) error { return nil })
		})
	}
	return g.Wait()
}

// byShard sorts a slice's groups by the shard that has their rows on a side.
func (f *full) byShard(side storage.Side, s slice) map[int]map[storage.Group]bool {
	sorted := make(map[int]map[storage.Group]bool)
	for g := range s.groups {
		shard := g.ToShard
		if side == storage.Forward {
			shard = f.shardOf[g.Bucket]
		}
		if sorted[shard] == nil {
			sorted[shard] = make(map[storage.Group]bool)
		}
		sorted[shard][g] = true
	}
	return sorted
}
