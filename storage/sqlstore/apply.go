package sqlstore

import (
	"context"
	"database/sql"
	"iter"
	"maps"
	"slices"
	"time"

	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sqlstore/internal/db"
	"kith/storage/sqlstore/internal/packed"
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
// Single edges that come at the same time share a transaction, see [db.GroupCommit].
func (s *Store) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Changed] {
	shardOf := func(e storage.Edge) int { return s.shards.Of(side.Owner(e.Pair())) }
	return byShard(ctx, s, edges, len(edges), shardOf, func(p db.Part, edges []storage.Edge, results []storage.Result[storage.Changed]) {
		if len(p.At) == 1 {
			applied, err := s.applyOne(ctx, p.Shard, side, edges[p.At[0]], rule)
			settle(results, p.At, []storage.Changed{applied}, err)
			return
		}
		at := p.At
		var applied []storage.Changed
		err := s.transactOn(ctx, "apply."+side.String(), p.Shard, func(w *writer) (err error) {
			at = slices.DeleteFunc(slices.Clone(p.At), func(i int) bool { // these wait until their buckets have moved, and no others
				results[i].Err = w.hasUser(side.Owner(edges[i].Pair()))
				return results[i].Err != nil
			})
			if applied, err = w.apply(side, storage.Chosen(edges, at), rule); err == nil && len(at) >= 1000 {
				err = w.shortenLog()
			}
			return err
		})
		settle(results, at, applied, err)
	})
}

// byShard runs a write of rows, those of each shard, at most so many, at a time, and again those whose buckets have moved meanwhile. write puts
// what becomes of a part into the results.
func byShard[T, R any](ctx context.Context, s *Store, rows []T, atMost int, shardOf func(T) int,
	write func(p db.Part, rows []T, results []storage.Result[R])) []storage.Result[R] {
	return db.ReroutedAll(ctx, s.db, len(rows), func(at []int) []storage.Result[R] {
		rows := storage.Chosen(rows, at)
		results := make([]storage.Result[R], len(rows))
		if len(rows) > 0 {
			parts := s.db.Split(len(rows), atMost, func(i int) int { return shardOf(rows[i]) })
			db.AtOnce(parts, func(p db.Part) { write(p, rows, results) })
		}
		return results
	})
}

// runs divides a list, in which those with the same key are side by side.
func runs[T any, K comparable](list []T, keyOf func(T) K) iter.Seq2[K, []T] {
	return func(yield func(K, []T) bool) {
		for len(list) > 0 {
			key, n := keyOf(list[0]), 1
			for n < len(list) && keyOf(list[n]) == key {
				n++
			}
			if !yield(key, list[:n]) {
				return
			}
			list = list[n:]
		}
	}
}

// applyOne is Apply of one edge, as one of the small writes of its shard.
func (s *Store) applyOne(ctx context.Context, shard int, side storage.Side, e storage.Edge, rule storage.Rule) (applied storage.Changed, err error) {
	type job struct {
		edge    storage.Edge
		applied *storage.Changed
	}
	kind := struct {
		storage.Side
		storage.Rule
	}{side, rule}
	accounts := []storage.UserID{side.Owner(e.Pair())}
	err = s.join(ctx, shard, together(kind, "apply."+side.String(), accounts, job{e, &applied}, func(w *writer, jobs []job) error {
		all, err := w.apply(side, storage.Each(jobs, func(j job) storage.Edge { return j.edge }), rule)
		for i, a := range all {
			*jobs[i].applied = a
		}
		return err
	}))
	return applied, err
}

// settle puts what has become of some rows, or the error of all of them, into their places.
func settle[T any](results []storage.Result[T], at []int, became []T, err error) {
	place(results, at, storage.Each(became, func(v T) storage.Result[T] { return storage.Result[T]{Value: v, Found: true} }), err)
}

// place puts the results of some rows, or the error of all of them, into their places.
func place[T any](results []storage.Result[T], at []int, some []storage.Result[T], err error) {
	for j, i := range at {
		if results[i] = (storage.Result[T]{Err: err}); err == nil {
			results[i] = some[j]
		}
	}
}

// judge makes a Judge for a transaction.
func (s *Store) judge() *judge.Judge { return judge.New(time.Duration(s.requestTTL.Load())) }

