package sqlstore

import (
	"context"
	"errors"

	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sqlstore/internal/db"
)

var (
	// Served by idx_moderation_time.
	sqlModeration = db.WithColumns(`
SELECT {moderation_log}
FROM moderation_log /*! FORCE INDEX (idx_moderation_time) */
WHERE at <= ? AND (at < ? OR at = ? AND owner_id < ?)
ORDER BY at DESC, owner_id DESC LIMIT ?`)

	// Served by idx_moderation_user.
	sqlModerationOf = db.WithColumns(`
SELECT {moderation_log}
FROM moderation_log /*! FORCE INDEX (idx_moderation_user) */
WHERE user_id = ? AND at <= ? AND (at < ? OR at = ? AND owner_id < ?)
ORDER BY at DESC, owner_id DESC LIMIT ?`)

	// Served by the primary key.
	sqlLastModeration = `
SELECT at
FROM moderation_log /*! FORCE INDEX (PRIMARY) */
WHERE owner_id = ?
ORDER BY at DESC LIMIT 1`

	// Of some actions: others about the same are few. Served by idx_moderation_about.
	sqlLastAbout = `
SELECT at, action
FROM moderation_log /*! FORCE INDEX (idx_moderation_about) */
WHERE owner_id = ? AND user_id = ? AND number = ? AND action >= ? AND action <= ?
ORDER BY at DESC LIMIT 1`
)

// Served by the primary key.
var moderationInOrder = db.ReadInOrder("{moderation_log}", "moderation_log", "")

// Nothing changes an entry, or removes it, except that it moves with its bucket.
var sqlAddModeration = db.Both(db.WithColumns(`
INSERT OR IGNORE INTO moderation_log ({moderation_log})
VALUES ({?})`))

var sqlWriteSuspension = db.Both(`
INSERT INTO user_states (user_id, state, changed_at, suspended_at)
VALUES (?, ?, ?, ?)
ON CONFLICT (user_id) DO UPDATE SET changed_at = excluded.changed_at, suspended_at = excluded.suspended_at`)

// Moderate implements [storage.Store].
func (s *Store) Moderate(ctx context.Context, e storage.ModerationEntry) (storage.ModerationEntry, bool, error) {
	return made(ctx, s.transactFor, "moderate", e.Owner, func(w *writer) (storage.ModerationEntry, bool, error) {
		added := e
		changed, err := w.moderate(&added)
		if err != nil || !changed {
			return added, false, err
		}
		if changed, err = w.addModeration(added); err == nil && !changed {
			err = db.ErrAgain // nothing is done without an entry
		}
		return added, true, err
	})
}

// moderate does what an entry says, and completes it. An owner's entries are added under the lock on its counts.
func (w *writer) moderate(e *storage.ModerationEntry) (changed bool, err error) {
	var user storage.StateChange
	var now storage.UserStanding
	var c storage.Comment
	switch e.Action {
	case storage.PostRemoved:
		changed, err = w.deletePost(storage.PostID{Author: e.Owner, Number: e.Number})
	case storage.CommentRemoved:
		if _, err = w.lockCountsOf(e.Owner); err == nil {
			c, err = w.deleteComment(storage.CommentID{Author: e.Owner, Number: e.Number}, e.Owner)
		}
		e.User, changed = c.By, c.Number != 0
	case storage.UserReported, storage.PostReported:
		var last storage.ModerationEntry
		if err = w.lockUser(e.Owner); err == nil {
			last, err = w.lastAbout(*e, e.Action, e.Action)
		}
		changed = judge.Report(last.At, *e)
	default:
		if user, err = w.lockState(e.User); err == nil {
			w.change.AddStanding(e.User) // as in SetState
			_, err = w.ReadOne(sqlStates, []any{int64(e.User)}, &e.User, &now.State, &now.Until, &now.Reason)
		}
		if err == nil {
			changed, err = judge.Suspension(user.State, now.Until, *e)
		}
	}
	if err != nil || !changed {
		return false, err
	}
	var last storage.Micros
	_, err = w.ReadOne(sqlLastModeration, []any{int64(e.Owner)}, &last)
	at := e.At // the log may be ahead of the clock
	if e.At = max(e.At, last+1); err != nil || user.User == 0 {
		return err == nil, err
	}
	return true, w.writeSuspension(user, at, *e)
}

