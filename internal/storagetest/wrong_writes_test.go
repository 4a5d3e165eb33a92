package storagetest_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes in writing users and edges, and in counting edges.
var writeMistakes = []mistake{
	{"text of three bytes a character", answers(func(_ *oracle.Store, _ storage.Side, _ storage.UserID, r *storage.Result[storage.User]) {
		r.Value.Name = strings.Map(func(r rune) rune {
			if r > 0xffff {
				return '?'
			}
			return r
		}, r.Value.Name)
	}, storage.UserLookups), "creation/EveryFieldComesBack", historiesToo},
	{"existing users are overwritten", func(s *oracle.Store, w *double.Store) {
		var last memory[storage.UserID, storage.User]
		w.Instead.CreateUsers = func(ctx context.Context, users []storage.User, states ...storage.UserState) []storage.Result[bool] {
			results := s.CreateUsers(ctx, users, states...)
			for i, user := range users {
				if results[i].Err == nil {
					last.set(user.ID, user)
				}
			}
			return results
		}
		answers(func(_ *oracle.Store, _ storage.Side, id storage.UserID, r *storage.Result[storage.User]) {
			r.Value, _ = last.get(id)
		}, storage.UserLookups)(s, w)
	}, "creation/AnExistingUserIsNotChanged", historiesToo},
	{"new users have no counts", answers(func(_ *oracle.Store, _ storage.Side, _ storage.UserID, r *storage.Result[storage.Counts]) {
		r.Found = r.Value.Version > 0
	}, storage.CountLookups), "creation/CountsAreMadeWithTheUser", historiesToo},
	{"counts belong to users", reads(func(ctx context.Context, s *oracle.Store, _ storage.Side, ids []storage.UserID) []storage.Result[storage.Counts] {
		results := storage.CountLookups.Read(ctx, s, ids...)
		for i, user := range storage.UserLookups.Read(ctx, s, ids...) {
			if !user.Found {
				results[i] = storage.Result[storage.Counts]{}
			}
		}
		return results
	}, storage.CountLookups), "applyCounts/OwnersWithoutAUserAreCounted", historiesToo},
	{"blocks are counted", miscounts(func(edges []storage.Edge, results applieds, i int) int64 {
		if results[i].Value.Changed && edges[i].Type == storage.Blocking {
			return 1
		}
		return 0
	}), "applyCounts/CountsFollowTheType", historiesToo},
	{"edges given twice are counted twice", miscounts(func(edges []storage.Edge, _ applieds, i int) int64 {
		if slices.Contains(edges[:i], edges[i]) {
			return 1
		}
		return 0
	}), "applyCounts/EdgesOfOnePairAreCountedOnce", historiesToo},
	{"any tombstone counts down", miscounts(func(edges []storage.Edge, results applieds, i int) int64 {
		if results[i].Value.Changed && edges[i].Type == storage.None {
			return -1
		}
		return 0
	}), "applyCounts/ATombstoneForNothingCountsNothing", historiesToo},
	{"the version stays", answers(func(_ *oracle.Store, _ storage.Side, _ storage.UserID, r *storage.Result[storage.Counts]) {
		r.Value.Version = min(r.Value.Version, 1)
	}, storage.CountLookups), "applyCounts/TheVersionRisesWithEveryChange", historiesToo},
	{"the version always rises", func(s *oracle.Store, w *double.Store) {
		add := adding(w, version)
		w.Instead.Apply = func(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
			for _, e := range edges {
				add(side.Owner(e.Pair()), 1)
			}
			return s.Apply(ctx, side, edges, rule)
		}
	}, "applyCounts/TheVersionRisesForChangedOwnersOnly", historiesToo},
	{"the same time is newer", applies(func(ctx context.Context, s *oracle.Store, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
		results := s.Apply(ctx, side, edges, rule)
		for i, e := range edges {
			if rule == storage.IfNewer && e.UpdateTime == results[i].Value.Row.UpdateTime {
				results[i].Value = storage.Changed{Row: e, Changed: true}
			}
		}
		return results
	}), "apply/AnEdgeOfTheSameTimeIsIgnored", historiesToo},
	{"tombstones are absent", applies(func(ctx context.Context, s *oracle.Store, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
		results := s.Apply(ctx, side, edges, rule)
		for i, e := range edges {
			if rule == storage.IfAbsent && results[i].Value.Row.Type == storage.None {
				results[i] = s.Apply(ctx, side, []storage.Edge{e}, storage.IfNewer)[0]
			}
		}
		return results
	}), "apply/IfAbsentYieldsToAnyRow", historiesToo},
	{"a tombstone for nothing is dropped", applies(func(ctx context.Context, s *oracle.Store, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
		results := make(applieds, len(edges))
		for i, e := range edges {
			there := storage.EdgeLookups[side].Read(ctx, s, e.Pair())[0].Found
			if e.Type != storage.None || there {
				results[i] = s.Apply(ctx, side, []storage.Edge{e}, rule)[0]
			}
		}
		return results
	}), "apply/AMissingEdgeIsWritten", historiesToo},
	{"both sides are written", applies(func(ctx context.Context, s *oracle.Store, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
		s.Apply(ctx, side^1, edges, rule)
		return s.Apply(ctx, side, edges, rule)
	}), "apply/TheSidesAreIndependent", historiesToo},
	{"only the last of a pair is judged", applies(func(ctx context.Context, s *oracle.Store, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
		results := make(applieds, len(edges))
		for i, e := range edges {
			later := slices.ContainsFunc(edges[i+1:], func(l storage.Edge) bool { return l.Pair() == e.Pair() })
			if !later {
				results[i] = s.Apply(ctx, side, []storage.Edge{e}, rule)[0]
			}
		}
		return results
	}), "apply/EdgesOfOnePairAreJudgedInTurn", historiesToo},
	{"counts without a lock", func(s *oracle.Store, w *double.Store) {
		// It computes differences from rows that it read before it wrote.
		var mu sync.Mutex
		add := addingEdges(w)
		w.Instead.Apply = func(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
			results := make(applieds, len(edges))
			for i, e := range edges {
				before := rowOf(ctx, s, side, e.Pair())
				// Others may write now, as between two statements.
				time.Sleep(100 * time.Microsecond)
				mu.Lock()
				there := rowOf(ctx, s, side, e.Pair())
				results[i] = s.Apply(ctx, side, []storage.Edge{e}, rule)[0]
				if results[i].Value.Changed {
					add(side, e, counted(there)-counted(before))
				}
				mu.Unlock()
			}
			return results
		}
	}, "concurrency/ApplyKeepsRowsAndCountsExact", lostRace},
	{"handles are claimed without a lock", func(s *oracle.Store, w *double.Store) {
		w.Instead.CreateUsers = func(ctx context.Context, users []storage.User, states ...storage.UserState) []storage.Result[bool] {
			handles := storage.Each(users, func(u storage.User) string { return u.Handle })
			before := storage.HandleLookups.Read(ctx, s, handles...)
			// Others may claim now, as between two statements.
			time.Sleep(time.Millisecond)
			results := s.CreateUsers(ctx, users, states...)
			for i := range results {
				if results[i].Err != nil && !before[i].Found {
					results[i] = storage.Result[bool]{Value: true, Found: true}
				}
			}
			return results
		}
	}, "concurrency/OneHandleGoesToOneUser", lostRace},
}

// miscounts adds to the counts what a rule says of each edge that is applied.
func miscounts(more func(edges []storage.Edge, results applieds, i int) int64) spoil {
	return func(s *oracle.Store, w *double.Store) {
		add := addingEdges(w)
		w.Instead.Apply = func(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
			results := s.Apply(ctx, side, edges, rule)
			for i, e := range edges {
				add(side, e, more(edges, results, i))
			}
			return results
		}
	}
}

// addingEdges has the counts of follows be wrong by what is added.
func addingEdges(w *double.Store) (add func(storage.Side, storage.Edge, int64)) {
	sides := map[storage.Side]func(storage.UserID, int64){storage.Forward: adding(w, followings), storage.Inverse: adding(w, followers)}
	return func(side storage.Side, e storage.Edge, n int64) {
		if add, counts := sides[side]; counts {
			add(side.Owner(e.Pair()), n)
		}
	}
}

func counted(e storage.Edge) int64 {
	if e.Type == storage.Following {
		return 1
	}
	return 0
}
