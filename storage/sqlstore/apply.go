package sqlstore

import (
	"context"
	"database/sql"
	"maps"
	"slices"

	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sqlstore/internal/db"
)

// Apply implements [storage.EdgeWriter]. On each shard it is one transaction, in
// the one lock order that makes counts exact:
//
//  1. lock the user_counts rows of all owners, in ascending order of id;
//  2. read the rows that decide, which nobody else can change now;
//  3. judge each edge, and what follows from it, and write what changed, in key order;
//  4. write the counts' differences between old and new types.
//
// Without the first step two writers of one new edge would both find it missing
// and count it twice.
//
// Single edges of one owner that come at the same time share a transaction, see [db.GroupCommit].
func (s *Store) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Applied] {
	results := make([]storage.Result[storage.Applied], len(edges))
	if len(edges) == 0 {
		return results
	}
	parts := s.db.Split(len(edges), len(edges), func(i int) int { return s.place.Of(side.Owner(edges[i].Pair())) })
	db.AtOnce(parts, func(p db.Part) {
		share := make([]storage.Edge, len(p.At))
		for j, i := range p.At {
			share[j] = edges[i]
		}
		if len(share) == 1 {
			i := p.At[0]
			if applied, err := s.applyOne(ctx, p.Shard, side, share[0], rule); err != nil {
				results[i].Err = err
			} else {
				results[i] = storage.Result[storage.Applied]{Value: applied, Found: true}
			}
			return
		}
		var applied []storage.Applied
		err := s.transact(ctx, "apply."+side.String(), p.Shard, func(w *writer) (err error) {
			if applied, err = w.apply(side, share, rule); err == nil && len(share) >= 1000 {
				err = w.shortenLog()
			}
			return err
		})
		for j, i := range p.At {
			if err != nil {
				results[i].Err = err
				continue
			}
			results[i] = storage.Result[storage.Applied]{Value: applied[j], Found: true}
		}
	})
	return results
}

// judge makes one for a transaction.
func (s *Store) judge() *judge.Judge { return judge.New(s.requestTTL) }

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
	diffs := make(judge.Diffs)
	applied, err := w.applyRows(side, edges, rule, diffs)
	if err != nil {
		return nil, err
	}
	w.unchanged(diffs)
	return applied, w.addCounts(diffs)
}

// applyRows reads, judges and writes rows, and notes what that makes of the counts.
func (w *writer) applyRows(side storage.Side, edges []storage.Edge, rule storage.Rule, diffs judge.Diffs) ([]storage.Applied, error) {
	j := w.store.judge()
	keys := make([]storage.Pair, len(edges))
	for i, e := range edges {
		keys[i] = storage.Pair{From: side.Owner(e.Pair()), To: side.Peer(e.Pair())}
	}
	if err := w.look(j, keys, sidesFor(side, edges)...); err != nil {
		return nil, err
	}
	applied := make([]storage.Applied, len(edges))
	for i, e := range edges {
		applied[i] = j.Apply(side, e, rule)
	}
	j.AddTo(diffs)
	return applied, w.write(j)
}

