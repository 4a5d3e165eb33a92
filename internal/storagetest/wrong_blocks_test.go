package storagetest_test

import (
	"context"
	"slices"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes about blocks, and about requests to follow.
var blockMistakes = []mistake{
	{"what follows from a block is not reported", blocksAreSecret, "blocking/AnAppliedBlockEndsTheFollowBack", historiesToo},
	{"what followed is reported once", applies(func(ctx context.Context, s *oracle.Store, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
		results := s.Apply(ctx, side, edges, rule)
		for i := range results {
			if !results[i].Value.Changed {
				results[i].Value.Also = nil
			}
		}
		return results
	}), "blocking/ARedeliveredBlockReportsAgain", historiesToo},
	{"what is past reports nothing", applies(func(ctx context.Context, s *oracle.Store, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
		// It does not report what has followed from an edge that a newer edge has replaced.
		results := s.Apply(ctx, side, edges, rule)
		for i, e := range edges {
			if results[i].Value.Row.UpdateTime > e.UpdateTime {
				results[i].Value.Also = nil
			}
		}
		return results
	}), "blocking/ABlockThatIsPastReportsWhatItHasEnded", promiseOnly},
	{"late blocks end follows", applies(func(ctx context.Context, s *oracle.Store, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
		// It ends the follow back whenever it receives a block, even one that is out of date.
		results := s.Apply(ctx, side, edges, rule)
		for i, e := range edges {
			if back := backOf(side, e); side == storage.Inverse && e.Type == storage.Blocking && !results[i].Value.Changed &&
				rowOf(ctx, s, storage.Forward, back).Type == storage.Following {
				overwrite(ctx, s, storage.Forward, back, storage.None)
			}
		}
		return results
	}), "blocking/ALateBlockDoesNothing", historiesToo},
	{"own blocks keep requests", follows(func(ctx context.Context, s *oracle.Store, from storage.UserID, changes edgeChanges, o options) changeds {
		results := s.ChangeEdges(ctx, storage.Forward, from, changes, o)
		for i := range results {
			keepRequests(ctx, s, &results[i].Value)
		}
		return results
	}), "blocking/AnOwnBlockCancelsThePendingRequest", historiesToo},
	{"applied blocks keep requests", applies(func(ctx context.Context, s *oracle.Store, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
		results := s.Apply(ctx, side, edges, rule)
		for i := range results {
			if side == storage.Inverse && results[i].Value.Changed {
				keepRequests(ctx, s, &results[i].Value)
			}
		}
		return results
	}), "blocking/AnAppliedBlockCancelsThePendingRequest", historiesToo},
	{"an unfollow ends a block", follows(func(ctx context.Context, s *oracle.Store, from storage.UserID, changes edgeChanges, o options) changeds {
		for i := range changes {
			if changes[i].Ends != storage.Blocking {
				return endsAnything(ctx, s, from, changes, o)
			}
		}
		return s.ChangeEdges(ctx, storage.Forward, from, changes, o)
	}), "blocking/AnUnfollowDoesNotEndABlock", historiesToo},
	{"an unblock ends a follow", follows(func(ctx context.Context, s *oracle.Store, from storage.UserID, changes edgeChanges, o options) changeds {
		for i := range changes {
			if changes[i].Ends == storage.Blocking {
				return endsAnything(ctx, s, from, changes, o)
			}
		}
		return s.ChangeEdges(ctx, storage.Forward, from, changes, o)
	}), "blocking/AnUnblockDoesNotEndAFollow", historiesToo},
	{"imports write follows of a blocker", applies(func(ctx context.Context, s *oracle.Store, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
		// It writes forward follows also if the followed user blocks the follower, by
		// forgetting the block.
		results := s.Apply(ctx, side, edges, rule)
		for i, e := range edges {
			there := rowOf(ctx, s, side, e.Pair())
			if side == storage.Forward && e.Type == storage.Following && !results[i].Value.Changed && e.UpdateTime > there.UpdateTime {
				overwrite(ctx, s, storage.Inverse, storage.Pair{From: e.To, To: e.From}, storage.None)
				results[i] = s.Apply(ctx, side, []storage.Edge{e}, rule)[0]
			}
		}
		return results
	}), "blocking/AForwardFollowOfABlockedOwnerIsNotWritten", historiesToo},
	{"what no longer waits is accepted", follows(func(ctx context.Context, s *oracle.Store, from storage.UserID, changes edgeChanges, o options) changeds {
		// It accepts also what does not wait.
		changes = slices.Clone(changes)
		for i := range changes {
			if changes[i].Type == storage.Following {
				changes[i].Ends = storage.None
			}
		}
		return s.ChangeEdges(ctx, storage.Forward, from, changes, o)
	}), "followRequests/EveryChangeFromEveryType", historiesToo},
}

// blocksAreSecret does not report what has followed from blocks.
var blocksAreSecret = applies(func(ctx context.Context, s *oracle.Store, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
	results := s.Apply(ctx, side, edges, rule)
	for i := range results {
		if side == storage.Inverse && results[i].Value.Changed {
			results[i].Value.Also = nil
		}
	}
	return results
})

// keepRequests leaves those requests pending that a change has cancelled.
func keepRequests(ctx context.Context, s *oracle.Store, changed *storage.Changed) {
	changed.Also = slices.DeleteFunc(slices.Clone(changed.Also), func(row storage.Written) bool {
		cancelled := row.Side == storage.Requests && row.Edge.Type == storage.Cancelled
		if cancelled {
			overwrite(ctx, s, storage.Requests, row.Edge.Pair(), storage.Pending)
		}
		return cancelled
	})
}

// endsAnything ends whatever exists, a follow or a block.
func endsAnything(ctx context.Context, s *oracle.Store, from storage.UserID, changes edgeChanges, o options) changeds {
	changes = slices.Clone(changes)
	for i := range changes {
		changes[i].Ends = rowOf(ctx, s, storage.Forward, storage.Pair{From: from, To: changes[i].To}).Type
	}
	return s.ChangeEdges(ctx, storage.Forward, from, changes, o)
}
