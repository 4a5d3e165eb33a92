package storagetest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"kith/internal/must"
	"kith/storage"
)

// friendCounts: a friend is a user who follows and is followed, as the user's own shard knows it,
// whichever way the two rows were written there.
type friendCounts struct{ *harness }

func (friendCounts) sides() []storage.Side { return followSides }

func (s friendCounts) BothHalvesMakeAFriend(t *testing.T, side storage.Side) {
	other := storage.Inverse - side
	for _, here := range allTypes {
		for _, there := range allTypes {
			me, friend := s.newUsers(t, 1)[0].ID, s.id()
			s.apply(t, side, edge(side, me, friend, here, at(1)))
			wantEqual(t, "friends by one half", s.countsOf(t, me).Friend, 0)
			s.apply(t, other, edge(other, me, friend, there, at(2)))
			want := int64(0)
			if here == storage.Following && there == storage.Following {
				want = 1
			}
			wantEqual(t, fmt.Sprintf("friends by %d and %d", here, there), s.countsOf(t, me).Friend, want)
		}
	}
}

func (s friendCounts) EitherHalfEndsIt(t *testing.T, side storage.Side) {
	for _, kind := range []storage.EdgeType{storage.None, storage.Blocking} {
		me, friend := s.newUsers(t, 1)[0].ID, s.id()
		s.apply(t, storage.Forward, follow(storage.Forward, me, friend, 1))
		s.apply(t, storage.Inverse, follow(storage.Inverse, me, friend, 1))
		s.apply(t, side, follow(side, me, friend, 2)) // newer, and the same
		wantEqual(t, "friends", s.countsOf(t, me).Friend, 1)
		s.apply(t, side, edge(side, me, friend, kind, at(3)))
		wantEqual(t, fmt.Sprintf("friends after type %d", kind), s.countsOf(t, me).Friend, 0)
	}
}

// Batches of all sizes, with both halves in either order, and some halves more than once.
func (s friendCounts) BatchesCountEachFriendOnce(t *testing.T, side storage.Side) {
	other := storage.Inverse - side
	for _, n := range sizes {
		me, another, peers := s.id(), s.id(), s.ids(n)
		var first, second []storage.Edge
		var friends, others int64
		for i, peer := range peers {
			first = append(first, edge(side, me, peer, allTypes[i%3], at(5)), follow(side, another, peer, 5))
			second = append(second,
				edge(other, me, peer, allTypes[i/3%3], at(3)), // is followed by the next
				edge(other, me, peer, allTypes[i/2%3], at(5)),
				follow(other, me, peer, 4), // is late
				edge(other, another, peer, allTypes[i%3], at(5)))
		}
		s.apply(t, side, first...)
		s.apply(t, other, second...)
		friends, others = s.friendsAmong(t, me, peers), s.friendsAmong(t, another, peers)
		wantEqual(t, fmt.Sprintf("friends of %d", n), s.countsOf(t, me).Friend, friends)
		wantEqual(t, fmt.Sprintf("friends of the other of %d", n), s.countsOf(t, another).Friend, others)
		s.apply(t, other, second...)
		wantEqual(t, "friends after the same again", s.countsOf(t, me).Friend, friends)
		must.That(t, n <= 2 || others != 0 && others != int64(n), "%d friends of %d show nothing", others, n)

		ends := make([]storage.Edge, n)
		for i, peer := range peers {
			ends[i] = edge(side, another, peer, storage.None, at(9))
		}
		s.apply(t, side, ends...)
		wantEqual(t, "friends after the end", s.countsOf(t, another).Friend, 0)
	}
}

// Everything that writes is done among few users. After each call every count is what the rows
// say.
func (s friendCounts) EveryWriteKeepsThem(t *testing.T) {
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(23, seed))
		users := idsOf(s.newUsers(t, 5))
		for n := range 60 {
			from := users[random.IntN(len(users))]
			var to []storage.UserID
			for _, k := range random.Perm(len(users))[:1+random.IntN(3)] {
				if users[k] != from {
					to = append(to, users[k])
				}
			}
			what := ""
			switch o := (storage.ChangeOptions{Inverse: random.IntN(2) == 0}); random.IntN(5) {
			case 0, 1:
				var batch []storage.EdgeChange
				for _, id := range to {
					batch = append(batch, anyChange(random, id, n))
				}
				what = fmt.Sprintf("change of %d to %+v", from, batch)
				noErrorsBut(t, storage.ErrForbidden, s.store.ChangeEdges(t.Context(), storage.Forward, from, batch, o), len(batch))
			case 2:
				for _, id := range to {
					act := []storage.EdgeType{storage.Pending, storage.Accepted, storage.Removed}[random.IntN(3)]
					what = fmt.Sprintf("act %d of %d to %d", act, from, id)
					_, _ = Request(t.Context(), s.store, storage.Pair{From: from, To: id}, // some are refused
						storage.EdgeChange{Type: act, At: at(n)}, storage.ChangeOptions{TTL: briefly.TTL, Inverse: o.Inverse})
				}
			default:
				side := storage.Sides[random.IntN(len(storage.Sides))]
				var batch []storage.Edge
				for _, id := range to {
					kind := allTypes[random.IntN(3)]
					if side.Truth() == storage.Requests {
						kind = []storage.EdgeType{storage.Pending, storage.Accepted, storage.Removed}[random.IntN(3)]
					}
					batch = append(batch, stateOf(side, from, id, kind, n-random.IntN(5)))
				}
				what = fmt.Sprintf("%s gets %+v", side, batch)
				s.apply(t, side, batch...)
			}
			for i, got := range found(t, storage.CountLookups.Read(t.Context(), s.store, users...), len(users)) {
				if want := s.countedAmong(t, users[i], users); got.Following != want.Following || got.Follower != want.Follower || got.Friend != want.Friend {
					t.Fatalf("seed %d, step %d, %s: user %d has %+v, want %+v", seed, n, what, users[i], got, want)
				}
			}
		}
	}
}

// countedAmong counts the edges between a user and others, by reading them.
func (h *harness) countedAmong(t *testing.T, user storage.UserID, others []storage.UserID) storage.Counts {
	t.Helper()
	forward := make([]storage.Pair, len(others))
	inverse := make([]storage.Pair, len(others))
	for i, id := range others {
		forward[i], inverse[i] = storage.Pair{From: user, To: id}, storage.Pair{From: id, To: user}
	}
	follows := answers(t, storage.EdgeLookups[storage.Forward].Read(t.Context(), h.store, forward...), len(others))
	followers := answers(t, storage.EdgeLookups[storage.Inverse].Read(t.Context(), h.store, inverse...), len(others))
	var counts storage.Counts
	for i := range others {
		counts.Following += counted(follows[i])
		counts.Follower += counted(followers[i])
		counts.Friend += counted(follows[i]) * counted(followers[i])
	}
	return counts
}

func (h *harness) friendsAmong(t *testing.T, user storage.UserID, others []storage.UserID) int64 {
	t.Helper()
	return h.countedAmong(t, user, others).Friend
}