// lastAbout is the newest entry with the key but for the time of another one, and with one of the actions.
func (w *writer) lastAbout(e storage.ModerationEntry, from, to storage.ModerationAction) (last storage.ModerationEntry, err error) {
	_, err = w.ReadOne(sqlLastAbout, []any{int64(e.Owner), int64(e.User), e.Number, int64(from), int64(to)}, &last.At, &last.Action)
	return last, err
}

func (w *writer) addModeration(e storage.ModerationEntry) (added bool, err error) {
	w.touchUser(e.Owner)
	n, err := w.Exec(1, w.store.sql.Text(sqlAddModeration), moderationColumns(&e)...)
	return n > 0, err
}

// writeSuspension makes a user, whose counts are locked, suspended by an entry, or reinstated.
func (w *writer) writeSuspension(old storage.StateChange, at storage.Micros, by storage.ModerationEntry) error {
	if by.Action == storage.Reinstated {
		by.At = 0
	}
	w.touchUser(old.User)
	_, err := w.Exec(1, w.store.sql.Text(sqlWriteSuspension), int64(old.User), int64(old.State), int64(max(at, old.At+1)), int64(by.At))
	if err == nil {
		_, err = w.Exec(1, sqlRaiseVersion, int64(old.User))
	}
	return err
}

// readModeration answers [storage.ModerationLookups].
func (s *Store) readModeration(ctx context.Context, q storage.PlaceQuery) ([]storage.ModerationEntry, error) {
	text, of := sqlModeration, []any(nil)
	if q.Of.Author != 0 {
		text, of = sqlModerationOf, []any{int64(q.Of.Author)}
	}
	ownerOf := func(e storage.ModerationEntry) storage.UserID { return e.Owner }
	return newestOf(ctx, s, "moderation", text, of, q.After, q.Limit, moderationColumns, ownerOf, storage.ModerationEntry.Place)
}

// moderationColumns are the values of {moderation_log}.
func moderationColumns(e *storage.ModerationEntry) []any {
	return []any{&e.Owner, &e.At, &e.User, &e.Action, &e.By, &e.Reason, &e.Until, &e.Number}
}

func (s *Store) restoreModeration(ctx context.Context, entries []storage.ModerationEntry, at storage.Micros) []storage.Result[bool] {
	return storage.Each(entries, func(e storage.ModerationEntry) (r storage.Result[bool]) {
		r.Err = s.transactFor(ctx, "moderation", e.Owner, func(w *writer) (err error) {
			r.Value, err = w.restoreModeration(e, at)
			return err
		})
		r.Found, r.Value = r.Err == nil, r.Value && r.Err == nil
		return r
	})
}

func (w *writer) restoreModeration(e storage.ModerationEntry, at storage.Micros) (added bool, err error) {
	added, err = w.addModeration(e)
	if err != nil || !added || e.Action > storage.Reinstated {
		return added, err
	}
	user, err := w.lockState(e.User)
	if errors.Is(err, storage.ErrUserUnknown) {
		return true, nil
	}
	if err == nil {
		w.change.AddStanding(e.User)
		e, err = w.lastAbout(e, storage.Suspended, storage.Reinstated)
	}
	if err != nil {
		return false, err
	}
	return true, w.writeSuspension(user, at, e)
}

// Moderation implements [contents.Moment].
func (m moment) Moderation(ctx context.Context, after storage.ModerationEntry, limit int) ([]storage.ModerationEntry, error) {
	return readInOrder(ctx, m, moderationInOrder, after.Owner, int64(after.At), limit, moderationColumns)
}
