package sqlstore

import (
	"context"

	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sqlstore/internal/db"
)

// ending is an edge that ends, on the tables of one shard.
type ending struct {
	edge    storage.Edge // the tombstone, at the earliest time that it may have
	sides   []storage.Side
	row     storage.Micros // the time of the user's row
	settled bool           // the other side has it already: it is written with its time, or not at all
}

// EndEdges implements [storage.Store]. Rows of other users on other shards come first, all these
// shards at once. Then comes one transaction for what is on the user's shard.
func (s *Store) EndEdges(ctx context.Context, user storage.UserID, rows []storage.Row, at storage.Micros) []storage.Result[storage.Edge] {
	return db.ReroutedAll(ctx, s.db, len(rows), func(chosen []int) []storage.Result[storage.Edge] {
		return s.endByShard(ctx, user, storage.Chosen(rows, chosen), at)
	})
}

func (s *Store) endByShard(ctx context.Context, user storage.UserID, rows []storage.Row, at storage.Micros) []storage.Result[storage.Edge] {
	results := make([]storage.Result[storage.Edge], len(rows))
	own := s.shards.Of(user)
	endings := make([]ending, len(rows))
	var elsewhere []int
	for i, row := range rows {
		pair := row.Edge.Pair()
		endings[i] = ending{edge: pair.Edge(storage.None, max(at, row.Edge.UpdateTime+1)), sides: []storage.Side{row.Side, row.Side.Other()}, row: row.Edge.UpdateTime}
		if s.shards.Of(row.Side.Other().Owner(pair)) != own {
			endings[i].sides = endings[i].sides[1:]
			elsewhere = append(elsewhere, i)
		}
	}
	endOthers := func(chosen []int) {
		if len(chosen) == 0 {
			return
		}
		shardOf := func(j int) int {
			i := chosen[j]
			return s.shards.Of(endings[i].sides[0].Owner(rows[i].Edge.Pair()))
		}
		db.AtOnce(s.db.Split(len(chosen), len(chosen), shardOf), func(p db.Part) {
			s.endOn(ctx, p.Shard, endings, storage.Chosen(chosen, p.At), results)
		})
	}
	endOthers(elsewhere)
	for _, i := range elsewhere {
		endings[i] = ending{edge: results[i].Value, sides: []storage.Side{rows[i].Side}, settled: true}
	}
	var here []int
	for i, r := range results {
		if r.Err == nil {
			here = append(here, i)
		}
	}
	if len(here) > 0 {
		s.endOn(ctx, own, endings, here, results)
	}
	var later []int // the other user is being deleted, too, and has ended the user's row at a later time
	for _, i := range elsewhere {
		if r := results[i]; r.Found && r.Value.UpdateTime > endings[i].edge.UpdateTime {
			endings[i] = ending{edge: r.Value, sides: []storage.Side{rows[i].Side.Other()}, settled: true}
			later = append(later, i)
		}
	}
	endOthers(later)
	for _, i := range elsewhere {
		results[i].Value = endings[i].edge // it has been written, whatever has become of the user's row
	}
	return results
}

// endOn ends some edges on one shard.
func (s *Store) endOn(ctx context.Context, shard int, endings []ending, at []int, results []storage.Result[storage.Edge]) {
	share := storage.Chosen(endings, at)
	ended, err := transactOf(ctx, s, "end", shard, func(w *writer) ([]storage.Result[storage.Edge], error) { return w.end(share) })
	place(results, at, ended, err)
}

// end is the transaction, in the lock order of [Store.Apply].
func (w *writer) end(endings []ending) ([]storage.Result[storage.Edge], error) {
	j := w.store.judge()
	if err := w.lockAndLookEndings(j, endings); err != nil {
		return nil, err
	}
	ended := make([]storage.Result[storage.Edge], len(endings))
	done := make(map[storage.Edge]bool, len(endings)) // without their times: both sides of an edge may be among them
	for i, e := range endings {
		key := e.edge.Pair().Edge(storage.None, storage.Micros(e.sides[0].Truth()))
		now := j.Now(e.sides[0], e.edge.Pair())
		switch {
		case e.settled:
			a := j.Apply(e.sides[0], e.edge, storage.IfNewer)
			ended[i] = storage.Result[storage.Edge]{Value: a.Row, Found: a.Row.Type == storage.None}
		case done[key], len(e.sides) == 1 && now.Type == storage.None && now.UpdateTime > e.row: // the other user may have ended both rows
			ended[i] = storage.Result[storage.Edge]{Value: now, Found: true}
		default:
			done[key] = true
			ended[i] = storage.Result[storage.Edge]{Value: j.End(e.edge.Pair(), e.edge.UpdateTime, e.sides...), Found: true}
		}
	}
	diffs := make(judge.Diffs)
	j.AddTo(diffs)
	w.unchanged(diffs)
	if err := w.write(j); err != nil {
		return nil, err
	}
	return ended, w.addCounts(diffs)
}

// lockAndLookEndings locks the counts of all owners, and reads the rows that decide: each table once.
func (w *writer) lockAndLookEndings(j *judge.Judge, endings []ending) error {
	var rows []storage.Row
	var asked [len(storage.AllSides)]bool
	for _, e := range endings {
		for _, side := range e.sides {
			rows, asked[side] = append(rows, storage.Row{Side: side, Edge: e.edge}), true
		}
	}
	var sides []storage.Side
	if asked[storage.Forward] || asked[storage.Inverse] { // both decide who are friends
		j.Marked = make(map[storage.Pair]bool)
		sides = append(sides, storage.Forward, storage.Inverse, db.MarkSide)
	}
	for _, side := range []storage.Side{storage.Requests, storage.Inbox} {
		if asked[side] {
			sides = append(sides, side)
		}
	}
	return w.lockAndLook(j, rows, sides...)
}

// lockAndLook locks the counts of the owners of rows, and reads the rows: those that name an item, and for the others those of their two
// users in some tables.
func (w *writer) lockAndLook(j *judge.Judge, rows []storage.Row, sides ...storage.Side) error {
	var owners []storage.UserID
	var keys []storage.Pair
	var ofItems [len(storage.AllSides)][]storage.Pair
	for _, r := range rows {
		pair := r.Edge.Pair()
		owners = append(owners, r.Side.Owner(pair))
		if r.Side.HasItem() {
			ofItems[r.Side] = append(ofItems[r.Side], pair)
		} else {
			keys = append(keys, storage.Pair{From: r.Side.Owner(pair), To: r.Side.Peer(pair)})
		}
	}
	if err := w.lockCounts(storage.Distinct(owners)); err != nil {
		return err
	}
	if err := w.look(j, keys, sides...); err != nil {
		return err
	}
	for side, pairs := range ofItems {
		if err := w.lookRows(j, storage.Side(side), pairs); err != nil {
			return err
		}
	}
	return nil
}
