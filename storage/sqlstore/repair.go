package sqlstore

import (
	"context"
	"database/sql"
	"maps"
	"slices"

	"kith/storage"
)

// RepairInverse implements [storage.Repairer], in the lock order of [Store.Apply].
func (s *Store) RepairInverse(ctx context.Context, repairs []storage.Repair) []storage.Result[bool] {
	results := make([]storage.Result[bool], len(repairs))
	if len(repairs) == 0 {
		return results
	}
	parts := s.split(len(repairs), s.sql.maxRows, func(i int) int { return s.place.Of(repairs[i].Pair.To) })
	atOnce(parts, func(p part) {
		share := make([]storage.Repair, len(p.at))
		for j, i := range p.at {
			share[j] = repairs[i]
		}
		var done []bool
		err := s.transact(ctx, "repair", p.shard, func(w *writer) (err error) {
			done, err = w.repair(share)
			return err
		})
		for j, i := range p.at {
			if err != nil {
				results[i].Err = err
				continue
			}
			results[i] = storage.Result[bool]{Value: done[j], Found: true}
		}
	})
	return results
}

func (w *writer) repair(repairs []storage.Repair) ([]bool, error) {
	edges := make([]storage.Edge, len(repairs))
	for i, r := range repairs {
		edges[i] = storage.Edge{From: r.Pair.From, To: r.Pair.To}
	}
	if err := w.lockCounts(ownersOf(storage.Inverse, edges)); err != nil {
		return nil, err
	}
	rows, err := w.oldRows(storage.Inverse, edges)
	if err != nil {
		return nil, err
	}
	done := make([]bool, len(repairs))
	diffs := make(map[storage.UserID]int64)
	var write []storage.Edge
	for i, r := range repairs {
		old, exists := rows[r.Pair]
		if !exists {
			old = storage.Edge{From: r.Pair.From, To: r.Pair.To}
		}
		if old.Type != r.Observed.Type || old.UpdateTime != r.Observed.UpdateTime {
			continue
		}
		done[i] = true
		want := storage.Edge{From: r.Pair.From, To: r.Pair.To, Type: r.Want.Type, UpdateTime: r.Want.UpdateTime}
		if want == old {
			continue
		}
		rows[r.Pair] = want
		write = append(write, want)
		diffs[r.Pair.To] += counted(want.Type) - counted(old.Type)
	}
	if len(write) == 0 {
		return done, nil
	}
	if err := w.upsertEdges(storage.Inverse, lastOfEach(storage.Inverse, write)); err != nil {
		return nil, err
	}
	return done, w.addCounts(storage.Inverse, diffs)
}

// Served by the list index.
const sqlCountEdges = `
SELECT {owner}, COUNT(*)
FROM {table}
WHERE type = 1 AND {owner} IN (`

// Recount implements [storage.Repairer].
func (s *Store) Recount(ctx context.Context, side storage.Side, users []storage.UserID) []storage.Result[bool] {
	return lookUp(s, users, s.sql.maxKeys, s.place.Of, func(shard int, users []storage.UserID, found func(storage.UserID, bool)) error {
		err := s.transact(ctx, "recount", shard, func(w *writer) error { return w.recount(side, users) })
		for _, id := range users {
			found(id, err == nil)
		}
		return err
	})
}

func (w *writer) recount(side storage.Side, users []storage.UserID) error {
	users = slices.Sorted(slices.Values(users))
	if err := w.lockCounts(users); err != nil {
		return err
	}
	diffs := make(map[storage.UserID]int64, len(users))
	err := w.read(len(users), sqlCounts+marks(len(users))+")", arguments(users), func(rows *sql.Rows) error {
		var id storage.UserID
		var n storage.Counts
		err := rows.Scan(&id, &n.Following, &n.Follower, &n.Version)
		diffs[id] = -n.Of(side)
		return err
	})
	if err != nil {
		return err
	}
	text := tableOf(side).spell(sqlCountEdges) + marks(len(users)) + ") GROUP BY " + tableOf(side).owner
	err = w.read(len(users), text, arguments(users), func(rows *sql.Rows) error {
		var id storage.UserID
		var n int64
		err := rows.Scan(&id, &n)
		diffs[id] += n
		return err
	})
	if err != nil {
		return err
	}
	maps.DeleteFunc(diffs, func(_ storage.UserID, diff int64) bool { return diff == 0 })
	if len(diffs) == 0 {
		return nil
	}
	return w.addCounts(side, diffs)
}
