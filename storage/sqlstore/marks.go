package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sqlstore/internal/db"
)

// Marks and the messages of requests are beside edges, with the same key.
type besideEdges struct {
	ofOwner string  // rows of one user
	ofPairs db.Text // any rows
}

var (
	// Served by the primary keys: the other indexes begin with the user, too.
	sqlMarks = besideEdges{
		ofOwner: `
SELECT f.from_user_id, f.to_user_id, COALESCE(m.special, 0), COALESCE(m.remark, ''), COALESCE(m.attributes, ''), COALESCE(f.first_at, 0)
FROM following f /*! FORCE INDEX (PRIMARY) */
LEFT JOIN edge_marks m /*! FORCE INDEX (PRIMARY) */ ON m.from_user_id = f.from_user_id AND m.to_user_id = f.to_user_id
WHERE f.from_user_id = ? AND f.to_user_id IN (?) AND f.type = 1 AND (m.from_user_id IS NOT NULL OR f.first_at IS NOT NULL)`,
		ofPairs: db.Both(`
WITH wanted(o, p) AS (VALUES (?, ?))
SELECT f.from_user_id, f.to_user_id, COALESCE(m.special, 0), COALESCE(m.remark, ''), COALESCE(m.attributes, ''), COALESCE(f.first_at, 0)
FROM wanted
CROSS JOIN following f ON f.from_user_id = o AND f.to_user_id = p
LEFT JOIN edge_marks m /*! FORCE INDEX (PRIMARY) */ ON m.from_user_id = f.from_user_id AND m.to_user_id = f.to_user_id
WHERE f.type = 1 AND (m.from_user_id IS NOT NULL OR f.first_at IS NOT NULL)`),
	}

	// Served by the primary key.
	sqlMessages = besideEdges{
		ofOwner: `
SELECT from_user_id, to_user_id, type, message
FROM friend_request /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id IN (?)`,
		ofPairs: db.Both(`
WITH wanted(o, p) AS (VALUES (?, ?))
SELECT from_user_id, to_user_id, type, message
FROM wanted
CROSS JOIN friend_request ON from_user_id = o AND to_user_id = p`),
	}

	sqlWriteMark = db.Both(`
INSERT INTO edge_marks (from_user_id, to_user_id, special, remark, attributes)
VALUES (?, ?, ?, ?, ?)
ON CONFLICT (from_user_id, to_user_id) DO UPDATE SET special = excluded.special, remark = excluded.remark, attributes = excluded.attributes`)
)

var (
	// Served by idx_special.
	sqlSpecials = `
SELECT from_user_id, to_user_id
FROM edge_marks /*! FORCE INDEX (idx_special) */
WHERE special = 1 AND from_user_id IN (?)`

	// Served by idx_special.
	sqlCountSpecials = `
SELECT COUNT(*)
FROM edge_marks /*! FORCE INDEX (idx_special) */
WHERE from_user_id = ? AND special = 1`

	// No row where there is no follow. Served by the primary keys.
	sqlMarkOfFollow = `
SELECT COALESCE(m.special, 0), COALESCE(m.remark, ''), COALESCE(m.attributes, '')
FROM following AS f
LEFT JOIN edge_marks AS m ON m.from_user_id = f.from_user_id AND m.to_user_id = f.to_user_id
WHERE f.from_user_id = ? AND f.to_user_id = ? AND f.type = 1`

	// Locks the counts of users, and reads which of some others they follow, with the marks. Served by the primary keys.
	sqlLockMarks = db.WithColumns(`
SELECT user_counts.user_id, {counts}, version, packed,
  COALESCE(f.to_user_id, 0), COALESCE(m.special, 0), COALESCE(m.remark, ''), COALESCE(m.attributes, ''), COALESCE(f.first_at, 0)
FROM user_counts
LEFT JOIN following f /*! FORCE INDEX (PRIMARY) */ ON f.from_user_id = user_counts.user_id AND f.to_user_id IN (?) AND f.type = 1
LEFT JOIN edge_marks m /*! FORCE INDEX (PRIMARY) */ ON m.from_user_id = f.from_user_id AND m.to_user_id = f.to_user_id
WHERE user_counts.user_id IN (?)
ORDER BY user_counts.user_id /*! FOR UPDATE */ /*T! OF user_counts */`)

	// Served by the primary key or idx_special: both begin with the user.
	sqlRemoveMark = `
DELETE FROM edge_marks
WHERE from_user_id = ? AND to_user_id = ?`
)

// readMarks answers [storage.MarkLookups].
func (s *Store) readMarks(ctx context.Context, pairs []storage.Pair) []storage.Result[storage.EdgeMark] {
	return db.LookUp(s.db, pairs, s.maxPairs(storage.Forward, pairs), s.shardOfFrom, func(shard int, pairs []storage.Pair, found func(storage.Pair, storage.EdgeMark)) error {
		text, args := s.rowsStatement(sqlMarks, pairs)
		return s.db.Query(ctx, "marks", shard, len(pairs), text, args, db.EachEntry(func(p *storage.Pair, m *storage.EdgeMark) []any {
			return []any{&p.From, &p.To, &m.Special, &m.Remark, &m.Attributes, &m.FirstAt}
		}, found))
	})
}

