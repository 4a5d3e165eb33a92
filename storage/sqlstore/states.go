package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sqlstore/internal/db"
)

var (
	// The hint is for TiDB, as in [sqlPopular]. Served by the primary keys.
	sqlStates = `
SELECT /*+ INL_JOIN(m) */ s.user_id, s.state, COALESCE(m.ends_at, 0), COALESCE(m.reason, '')
FROM user_states s
LEFT JOIN moderation_log m ON m.owner_id = s.user_id AND m.at = s.suspended_at
WHERE s.user_id IN (?)`

	// Served by the primary key.
	sqlStateOf = `
SELECT state, changed_at
FROM user_states
WHERE user_id = ?`

	// Locks the counts of a user, and reads its state after the wait. Served by the primary keys.
	sqlLockState = db.WithColumns(`
SELECT user_counts.user_id, {counts}, version, packed,
  COALESCE(state, 0), COALESCE(changed_at, 0), COALESCE(users.user_id, 0)
FROM user_counts
LEFT JOIN user_states ON user_states.user_id = user_counts.user_id
LEFT JOIN users ON users.user_id = user_counts.user_id
WHERE user_counts.user_id = ? /*! FOR UPDATE */ /*T! OF user_counts */`)

	// Written so that the optimisers take it for a range, see pages.go. Served by
	// idx_state_changes and the primary key.
	sqlStateChanges = `
SELECT /*! STRAIGHT_JOIN */ s.user_id, s.state, s.changed_at, s.password_at, COALESCE(m.ends_at, 0)
FROM user_states s /*! FORCE INDEX (idx_state_changes) */
LEFT JOIN moderation_log m ON m.owner_id = s.user_id AND m.at = s.suspended_at
WHERE s.changed_at >= ? AND (s.changed_at > ? OR s.user_id > ?)
ORDER BY s.changed_at, s.user_id LIMIT ?`
)

var sqlWriteState = db.Both(`
INSERT INTO user_states (user_id, state, changed_at)
VALUES (?, ?, ?)
ON CONFLICT (user_id) DO UPDATE SET state = excluded.state, changed_at = excluded.changed_at`)

// readStandings answers [storage.StateLookups].
func (s *Store) readStandings(ctx context.Context, users []storage.UserID) []storage.Result[storage.UserStanding] {
	results := byUser(ctx, s, "states", users, sqlStates, func(is *storage.UserStanding) []any { return []any{&is.State, &is.Until, &is.Reason} })
	for i := range results {
		results[i].Found = results[i].Err == nil
	}
	return results
}

// readStateChanges answers [storage.StateChangeLookups].
func (s *Store) readStateChanges(ctx context.Context, q storage.ShardQuery[storage.StateChange]) ([]storage.StateChange, error) {
	return ownPage(q.Limit, func(limit int, own func(storage.StateChange, bool)) error {
		args := []any{int64(q.After.At), int64(q.After.At), int64(q.After.User), limit}
		return s.db.Query(ctx, "states.changes", q.Shard, limit, sqlStateChanges, args, db.EachRow(func(c *storage.StateChange) []any {
			return []any{&c.User, &c.State, &c.At, &c.PasswordAt, &c.SuspendedUntil}
		}, func(c storage.StateChange) {
			own(c, s.shards.Of(c.User) == q.Shard)
			q.After = c
		}))
	})
}

// SetState implements [storage.Store].
func (s *Store) SetState(ctx context.Context, user storage.UserID, state storage.UserState, at storage.Micros) (changed bool, err error) {
	return changes(ctx, s.transactFor, "state", user, func(w *writer) (bool, error) {
		old, err := w.lockState(user)
		if err != nil {
			return false, err
		}
		if old.State == storage.Deleted && state == storage.Deleting { // there may be a user with this id again
			again, err := w.ReadOne(sqlExistingUsers, []any{int64(user)}, &old.User)
			if err != nil {
				return false, err
			} else if again {
				old.State = storage.Active
			}
		}
		w.change.AddStanding(user) // also if another writer has done this, and may have been killed before it reported it
		if changed, err := judge.State(user, old.State, state); err != nil || !changed {
			return false, err
		}
		if err := w.writeState(old, state, at); err != nil {
			return false, err
		}
		_, err = w.Exec(1, sqlRaiseVersion, int64(user))
		return true, err
	})
}

// lockState locks the counts of a user and reads its state. [storage.ErrUserUnknown] unless the
// user exists or has been deleted.
func (w *writer) lockState(user storage.UserID) (storage.StateChange, error) {
	old := storage.StateChange{User: user}
	counted, exists := false, storage.UserID(0)
	err := w.readLocked([]storage.UserID{user}, sqlLockState, []any{int64(user)}, func(rows *sql.Rows) error {
		counted = true
		_, err := w.scanLocked(rows, &old.State, &old.At, &exists)
		return err
	})
	switch {
	case err != nil:
	case !counted: // an erased user has no counts
		return w.lockedState(user)
	case exists == 0 && old.State != storage.Deleted:
		err = fmt.Errorf("%w: %s", storage.ErrUserUnknown, user)
	}
	return old, err
}

// lockedState reads the state of a user whose counts are locked. [storage.ErrUserUnknown] as in
// lockState.
func (w *writer) lockedState(user storage.UserID) (storage.StateChange, error) {
	old := storage.StateChange{User: user}
	_, err := w.ReadOne(sqlStateOf, []any{int64(user)}, &old.State, &old.At)
	if err != nil || old.State == storage.Deleted {
		return old, err
	}
	exists, err := w.ReadOne(sqlExistingUsers, []any{int64(user)}, &user)
	if err == nil && !exists {
		err = fmt.Errorf("%w: %s", storage.ErrUserUnknown, user)
	}
	return old, err
}

// writeState makes a user's times rise, whatever the gateways' clocks say: a reader that has read
// one change finds the next behind it.
func (w *writer) writeState(old storage.StateChange, state storage.UserState, at storage.Micros) error {
	_, err := w.Exec(1, w.store.sql.Text(sqlWriteState), int64(old.User), int64(state), int64(max(at, old.At+1)))
	return err
}
