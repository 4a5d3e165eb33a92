package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"

	"kith/storage"
)

// Apply implements [storage.EdgeWriter]. On each shard it is one transaction, in
// the one lock order that makes counts exact:
//
//  1. lock the user_counts rows of all owners, in ascending order of id;
//  2. read the old rows, which nobody else can change now;
//  3. judge each edge by the rule and write what changed, in key order;
//  4. write the counts' differences between old and new types.
//
// Without the first step two writers of one new edge would both find it missing
// and count it twice.
func (s *Store) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Applied] {
	results := make([]storage.Result[storage.Applied], len(edges))
	if len(edges) == 0 {
		return results
	}
	parts := s.split(len(edges), len(edges), func(i int) int { return s.place.Of(side.Owner(edges[i].Pair())) })
	atOnce(parts, func(p part) {
		share := make([]storage.Edge, len(p.at))
		for j, i := range p.at {
			share[j] = edges[i]
		}
		var applied []storage.Applied
		err := s.transact(ctx, "apply."+side.String(), p.shard, func(w *writer) (err error) {
			if applied, err = w.apply(side, share, rule); err == nil && len(share) >= 1000 {
				err = w.shortenLog()
			}
			return err
		})
		for j, i := range p.at {
			if err != nil {
				results[i].Err = err
				continue
			}
			results[i] = storage.Result[storage.Applied]{Value: applied[j], Found: true}
		}
	})
	return results
}

// apply does the work of one shard's transaction.
func (w *writer) apply(side storage.Side, edges []storage.Edge, rule storage.Rule) ([]storage.Applied, error) {
	if err := w.lockCounts(ownersOf(side, edges)); err != nil {
		return nil, err
	}
	if len(edges) >= bulkSize {
		if order := inKeyOrder(side, edges); order != nil {
			return w.applyBulk(side, edges, order, rule)
		}
	}
	rows, err := w.oldRows(side, edges)
	if err != nil {
		return nil, err
	}
	return w.judge(side, edges, rule, rows)
}

// ownersOf returns the owners of edges, ascending, each once.
func ownersOf(side storage.Side, edges []storage.Edge) []storage.UserID {
	owners := make([]storage.UserID, len(edges))
	for i, e := range edges {
		owners[i] = side.Owner(e.Pair())
	}
	slices.Sort(owners)
	return slices.Compact(owners)
}

// Served by the primary key.
const sqlLockCounts = `
SELECT user_id
FROM user_counts
WHERE user_id IN (`