// apply does the work of one shard's transaction.
func (w *writer) apply(side storage.Side, edges []storage.Edge, rule storage.Rule) ([]storage.Changed, error) {
	if err := w.lockCounts(ownersOf(side, edges)); err != nil {
		return nil, err
	}
	if len(edges) >= bulkSize && !side.HasItem() {
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
	if w.store.report != nil {
		for _, a := range applied { // those that were there before: their writer may have been killed before it reported them
			if !a.Changed && a.Row.UpdateTime > 0 {
				w.change.AddRow(side, a.Row)
			}
		}
	}
	return applied, w.addCounts(diffs)
}

// applyRows reads, judges and writes rows, and notes how that changes the counts.
func (w *writer) applyRows(side storage.Side, edges []storage.Edge, rule storage.Rule, diffs judge.Diffs) ([]storage.Changed, error) {
	j := w.store.judge()
	keys := make([]storage.Pair, len(edges))
	for i, e := range edges {
		if keys[i] = e.Pair(); !side.HasItem() {
			keys[i] = storage.Pair{From: side.Owner(e.Pair()), To: side.Peer(e.Pair())}
		}
	}
	var err error
	if side.HasItem() { // nothing follows from these
		err = w.lookRows(j, side, keys)
	} else {
		err = w.look(j, keys, sidesFor(side, edges)...)
	}
	if err != nil {
		return nil, err
	}
	applied := storage.Each(edges, func(e storage.Edge) storage.Changed { return j.Apply(side, e, rule) })
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
	return storage.Distinct(storage.Each(edges, func(e storage.Edge) storage.UserID { return side.Owner(e.Pair()) }))
}

var (
	// Served by the primary key.
	sqlLockCounts = db.WithColumns(`
SELECT user_id, {counts}, version, packed
FROM user_counts
WHERE user_id IN (?)
ORDER BY user_id /*! FOR UPDATE */`)

	// Served by the primary key. Only where a statement that locks several rows waits badly, see
	// [db.Tx.ReadLocked].
	sqlLockOneCounts = `
SELECT user_id
FROM user_counts
WHERE user_id = ? /*! FOR UPDATE */`
)

// readLocked runs a statement that locks counts of owners, who ascend.
func (w *writer) readLocked(owners []storage.UserID, text string, args []any, each func(*sql.Rows) error) error {
	if w.DB.Dialect.WaitsByTrying {
		return w.ReadLocked(owners, sqlLockOneCounts, text, args, each)
	}
	return w.Read(len(owners), text, args, each)
}

var sqlInsertNoCounts = db.Both(`
INSERT OR IGNORE INTO user_counts (user_id)
VALUES (?)`)

// lockCounts locks the counts of owners, in ascending order, and makes rows for owners who have
// none. addCounts removes the new rows that were not needed, if the transaction made all that were missing.
func (w *writer) lockCounts(owners []storage.UserID) error {
	for chunk := range slices.Chunk(owners, w.store.sql.MaxKeys) {
		if err := w.lockKnown(chunk); err != nil {
			return err
		}
		missing := slices.DeleteFunc(slices.Clone(chunk), w.isLocked)
		if len(missing) == 0 {
			continue
		}
		n, err := w.Exec(len(missing), db.Listed(w.store.sql.Text(sqlInsertNoCounts), len(missing)), db.Arguments(missing)...)
		if err != nil {
			return err
		}
		if n == len(missing) { // otherwise some are another transaction's, and nothing tells which
			w.made = append(w.made, missing...)
		}
		// A transaction that inserted such a row holds it until it ends: the
		// insert above has waited for that, and this statement locks what it left.
		if err := w.lockKnown(chunk); err != nil {
			return err
		}
	}
	return nil
}

// isLocked reports whether an owner has counts, which the transaction has locked.
func (w *writer) isLocked(id storage.UserID) bool {
	_, is := w.locked[id]
	return is
}

// scanLocked reads a row of a statement that locks counts: those of sqlLockCounts, and the columns behind them.
func (w *writer) scanLocked(rows *sql.Rows, behind ...any) (id storage.UserID, err error) {
	var n storage.Counts
	var flags int64
	err = rows.Scan(slices.Concat([]any{&id}, countColumns(&n), []any{&flags}, behind)...)
	w.locked[id] = n
	if flags != 0 { // few have any
		if w.packed == nil {
			w.packed = make(packed.Flags)
		}
		w.packed[id] = flags
	}
	w.touchUser(id)
	return id, err
}

// save writes what the judge has changed: rows and counts.
func (w *writer) save(j *judge.Judge) error {
	if err := w.write(j); err != nil {
		return err
	}
	diffs := make(judge.Diffs)
	j.AddTo(diffs)
	return w.addCounts(diffs)
}

// write writes the rows that have been changed, in key order, and removes the marks of
// follows that have ended. Then it writes the counts of kinds and of posts.
func (w *writer) write(j *judge.Judge) error {
	for _, side := range storage.AllSides {
		if err := w.upsertEdges(side, j.Changed(side), j); err != nil {
			return err
		}
	}
	if err := w.removeMarks(j.EndedFollows()); err != nil {
		return err
	}
	if kinds := j.KindDiffs(); len(kinds) > 0 {
		if err := w.countKinds(kinds); err != nil {
			return err
		}
	}
	if len(j.Posts) > 0 {
		return w.countFavorites(j.PostDiffs())
	}
	return nil
}

var sqlWriteEdges = db.Both(`
INSERT INTO {table} ({owner}, {peer}{, post_id}, type, update_time)
VALUES (?, ?{, ?}, ?, ?)
ON CONFLICT ({owner}, {peer}{, post_id}) DO UPDATE SET type = excluded.type, update_time = excluded.update_time`,
).ForSides(storage.Inverse, storage.Inbox, storage.Favorites, storage.FavoriteInbox, storage.RelationInbox)

// MySQL sets the columns from left to right: the first one reads what the row was.
var sqlWriteFollowing = db.Both(`
INSERT INTO following (from_user_id, to_user_id, type, update_time)
VALUES (?, ?, ?, ?)
ON CONFLICT (from_user_id, to_user_id) DO UPDATE SET
  first_at = CASE WHEN first_at IS NULL AND type = 1 THEN update_time ELSE first_at END, type = excluded.type, update_time = excluded.update_time`)

var sqlWriteRequests = db.Both(`
INSERT INTO friend_request (from_user_id, to_user_id, type, update_time, message)
VALUES (?, ?, ?, ?, ?)
ON CONFLICT (from_user_id, to_user_id) DO UPDATE SET type = excluded.type, update_time = excluded.update_time, message = excluded.message`)

func (w *writer) upsertEdges(side storage.Side, edges []storage.Edge, j *judge.Judge) error {
	if len(edges) == 0 {
		return nil
	}
	text := sqlWriteEdges[side]
	switch side {
	case storage.Forward:
		text = sqlWriteFollowing
	case storage.Requests:
		text = sqlWriteRequests
	case storage.Relations:
		text = sqlWriteRelations
	}
	_, err := db.WriteRows(w.Tx, w.store.sql.Text(text), edges, func(args []any, e storage.Edge) []any {
		args = edgeArguments(args, side, e)
		switch side {
		case storage.Requests: // a request has a message while it is pending
			message := ""
			if e.Type == storage.Pending {
				message = j.Messages[e.Pair()]
			}
			args = append(args, message)
		case storage.Relations:
			var d storage.Detail
			if e.Type == storage.Related {
				d = j.Details[e.Pair()]
			}
			args = append(args, int64(d.EndsAt), string(d.Attributes))
		}
		return args
	})
	if err != nil {
		return err
	}
	return w.wrote(side, edges)
}

// wrote takes note of rows that have been written.
func (w *writer) wrote(side storage.Side, edges []storage.Edge) error {
	w.touchEdges(side, edges)
	if w.store.report != nil {
		for _, e := range edges {
			w.change.AddRow(side, e)
		}
	}
	if len(w.packed) > 0 {
		if err := w.packed.Keep(w.Tx, side, edges); err != nil {
			return err
		}
	}
	return w.log(side, edges)
}

func edgeArguments(args []any, side storage.Side, e storage.Edge) []any {
	p := e.Pair()
	args = append(args, int64(side.Owner(p)), int64(side.Peer(p)))
	if side.HasItem() {
		args = append(args, p.Item)
	}
	return append(args, int64(e.Type), int64(e.UpdateTime))
}

// Served by the primary key.
const sqlRemoveMarks = `
DELETE FROM edge_marks
WHERE from_user_id = ? AND to_user_id IN (?)`

// removeMarks removes the marks of users on those whom they no longer follow.
func (w *writer) removeMarks(ended []storage.Pair) error {
	for from, all := range runs(ended, func(p storage.Pair) storage.UserID { return p.From }) {
		for some := range slices.Chunk(all, w.store.sql.MaxKeys) {
			args := []any{int64(from)}
			for _, p := range some {
				args = append(args, int64(p.To))
				w.touchMark(p)
			}
			if _, err := w.Exec(len(some), db.Listed(sqlRemoveMarks, len(some)), args...); err != nil {
				return err
			}
		}
	}
	return nil
}

// Versions rise with every change of a user's counts, edges or profile.
var (
	// The counts of favorites are left out: every further column costs a twentieth of what a row
	// does.
	sqlAddCounts = db.Both(`
INSERT INTO user_counts (user_id, following_count, follower_count, friend_count, active_day)
VALUES (?, ?, ?, ?, ?)
ON CONFLICT (user_id) DO UPDATE SET
  following_count = following_count + excluded.following_count,
  follower_count = follower_count + excluded.follower_count,
  friend_count = friend_count + excluded.friend_count,
  version = version + 1, packed_version = packed_version + 1,
  active_day = MAX(active_day, excluded.active_day)`)

	sqlAddAllCounts = db.Both(`
INSERT INTO user_counts (user_id, following_count, follower_count, friend_count, active_day, favorite_count, total_favorited)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (user_id) DO UPDATE SET
  following_count = following_count + excluded.following_count,
  follower_count = follower_count + excluded.follower_count,
  friend_count = friend_count + excluded.friend_count,
  version = version + 1, packed_version = packed_version + 1,
  active_day = MAX(active_day, excluded.active_day),
  favorite_count = favorite_count + excluded.favorite_count,
  total_favorited = total_favorited + excluded.total_favorited`)
)

// addCounts adds differences to the counts of owners, whose rows are locked, and
// raises their versions, and those that are owed.
func (w *writer) addCounts(diffs judge.Diffs) error {
	if err := w.removeUnneeded(diffs); err != nil {
		return err
	}
	owed := w.owed
	w.owed = nil
	for id, o := range owed {
		d := diffs[id]
		d.Active = max(d.Active, o.active)
		diffs[id] = d
	}
	text, all := sqlAddCounts, false
	for id, d := range diffs {
		if d.Favorites != 0 || d.Favorited != 0 {
			text, all = sqlAddAllCounts, true
		}
		w.leaves(id, d, owed[id].profile)
	}
	_, err := db.WriteRows(w.Tx, w.store.sql.Text(text), slices.Sorted(maps.Keys(diffs)), func(args []any, id storage.UserID) []any {
		d := diffs[id]
		args = append(args, int64(id), d.Following, d.Follower, d.Friend, int64(d.Active))
		if all {
			args = append(args, d.Favorites, d.Favorited)
		}
		return args
	})
	return err
}

// removeUnneeded removes the counts that lockCounts has made for owners without a difference: a late event
// leaves nothing of a user that has been erased.
func (w *writer) removeUnneeded(diffs judge.Diffs) error {
	unneeded := slices.DeleteFunc(w.made, func(id storage.UserID) bool { _, needed := diffs[id]; return needed })
	w.made = nil
	for _, id := range unneeded {
		delete(w.locked, id)
	}
	for chunk := range slices.Chunk(unneeded, w.store.sql.MaxKeys) {
		if _, err := w.Exec(len(chunk), db.Listed(sqlRemoveCounts, len(chunk)), db.Arguments(chunk)...); err != nil {
			return err
		}
	}
	return nil
}

// countColumns are the values of {counts}, and the version.
func countColumns(c *storage.Counts) []any {
	return []any{&c.Following, &c.Follower, &c.Friend, &c.Posts, &c.Favorites, &c.Favorited, &c.Version}
}
