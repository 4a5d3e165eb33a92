package storagetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// relationLog: what engines without a binlog log of every row. The order of the rows of one
// transaction is left open.
type relationLog struct {
	*harness
	open func(t *testing.T) storage.Store
}

// A logger is a store that may have a relation_log.
type logger interface {
	storage.LogReader

	// HasLog reports whether the store has a relation_log.
	HasLog() bool

	// LastOfLog is the position of the newest entry that a shard's log has ever had. It is 0 at the
	// beginning.
	LastOfLog(ctx context.Context, shard int) (int64, error)
}

func (s relationLog) ItStartsEmpty(t *testing.T) {
	h := &harness{store: opened(t, s.open)}
	log := h.log(t)
	starts := h.ends(t)
	wantList(t, "ends", starts, make([]int64, len(starts)))
	for shard := range starts {
		wantList(t, "entries", readLog(t, log, shard, 0, 10), nil)
	}
	row := follow(storage.Forward, h.id(), h.id(), 1)
	h.apply(t, storage.Forward, row)
	wantList(t, "rows", h.loggedSince(t, starts), []logged{{storage.Forward, row}})
}

func (s relationLog) EveryRowThatIsAppliedIsThereOnce(t *testing.T) {
	eachTable(t, func(t *testing.T, side storage.Side) {
		ends := s.ends(t)
		owners, peer := s.ids(6), s.id()
		var want []logged
		for n, kind := range []storage.EdgeType{storage.Following, storage.None, storage.Blocking, storage.Blocking} {
			var rows []storage.Edge
			for _, owner := range owners {
				rows = append(rows, edge(side, owner, peer, kind, at(n)))
				want = append(want, logged{side, rows[len(rows)-1]})
			}
			s.apply(t, side, rows...)
		}
		wantLogged(t, s.loggedSince(t, ends), want)
	})
}

func (s relationLog) EveryRowThatIsChangedIsThereOnce(t *testing.T) {
	ends := s.ends(t)
	from, to := s.newUsers(t, 1)[0].ID, idsOf(s.newUsers(t, 12))
	var want []logged
	for n, o := range []storage.ChangeOptions{withInverse, {}, withInverse, withInverse} {
		kind := []storage.EdgeType{storage.Following, storage.None}[n%2]
		for _, got := range s.changeWith(t, from, o, changeAll(to, kind, n)...) {
			want = append(want, logged{storage.Forward, got.Row})
			if got.Inverse {
				want = append(want, logged{storage.Inverse, got.Row})
			}
		}
	}
	wantLogged(t, s.loggedSince(t, ends), want)
}

// Rows that follow from other rows are in the log, too, for every table, once.
func (s relationLog) WhatFollowsIsThereToo(t *testing.T) {
	users := idsOf(s.newUsers(t, 2))
	me, other := users[0], users[1]
	s.change(t, me, change(other, storage.Following, 1))
	s.apply(t, storage.Requests, stateOf(storage.Requests, me, other, storage.Pending, 1))
	ends := s.ends(t)
	batch := stateOf(storage.Inverse, me, other, storage.Blocking, 2)
	wantLogged(t, s.loggedSince(t, ends), nil)
	reported := s.apply(t, storage.Inverse, batch)[0].Also
	want := []logged{{storage.Inverse, batch}}
	for _, row := range reported {
		want = append(want, logged{row.Side, row.Edge})
	}
	wantEqual(t, "rows that follow", len(reported), 2)
	wantLogged(t, s.loggedSince(t, ends), want)
	s.apply(t, storage.Inverse, batch) // these rows are reported again, but not written
	wantLogged(t, s.loggedSince(t, ends), want)
}

func (s relationLog) EveryRowOfARequestIsThereOnce(t *testing.T) {
	for _, inverse := range []bool{false, true} {
		ends := s.ends(t)
		me, near := s.neighbours(t, 1)
		o := briefly
		o.Inverse = inverse
		var want []logged
		for n, act := range []storage.EdgeType{storage.Pending, storage.Pending, storage.Accepted, storage.Accepted, storage.Removed, storage.Removed, storage.Pending, storage.Cancelled} {
			request := storage.Pair{From: me, To: near[0]}
			got, err := Request(t.Context(), s.store, request, storage.EdgeChange{Type: act, At: at(n)}, o)
			wantIs(t, err, nil)
			for _, row := range got.Written() {
				want = append(want, logged{row.Side, row.Edge})
				if row.Inverse {
					want = append(want, logged{row.Side.Replica(), row.Edge})
				}
			}
		}
		wantLogged(t, s.loggedSince(t, ends), want)
	}
}

