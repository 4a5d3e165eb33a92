package memory

import (
	"context"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"

	"kith/storage"
	"kith/storage/shard"
)

var (
	_ storage.Comparer = (*Store)(nil)
	_ storage.Repairer = (*Store)(nil)
)

// Shards implements [storage.Comparer].
func (s *Store) Shards() int { return 1 }

// NextOwner implements [storage.Comparer].
func (s *Store) NextOwner(ctx context.Context, _ int, after storage.UserID, users int) (storage.UserID, bool, error) {
	if err := ctx.Err(); err != nil {
		return 0, false, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	ids := slices.Sorted(maps.Keys(s.counts))
	first, found := slices.BinarySearch(ids, after)
	if found {
		first++
	}
	if first+users > len(ids) {
		return 0, false, nil
	}
	return ids[first+users-1], true, nil
}

// Digests implements [storage.Comparer].
func (s *Store) Digests(ctx context.Context, side storage.Side, _ int, owners storage.OwnerRange) (map[storage.Group]storage.Digest, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	digests := make(map[storage.Group]storage.Digest)
	for _, e := range s.owned(side, owners) {
		if e.Type == storage.None && e.UpdateTime == 0 {
			continue
		}
		g := groupOf(e)
		digests[g] = digests[g].Plus(storage.Digest{
			Rows: 1,
			SumA: checksum(e.From, e.To, e.Type, e.UpdateTime),
			SumB: checksum(e.UpdateTime, e.Type, e.To, e.From),
		})
	}
	return digests, nil
}

func groupOf(e storage.Edge) storage.Group {
	return storage.Group{Bucket: shard.BucketOf(e.From)}
}

func checksum(fields ...any) uint64 {
	return uint64(crc32.ChecksumIEEE(fmt.Appendf(nil, "%d,%d,%d,%d", fields...)))
}

// owned returns all rows of some owners on a side.
func (s *Store) owned(side storage.Side, owners storage.OwnerRange) []storage.Edge {
	var rows []storage.Edge
	for owner, peers := range s.tables[side] {
		if owners.After < owner && owner <= owners.UpTo {
			rows = slices.AppendSeq(rows, maps.Values(peers))
		}
	}
	return rows
}

// GroupRows implements [storage.Comparer].
func (s *Store) GroupRows(ctx context.Context, side storage.Side, _ int, owners storage.OwnerRange, groups map[storage.Group]bool, row func(storage.Edge)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.RLock()
	rows := s.owned(side, owners)
	s.mu.RUnlock()
	for _, e := range rows {
		if groups[groupOf(e)] {
			row(e)
		}
	}
	return nil
}

// WrongCounts implements [storage.Comparer].
func (s *Store) WrongCounts(ctx context.Context, side storage.Side, _ int, owners storage.OwnerRange) ([]storage.WrongCount, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	are := make(map[storage.UserID]int64)
	for id := range s.counts {
		if owners.After < id && id <= owners.UpTo {
			are[id] = 0
		}
	}
	for _, e := range s.owned(side, owners) {
		are[side.Owner(e.Pair())] += counted(e)
	}
	var wrong []storage.WrongCount
	for id, n := range are {
		if have := s.counts[id].Of(side); have != n {
			wrong = append(wrong, storage.WrongCount{User: id, Have: have, Are: n})
		}
	}
	return wrong, nil
}

// RepairInverse implements [storage.Repairer].
func (s *Store) RepairInverse(ctx context.Context, repairs []storage.Repair) []storage.Result[bool] {
	results := make([]storage.Result[bool], len(repairs))
	if err := ctx.Err(); err != nil {
		return refuse(results, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.writer()
	for i, r := range repairs {
		old, _ := s.edge(storage.Inverse, r.Pair)
		same := old.Type == r.Observed.Type && old.UpdateTime == r.Observed.UpdateTime
		want := storage.Edge{From: r.Pair.From, To: r.Pair.To, Type: r.Want.Type, UpdateTime: r.Want.UpdateTime}
		if same && (want.Type != old.Type || want.UpdateTime != old.UpdateTime) {
			w.put(storage.Inverse, want)
		}
		results[i] = storage.Result[bool]{Value: same, Found: true}
	}
	w.commit()
	return results
}

// Recount implements [storage.Repairer].
func (s *Store) Recount(ctx context.Context, side storage.Side, users []storage.UserID) []storage.Result[bool] {
	results := make([]storage.Result[bool], len(users))
	if err := ctx.Err(); err != nil {
		return refuse(results, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, id := range users {
		var n int64
		for _, e := range s.tables[side][id] {
			n += counted(e)
		}
		counts := s.counts[id]
		results[i] = storage.Result[bool]{Value: true, Found: true}
		if counts.Of(side) == n {
			continue
		}
		if side == storage.Inverse {
			counts.Follower = n
		} else {
			counts.Following = n
		}
		counts.Version++
		s.counts[id] = counts
	}
	return results
}
