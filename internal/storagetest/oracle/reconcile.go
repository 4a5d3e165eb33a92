package oracle

import (
	"context"
	"maps"
	"math"
	"slices"

	"kith/storage"
	"kith/storage/sides"
)

var (
	_ sides.Comparer = (*Store)(nil)
	_ sides.Repairer = (*Store)(nil)
)

// Served implements [sides.Comparer].
func (s *Store) Served(ctx context.Context, shard int) (storage.Served, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	now, buckets := s.placed.Now(), sides.Choose(storage.Buckets, nil)
	for b := range buckets {
		if owner, _ := now.Owner(b); owner == shard {
			buckets[b] = '1'
		}
	}
	return storage.Served{Epoch: now.Epoch(shard) + 1, Life: s.lives[shard], Buckets: buckets}, ctx.Err()
}

// isOf reports whether a range has an owner.
func isOf(r sides.OwnerRange, owner storage.UserID) bool {
	return r.After < owner && owner <= r.UpTo && (r.Buckets == nil || r.Buckets.Has(owner.Bucket()))
}

// NextOwner implements [sides.Comparer].
func (s *Store) NextOwner(ctx context.Context, shard int, after storage.UserID, users int) (storage.UserID, bool, error) {
	if err := ctx.Err(); err != nil {
		return 0, false, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	id, ok := behind(slices.Sorted(maps.Keys(on(s, shard, s.counts, itself))), after, users)
	return id, ok, nil
}

// behind returns the n-th of ascending ids that are greater than another.
func behind(ids []storage.UserID, after storage.UserID, n int) (storage.UserID, bool) {
	first := slices.IndexFunc(ids, func(id storage.UserID) bool { return id > after })
	if first < 0 || first+n > len(ids) {
		return 0, false
	}
	return ids[first+n-1], true
}

// OwnerOfRow implements [sides.Comparer].
func (s *Store) OwnerOfRow(ctx context.Context, side storage.Side, shard int, after storage.UserID, rows int) (storage.UserID, bool, error) {
	if err := ctx.Err(); err != nil {
		return 0, false, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	owned := s.owned(shard, side, sides.OwnerRange{After: after, UpTo: math.MaxInt64})
	owners := storage.Each(owned, func(e storage.Edge) storage.UserID { return side.Owner(e.Pair()) })
	slices.Sort(owners)
	id, ok := behind(owners, after, rows)
	return id, ok, nil
}

// Digests implements [sides.Comparer].
func (s *Store) Digests(ctx context.Context, side storage.Side, shard int, owners sides.OwnerRange, cut sides.Cut, classes storage.Choice) (map[int]sides.Digest, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	digests := make(map[int]sides.Digest)
	for _, e := range s.owned(shard, side, owners) {
		if e.Type == storage.None && e.UpdateTime == 0 {
			continue
		}
		g := cut.Group(e.Pair())
		if classes == nil || classes.Has(g/cut.Parts) {
			digests[g] = digests[g].Plus(sides.Digest{Rows: 1, Mixed: e.Mix()})
		}
	}
	return digests, nil
}

// OwnerDigests implements [sides.Comparer].
func (s *Store) OwnerDigests(ctx context.Context, side storage.Side, shard int, owners sides.OwnerRange) (map[storage.UserID]sides.Digest, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	digests := make(map[storage.UserID]sides.Digest)
	for _, e := range s.owned(shard, side, owners) {
		if owner := side.Owner(e.Pair()); e.Type != storage.None {
			digests[owner] = digests[owner].Plus(sides.Digest{Rows: 1, Mixed: e.Mix()})
		}
	}
	return digests, nil
}

// owned returns all rows of some owners of a shard on a side.
func (s *Store) owned(shard int, side storage.Side, owners sides.OwnerRange) []storage.Edge {
	var rows []storage.Edge
	for owner, peers := range on(s, shard, s.tables[side], itself) {
		if isOf(owners, owner) {
			rows = slices.AppendSeq(rows, maps.Values(peers))
		}
	}
	return rows
}

// GroupRows implements [sides.Comparer].
func (s *Store) GroupRows(ctx context.Context, side storage.Side, shard int, owners sides.OwnerRange, cut sides.Cut, groups storage.Choice, row func(storage.Edge)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.RLock()
	rows := s.owned(shard, side, owners)
	s.mu.RUnlock()
	for _, e := range rows {
		if groups.Has(cut.Group(e.Pair())) {
			row(e)
		}
	}
	return nil
}

// WrongCounts implements [sides.Comparer].
func (s *Store) WrongCounts(ctx context.Context, side storage.Side, shard int, owners sides.OwnerRange) ([]sides.WrongCount, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	are := make(map[storage.UserID]int64)
	for id := range on(s, shard, s.counts, itself) {
		if isOf(owners, id) {
			are[id] = 0
		}
	}
	for _, e := range s.owned(shard, side, owners) {
		are[side.Owner(e.Pair())] += s.counted(side, e)
	}
	var wrong []sides.WrongCount
	for id, n := range are {
		if have := s.counts[id].Of(side); have != n {
			wrong = append(wrong, sides.WrongCount{User: id, Have: have, Are: n})
		}
	}
	return wrong, nil
}

// RepairInverse implements [sides.Repairer].
func (s *Store) RepairInverse(ctx context.Context, repairs []sides.Repair) []storage.Result[storage.Changed] {
	results := make([]storage.Result[storage.Changed], len(repairs))
	if err := ctx.Err(); err != nil {
		return refuse(results, err)
	}
	defer s.write(ctx)()
	j := s.judge(storage.Each(repairs, func(r sides.Repair) storage.Pair { return r.Pair })...)
	for i, r := range repairs {
		results[i] = storage.Result[storage.Changed]{Value: j.Repair(r), Found: true}
	}
	s.save(j)
	return results
}

// Recount implements [sides.Repairer].
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
			n += s.counted(side, e)
		}
		counts := s.counts[id]
		results[i] = storage.Result[bool]{Value: true, Found: true}
		if counts.Of(side) == n {
			continue
		}
		switch side {
		case storage.Inverse:
			counts.Follower = n
		case storage.Favorites:
			counts.Favorites = n
		case storage.FavoriteInbox:
			counts.Favorited = n
		default:
			counts.Following = n
		}
		counts.Version++
		s.counts[id] = counts
	}
	return results
}