func (s relationLog) RowsThatStayAreNot(t *testing.T) {
	from, to := s.neighbours(t, 3)
	s.changeWith(t, from, withInverse, change(to[0], storage.Following, 5), change(to[1], storage.Blocking, 5))
	ends := s.ends(t)

	eachFollowSide(t, func(t *testing.T, side storage.Side) {
		rows := found(t, storage.EdgeLookups[side].Read(t.Context(), s.store, pairsFrom(from, to[:2]...)...), 2)
		s.apply(t, side, rows...)
		for i := range rows {
			rows[i].Type, rows[i].UpdateTime = storage.None, at(4)
		}
		s.apply(t, side, rows...)
		rows[0].UpdateTime, rows[1].UpdateTime = at(8), at(9)
		s.applyRule(t, side, storage.IfAbsent, rows...)
	})
	one := storage.ChangeOptions{Inverse: true, MaxFollowing: 1}
	s.store.ChangeEdges(t.Context(), storage.Forward, from, []storage.EdgeChange{
		change(to[0], storage.Following, 9), change(to[1], storage.Blocking, 9), // both exist already
		change(to[2], storage.None, 9),      // ends nothing
		change(to[2], storage.Following, 9), // beyond the limit
	}, one)
	s.store.ChangeEdges(t.Context(), storage.Forward, s.id(), changeAll(to, storage.Following, 9), withInverse) // a user without counts
	wantList(t, "rows", s.loggedSince(t, ends), nil)
}

// If one call writes a row more than once, the last state is in the log.
func (s relationLog) APairThatIsWrittenTwiceIsThereOnce(t *testing.T) {
	ends := s.ends(t)
	from, to := s.neighbours(t, 1)
	last := s.changeWith(t, from, withInverse,
		change(to[0], storage.Following, 1), change(to[0], storage.None, 1), change(to[0], storage.Blocking, 1))[2].Row
	other := follow(storage.Forward, s.id(), s.id(), 2)
	older := other
	older.Type, older.UpdateTime = storage.None, at(1)
	s.apply(t, storage.Forward, older, other, older)
	wantLogged(t, s.loggedSince(t, ends), []logged{{storage.Forward, last}, {storage.Inverse, last}, {storage.Forward, other}})
}

// Half of the rows of the second batch exist already.
func (s relationLog) ALargeBatchIsThere(t *testing.T) {
	eachSide(t, func(t *testing.T, side storage.Side) {
		ends := s.ends(t)
		owners, peers := s.ids(10), s.ids(many)
		rows := make([]storage.Edge, many)
		want := make([]logged, many)
		for i, peer := range peers {
			rows[i] = follow(side, owners[i%len(owners)], peer, i)
			want[i] = logged{side, rows[i]}
		}
		s.apply(t, side, rows[:many/2]...)
		s.apply(t, side, rows...)
		wantLogged(t, s.loggedSince(t, ends), want)
	})
}

// Calls that are cancelled have either written and logged all of their rows of a shard, or none.
func (s relationLog) CallsThatEndEarlyLogWhatTheyWrote(t *testing.T) {
	ends := s.ends(t)
	users := idsOf(s.newUsers(t, 6))
	random := rand.New(rand.NewPCG(5, 5))
	for n := range 150 {
		from := users[n%len(users)]
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(2000))*time.Microsecond)
		if n%2 == 0 {
			s.store.ChangeEdges(ctx, storage.Forward, from, changeAll(users, allTypes[n/2%3], n), withInverse)
		} else {
			var rows []storage.Edge
			for _, to := range users {
				rows = append(rows, edge(storage.Inverse, to, from, allTypes[n%3], at(n)))
			}
			s.store.Apply(ctx, storage.Inverse, rows, storage.IfNewer)
		}
		cancel()
	}
	s.wantTablesOf(t, users, s.loggedSince(t, ends))
}

