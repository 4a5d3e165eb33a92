package sqlstore

import (
	"database/sql"
	"iter"
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
	order := storage.Indexes(len(edges))
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
// one by one. So are requests for follows, and rows from which others may follow.
func (w *writer) applyBulk(side storage.Side, edges []storage.Edge, order []int, rule storage.Rule) ([]storage.Changed, error) {
	applied := make([]storage.Changed, len(edges))
	diffs := make(judge.Diffs)
	hopeful := true
	for at := range slices.Chunk(order, w.store.sql.MaxRows) {
		chunk := storage.Chosen(edges, at)
		if hopeful && !slices.ContainsFunc(chunk, func(e storage.Edge) bool { return e.Type == storage.Requested || judge.HasConsequences(side, e.Type) }) {
			n, err := w.insertBulk(side, chunk, diffs)
			if err != nil {
				return nil, err
			}
			if n == len(chunk) {
				for k, i := range at {
					applied[i] = storage.Changed{Row: chunk[k], Changed: true}
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

var sqlInsertEdges = db.Both(`
INSERT OR IGNORE INTO {table} ({owner}, {peer}, type, update_time)
VALUES (?, ?, ?, ?)`).ForSides(storage.Sides[:]...)

// insertBulk inserts edges, all of them or none, and notes how that changes the counts. It returns
// how many could be inserted.
func (w *writer) insertBulk(side storage.Side, edges []storage.Edge, diffs judge.Diffs) (int, error) {
	if _, err := w.Exec(0, "SAVEPOINT hopeful"); err != nil {
		return 0, err
	}
	n, err := db.WriteRows(w.Tx, w.store.sql.Text(sqlInsertEdges[side]), edges, func(args []any, e storage.Edge) []any { return edgeArguments(args, side, e) })
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
	var others otherSide
	if side.Truth() == storage.Forward {
		if others, err = w.otherSide(side, edges); err != nil || others.blocked {
			return false, err
		}
	}
	for owner, edges := range byOwner(side, edges) {
		d := diffs[owner] // also without a difference: its version rises
		for _, e := range edges {
			switch side {
			case storage.Forward:
				d.Following += judge.Counted(e.Type)
			case storage.Inverse:
				d.Followed(judge.Counted(e.Type), e)
			}
		}
		d.Friend += followsAmong(side, edges, others.follows[owner])
		diffs[owner] = d
	}
	return true, nil
}

// byOwner divides edges, which are in key order, by their owners.
func byOwner(side storage.Side, edges []storage.Edge) iter.Seq2[storage.UserID, []storage.Edge] {
	return runs(edges, func(e storage.Edge) storage.UserID { return side.Owner(e.Pair()) })
}

// followsAmong counts the follows whose peers are in an ascending list.
func followsAmong(side storage.Side, edges []storage.Edge, list []storage.UserID) (n int64) {
	if len(list) == 0 {
		return 0
	}
	for _, e := range edges {
		if _, is := slices.BinarySearch(list, side.Peer(e.Pair())); is {
			n += judge.Counted(e.Type)
		}
	}
	return n
}

// otherSide is what the peers of new follows are to their owners, as the owners' shard knows.
type otherSide struct {
	follows map[storage.UserID][]storage.UserID // by owner, ascending: peers in the opposite direction of follows; perhaps others, too
	blocked bool                                // one of the follows is of a user who blocks its owner
}

// wholeList is how many times as long as what is asked of it a list may be to be read whole: an entry of a list takes an
// engine a tenth of what it takes to look one up.
const wholeList = 4

// Whole lists of follows and blocks. Served by {list}.
var sqlWholeLists = db.ForSides(`
SELECT {owner}, type, GROUP_CONCAT({peer})
FROM {table} /*! FORCE INDEX ({list}) */
WHERE {owner} IN (?) AND type IN (1, 2)
GROUP BY {owner}, type`, db.Follows...)

// otherSide reads the other side of edges, which are in key order and whose owners are locked: whole lists of owners of whose lists much is
// asked, and single edges of the others.
func (w *writer) otherSide(side storage.Side, edges []storage.Edge) (others otherSide, err error) {
	other := side ^ storage.Inverse
	others.follows = make(map[storage.UserID][]storage.UserID)
	asked := make(map[storage.UserID][]storage.Edge)
	var whole []storage.UserID
	var keys []storage.Pair // from the owner to the peer
	for owner, edges := range byOwner(side, edges) {
		if w.lengthOf(other, owner) <= wholeList*int64(len(edges)) {
			whole, asked[owner] = append(whole, owner), edges
		} else {
			keys = appendFollows(keys, side, edges)
		}
	}
	listsOf := func(owners []storage.UserID) (string, []any) { return db.In(sqlWholeLists[other], owners) }
	err = db.ReadChunks(w.Tx, whole, w.store.sql.MaxKeys, listsOf, func(rows *sql.Rows) error {
		var owner storage.UserID
		var kind storage.EdgeType
		var peers sql.RawBytes
		if err := rows.Scan(&owner, &kind, &peers); err != nil {
			return err
		}
		list, complete := parseIDs(peers, int(min(max(w.lengthOf(other, owner), 0), db.MaxForeseen)))
		slices.Sort(list)
		switch {
		case !complete:
			keys = appendFollows(keys, side, asked[owner])
		case kind == storage.Following:
			others.follows[owner] = list
		case side == storage.Forward:
			others.blocked = others.blocked || followsAmong(side, asked[owner], list) > 0
		}
		return nil
	})
	if err != nil {
		return others, err
	}
	edgesOf := func(keys []storage.Pair) (string, []any) { return w.store.lookStatement([]storage.Side{other}, keys) }
	err = db.ReadChunks(w.Tx, keys, w.store.maxPairs(storage.Forward, keys), edgesOf, eachLooked(func(_ storage.Side, e storage.Edge) {
		switch owner := other.Owner(e.Pair()); {
		case e.Type == storage.Following:
			others.follows[owner] = append(others.follows[owner], other.Peer(e.Pair()))
		case side == storage.Forward && e.Type == storage.Blocking:
			others.blocked = true
		}
	}))
	if err != nil {
		return others, err
	}
	for owner, list := range others.follows {
		others.follows[owner] = storage.Distinct(list)
	}
	return others, nil
}

// lengthOf is how long a list of a locked owner is, by its counts.
func (w *writer) lengthOf(side storage.Side, owner storage.UserID) int64 {
	if side == storage.Forward {
		return w.locked[owner].Following
	}
	return w.locked[owner].Follower
}

// appendFollows adds the pairs of follows, from the owner to the peer.
func appendFollows(keys []storage.Pair, side storage.Side, edges []storage.Edge) []storage.Pair {
	for _, e := range edges {
		if e.Type == storage.Following {
			keys = append(keys, storage.Pair{From: side.Owner(e.Pair()), To: side.Peer(e.Pair())})
		}
	}
	return keys
}
