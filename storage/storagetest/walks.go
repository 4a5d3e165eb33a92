package storagetest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"kith/storage"
)

// walks: stretches of lists in ascending order of the peer's id.
type walks struct{ *harness }

func (s walks) AnEmptyBatchHasNoResults(t *testing.T) {
	eachSide(t, func(t *testing.T, side storage.Side) {
		answers(t, s.store.Walks(t.Context(), side, nil), 0)
		answers(t, s.store.Walks(t.Context(), side, []storage.WalkQuery{}), 0)
	})
}

func (s walks) AnEmptyListEndsAtOnce(t *testing.T) {
	eachSide(t, func(t *testing.T, side storage.Side) {
		s.wantStretch(t, side, storage.WalkQuery{Owner: s.id(), Limit: 5}, nil)
		s.wantStretch(t, side, storage.WalkQuery{Owner: s.people(t, 1)[0].ID, Limit: 5}, nil)
	})
}

func (s walks) PeersAscend(t *testing.T) {
	eachSide(t, func(t *testing.T, side storage.Side) {
		owner, peers := s.id(), s.sortedIDs(8)
		for i, k := range []int{3, 0, 7, 1, 5, 2, 6, 4} { // the order in time is another one
			s.apply(t, side, follow(side, owner, peers[k], i))
		}
		got := s.walk(t, side, storage.WalkQuery{Owner: owner, Limit: 100})
		wantList(t, "peers", got.Peers, peers)
	})
}

func (s walks) TombstonesAndBlocksAreExaminedButNotReturned(t *testing.T) {
	eachSide(t, func(t *testing.T, side storage.Side) {
		w := s.makeWalk(t, side)
		got := s.walk(t, side, storage.WalkQuery{Owner: w.owner, Limit: 100})
		wantEqual(t, "examined", got.Examined, len(w.rows))
		wantEqual(t, "last", got.Last, w.peers[len(w.peers)-1]) // a tombstone's
		wantList(t, "peers", got.Peers, w.live(w.rows))
	})
}

func (s walks) AfterStartsAtTheNextPeer(t *testing.T) {
	eachSide(t, func(t *testing.T, side storage.Side) {
		w := s.makeWalk(t, side)
		for i, peer := range w.peers {
			s.wantStretch(t, side, storage.WalkQuery{Owner: w.owner, After: peer, Limit: 100}, w.rows[i+1:])
			// Just below a peer there is no row, so this one starts with it.
			s.wantStretch(t, side, storage.WalkQuery{Owner: w.owner, After: peer - 1, Limit: 100}, w.rows[i:])
		}
		s.wantStretch(t, side, storage.WalkQuery{Owner: w.owner, After: math.MaxInt64, Limit: 1}, nil)
	})
}

func (s walks) LimitBoundsWhatIsExamined(t *testing.T) {
	eachSide(t, func(t *testing.T, side storage.Side) {
		w := s.makeWalk(t, side)
		for limit := 1; limit < len(w.rows); limit++ {
			s.wantStretch(t, side, storage.WalkQuery{Owner: w.owner, Limit: limit}, w.rows)
		}
	})
}

func (s walks) EndIsToldWithTheLastRow(t *testing.T) {
	eachSide(t, func(t *testing.T, side storage.Side) {
		w := s.makeWalk(t, side)
		n := len(w.rows)
		for limit, end := range map[int]bool{n - 1: false, n: true, n + 1: true} {
			got := s.walk(t, side, storage.WalkQuery{Owner: w.owner, Limit: limit})
			wantEqual(t, fmt.Sprintf("end of %d rows with limit %d", n, limit), got.End, end)
		}
		got := s.walk(t, side, storage.WalkQuery{Owner: w.owner, After: w.peers[n-3], Limit: 2})
		wantEqual(t, "end of the last two rows", got.End, true)
	})
}

func (s walks) GoingOnCoversEverythingOnce(t *testing.T) {
	eachSide(t, func(t *testing.T, side storage.Side) {
		w := s.makeWalk(t, side)
		for limit := 1; limit <= len(w.rows)+1; limit++ {
			var peers []storage.UserID
			examined := 0
			q := storage.WalkQuery{Owner: w.owner, Limit: limit}
			for range len(w.rows) + 1 { // no more steps than that, even if End never comes
				got := s.walk(t, side, q)
				peers, examined = append(peers, got.Peers...), examined+got.Examined
				if got.End {
					break
				}
				q.After = got.Last
			}
			wantList(t, fmt.Sprintf("peers by %d", limit), peers, w.live(w.rows))
			wantEqual(t, fmt.Sprintf("examined by %d", limit), examined, len(w.rows))
		}
	})
}