func (s relationLog) RowsAreInOrderWhoeverWritesThem(t *testing.T) {
	ends := s.ends(t)
	users := idsOf(s.newUsers(t, 5))
	crowded(func(worker int) {
		random := rand.New(rand.NewPCG(9, uint64(worker)))
		for n := range 12 {
			from, side := users[random.IntN(len(users))], storage.Side(worker%4)
			if worker%8 > 3 {
				e := edge(side, from, users[random.IntN(len(users))], typesOf(side)[n%3], at(random.IntN(50)))
				noErrors(t, s.store.Apply(t.Context(), side, []storage.Edge{e}, storage.IfNewer), 1)
				continue
			}
			results := s.store.ChangeEdges(t.Context(), storage.Forward, from, changeAll(users, allTypes[(n+worker)%3], n), withInverse)
			noErrorsBut(t, storage.ErrForbidden, results, len(users)) // some block others
		}
	})
	rows := s.loggedSince(t, ends)
	times := map[rowKey]storage.Micros{}
	for _, row := range rows {
		old := times[row.key()]
		check.That(t, row.row.UpdateTime > old, "%+v comes after one of the time %d", row, old)
		times[row.key()] = row.row.UpdateTime
	}
	s.wantTablesOf(t, users, rows)
}

func (s relationLog) ReadingStopsAtTheLimit(t *testing.T) {
	log := s.log(t)
	all, shard := s.entries(t, 7)
	for after := range all {
		for _, limit := range []int{1, 2, 6, 7, 50} {
			got := readLog(t, log, shard, all[0].Position-1+int64(after), limit)
			wantList(t, "entries", got, all[after:min(after+limit, len(all))])
		}
	}
	wantList(t, "entries behind the last", readLog(t, log, shard, all[6].Position, 5), nil)
}

func (s relationLog) PrunedEntriesAreMissed(t *testing.T) {
	log := s.log(t)
	all, shard := s.entries(t, 5)
	s.prune(t, shard, all[2].Position)
	wantList(t, "what is left", readLog(t, log, shard, all[2].Position, 5), all[3:])
	wantList(t, "the last one", readLog(t, log, shard, all[3].Position, 5), all[4:])
	for _, after := range []int64{0, all[0].Position - 1, all[1].Position} {
		entries, err := log.ReadLog(t.Context(), shard, after, 5)
		check.That(t, errors.Is(err, storage.ErrLogPruned), "behind %d: got %v, %v; want %v", after, entries, err, storage.ErrLogPruned)
	}
	s.prune(t, shard, all[1].Position) // this entry is gone already
	wantList(t, "what is left", readLog(t, log, shard, all[2].Position, 5), all[3:])
}

func (s relationLog) AnEmptiedLogKnowsWhatIsMissing(t *testing.T) {
	log := s.log(t)
	all, shard := s.entries(t, 3)
	last := all[2].Position
	for _, upTo := range []int64{last, last + 100} {
		s.prune(t, shard, upTo)
		wantEqual(t, "end", s.ends(t)[shard], last)
		wantList(t, "entries behind the last", readLog(t, log, shard, last, 5), nil)
		for _, after := range []int64{0, all[1].Position} {
			entries, err := log.ReadLog(t.Context(), shard, after, 5)
			check.That(t, errors.Is(err, storage.ErrLogPruned), "behind %d: got %v, %v; want %v", after, entries, err, storage.ErrLogPruned)
		}
	}
	next := s.write(t, shard, 1)
	entries := readLog(t, log, shard, last, 5)
	if len(entries) != 1 || entries[0].Position <= last || entries[0].Edge != next[0] {
		t.Errorf("after one more row: %+v, want %+v behind %d", entries, next[0], last)
	}
}

func (s relationLog) ShardsArePrunedApart(t *testing.T) {
	shards := len(s.ends(t))
	if shards == 1 {
		t.Skip("there is one shard")
	}
	log := s.log(t)
	first, shard := s.entries(t, 3)
	other := (shard + 1) % shards
	rows := s.write(t, other, 3)
	s.prune(t, shard, first[2].Position+100)
	entries := readLog(t, log, other, s.ends(t)[other]-3, 9)
	check.That(t, len(entries) == 3 && entries[0].Edge == rows[0], "got %+v, want %+v", entries, rows)
}

// A logged row, without its position.
type logged struct {
	side storage.Side
	row  storage.Edge
}

// A rowKey names a row.
type rowKey struct {
	side storage.Side
	pair storage.Pair
}

func (l logged) key() rowKey { return rowKey{l.side, l.row.Pair()} }

// log is the log of the store under test, if it has one.
func (h *harness) log(t *testing.T) logger {
	t.Helper()
	log, ok := h.store.(logger)
	if !ok || !log.HasLog() {
		t.Skip("this store has no relation_log")
	}
	return log
}