// readMessages answers [storage.MessageLookups].
func (s *Store) readMessages(ctx context.Context, requests []storage.Pair) []storage.Result[string] {
	return db.LookUp(s.db, requests, s.maxPairs(storage.Forward, requests), s.shardOfFrom, func(shard int, pairs []storage.Pair, found func(storage.Pair, string)) error {
		text, args := s.rowsStatement(sqlMessages, pairs)
		return s.db.Query(ctx, "messages", shard, len(pairs), text, args, func(rows *sql.Rows) error {
			var p storage.Pair
			var kind storage.EdgeType
			var message string
			err := rows.Scan(&p.From, &p.To, &kind, &message)
			if kind == storage.Pending && message != "" {
				found(p, message)
			}
			return err
		})
	})
}

func (s *Store) shardOfFrom(p storage.Pair) int { return s.shards.Of(p.From) }

// rowsStatement is the look-up of rows by pairs. It is simpler if they leave one user.
func (s *Store) rowsStatement(of besideEdges, pairs []storage.Pair) (text string, args []any) {
	if haveOneOwner(storage.Forward, pairs) {
		from := pairs[0].From
		return db.In(of.ofOwner, peersOf(storage.Forward, from, pairs), int64(from))
	}
	return db.Listed(s.sql.Text(of.ofPairs), len(pairs)), pairArguments(storage.Forward, pairs)
}

// readSpecials answers [storage.SpecialLookups].
func (s *Store) readSpecials(ctx context.Context, users []storage.UserID) []storage.Result[[]storage.UserID] {
	return db.LookUp(s.db, users, s.sql.MaxKeys, s.shards.Of, func(shard int, users []storage.UserID, found func(storage.UserID, []storage.UserID)) error {
		_, err := s.listUsers(ctx, "specials", shard, users, db.Listed(sqlSpecials, len(users)), db.Arguments(users), found)
		return err
	})
}

// markJob is a change of a mark.
type markJob struct {
	pair    storage.Pair
	change  storage.MarkChange
	mark    storage.EdgeMark
	changed bool
	err     error
}

// SetMark implements [storage.Store]. When a follow ends, its mark is removed under the same
// lock, so that no mark is left without a follow.
func (s *Store) SetMark(ctx context.Context, pair storage.Pair, change storage.MarkChange) (storage.EdgeMark, bool, error) {
	j := &markJob{pair: pair, change: change}
	if err := cmp.Or(joinOwn(ctx, s, "mark", pair.From, j, (*writer).setMarks), j.err); err != nil {
		return storage.EdgeMark{}, false, err
	}
	return j.mark, j.changed, nil
}

// setMarks makes changes of different users.
func (w *writer) setMarks(jobs []*markJob) error {
	for some := range slices.Chunk(jobs, marksAtOnce) {
		old, err := w.lockMarks(some)
		if err != nil {
			return err
		}
		var set []*markJob
		for _, j := range some {
			if err := w.judgeMark(j, old); err != nil {
				return err
			}
			if j.changed {
				set = append(set, j)
				w.raiseVersion(j.pair.From)
			}
		}
		if err := w.writeMarks(set); err != nil {
			return err
		}
	}
	return nil
}

// marksAtOnce is of how many users the marks are locked by one statement, which asks for all their pairs with all of their peers.
const marksAtOnce = 8

// lockMarks locks the counts of the users who change marks, and reads the marks of those pairs that are follows.
func (w *writer) lockMarks(jobs []*markJob) (map[storage.Pair]storage.EdgeMark, error) {
	users := storage.Each(jobs, func(j *markJob) storage.UserID { return j.pair.From })
	peers := storage.Each(jobs, func(j *markJob) storage.UserID { return j.pair.To })
	marks := make(map[storage.Pair]storage.EdgeMark, len(jobs))
	args := append(db.Arguments(peers), db.Arguments(users)...)
	err := w.readLocked(users, db.Listed(sqlLockMarks, len(jobs)), args, func(rows *sql.Rows) error {
		var to storage.UserID
		var m storage.EdgeMark
		from, err := w.scanLocked(rows, &to, &m.Special, &m.Remark, &m.Attributes, &m.FirstAt)
		if to != 0 {
			marks[storage.Pair{From: from, To: to}] = m
		}
		return err
	})
	return marks, err
}

// judgeMark decides a change. If it is refused, the job has the error.
func (w *writer) judgeMark(j *markJob, marks map[storage.Pair]storage.EdgeMark) (err error) {
	old, follows := marks[j.pair]
	if j.changed = false; !follows { // a user without counts follows nobody
		j.err = fmt.Errorf("%w: %s → %s", storage.ErrNoEdge, j.pair.From, j.pair.To)
		return nil
	}
	j.mark, j.err = judge.Mark(j.pair.From, old, j.change, func() (n int, _ error) {
		n, err = w.countSpecials(j.pair.From)
		return n, err
	})
	j.changed = j.err == nil && j.mark != old
	return err
}

// writeMarks writes marks, and removes those that say nothing.
func (w *writer) writeMarks(jobs []*markJob) error {
	var left []*markJob
	for _, j := range jobs {
		w.touchMark(j.pair)
		if j.mark != (storage.EdgeMark{FirstAt: j.mark.FirstAt}) {
			left = append(left, j)
		} else if _, err := w.Exec(1, sqlRemoveMark, int64(j.pair.From), int64(j.pair.To)); err != nil {
			return err
		}
	}
	_, err := db.WriteRows(w.Tx, w.store.sql.Text(sqlWriteMark), left, func(args []any, j *markJob) []any {
		return append(args, int64(j.pair.From), int64(j.pair.To), j.mark.Special, j.mark.Remark, string(j.mark.Attributes))
	})
	return err
}

func (w *writer) countSpecials(user storage.UserID) (n int, err error) {
	_, err = w.ReadOne(sqlCountSpecials, []any{int64(user)}, &n)
	return n, err
}
