package storagetest_test

import (
	"context"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

type ownersTwice struct{ *oracle.Store }

func (s ownersTwice) NextOwner(ctx context.Context, shard int, after storage.UserID, users int) (storage.UserID, bool, error) {
	return s.Store.NextOwner(ctx, shard, after-1, users)
}

type digestsOfAllClasses struct{ *oracle.Store }

func (s digestsOfAllClasses) Digests(ctx context.Context, side storage.Side, shard int, owners storage.OwnerRange, cut storage.Cut, classes storage.Choice) (map[int]storage.Digest, error) {
	return s.Store.Digests(ctx, side, shard, owners, cut, nil)
}

type countsEveryTombstone struct{ *oracle.Store }

func (s countsEveryTombstone) Digests(ctx context.Context, side storage.Side, shard int, owners storage.OwnerRange, cut storage.Cut, classes storage.Choice) (map[int]storage.Digest, error) {
	digests, err := s.Store.Digests(ctx, side, shard, owners, cut, classes)
	snapshot := s.Snapshot()
	for _, e := range [][]storage.Edge{snapshot.Forward, snapshot.Inverse, snapshot.Requests, snapshot.Inbox, snapshot.Favorites, snapshot.FavoriteInbox, snapshot.Relations, snapshot.RelationInbox}[side] {
		if e.Type == storage.None && e.UpdateTime == 0 {
			g := cut.Group(e.Pair())
			digests[g] = digests[g].Plus(storage.Digest{Rows: 1, Mixed: e.Mix()})
		}
	}
	return digests, err
}

type ownersAreOthers struct{ *oracle.Store }

func (s ownersAreOthers) OwnerDigests(ctx context.Context, side storage.Side, shard int, owners storage.OwnerRange) (map[storage.UserID]storage.Digest, error) {
	digests, err := s.Store.OwnerDigests(ctx, side, shard, owners)
	for owner, d := range digests {
		delete(digests, owner)
		digests[owner+1] = digests[owner+1].Plus(d)
		break
	}
	return digests, err
}

type rangesBeginEarly struct{ *oracle.Store }

func (s rangesBeginEarly) GroupRows(ctx context.Context, side storage.Side, shard int, owners storage.OwnerRange, cut storage.Cut, groups storage.Choice, row func(storage.Edge)) error {
	owners.After--
	return s.Store.GroupRows(ctx, side, shard, owners, cut, groups, row)
}

type rowsOfAllGroups struct{ *oracle.Store }

func (s rowsOfAllGroups) GroupRows(ctx context.Context, side storage.Side, shard int, owners storage.OwnerRange, cut storage.Cut, groups storage.Choice, row func(storage.Edge)) error {
	all := make(storage.Choice, len(groups))
	for i := range all {
		all[i] = '1'
	}
	return s.Store.GroupRows(ctx, side, shard, owners, cut, all, row)
}

type blocksAreForbidden struct{ *oracle.Store }

func (s blocksAreForbidden) ForbiddenFollows(ctx context.Context, shard int, owners storage.OwnerRange) ([]storage.Pair, error) {
	pairs, err := s.Store.ForbiddenFollows(ctx, shard, owners)
	for _, e := range s.Snapshot().Inverse {
		if e.Type == storage.Blocking {
			pairs = append(pairs, e.Pair())
		}
	}
	return pairs, err
}

// changedRepairs changes repairs before they are judged.
type changedRepairs struct {
	*oracle.Store
	change func(*oracle.Store, *storage.Repair)
}

func (s changedRepairs) RepairInverse(ctx context.Context, repairs []storage.Repair) []storage.Result[storage.Changed] {
	changed := make([]storage.Repair, len(repairs))
	for i, r := range repairs {
		s.change(s.Store, &r)
		changed[i] = r
	}
	return s.Store.RepairInverse(ctx, changed)
}

// observesItself takes the present row for the observed one.
func observesItself(s *oracle.Store, r *storage.Repair) {
	r.Observed = storage.EdgeLookups[r.Side.Replica()].Read(context.Background(), s, r.Pair)[0].Value
}

// onlyNewer keeps a row that is newer than the one that is wanted.
func onlyNewer(_ *oracle.Store, r *storage.Repair) {
	if r.Observed.UpdateTime > r.Want.UpdateTime && r.Want.UpdateTime != 0 {
		r.Want = r.Observed
	}
}

// onlyRows repairs only rows that exist.
func onlyRows(_ *oracle.Store, r *storage.Repair) {
	if r.Observed == (storage.Edge{}) {
		r.Want.Type, r.Want.UpdateTime = storage.None, 0
	}
}

// newTombstones gives tombstones the time of the row that they replace.
func newTombstones(_ *oracle.Store, r *storage.Repair) {
	if r.Want.UpdateTime == 0 {
		r.Want.UpdateTime = r.Observed.UpdateTime + 1
	}
}

func alwaysFollows(_ *oracle.Store, r *storage.Repair) { r.Side = storage.Inverse }

type secretRepairs struct{ *oracle.Store }

func (s secretRepairs) RepairInverse(ctx context.Context, repairs []storage.Repair) []storage.Result[storage.Changed] {
	results := s.Store.RepairInverse(ctx, repairs)
	for i := range results {
		results[i].Value.Also = nil
	}
	return results
}

type allOrNothing struct{ *oracle.Store }

func (s allOrNothing) RepairInverse(ctx context.Context, repairs []storage.Repair) []storage.Result[storage.Changed] {
	results := s.Store.RepairInverse(ctx, repairs)
	for i := range results {
		results[i].Value.Changed = results[i].Value.Changed && results[0].Value.Changed
	}
	return results
}

// recountsRaiseVersions raises versions even if the counts are right.
type recountsRaiseVersions struct{ *oracle.Store }

func (s recountsRaiseVersions) RecountFriends(ctx context.Context, users []storage.UserID) []storage.Result[bool] {
	results := s.Store.RecountFriends(ctx, users)
	s.Apply(ctx, storage.Forward, []storage.Edge{{From: users[0], To: users[0] - 1, Type: storage.None, UpdateTime: 1}}, storage.IfNewer)
	return results
}