// ends are the last positions of all shards.
func (h *harness) ends(t *testing.T) []int64 {
	t.Helper()
	ends, err := endsOf(t.Context(), h.log(t), len(h.store.Ping(t.Context())))
	must.OK(t, err)
	return ends
}

func endsOf(ctx context.Context, log logger, shards int) ([]int64, error) {
	ends := make([]int64, shards)
	for shard := range ends {
		last, err := log.LastOfLog(ctx, shard)
		if err != nil {
			return nil, err
		}
		ends[shard] = last
	}
	return ends, nil
}

// loggedSince reads what all shards have logged, shard by shard, a few entries at a time.
func (h *harness) loggedSince(t *testing.T, ends []int64) []logged {
	t.Helper()
	rows, err := loggedBehind(t.Context(), h.log(t), ends)
	must.OK(t, err)
	return rows
}

func loggedBehind(ctx context.Context, log logger, ends []int64) ([]logged, error) {
	var rows []logged
	for shard, after := range ends {
		for {
			entries, err := log.ReadLog(ctx, shard, after, 400)
			if err != nil {
				return nil, err
			}
			for _, entry := range entries {
				if entry.Position <= after {
					return nil, errors.New("positions do not rise")
				}
				after = entry.Position
				if entry.IsEdge() {
					rows = append(rows, logged{entry.Side, entry.Edge})
				}
			}
			if len(entries) < 400 {
				break
			}
		}
	}
	return rows, nil
}

// wantLogged checks that exactly these rows were logged, the rows of each pair in this order.
func wantLogged(t *testing.T, got, want []logged) {
	t.Helper()
	g, w := byKey(got), byKey(want)
	for where := range w {
		wantList(t, "rows logged", g[where], w[where])
	}
	wantEqual(t, "number of rows logged", len(got), len(want))
}

func byKey(rows []logged) map[rowKey][]logged {
	keys := map[rowKey][]logged{}
	for _, row := range rows {
		keys[row.key()] = append(keys[row.key()], row)
	}
	return keys
}

// wantTablesOf checks that the rows between users that were logged last are the rows in the
// tables.
func (s relationLog) wantTablesOf(t *testing.T, users []storage.UserID, rows []logged) {
	t.Helper()
	last := map[rowKey]storage.Edge{}
	for _, row := range rows {
		last[row.key()] = row.row
	}
	eachSide(t, func(t *testing.T, side storage.Side) {
		var pairs []storage.Pair
		for _, from := range users {
			pairs = append(pairs, pairsFrom(from, users...)...)
		}
		results := storage.EdgeLookups[side].Read(t.Context(), s.store, pairs...)
		answers(t, results, len(pairs))
		for i, pair := range pairs {
			row, there := last[rowKey{side, pair}]
			check.That(t, results[i].Found == there && results[i].Value == row, "%v: the table has %+v, the log %+v", pair, results[i], row)
		}
	})
}

// entries writes n rows of one owner and returns the entries that its shard logged.
func (s relationLog) entries(t *testing.T, n int) ([]storage.LogEntry, int) {
	t.Helper()
	ends := s.ends(t)
	shard := int(s.given.Load()) % len(ends)
	rows := s.write(t, shard, n)
	entries := readLog(t, s.log(t), shard, ends[shard], n+1)
	must.That(t, len(entries) == n, "%d entries for %d rows", len(entries), n)
	for i, entry := range entries {
		wantEqual(t, "row", entry.Edge, rows[i])
	}
	return entries, shard
}

// write writes n rows to a shard, one by one.
func (s relationLog) write(t *testing.T, shard, n int) []storage.Edge {
	t.Helper()
	rows := make([]storage.Edge, n)
	owner := s.idOn(t, shard)
	for i := range rows {
		rows[i] = follow(storage.Forward, owner, s.id(), i)
		s.apply(t, storage.Forward, rows[i])
	}
	return rows
}

func (s relationLog) prune(t *testing.T, shard int, upTo int64) {
	t.Helper()
	must.OK(t, s.log(t).PruneLog(t.Context(), shard, upTo))
}

func readLog(t *testing.T, log storage.LogReader, shard int, after int64, limit int) []storage.LogEntry {
	t.Helper()
	entries, err := log.ReadLog(t.Context(), shard, after, limit)
	must.That(t, err == nil, "shard %d behind %d: %v", shard, after, err)
	return entries
}
