package storagetest_test

import (
	"context"
	"slices"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// pairsIn names the edges of a batch.
func pairsIn(edges []storage.Edge) []storage.Pair {
	pairs := make([]storage.Pair, len(edges))
	for i, e := range edges {
		pairs[i] = e.Pair()
	}
	return pairs
}

// blocksAreSecret does not report what has followed from blocks.
type blocksAreSecret struct{ *oracle.Store }

func (s blocksAreSecret) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
	results := s.Store.Apply(ctx, side, edges, rule)
	for i := range results {
		if side == storage.Inverse && results[i].Value.Changed {
			results[i].Value.Also = nil
		}
	}
	return results
}

// keepsRequests leaves requests pending, whichever user blocks.
type keepsRequests struct{ *oracle.Store }

func (s keepsRequests) restore(ctx context.Context, also []storage.Written) []storage.Written {
	return slices.DeleteFunc(slices.Clone(also), func(row storage.Written) bool {
		cancelled := row.Side == storage.Requests && row.Edge.Type == storage.Cancelled
		if cancelled {
			overwrite(ctx, s.Store, storage.Requests, row.Edge.Pair(), storage.Pending)
		}
		return cancelled
	})
}

// It does so for blocks of one's own.
type keepsOwnRequests struct{ keepsRequests }

func (s keepsOwnRequests) ChangeEdges(ctx context.Context, side storage.Side, from storage.UserID, changes edgeChanges, o options) changeds {
	if side != storage.Forward {
		return s.Store.ChangeEdges(ctx, side, from, changes, o)
	}
	results := s.Store.ChangeEdges(ctx, storage.Forward, from, changes, o)
	for i := range results {
		results[i].Value.Also = s.restore(ctx, results[i].Value.Also)
	}
	return results
}

// It does so for blocks that are applied.
type keepsBlockedRequests struct{ keepsRequests }

func (s keepsBlockedRequests) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
	results := s.Store.Apply(ctx, side, edges, rule)
	for i := range results {
		if side == storage.Inverse && results[i].Value.Changed {
			results[i].Value.Also = s.restore(ctx, results[i].Value.Also)
		}
	}
	return results
}

// endsAnything ends whatever exists, a follow or a block.
func endsAnything(ctx context.Context, s *oracle.Store, from storage.UserID, changes edgeChanges, o options) changeds {
	changes = slices.Clone(changes)
	for i := range changes {
		changes[i].Ends = rowOf(ctx, s, storage.Forward, storage.Pair{From: from, To: changes[i].To}).Type
	}
	return s.ChangeEdges(ctx, storage.Forward, from, changes, o)
}

// logsFollowsOnly has no requests in its log.
type logsFollowsOnly struct{ *oracle.Store }

func (s logsFollowsOnly) ReadLog(ctx context.Context, shard int, after int64, limit int) ([]storage.LogEntry, error) {
	entries, err := s.Store.ReadLog(ctx, shard, after, limit)
	return slices.DeleteFunc(entries, func(e storage.LogEntry) bool { return e.Side.Truth() == storage.Requests }), err
}

// bulkForgetsFriends does not count the friends that large batches make.
type bulkForgetsFriends struct{ *counting }

func (s bulkForgetsFriends) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
	var owners []storage.UserID
	for _, pair := range pairsIn(edges) {
		owners = append(owners, side.Owner(pair))
	}
	slices.Sort(owners)
	owners = slices.Compact(owners)
	before := storage.CountLookups.Read(ctx, s.Store, owners...)
	results := s.Store.Apply(ctx, side, edges, rule)
	for i, now := range storage.CountLookups.Read(ctx, s.Store, owners...) {
		if len(edges) >= 64 {
			s.add(owners[i], before[i].Value.Friend-now.Value.Friend)
		}
	}
	return results
}
