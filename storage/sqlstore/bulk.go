package sqlstore

import (
	"slices"

	"kith/storage"
)

// bulkSize is how many edges a shard's share needs for the bulk path.
const bulkSize = 64

// inKeyOrder returns the order in which edges stand in the side's primary key,
// as indexes, or nil when a pair occurs twice.
func inKeyOrder(side storage.Side, edges []storage.Edge) []int {
	order := make([]int, len(edges))
	for i := range order {
		order[i] = i
	}
	compare := byKey(side)
	slices.SortFunc(order, func(a, b int) int { return compare(edges[a].Pair(), edges[b].Pair()) })
	for k := 1; k < len(order); k++ {
		if edges[order[k-1]].Pair() == edges[order[k]].Pair() {
			return nil
		}
	}
	return order
}

// applyBulk is apply for many edges, most of which are expected to be new: it
// inserts without looking first. Since the owners are locked, an insert that
// wrote every row proves that all of them were missing. One that did not is
// taken back, and its rows are read and judged one by one.
func (w *writer) applyBulk(side storage.Side, edges []storage.Edge, order []int, rule storage.Rule) ([]storage.Applied, error) {
	t := tableOf(side)
	applied := make([]storage.Applied, len(edges))
	diffs := make(map[storage.UserID]int64)
	hopeful := true
	for at := range slices.Chunk(order, w.store.sql.maxRows) {
		chunk := make([]storage.Edge, len(at))
		for k, i := range at {
			chunk[k] = edges[i]
		}
		if hopeful {
			if _, err := w.exec(0, "SAVEPOINT hopeful"); err != nil {
				return nil, err
			}
			n, err := w.exec(len(chunk), w.store.sql.insertIgnore+" INTO "+t.name+" ("+t.columns+") VALUES "+tuples(len(chunk), 4),
				edgeArguments(side, chunk)...)
			if err != nil {
				return nil, err
			}
			if n < len(chunk) {
				if _, err := w.exec(0, "ROLLBACK TO SAVEPOINT hopeful"); err != nil {
					return nil, err
				}
			}
			// On SQLite savepoints of one name pile up, and each one slows every write.
			if _, err := w.exec(0, "RELEASE SAVEPOINT hopeful"); err != nil {
				return nil, err
			}
			if n == len(chunk) {
				if err := w.log(side, chunk); err != nil {
					return nil, err
				}
				for k, i := range at {
					applied[i] = storage.Applied{Row: chunk[k], Changed: true}
					diffs[side.Owner(chunk[k].Pair())] += counted(chunk[k].Type)
				}
				continue
			}
			hopeful = n > len(chunk)/2 // mostly old rows: looking first is cheaper
		}
		rows, err := w.oldRows(side, chunk)
		if err != nil {
			return nil, err
		}
		judged, err := w.judge(side, chunk, rule, rows)
		if err != nil {
			return nil, err
		}
		for k, i := range at {
			applied[i] = judged[k]
		}
	}
	return applied, w.addCounts(side, diffs)
}
