package faults_test

import (
	"cmp"
	"context"
	"database/sql"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"kith/internal/must"
	"kith/reconcile"
	"kith/replication"
	"kith/storage"
)

// drift is a load that makes the sides differ. One of twenty writes never reaches the inverse side,
// and another is replaced by a change of a row of follower by hand. The binlogs show both.
type drift struct {
	*graph
	byHand []*sql.DB      // by shard
	rows   []storage.Edge // rows of the file, each changed by hand once
	next   atomic.Int64
}

// driftOf prepares a graph for drift.
func driftOf(t testing.TB, g *graph) *drift {
	t.Helper()
	d := &drift{graph: g, rows: ofData(g.rows(t, storage.Inverse))}
	rand.New(rand.NewPCG(9, 2)).Shuffle(len(d.rows), func(i, k int) { d.rows[i], d.rows[k] = d.rows[k], d.rows[i] })
	for _, dsn := range g.dsns {
		db, err := sql.Open("mysql", dsn+"?interpolateParams=true&tx_isolation=%27READ-COMMITTED%27")
		must.OK(t, err)
		t.Cleanup(func() { _ = db.Close() })
		d.byHand = append(d.byHand, db)
	}
	return d
}

// load writes at a rate until the returned function is called.
func (d *drift) load(t testing.TB, perSecond int) (stop func() (written int)) {
	t.Helper()
	return d.writing(t, perSecond, func(ctx context.Context, mode *replication.Synchronous, r *rand.Rand) error {
		switch r.IntN(20) {
		case 0:
			_, err := d.changeOne(ctx, r, storage.ChangeOptions{})
			return err
		case 1:
			return d.meddle(ctx, r)
		}
		return d.writeOne(ctx, mode, r)
	})
}

// lose makes an edge that is missing on the inverse side.
func (d *drift) lose(t testing.TB) storage.Edge {
	t.Helper()
	r := rand.New(rand.NewPCG(rand.Uint64(), 1))
	for {
		written, err := d.changeOne(t.Context(), r, storage.ChangeOptions{})
		must.OK(t, err)
		if written.Changed && written.Row.Type == storage.Following {
			return written.Row
		}
	}
}

// meddle changes a row of follower, together with the counts, as somebody with a database client
// might. It deletes the row, makes it a block, makes it newer, or adds one.
func (d *drift) meddle(ctx context.Context, r *rand.Rand) error {
	n := int(d.next.Add(1))
	e := d.rows[n%len(d.rows)]
	text, by := "REPLACE INTO follower (from_user_id, to_user_id, type, update_time) VALUES (?, ?, ?, ?)", 0
	switch n % 4 {
	case 0:
		text, by = "DELETE FROM follower WHERE from_user_id = ? AND to_user_id = ? AND type = ? AND update_time = ?", -1
	case 1:
		e.Type, by = storage.Blocking, -1
	case 2:
		e.UpdateTime += storage.Micros(1 + r.Int64N(1e9))
	case 3: // an edge that no other writer makes; its rows are not from the file
		e.From, by = storage.UserID(2*firstOther+n), 1
	}
	tx, err := d.byHand[d.shardMap.Of(e.To)].BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	// Counts come first, because every writer locks them first.
	if _, err := tx.ExecContext(ctx, `UPDATE user_counts SET follower_count = follower_count + ?, version = version + 1,
		friend_count = friend_count + ? * (SELECT COUNT(*) FROM following WHERE from_user_id = ? AND to_user_id = ? AND type = 1)
		WHERE user_id = ?`, by, by, int64(e.To), int64(e.From), int64(e.To)); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, text, int64(e.From), int64(e.To), int64(e.Type), int64(e.UpdateTime)); err != nil {
		return err
	}
	return tx.Commit()
}

// differing reads both tables and returns the edges whose rows are not equal. Nothing may be
// written at the same time.
func (g *graph) differing(t testing.TB) []trace {
	t.Helper()
	forward, inverse := g.rows(t, storage.Forward), g.rows(t, storage.Inverse)
	var list []trace
	for len(forward) > 0 || len(inverse) > 0 {
		order := 0
		switch {
		case len(forward) == 0:
			order = 1
		case len(inverse) == 0:
			order = -1
		default:
			a, b := forward[0], inverse[0]
			order = cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
		}
		switch {
		case order < 0:
			list = append(list, trace{kind: reconcile.Missing, pair: forward[0].Pair()})
			forward = forward[1:]
		case order > 0:
			list = append(list, trace{kind: reconcile.Extra, pair: inverse[0].Pair()})
			inverse = inverse[1:]
		default:
			if forward[0].Type != inverse[0].Type {
				list = append(list, trace{kind: reconcile.WrongType, pair: forward[0].Pair()})
			} else if forward[0] != inverse[0] {
				list = append(list, trace{kind: reconcile.WrongTime, pair: forward[0].Pair()})
			}
			forward, inverse = forward[1:], inverse[1:]
		}
	}
	return list
}

// differ reports how many of some edges are not equal on both sides.
func (g *graph) differ(t testing.TB, list []trace) int {
	t.Helper()
	var pairs []storage.Pair
	for _, d := range list {
		if d.kind != reconcile.WrongCount {
			pairs = append(pairs, d.pair)
		}
	}
	slices.SortFunc(pairs, func(a, b storage.Pair) int { return cmp.Compare(a.To, b.To) })
	found, err := reconcile.Differences(t.Context(), g.Store, reconcile.KeysOf(storage.Forward, pairs))
	must.OK(t, err)
	return len(found)
}
