package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"strings"

	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sqlstore/internal/db"
)

const (
	// Served by the primary key.
	sqlReadClaim = `
SELECT user_id, claimed_at
FROM handles
WHERE handle = ?`

	// Served by the primary key.
	sqlTakeClaimOver = `
UPDATE handles
SET user_id = ?, claimed_at = ?
WHERE handle = ? AND user_id = ? AND claimed_at = ?`

	// Served by the primary key.
	sqlReleaseHandle = `
DELETE FROM handles
WHERE handle = ? AND user_id = ?`

	// Served by the primary keys.
	sqlPasswords = `
SELECT users.user_id, COALESCE(users.password_hash, ''), COALESCE(user_states.password_at, 0)
FROM users
LEFT JOIN user_states ON user_states.user_id = users.user_id
WHERE users.user_id IN (?)`

	// Served by the primary key.
	sqlRaiseVersion = `
UPDATE user_counts
SET version = version + 1, packed_version = packed_version + 1
WHERE user_id = ?`

	// Served by the primary key.
	sqlSetPasswordHash = `
UPDATE users
SET password_hash = ?, updated_at = ?
WHERE user_id = ?`
)

var (
	// Locks the counts of a user, and reads the user as it is after the wait. Served by the primary keys.
	sqlLockUsers = db.WithColumns(`
SELECT user_counts.user_id, {counts}, version, packed,
  {users.times}, {users.choices},
  users.handle, {users.texts}, users.attributes
FROM user_counts
JOIN users ON users.user_id = user_counts.user_id
WHERE user_counts.user_id IN (?)
ORDER BY user_counts.user_id /*! FOR UPDATE */ /*T! OF user_counts */`)

	sqlWritePasswordTime = db.Both(`
INSERT INTO user_states (user_id, state, changed_at, password_at)
VALUES (?, ?, ?, ?)
ON CONFLICT (user_id) DO UPDATE SET changed_at = excluded.changed_at, password_at = excluded.password_at`)
)

// giveBack releases the claims of those users who exist, because others have made them at the same time, with other handles. If that
// fails, the claims stay until somebody else registers with the handles.
func (s *Store) giveBack(ctx context.Context, users []storage.User) {
	for i, r := range s.readUsers(ctx, storage.Each(users, func(u storage.User) storage.UserID { return u.ID })) {
		if r.Found && r.Value.Handle != users[i].Handle {
			_ = s.releaseHandle(ctx, r.Value.ID, users[i].Handle)
		}
	}
}

// releaseHandle ends a claim, unless it is another user's by now.
func (s *Store) releaseHandle(ctx context.Context, user storage.UserID, handle string) error {
	return s.transact(ctx, "handles", s.ownerOfHandle(handle), func(w *writer) error {
		w.touchHandle(handle)
		_, err := w.Exec(1, sqlReleaseHandle, handle, int64(user))
		return err
	})
}

func nullable(text string) sql.NullString { return sql.NullString{String: text, Valid: text != ""} }

// claim makes a handle the user's, taking over an old claim that never became a user, or whose user has been erased.
func (s *Store) claim(ctx context.Context, user storage.UserID, handle string, at storage.Micros) error {
	var owner, claimed int64
	err := s.transact(ctx, "handles", s.ownerOfHandle(handle), func(w *writer) error {
		w.touchHandle(handle)
		_, err := w.Exec(1, s.sql.Text(sqlClaimHandles), handle, int64(user), int64(at))
		if err != nil {
			return err
		}
		_, err = w.ReadOne(sqlReadClaim, []any{handle}, &owner, &claimed)
		return err
	})
	mine := storage.UserID(owner) == user
	if err != nil || mine && storage.Micros(claimed) >= at {
		return err
	}
	taken := fmt.Errorf("%w: %s", storage.ErrHandleTaken, handle)
	if !mine {
		if at-storage.Micros(claimed) <= judge.ClaimTTL {
			return taken
		}
		if has, err := s.hasHandle(ctx, storage.UserID(owner), handle); err != nil || has {
			return cmp.Or(err, taken)
		}
	}
	// The user's own claim is made again: it may be about to be taken over.
	return s.transact(ctx, "handles", s.ownerOfHandle(handle), func(w *writer) error {
		w.touchHandle(handle)
		n, err := w.Exec(1, sqlTakeClaimOver, int64(user), int64(at), handle, owner, claimed)
		if err == nil && n == 0 {
			err = taken // another caller has taken it over
		}
		return err
	})
}

// hasHandle reports whether a user exists and has a handle. A user who is not found may have moved, which only a transaction knows.
func (s *Store) hasHandle(ctx context.Context, id storage.UserID, handle string) (has bool, err error) {
	if r := s.readUsers(ctx, []storage.UserID{id})[0]; r.Err != nil || r.Found {
		return r.Value.Handle == handle, r.Err
	}
	err = s.transactFor(ctx, "handles", id, func(w *writer) error {
		users, err := w.lockProfiles([]storage.UserID{id})
		has = err == nil && users[id].Handle == handle
		return err
	})
	return has, err
}

// readPasswords answers [storage.PasswordLookups].
func (s *Store) readPasswords(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Password] {
	return byUser(ctx, s, "passwords", ids, sqlPasswords, func(p *storage.Password) []any { return []any{&p.Hash, &p.ChangedAt} })
}

