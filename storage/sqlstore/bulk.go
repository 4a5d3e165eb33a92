package sqlstore

import (
	"database/sql"
	"slices"

	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sqlstore/internal/db"
)

// bulkSize is how many edges a shard's share needs for the bulk path.
const bulkSize = 64

// inKeyOrder returns the order of edges in the side's primary key, as indexes, or nil when a pair
// occurs twice.
func inKeyOrder(side storage.Side, edges []storage.Edge) []int {
	order := make([]int, len(edges))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return side.Compare(edges[a].Pair(), edges[b].Pair()) })
	for k := 1; k < len(order); k++ {
		if edges[order[k-1]].Pair() == edges[order[k]].Pair() {
			return nil
		}
	}
	return order
}

// applyBulk is apply for many edges, most of which are expected to be new: it
// inserts without looking first. Since the owners are locked, an insert that wrote every row proves
// that all of them were missing. An insert that did not is undone, and its rows are read and judged
// one by one. So are rows from which others may follow.
func (w *writer) applyBulk(side storage.Side, edges []storage.Edge, order []int, rule storage.Rule) ([]storage.Applied, error) {
	applied := make([]storage.Applied, len(edges))
	diffs := make(judge.Diffs)
	hopeful := true
	for at := range slices.Chunk(order, w.store.sql.MaxRows) {
		chunk := make([]storage.Edge, len(at))
		for k, i := range at {
			chunk[k] = edges[i]
		}
		if hopeful && !slices.ContainsFunc(chunk, func(e storage.Edge) bool { return judge.HasConsequences(side, e.Type) }) {
			n, err := w.insertBulk(side, chunk, diffs)
			if err != nil {
				return nil, err
			}
			if n == len(chunk) {
				for k, i := range at {
					applied[i] = storage.Applied{Row: chunk[k], Changed: true}
				}
				continue
			}
			hopeful = n > len(chunk)/2 // if most rows are old, looking first is cheaper
		}
		judged, err := w.applyRows(side, chunk, rule, diffs)
		if err != nil {
			return nil, err
		}
		for k, i := range at {
			applied[i] = judged[k]
		}
	}
	w.unchanged(diffs)
	return applied, w.addCounts(diffs)
}

var sqlInsertEdges = db.BySide[db.Text]{
	storage.Forward: {
		MySQL: `
INSERT IGNORE INTO following (from_user_id, to_user_id, type, update_time)
VALUES (?, ?, ?, ?)`,
		SQLite: `
INSERT OR IGNORE INTO following (from_user_id, to_user_id, type, update_time)
VALUES (?, ?, ?, ?)`,
	},
	storage.Inverse: {
		MySQL: `
INSERT IGNORE INTO follower (to_user_id, from_user_id, type, update_time)
VALUES (?, ?, ?, ?)`,
		SQLite: `
INSERT OR IGNORE INTO follower (to_user_id, from_user_id, type, update_time)
VALUES (?, ?, ?, ?)`,
	},
	storage.Requests: {
		MySQL: `
INSERT IGNORE INTO friend_request (from_user_id, to_user_id, type, update_time)
VALUES (?, ?, ?, ?)`,
		SQLite: `
INSERT OR IGNORE INTO friend_request (from_user_id, to_user_id, type, update_time)
VALUES (?, ?, ?, ?)`,
	},
	storage.Inbox: {
		MySQL: `
INSERT IGNORE INTO friend_request_inbox (to_user_id, from_user_id, type, update_time)
VALUES (?, ?, ?, ?)`,
		SQLite: `
INSERT OR IGNORE INTO friend_request_inbox (to_user_id, from_user_id, type, update_time)
VALUES (?, ?, ?, ?)`,
	},
}

// insertBulk inserts edges, all of them or none, and notes how that changes the counts. It returns
// how many could be inserted.
func (w *writer) insertBulk(side storage.Side, edges []storage.Edge, diffs judge.Diffs) (int, error) {
	if _, err := w.Exec(0, "SAVEPOINT hopeful"); err != nil {
		return 0, err
	}
	n, err := w.Exec(len(edges), db.Listed(w.store.sql.Text(sqlInsertEdges[side]), len(edges)), edgeArguments(side, edges)...)
	if err != nil {
		return 0, err
	}
	allowed := false
	if n == len(edges) {
		if allowed, err = w.meetOtherSide(side, edges, diffs); err != nil {
			return 0, err
		}
		if !allowed {
			n--
		}
	}
	if !allowed {
		if _, err := w.Exec(0, "ROLLBACK TO SAVEPOINT hopeful"); err != nil {
			return 0, err
		}
	}
	// On SQLite savepoints of one name pile up, and each one slows every write.
	if _, err := w.Exec(0, "RELEASE SAVEPOINT hopeful"); err != nil {
		return 0, err
	}
	if !allowed {
		return n, nil
	}
	return n, w.wrote(side, edges)
}

// meetOtherSide looks up, in the other table of follows, what the peers of new edges are to the
// owners. The new edges come in key order. It notes the differences of counts, or reports that one
// of the edges must not be written: a follow of a user who blocks its owner.
func (w *writer) meetOtherSide(side storage.Side, edges []storage.Edge, diffs judge.Diffs) (allowed bool, err error) {
	var others map[storage.Pair]storage.EdgeType
	if side.Truth() == storage.Forward {
		if others, err = w.otherSide(side, edges); err != nil {
			return false, err
		}
		for _, kind := range others {
			if side == storage.Forward && kind == storage.Blocking {
				return false, nil
			}
		}
	}
	for len(edges) > 0 {
		owner, n := side.Owner(edges[0].Pair()), 0
		d := diffs[owner] // also without a difference: its version rises
		for ; n < len(edges) && side.Owner(edges[n].Pair()) == owner; n++ {
			e := edges[n]
			switch side {
			case storage.Forward:
				d.Following += judge.Counted(e.Type)
			case storage.Inverse:
				d.Followed(judge.Counted(e.Type), e)
			}
			if len(others) > 0 {
				d.Friend += judge.Counted(e.Type) * judge.Counted(others[storage.Pair{From: e.To, To: e.From}])
			}
		}
		diffs[owner] = d
		edges = edges[n:]
	}
	return true, nil
}

// otherSide reads the types of the edges in the opposite direction of those edges that are follows, on the
// shard of their owners. Edges that do not exist are left out.
func (w *writer) otherSide(side storage.Side, edges []storage.Edge) (map[storage.Pair]storage.EdgeType, error) {
	other := side ^ storage.Inverse
	keys := make([]storage.Pair, 0, len(edges)) // from the owner to the peer
	for _, e := range edges {
		if e.Type == storage.Following {
			keys = append(keys, storage.Pair{From: side.Owner(e.Pair()), To: side.Peer(e.Pair())})
		}
	}
	types := make(map[storage.Pair]storage.EdgeType)
	for chunk := range slices.Chunk(keys, w.store.maxPairs(storage.Forward, keys)) {
		text, args := w.store.lookStatement([]storage.Side{other}, chunk)
		err := w.Read(len(chunk), text, args, func(rows *sql.Rows) error {
			var owner, peer storage.UserID
			var e storage.Edge
			err := rows.Scan(&other, &owner, &peer, &e.Type, &e.UpdateTime)
			types[other.Pair(owner, peer)] = e.Type
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return types, nil
}