// sidesFor lists the tables that decide what becomes of edges.
func sidesFor(side storage.Side, edges []storage.Edge) []storage.Side {
	switch {
	case side == storage.Requests:
		return storage.Sides[storage.Requests:storage.Inbox]
	case side == storage.Inbox:
		return storage.Sides[:]
	case slices.ContainsFunc(edges, func(e storage.Edge) bool { return judge.HasConsequences(side, e.Type) }):
		return storage.Sides[:storage.Inbox]
	}
	return storage.Sides[:storage.Requests]
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

const (
	// Served by the primary key.
	sqlLockCounts = `
SELECT user_id, following_count, follower_count, friend_count, version, packed
FROM user_counts
WHERE user_id IN (`

	sqlInsertNoCounts = ` INTO user_counts (user_id)
VALUES `
)

// lockCounts locks the counts of owners, in ascending order, making the rows of
// those who have none.
func (w *writer) lockCounts(owners []storage.UserID) error {
	for chunk := range slices.Chunk(owners, w.store.sql.MaxKeys) {
		missing := make(map[storage.UserID]bool, len(chunk))
		for _, id := range chunk {
			missing[id] = true
		}
		text := sqlLockCounts + db.Marks(len(chunk)) + ") ORDER BY user_id" + w.store.sql.ForUpdate
		err := w.Read(len(chunk), text, db.Arguments(chunk), func(rows *sql.Rows) error {
			id, err := w.scanLocked(rows)
			delete(missing, id)
			return err
		})
		if err != nil {
			return err
		}
		if len(missing) == 0 {
			continue
		}
		text = w.store.sql.InsertIgnore + sqlInsertNoCounts + db.Tuples(len(missing), 1)
		if _, err := w.Exec(len(missing), text, db.Arguments(slices.Sorted(maps.Keys(missing)))...); err != nil {
			return err
		}
		// Whoever inserted such a row holds it until the end of its transaction: the
		// insert above has waited for that, and this statement locks what it left.
		text = sqlLockCounts + db.Marks(len(chunk)) + ") ORDER BY user_id" + w.store.sql.ForUpdate
		if err := w.Read(len(chunk), text, db.Arguments(chunk), func(rows *sql.Rows) error {
			_, err := w.scanLocked(rows)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// scanLocked reads a row of sqlLockCounts.
func (w *writer) scanLocked(rows *sql.Rows) (id storage.UserID, err error) {
	var n storage.Counts
	var flags int64
	err = rows.Scan(&id, &n.Following, &n.Follower, &n.Friend, &n.Version, &flags)
	w.noteLocked(id, n, flags)
	return id, err
}

// look reads rows as they are, under the lock, in one statement: those of each owner
// (From) towards each peer (To), in some of the tables.
func (w *writer) look(j *judge.Judge, keys []storage.Pair, sides ...storage.Side) error {
	slices.SortFunc(keys, storage.Forward.Compare)
	keys = slices.Compact(keys)
	for chunk := range slices.Chunk(keys, w.store.maxPairs(storage.Forward, keys)) {
		text, args := w.store.lookStatement(sides, chunk)
		if err := w.Read(len(chunk), text, args, scanInto(j)); err != nil {
			return err
		}
	}
	return nil
}

// scanInto tells a judge of rows of a lookStatement.
func scanInto(j *judge.Judge) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		var side storage.Side
		var owner, peer storage.UserID
		var e storage.Edge
		if err := rows.Scan(&side, &owner, &peer, &e.Type, &e.UpdateTime); err != nil {
			return err
		}
		pair := side.Pair(owner, peer)
		if side == db.MarkSide {
			j.Marked[pair] = true
			return nil
		}
		e.From, e.To = pair.From, pair.To
		j.Know(side, e)
		return nil
	}
}

// lookStatement spells the look-up of rows, more simply where they have one owner. Served by
// the primary keys, which MariaDB has to be told: for owners with few rows it takes the list
// indexes, and reads them all.
func (s *Store) lookStatement(sides []storage.Side, keys []storage.Pair) (text string, args []any) {
	if !haveOneOwner(storage.Forward, keys) {
		text, repeats := s.sql.RowsOf(sides, len(keys))
		args = make([]any, 0, 2*len(keys)*repeats)
		for range repeats {
			for _, k := range keys {
				args = append(args, int64(k.From), int64(k.To))
			}
		}
		return text, args
	}
	args = make([]any, 0, (len(keys)+1)*len(sides))
	peers := db.Marks(len(keys)) + ")"
	for i, side := range sides {
		if i > 0 {
			text += "\nUNION ALL"
		}
		t := db.TableOf(side)
		text += t.Rows + s.sql.ByKey + "\nWHERE " + t.Owner + " = ? AND " + t.Peer + " IN (" + peers
		args = append(args, int64(keys[0].From))
		for _, k := range keys {
			args = append(args, int64(k.To))
		}
	}
	return text, args
}

// write writes the rows that have been changed, in key order, and removes the marks of
// follows that have ended.
func (w *writer) write(j *judge.Judge) error {
	for _, side := range storage.Sides {
		if err := w.upsertEdges(side, j.Changed(side), j.Messages); err != nil {
			return err
		}
	}
	return w.removeMarks(j.EndedFollows())
}

func (w *writer) upsertEdges(side storage.Side, edges []storage.Edge, messages map[storage.Pair]string) error {
	if len(edges) == 0 {
		return nil
	}
	t := db.TableOf(side)
	into, sets, width := t.Columns, "type = NEW.type, update_time = NEW.update_time", 4
	if side == storage.Requests {
		into, sets, width = into+", message", sets+", message = NEW.message", 5
	}
	for chunk := range slices.Chunk(edges, w.store.sql.MaxRows) {
		text := "INSERT INTO " + t.Name + " (" + into + ") VALUES " + db.Tuples(len(chunk), width) +
			w.store.sql.Upsert(t.Owner+", "+t.Peer, sets)
		args := edgeArguments(side, chunk)
		if side == storage.Requests {
			args = withMessages(chunk, messages)
		}
		if _, err := w.Exec(len(chunk), text, args...); err != nil {
			return err
		}
	}
	return w.wrote(side, edges)
}

// wrote takes note of rows that have been written.
func (w *writer) wrote(side storage.Side, edges []storage.Edge) error {
	if err := w.packed.Keep(w.Tx, side, edges); err != nil {
		return err
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

// withMessages is edgeArguments for requests: a request has a message while it is
// pending.
func withMessages(edges []storage.Edge, messages map[storage.Pair]string) []any {
	args := make([]any, 0, 5*len(edges))
	for _, e := range edges {
		args = append(args, int64(e.From), int64(e.To), int64(e.Type), int64(e.UpdateTime))
		if e.Type == storage.Pending {
			args = append(args, messages[e.Pair()])
		} else {
			args = append(args, "")
		}
	}
	return args
}

const sqlRemoveMarks = `
DELETE FROM edge_marks
WHERE from_user_id = ? AND to_user_id IN (`

// removeMarks removes what users have noted on whom they follow no longer.
func (w *writer) removeMarks(ended []storage.Pair) error {
	for len(ended) > 0 {
		n := 1
		for n < min(len(ended), w.store.sql.MaxKeys) && ended[n].From == ended[0].From {
			n++
		}
		args := []any{int64(ended[0].From)}
		for _, p := range ended[:n] {
			args = append(args, int64(p.To))
		}
		if _, err := w.Exec(n, sqlRemoveMarks+db.Marks(n)+")", args...); err != nil {
			return err
		}
		ended = ended[n:]
	}
	return nil
}

// raiseVersion is how every change of a user's counts, edges or profile is told.
const raiseVersion = "version = version + 1, packed_version = packed_version + 1"

// addCounts adds differences to the counts of owners, whose rows are locked, and
// raises their versions.
func (w *writer) addCounts(diffs judge.Diffs) error {
	return w.addCountsOf(diffs, nil)
}

// addCountsOf does so for what users have done, each on a day.
func (w *writer) addCountsOf(diffs judge.Diffs, acted map[storage.UserID]storage.Day) error {
	anybody := false
	for id, d := range diffs {
		d.Active = max(d.Active, acted[id])
		diffs[id] = d
		anybody = anybody || d.Active > 0
	}
	into := "user_id, following_count, follower_count, friend_count"
	sets := "following_count = following_count + NEW.following_count, follower_count = follower_count + NEW.follower_count, " +
		"friend_count = friend_count + NEW.friend_count, " + raiseVersion
	width := 4
	if anybody {
		into, width = into+", active_day", 5
		sets += ", active_day = " + w.store.sql.Greater("active_day", "NEW.active_day")
	}
	for id, d := range diffs {
		w.leaves(id, d, false)
	}
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(diffs)), w.store.sql.MaxRows) {
		args := make([]any, 0, width*len(chunk))
		for _, id := range chunk {
			d := diffs[id]
			args = append(args, int64(id), d.Following, d.Follower, d.Friend)
			if anybody {
				args = append(args, int64(max(d.Active, 0))) // 0 of others
			}
		}
		text := "INSERT INTO user_counts (" + into + ") VALUES " + db.Tuples(len(chunk), width) + w.store.sql.Upsert("user_id", sets)
		if _, err := w.Exec(len(chunk), text, args...); err != nil {
			return err
		}
	}
	return nil
}