// lockCounts locks the counts of owners, in ascending order, making the rows of
// those who have none.
func (w *writer) lockCounts(owners []storage.UserID) error {
	for chunk := range slices.Chunk(owners, w.store.sql.maxKeys) {
		missing := make(map[storage.UserID]bool, len(chunk))
		for _, id := range chunk {
			missing[id] = true
		}
		text := sqlLockCounts + marks(len(chunk)) + ") ORDER BY user_id" + w.store.sql.forUpdate
		err := w.read(len(chunk), text, arguments(chunk), func(rows *sql.Rows) error {
			var id storage.UserID
			err := rows.Scan(&id)
			delete(missing, id)
			return err
		})
		if err != nil {
			return err
		}
		if len(missing) == 0 {
			continue
		}
		args := make([]any, 0, 4*len(missing))
		for _, id := range slices.Sorted(maps.Keys(missing)) {
			args = append(args, int64(id), 0, 0, 0)
		}
		text = w.store.sql.insertIgnore + sqlInsertCounts + tuples(len(missing), 4)
		if _, err := w.exec(len(missing), text, args...); err != nil {
			return err
		}
		// Whoever inserted such a row holds it until the end of its transaction: the
		// insert above has waited for that, and this statement locks what it left.
		text = sqlLockCounts + marks(len(chunk)) + ") ORDER BY user_id" + w.store.sql.forUpdate
		if err := w.read(len(chunk), text, arguments(chunk), func(*sql.Rows) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

// oldRows reads the rows of all pairs as they are, under the lock.
func (w *writer) oldRows(side storage.Side, edges []storage.Edge) (map[storage.Pair]storage.Edge, error) {
	pairs := make([]storage.Pair, len(edges))
	for i, e := range edges {
		pairs[i] = e.Pair()
	}
	slices.SortFunc(pairs, byKey(side))
	pairs = slices.Compact(pairs)
	rows := make(map[storage.Pair]storage.Edge, len(pairs))
	for chunk := range slices.Chunk(pairs, w.store.maxPairs(side, pairs)) {
		text, args := w.store.edgesStatement(side, chunk)
		err := w.read(len(chunk), text, args, func(r *sql.Rows) error {
			e, err := scanEdge(side, r)
			rows[e.Pair()] = e
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// judge applies the rule to each edge in turn, then writes the rows and counts
// that have changed.
func (w *writer) judge(side storage.Side, edges []storage.Edge, rule storage.Rule, rows map[storage.Pair]storage.Edge) ([]storage.Applied, error) {
	applied := make([]storage.Applied, len(edges))
	changed := make(map[storage.Pair]bool)
	diffs := make(map[storage.UserID]int64)
	for i, e := range edges {
		old, exists := rows[e.Pair()]
		if exists && (rule == storage.IfAbsent || e.UpdateTime <= old.UpdateTime) {
			applied[i] = storage.Applied{Row: old}
			continue
		}
		applied[i] = storage.Applied{Row: e, Changed: true}
		rows[e.Pair()] = e
		changed[e.Pair()] = true
		diffs[side.Owner(e.Pair())] += counted(e.Type) - counted(old.Type)
	}
	write := make([]storage.Edge, 0, len(changed))
	for p := range changed {
		write = append(write, rows[p])
	}
	slices.SortFunc(write, func(a, b storage.Edge) int { return byKey(side)(a.Pair(), b.Pair()) })
	if err := w.upsertEdges(side, write); err != nil {
		return nil, err
	}
	return applied, w.addCounts(side, diffs)
}

// counted is what an edge of a type adds to its counts.
func counted(t storage.EdgeType) int64 {
	if t == storage.Following {
		return 1
	}
	return 0
}

// byKey orders pairs as the side's primary key does.
func byKey(side storage.Side) func(a, b storage.Pair) int {
	return func(a, b storage.Pair) int {
		if c := cmp.Compare(side.Owner(a), side.Owner(b)); c != 0 {
			return c
		}
		return cmp.Compare(side.Peer(a), side.Peer(b))
	}
}

func (w *writer) upsertEdges(side storage.Side, edges []storage.Edge) error {
	t := tableOf(side)
	key := t.owner + ", " + t.peer
	for chunk := range slices.Chunk(edges, w.store.sql.maxRows) {
		text := "INSERT INTO " + t.name + " (" + t.columns + ") VALUES " + tuples(len(chunk), 4) +
			w.store.sql.upsert(key, "type = NEW.type, update_time = NEW.update_time")
		if _, err := w.exec(len(chunk), text, edgeArguments(side, chunk)...); err != nil {
			return err
		}
	}
	return w.log(side, edges)
}

func edgeArguments(side storage.Side, edges []storage.Edge) []any {
	args := make([]any, 0, 4*len(edges))
	for _, e := range edges {
		p := e.Pair()
		args = append(args, int64(side.Owner(p)), int64(side.Peer(p)), int64(e.Type), int64(e.UpdateTime))
	}
	return args
}

// addCounts adds differences to the counts of owners, whose rows are locked, and
// raises their versions.
func (w *writer) addCounts(side storage.Side, diffs map[storage.UserID]int64) error {
	column := tableOf(side).count
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(diffs)), w.store.sql.maxRows) {
		args := make([]any, 0, 2*len(chunk))
		for _, id := range chunk {
			args = append(args, int64(id), diffs[id])
		}
		text := "INSERT INTO user_counts (user_id, " + column + ") VALUES " + tuples(len(chunk), 2) +
			w.store.sql.upsert("user_id", column+" = "+column+" + NEW."+column+", version = version + 1")
		if _, err := w.exec(len(chunk), text, args...); err != nil {
			return err
		}
	}
	return nil
}
