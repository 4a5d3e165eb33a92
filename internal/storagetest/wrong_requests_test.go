package storagetest_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"kith/internal/storagetest"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes about friendships and requests for them.
var requestMistakes = []mistake{
	{"asking again makes a new request", requests(func(ctx context.Context, s *oracle.Store, request storage.Pair, change storage.EdgeChange, o options) (storage.Changed, error) {
		// It replaces a pending request with a new one.
		got, err := storagetest.Request(ctx, s, request, change, o)
		if change.Type == storage.Pending && err == nil && !got.Changed && got.Row.Type == storage.Pending {
			got.Row, got.Changed = overwrite(ctx, s, storage.Requests, request, storage.Pending), true
		}
		return got, err
	}), "requests/EveryActFromEveryState", historiesToo},
	{"accepting twice is a mistake", requests(func(ctx context.Context, s *oracle.Store, request storage.Pair, change storage.EdgeChange, o options) (storage.Changed, error) {
		// It treats a second click as a mistake.
		got, err := storagetest.Request(ctx, s, request, change, o)
		if change.Type == storage.Accepted && err == nil && !got.Changed {
			return storage.Changed{}, storage.ErrNoEdge
		}
		return got, err
	}), "requests/EveryActFromEveryState", historiesToo},
	{"removing leaves the own follow", requests(func(ctx context.Context, s *oracle.Store, request storage.Pair, change storage.EdgeChange, o options) (storage.Changed, error) {
		// It leaves the follow of the user who removes.
		got, err := storagetest.Request(ctx, s, request, change, o)
		if change.Type == storage.Removed && got.Changed {
			overwrite(ctx, s, storage.Forward, request, storage.Following)
			got.Also = nil
		}
		return got, err
	}), "requests/RemovingEndsTheFollow", historiesToo},
	{"messages stay", func(s *oracle.Store, w *double.Store) {
		// It keeps the messages that it has been asked for.
		var kept memory[storage.Pair, string]
		answers(func(_ *oracle.Store, _ storage.Side, request storage.Pair, r *storage.Result[string]) {
			if text, known := kept.get(request); r.Found {
				kept.set(request, r.Value)
			} else if known {
				*r = storage.Result[string]{Value: text, Found: true}
			}
		}, storage.MessageLookups)(s, w)
	}, "requests/TheMessageStaysWhileItIsPending", promiseOnly},
	{"requests are judged without a lock", requests(func(ctx context.Context, s *oracle.Store, request storage.Pair, change storage.EdgeChange, o options) (storage.Changed, error) {
		// It judges by a row that it read before the lock.
		before := rowOf(ctx, s, storage.Requests, request)
		time.Sleep(300 * time.Microsecond)
		got, err := storagetest.Request(ctx, s, request, change, o)
		if before.Type == storage.Pending && errors.Is(err, storage.ErrNoEdge) {
			return storage.Changed{Row: before, Changed: true}, nil
		}
		return got, err
	}), "requests/OneOfManyActsWins", lostRace},
	{"friends ask each other", requests(func(ctx context.Context, s *oracle.Store, request storage.Pair, change storage.EdgeChange, o options) (storage.Changed, error) {
		// It makes a request between friends who never had one.
		got, err := storagetest.Request(ctx, s, request, change, o)
		if change.Type == storage.Pending && err == nil && !got.Changed && got.Row.Type == storage.None {
			got.Row, got.Changed = overwrite(ctx, s, storage.Requests, request, storage.Pending), true
		}
		return got, err
	}), "requests/FriendsByTwoFollowsDoNotAsk", promiseOnly},
	{"accepted requests make nobody follow", applies(func(ctx context.Context, s *oracle.Store, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
		// It leaves out the follow that an acceptance makes.
		results := s.Apply(ctx, side, edges, rule)
		for i := range results {
			if also := results[i].Value.Also; side == storage.Inbox && results[i].Value.Changed {
				for _, row := range also {
					if row.Edge.Type == storage.Following && row.Side == storage.Forward {
						overwrite(ctx, s, storage.Forward, row.Edge.Pair(), storage.None)
					}
				}
				results[i].Value.Also = nil
			}
		}
		return results
	}), "friendships/AnAcceptedRequestMakesTheOtherFollow", historiesToo},
	{"accepted requests make the other follow again", eventsInsist(storage.Accepted, true), "friendships/ItDoesSoOnce", historiesToo},
	{"late removals end newer follows", eventsInsist(storage.Removed, false), "friendships/LateEventsUndoNothing", historiesToo},
	{"accepted requests are stronger than blocks", eventsInsist(storage.Accepted, false), "friendships/ABlockIsStronger", historiesToo},
	{"crossing requests wait", requestsLast(-time.Hour), "friendships/RequestsThatCrossAcceptEachOther", historiesToo},
	{"crossing requests do not expire", requestsLast(1 << 60), "friendships/AnExpiredRequestDoesNotCross", historiesToo},
	{"friends are as many as they could be", answers(func(_ *oracle.Store, _ storage.Side, _ storage.UserID, r *storage.Result[storage.Counts]) {
		r.Value.Friend = min(r.Value.Following, r.Value.Follower)
	}, storage.CountLookups), "friendCounts/EveryWriteKeepsThem", historiesToo},
	{"large batches make no friends", func(s *oracle.Store, w *double.Store) {
		add := adding(w, friends)
		w.Instead.Apply = func(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
			owners := storage.Each(edges, func(e storage.Edge) storage.UserID { return side.Owner(e.Pair()) })
			slices.Sort(owners)
			owners = slices.Compact(owners)
			before := storage.CountLookups.Read(ctx, s, owners...)
			results := s.Apply(ctx, side, edges, rule)
			for i, now := range storage.CountLookups.Read(ctx, s, owners...) {
				if len(edges) >= 64 {
					add(owners[i], before[i].Value.Friend-now.Value.Friend)
				}
			}
			return results
		}
	}, "friendCounts/BatchesCountEachFriendOnce", promiseOnly},
	{"accepted requests talk for ever", applies(func(ctx context.Context, s *oracle.Store, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
		// It lets each of two accepted requests report the other, without end.
		results := s.Apply(ctx, side, edges, rule)
		for i, e := range edges {
			own := rowOf(ctx, s, storage.Requests, backOf(side, e))
			if side == storage.Inbox && e.Type == storage.Accepted && !results[i].Value.Changed && own.Type == storage.Accepted {
				results[i].Value.Also = append(slices.Clone(results[i].Value.Also), storage.Written{Row: storage.Row{Side: storage.Requests, Edge: own}})
			}
		}
		return results
	}), "settling/OnceAllHasArrivedItFitsTogether", promiseOnly},
	{"blocks are not reported where users act at once", blocksAreSecret, "settling/SoItDoesWhereManyActAtOnce", lostRace},
}

// requestsLast has another time after which requests expire.
func requestsLast(ttl time.Duration) spoil {
	return func(_ *oracle.Store, w *double.Store) { *w = *double.Of(oracle.New(oracle.RequestTTL(ttl))) }
}

// eventsInsist applies an event about a request in a state even if its owner has changed the row since then, and maybe also if the event comes
// again.
func eventsInsist(state storage.EdgeType, again bool) spoil {
	return applies(func(ctx context.Context, s *oracle.Store, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
		results := s.Apply(ctx, side, edges, rule)
		for i, e := range edges {
			if side != storage.Inbox || e.Type != state || (!again && !results[i].Value.Changed) {
				continue
			}
			back, wanted := backOf(side, e), storage.Following
			if e.Type == storage.Removed {
				wanted = storage.None
			}
			if now := rowOf(ctx, s, storage.Forward, back); now.UpdateTime != 0 && now.Type != wanted {
				overwrite(ctx, s, storage.Forward, back, wanted)
			}
		}
		return results
	})
}
