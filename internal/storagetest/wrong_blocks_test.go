package storagetest_test

import (
	"context"
	"errors"
	"slices"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// What Apply returns, as a short name.
type applieds = []storage.Result[storage.Applied]

// pairsIn names the edges of a batch.
func pairsIn(edges []storage.Edge) []storage.Pair {
	pairs := make([]storage.Pair, len(edges))
	for i, e := range edges {
		pairs[i] = e.Pair()
	}
	return pairs
}

// rowOf reads one row of a store.
func rowOf(ctx context.Context, s *oracle.Store, side storage.Side, pair storage.Pair) storage.Edge {
	return storage.EdgeLookups[side].Read(ctx, s, pair)[0].Value
}

// overwrite replaces the present row, whatever its time is.
func overwrite(ctx context.Context, s *oracle.Store, side storage.Side, pair storage.Pair, kind storage.EdgeType) storage.Edge {
	row := storage.Edge{From: pair.From, To: pair.To, Type: kind, UpdateTime: rowOf(ctx, s, side, pair).UpdateTime + 1}
	s.Apply(ctx, side, []storage.Edge{row}, storage.IfNewer)
	return row
}

// backOf is what the owner of an edge does towards its peer.
func backOf(side storage.Side, e storage.Edge) storage.Pair {
	return storage.Pair{From: side.Owner(e.Pair()), To: side.Peer(e.Pair())}
}

// blockersFollow follows the users whom it blocks.
type blockersFollow struct{ *oracle.Store }

func (s blockersFollow) ChangeEdges(ctx context.Context, side storage.Side, from storage.UserID, changes edgeChanges, o options) changeds {
	if side != storage.Forward {
		return s.Store.ChangeEdges(ctx, side, from, changes, o)
	}
	results := s.Store.ChangeEdges(ctx, storage.Forward, from, changes, o)
	for i, change := range changes {
		pair := storage.Pair{From: from, To: change.To}
		if errors.Is(results[i].Err, storage.ErrForbidden) && rowOf(ctx, s.Store, storage.Forward, pair).Type == storage.Blocking {
			row := overwrite(ctx, s.Store, storage.Forward, pair, storage.Following)
			results[i] = storage.Result[storage.Changed]{Value: storage.Changed{Row: row, Changed: true}, Found: true}
		}
	}
	return results
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

// reportedOnce reports nothing a second time.
type reportedOnce struct{ *oracle.Store }

func (s reportedOnce) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
	results := s.Store.Apply(ctx, side, edges, rule)
	for i := range results {
		if !results[i].Value.Changed {
			results[i].Value.Also = nil
		}
	}
	return results
}

// remoteUndo ends the follow back whenever it receives a block, even one that is out of date.
type remoteUndo struct{ *oracle.Store }

func (s remoteUndo) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
	results := s.Store.Apply(ctx, side, edges, rule)
	for i, e := range edges {
		if back := backOf(side, e); side == storage.Inverse && e.Type == storage.Blocking && !results[i].Value.Changed &&
			rowOf(ctx, s.Store, storage.Forward, back).Type == storage.Following {
			overwrite(ctx, s.Store, storage.Forward, back, storage.None)
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
type endsAnything struct{ *oracle.Store }

func (s endsAnything) ChangeEdges(ctx context.Context, side storage.Side, from storage.UserID, changes edgeChanges, o options) changeds {
	if side != storage.Forward {
		return s.Store.ChangeEdges(ctx, side, from, changes, o)
	}
	changes = slices.Clone(changes)
	for i := range changes {
		changes[i].Ends = rowOf(ctx, s.Store, storage.Forward, storage.Pair{From: from, To: changes[i].To}).Type
	}
	return s.Store.ChangeEdges(ctx, storage.Forward, from, changes, o)
}

// An unfollow ends blocks.
type unfollowEndsBlocks struct{ *oracle.Store }

func (s unfollowEndsBlocks) ChangeEdges(ctx context.Context, side storage.Side, from storage.UserID, changes edgeChanges, o options) changeds {
	if side != storage.Forward {
		return s.Store.ChangeEdges(ctx, side, from, changes, o)
	}
	for i := range changes {
		if changes[i].Ends != storage.Blocking {
			return endsAnything(s).ChangeEdges(ctx, storage.Forward, from, changes, o)
		}
	}
	return s.Store.ChangeEdges(ctx, storage.Forward, from, changes, o)
}

// An unblock ends follows.
type unblockEndsFollows struct{ *oracle.Store }

func (s unblockEndsFollows) ChangeEdges(ctx context.Context, side storage.Side, from storage.UserID, changes edgeChanges, o options) changeds {
	if side != storage.Forward {
		return s.Store.ChangeEdges(ctx, side, from, changes, o)
	}
	for i := range changes {
		if changes[i].Ends == storage.Blocking {
			return endsAnything(s).ChangeEdges(ctx, storage.Forward, from, changes, o)
		}
	}
	return s.Store.ChangeEdges(ctx, storage.Forward, from, changes, o)
}

// acceptsAnything accepts also what does not wait.
type acceptsAnything struct{ *oracle.Store }

func (s acceptsAnything) ChangeEdges(ctx context.Context, side storage.Side, from storage.UserID, changes edgeChanges, o options) changeds {
	if side != storage.Forward {
		return s.Store.ChangeEdges(ctx, side, from, changes, o)
	}
	changes = slices.Clone(changes)
	for i := range changes {
		if changes[i].Type == storage.Following {
			changes[i].Ends = storage.None
		}
	}
	return s.Store.ChangeEdges(ctx, storage.Forward, from, changes, o)
}

// requestsUnlimited forgets the limit if one of the changes is a request for a follow.
type requestsUnlimited struct{ *oracle.Store }

func (s requestsUnlimited) ChangeEdges(ctx context.Context, side storage.Side, from storage.UserID, changes edgeChanges, o options) changeds {
	if side != storage.Forward {
		return s.Store.ChangeEdges(ctx, side, from, changes, o)
	}
	if slices.ContainsFunc(changes, func(ch storage.EdgeChange) bool { return ch.Type == storage.Requested }) {
		o.MaxFollowing = 0
	}
	return s.Store.ChangeEdges(ctx, storage.Forward, from, changes, o)
}

// importsAnything writes forward follows also if the followed user blocks the follower, by
// forgetting the block.
type importsAnything struct{ *oracle.Store }

func (s importsAnything) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
	results := s.Store.Apply(ctx, side, edges, rule)
	for i, e := range edges {
		there := rowOf(ctx, s.Store, side, e.Pair())
		if side == storage.Forward && e.Type == storage.Following && !results[i].Value.Changed && e.UpdateTime > there.UpdateTime {
			overwrite(ctx, s.Store, storage.Inverse, storage.Pair{From: e.To, To: e.From}, storage.None)
			results[i] = s.Store.Apply(ctx, side, []storage.Edge{e}, rule)[0]
		}
	}
	return results
}

// inlineStopsShort writes the other side of a block, but not what follows from it.
type inlineStopsShort struct{ *oracle.Store }

func (s inlineStopsShort) ChangeEdges(ctx context.Context, side storage.Side, from storage.UserID, changes edgeChanges, o options) changeds {
	if side != storage.Forward {
		return s.Store.ChangeEdges(ctx, side, from, changes, o)
	}
	results := s.Store.ChangeEdges(ctx, storage.Forward, from, changes, o)
	for i := range results {
		changed := &results[i].Value
		changed.Also = slices.DeleteFunc(slices.Clone(changed.Also), func(row storage.Written) bool { return row.Edge.From != from })
	}
	return results
}

// logsFollowsOnly has no requests in its log.
type logsFollowsOnly struct{ *oracle.Store }

func (s logsFollowsOnly) ReadLog(ctx context.Context, shard int, after int64, limit int) ([]storage.LogEntry, error) {
	entries, err := s.Store.ReadLog(ctx, shard, after, limit)
	return slices.DeleteFunc(entries, func(e storage.LogEntry) bool { return e.Side.Truth() == storage.Requests }), err
}

// oneTypeOnly lists follows and pending requests, whatever it is asked for.
type oneTypeOnly struct{ *oracle.Store }

func (s oneTypeOnly) pages(ctx context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	queries = slices.Clone(queries)
	for i := range queries {
		queries[i].Type = 0
	}
	return storage.PageLookups[side].Read(ctx, s.Store, queries...)
}

func (s oneTypeOnly) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.PageLookups.Instead(ctx, b, s.pages)
	s.Store.Bundle(ctx, b)
}

// friendsByMinimum counts as friends as many as there could be.
type friendsByMinimum struct{ *oracle.Store }

func (s friendsByMinimum) counts(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Counts] {
	results := storage.CountLookups.Read(ctx, s.Store, ids...)
	for i := range results {
		results[i].Value.Friend = min(results[i].Value.Following, results[i].Value.Follower)
	}
	return results
}

func (s friendsByMinimum) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.CountLookups.Instead(ctx, b, s.counts)
	s.Store.Bundle(ctx, b)
}

// bulkForgetsFriends does not count the friends that large batches make.
type bulkForgetsFriends struct {
	*oracle.Store
	extra map[storage.UserID]int64
}

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
			s.extra[owners[i]] += now.Value.Friend - before[i].Value.Friend
		}
	}
	return results
}

func (s bulkForgetsFriends) counts(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Counts] {
	results := storage.CountLookups.Read(ctx, s.Store, ids...)
	for i, id := range ids {
		results[i].Value.Friend -= s.extra[id]
	}
	return results
}

func (s bulkForgetsFriends) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.CountLookups.Instead(ctx, b, s.counts)
	s.Store.Bundle(ctx, b)
}

// pastIsSilent does not report what has followed from an edge that a newer edge has replaced.
type pastIsSilent struct{ *oracle.Store }

func (s pastIsSilent) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
	results := s.Store.Apply(ctx, side, edges, rule)
	for i, e := range edges {
		if results[i].Value.Row.UpdateTime > e.UpdateTime {
			results[i].Value.Also = nil
		}
	}
	return results
}