// One batch, of one owner with different bounds and of another, repeated.
func (s walks) EachQueryIsAnsweredAtItsIndex(t *testing.T) {
	eachSide(t, func(t *testing.T, side storage.Side) {
		w, v, nobody := s.makeWalk(t, side), s.makeWalk(t, side), s.id()
		var queries []storage.WalkQuery
		var rows [][]storage.Edge // those behind After
		for limit := 1; limit <= len(w.rows)+1; limit++ {
			for i, peer := range w.peers {
				queries = append(queries,
					storage.WalkQuery{Owner: w.owner, After: peer, Limit: limit},
					storage.WalkQuery{Owner: nobody, After: peer, Limit: limit},
					storage.WalkQuery{Owner: v.owner, Limit: limit})
				rows = append(rows, w.rows[i+1:], nil, v.rows)
			}
		}
		got := found(t, s.store.Walks(t.Context(), side, queries), len(queries))
		for i, q := range queries {
			checkStretch(t, side, q, got[i], rows[i])
		}
	})
}

func (s walks) ALargeBatchIsAnswered(t *testing.T) {
	eachSide(t, func(t *testing.T, side storage.Side) {
		long := s.longWalk(t, side, many)
		s.wantStretch(t, side, storage.WalkQuery{Owner: long.owner, Limit: many}, long.rows)

		w := s.longWalk(t, side, many/10)
		queries := make([]storage.WalkQuery, many)
		for i := range queries {
			queries[i] = storage.WalkQuery{Owner: w.owner, After: w.peers[i%len(w.peers)], Limit: 1 + i%4}
		}
		for i, got := range found(t, s.store.Walks(t.Context(), side, queries), many) {
			checkStretch(t, side, queries[i], got, w.rows[i%len(w.rows)+1:])
		}
	})
}

// walked is one owner's edges as a walk should come across them.
type walked struct {
	side  storage.Side
	owner storage.UserID
	peers []storage.UserID // ascending
	rows  []storage.Edge   // of the same order
}

// makeWalk writes nine edges of all types, the last one a tombstone.
func (s walks) makeWalk(t *testing.T, side storage.Side) walked {
	t.Helper()
	w := walked{side: side, owner: s.id(), peers: s.sortedIDs(9)}
	for i, kind := range []storage.EdgeType{
		storage.None, storage.Following, storage.Following, storage.Blocking, storage.None,
		storage.Following, storage.Blocking, storage.Following, storage.None,
	} {
		w.rows = append(w.rows, edge(side, w.owner, w.peers[i], kind, at(100-i)))
	}
	shuffled := slices.Concat(w.rows[4:], w.rows[:4])
	s.apply(t, side, shuffled...)
	return w
}

// longWalk writes n edges, the types taking turns.
func (s walks) longWalk(t *testing.T, side storage.Side, n int) walked {
	t.Helper()
	w := walked{side: side, owner: s.id(), peers: s.sortedIDs(n)}
	for i, peer := range w.peers {
		w.rows = append(w.rows, edge(side, w.owner, peer, allTypes[i%3], at(i)))
	}
	s.apply(t, side, w.rows...)
	return w
}

// live is the peers of those rows that a walk returns.
func (w walked) live(rows []storage.Edge) []storage.UserID {
	var peers []storage.UserID
	for _, row := range rows {
		if row.Type == storage.Following {
			peers = append(peers, w.side.Peer(row.Pair()))
		}
	}
	return peers
}

// wantStretch checks one step, given all the rows behind the query's After.
func (s walks) wantStretch(t *testing.T, side storage.Side, q storage.WalkQuery, behind []storage.Edge) {
	t.Helper()
	checkStretch(t, side, q, s.walk(t, side, q), behind)
}

func checkStretch(t *testing.T, side storage.Side, q storage.WalkQuery, got storage.Stretch, behind []storage.Edge) {
	t.Helper()
	rows := behind[:min(q.Limit, len(behind))]
	what := fmt.Sprintf("%+v with %d rows behind it: ", q, len(behind))
	wantEqual(t, what+"examined", got.Examined, len(rows))
	wantEqual(t, what+"end", got.End, len(rows) == len(behind))
	wantList(t, what+"peers", got.Peers, walked{side: side}.live(rows))
	if len(rows) > 0 {
		wantEqual(t, what+"last", got.Last, side.Peer(rows[len(rows)-1].Pair()))
	}
}