// SetPassword implements [storage.Store].
func (s *Store) SetPassword(ctx context.Context, id storage.UserID, change storage.PasswordChange) (storage.Password, error) {
	now, _, err := made(ctx, s.transactFor, "passwords", id, func(w *writer) (now storage.Password, _ bool, err error) {
		if err := w.lockUser(id); err != nil {
			return now, false, err
		}
		found, err := w.ReadOne(sqlPasswords, []any{int64(id)}, &id, &now.Hash, &now.ChangedAt)
		switch {
		case err != nil:
			return now, false, err
		case !found: // of this user there are only edges
			return now, false, fmt.Errorf("%w: %s", storage.ErrUserUnknown, id)
		case now.Hash != change.Old:
			return now, false, fmt.Errorf("%w: that of user %s", storage.ErrPasswordChanged, id)
		}
		if change.EndsTokens {
			if now.ChangedAt, err = w.writePasswordTime(id, change.At); err != nil {
				return now, false, err
			}
			w.change.AddUser(id, storage.Standing)
		}
		now.Hash = change.New
		w.change.AddProfile(id) // its UpdatedAt
		_, err = w.Exec(1, sqlSetPasswordHash, nullable(change.New), int64(change.At), int64(id))
		return now, true, err
	})
	return now, err
}

// writePasswordTime puts a change of a password into the log of states, at a time that is later
// than all earlier changes of the user.
func (w *writer) writePasswordTime(id storage.UserID, at storage.Micros) (storage.Micros, error) {
	var old storage.StateChange
	if _, err := w.ReadOne(sqlStateOf, []any{int64(id)}, &old.State, &old.At); err != nil {
		return 0, err
	}
	at = max(at, old.At+1)
	_, err := w.Exec(1, w.store.sql.Text(sqlWritePasswordTime), int64(id), int64(old.State), int64(at), int64(at))
	return at, err
}

// profileJob is a change of a profile.
type profileJob struct {
	id      storage.UserID
	change  storage.ProfileChange
	at      storage.Micros
	user    storage.User
	changed bool
	err     error
}

// UpdateProfile implements [storage.Store].
func (s *Store) UpdateProfile(ctx context.Context, id storage.UserID, change storage.ProfileChange, at storage.Micros) (storage.User, bool, error) {
	j := &profileJob{id: id, change: change, at: at}
	if err := cmp.Or(joinOwn(ctx, s, "profile", id, j, (*writer).updateProfiles), j.err); err != nil {
		return storage.User{}, false, err
	}
	return j.user, j.changed, nil
}

// updateProfiles makes changes of different users. Changing one's profile counts as being active.
func (w *writer) updateProfiles(jobs []*profileJob) error {
	users, err := w.lockProfiles(storage.Each(jobs, func(j *profileJob) storage.UserID { return j.id }))
	if err != nil {
		return err
	}
	var renamed []storage.User
	for _, j := range jobs {
		var found bool
		if j.user, found = users[j.id]; found {
			j.err = j.change.Apply(&j.user)
		} else {
			j.err = fmt.Errorf("%w: %s", storage.ErrUserUnknown, j.id)
		}
		if j.changed = j.err == nil && j.user != users[j.id]; !j.changed {
			continue
		}
		j.user.UpdatedAt = j.at
		text, args := profileStatement(users[j.id], j.user)
		if _, err := w.Exec(1, text, args...); err != nil {
			return err
		}
		if j.change.Name != nil {
			renamed = append(renamed, j.user)
		}
		w.owe(j.id, owed{active: j.at.Day(), profile: &j.user})
	}
	return w.renameWords(renamed)
}

// lockProfiles locks the counts of users, who ascend, and reads the users.
func (w *writer) lockProfiles(ids []storage.UserID) (map[storage.UserID]storage.User, error) {
	users := make(map[storage.UserID]storage.User, len(ids))
	err := w.readLocked(ids, db.Listed(sqlLockUsers, len(ids)), db.Arguments(ids), func(rows *sql.Rows) (err error) {
		var user storage.User
		into := []any{&user.CreatedAt, &user.UpdatedAt, &user.FollowingsVisibility, &user.FollowersVisibility, &user.Undiscoverable, &user.Locked, &user.Handle}
		for _, text := range user.Texts() {
			into = append(into, text)
		}
		user.ID, err = w.scanLocked(rows, append(into, &user.Attributes)...)
		users[user.ID] = user
		return err
	})
	return users, err
}

// profileStatement writes what has changed of a user.
func profileStatement(was, is storage.User) (string, []any) {
	var sets []string
	var args []any
	before := userArguments(nil, was)
	for i, value := range userArguments(nil, is) {
		if value != before[i] {
			sets, args = append(sets, userColumns[i]+" = ?"), append(args, value)
		}
	}
	// Served by the primary key.
	return "UPDATE users\nSET " + strings.Join(sets, ", ") + "\nWHERE user_id = ?", append(args, int64(is.ID))
}

// lockUser locks the counts of a user.
func (w *writer) lockUser(id storage.UserID) error {
	found, err := w.lockCountsOf(id)
	if err == nil && !found {
		err = fmt.Errorf("%w: %s", storage.ErrUserUnknown, id)
	}
	return err
}

// lockCountsOf locks the counts of a user, if there are any.
func (w *writer) lockCountsOf(id storage.UserID) (found bool, err error) {
	err = w.lockKnown([]storage.UserID{id})
	return w.isLocked(id), err
}
