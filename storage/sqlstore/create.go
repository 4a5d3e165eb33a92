package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sqlstore/internal/db"
)

const (
	// Served by the primary key.
	sqlExistingUsers = `
SELECT user_id
FROM users
WHERE user_id IN (?)`

	// Served by the primary key.
	sqlOlderClaims = `
SELECT handle, user_id
FROM handles
WHERE handle IN (?) AND claimed_at < ?`
)

var (
	sqlClaimHandles = db.Both(`
INSERT OR IGNORE INTO handles (handle, user_id, claimed_at)
VALUES (?, ?, ?)`)

	sqlInsertUsers = db.Both(db.WithColumns(`
INSERT OR IGNORE INTO users (user_id, handle, {texts}, {times},
  {choices}, attributes)
VALUES ({?})`))

	sqlInsertNewCounts = db.Both(`
INSERT INTO user_counts (user_id, active_day)
VALUES (?, ?)
ON CONFLICT (user_id) DO UPDATE SET active_day = CASE WHEN active_day < excluded.active_day THEN excluded.active_day ELSE active_day END`)
)

// CreateUsers implements [storage.Store]: it claims the handles, each on
// its own shard, and then writes the users whose claims held. Claims for users whom others have made
// meanwhile are given back. One user whose handle is on its own shard takes one transaction. A crash in
// between leaves claims that the next call with the same users recognises as their own.
func (s *Store) CreateUsers(ctx context.Context, users []storage.User) []storage.Result[bool] {
	return db.ReroutedAll(ctx, s.db, len(users), func(at []int) []storage.Result[bool] {
		results := make([]storage.Result[bool], 0, len(at))
		for some := range slices.Chunk(storage.Chosen(users, at), createdAtOnce) {
			results = append(results, s.createByShard(ctx, some)...)
		}
		return results
	})
}

// createdAtOnce is how many users are made within [claimTime]: 50,000 took 8 s where tests ran beside it.
const createdAtOnce = 5000

func (s *Store) createByShard(ctx context.Context, users []storage.User) []storage.Result[bool] {
	ctx, cancel := context.WithTimeout(ctx, claimTime)
	defer cancel()
	results := make([]storage.Result[bool], len(users))
	if len(users) == 1 && s.shards.OfHandle(users[0].Handle) == s.shards.Of(users[0].ID) {
		if made, known := s.createWhole(ctx, users[0]); known {
			results[0] = made
			return results
		}
	}
	wanted := s.firstOfEach(ctx, users, results)
	wanted = s.claimHandles(ctx, users, wanted, results)
	s.insertUsers(ctx, users, wanted, results)
	late := slices.DeleteFunc(wanted, func(i int) bool { return results[i].Value || results[i].Err != nil })
	s.giveBack(ctx, storage.Chosen(users, late))
	return results
}

// errClaimed: somebody has claimed the handle, perhaps the user itself.
var errClaimed = errors.New("the handle is claimed")

// createWhole creates a user whose handle is on the same shard, in one transaction. known is false if the
// handle is claimed already; then nothing has been written.
func (s *Store) createWhole(ctx context.Context, user storage.User) (made storage.Result[bool], known bool) {
	err := s.transactOn(ctx, "users", s.shards.Of(user.ID), func(w *writer) error {
		w.touchHandle(user.Handle)
		var is storage.StateChange
		if _, err := w.ReadOne(sqlStateOf, []any{int64(user.ID)}, &is.State, &is.At); err != nil {
			return err
		} else if err := judge.NewUser(user.ID, is.State); err != nil {
			return err
		}
		n, err := w.Exec(1, s.sql.Text(sqlClaimHandles), user.Handle, int64(user.ID), int64(storage.MicrosOf(time.Now())))
		if err == nil && n == 0 {
			err = errClaimed
		}
		if err != nil {
			return err
		}
		n, err = w.Exec(1, s.sql.Text(sqlInsertUsers), userArguments(nil, user)...)
		if err == nil && n == 0 {
			err = storage.ErrUserExists // its claim is undone
		}
		if err != nil {
			return err
		}
		return w.insertBeside([]storage.User{user})
	})
	switch {
	case errors.Is(err, errClaimed):
		return made, false
	case errors.Is(err, storage.ErrUserExists):
		return storage.Result[bool]{Found: true}, true
	}
	return storage.Result[bool]{Value: err == nil, Found: err == nil, Err: err}, true
}

// firstOfEach returns the indexes of users that do not exist yet, the first of
// each id.
func (s *Store) firstOfEach(ctx context.Context, users []storage.User, results []storage.Result[bool]) []int {
	ids := storage.Each(users, func(u storage.User) storage.UserID { return u.ID })
	existing := byUser(ctx, s, "users.exist", ids, sqlExistingUsers, func(*struct{}) []any { return nil })
	seen := make(map[storage.UserID]bool, len(users))
	var fresh []int
	for i, r := range existing {
		switch {
		case r.Err != nil:
			results[i].Err = r.Err
		case r.Found || seen[ids[i]]:
			results[i].Found = true
		default:
			seen[ids[i]] = true
			fresh = append(fresh, i)
		}
	}
	states := s.readStandings(ctx, storage.Each(fresh, func(i int) storage.UserID { return ids[i] })) // after the users: a deletion sets it last
	usable := fresh[:0]
	for k, i := range fresh {
		if results[i].Err = cmp.Or(states[k].Err, judge.NewUser(ids[i], states[k].Value.State)); results[i].Err == nil {
			usable = append(usable, i)
		}
	}
	return usable
}

// claimHandles claims handles at the time of the clock, as imported users were created long ago, and returns the indexes of the users who
// have theirs now.
func (s *Store) claimHandles(ctx context.Context, users []storage.User, wanted []int, results []storage.Result[bool]) []int {
	if len(wanted) == 0 {
		return nil
	}
	now := storage.MicrosOf(time.Now())
	handles := storage.Each(wanted, func(i int) string { return users[i].Handle })
	sure := make([]bool, len(wanted)) // no handle of a part had been claimed
	parts := s.db.Split(len(wanted), s.sql.MaxRows, func(j int) int { return s.shards.OfHandle(handles[j]) })
	db.AtOnce(parts, func(p db.Part) {
		claimed, err := transactOf(ctx, s, "handles", p.Shard, func(w *writer) (int, error) {
			n, err := db.WriteRows(w.Tx, s.sql.Text(sqlClaimHandles), p.At, func(args []any, j int) []any {
				w.touchHandle(handles[j])
				return append(args, handles[j], int64(users[wanted[j]].ID), int64(now))
			})
			if err == nil && n < len(p.At) {
				err = w.renewClaims(storage.Each(p.At, func(j int) storage.User { return users[wanted[j]] }), now)
			}
			return n, err
		})
		for _, j := range p.At {
			results[wanted[j]].Err = err
			sure[j] = claimed == len(p.At)
		}
	})
	var mine, doubtful []int
	var asked []string
	for j, i := range wanted {
		switch {
		case results[i].Err != nil:
		case sure[j]:
			mine = append(mine, i)
		default:
			doubtful, asked = append(doubtful, i), append(asked, handles[j])
		}
	}
	claims := s.readUserIDs(ctx, asked)
	owners := s.readUsers(ctx, storage.Each(claims, func(c storage.Result[storage.UserID]) storage.UserID { return c.Value }))
	for k, owner := range owners {
		i := doubtful[k]
		switch err := cmp.Or(claims[k].Err, owner.Err); {
		case err != nil:
			results[i].Err = err
		case claims[k].Value == users[i].ID: // perhaps somebody else has made it meanwhile
		case owner.Found && owner.Value.Handle == asked[k]:
			results[i].Err = fmt.Errorf("%w: %s belongs to user %s", storage.ErrHandleTaken, asked[k], owner.Value.ID)
		default:
			results[i].Err = s.claim(ctx, users[i].ID, asked[k], now)
		}
		if results[i].Err == nil {
			mine = append(mine, i)
		}
	}
	return mine
}

// renewClaims dates those claims anew that users have from before, of calls that were cut off: others may be about to take them over.
func (w *writer) renewClaims(users []storage.User, now storage.Micros) error {
	before := make(map[string]storage.UserID)
	claimsOf := func(users []storage.User) (string, []any) {
		args := storage.Each(users, func(u storage.User) any { return u.Handle })
		return db.Listed(sqlOlderClaims, len(users)), append(args, int64(now))
	}
	err := db.ReadChunks(w.Tx, users, w.store.sql.MaxKeys, claimsOf, db.EachEntry(db.TwoColumns, func(handle string, owner storage.UserID) { before[handle] = owner }))
	for _, u := range users {
		if err == nil && before[u.Handle] == u.ID {
			_, err = w.Exec(1, sqlDateClaim, int64(now), u.Handle, int64(u.ID))
		}
	}
	return err
}

func (s *Store) insertUsers(ctx context.Context, users []storage.User, wanted []int, results []storage.Result[bool]) {
	if len(wanted) == 0 {
		return
	}
	slices.SortFunc(wanted, func(a, b int) int { return int(users[a].ID - users[b].ID) })
	parts := s.db.Split(len(wanted), s.sql.MaxRows, func(j int) int { return s.shards.Of(users[wanted[j]].ID) })
	db.AtOnce(parts, func(p db.Part) {
		at := storage.Chosen(wanted, p.At)
		made, err := s.insertPart(ctx, p.Shard, users, at)
		for _, i := range at {
			results[i] = storage.Result[bool]{Value: made[users[i].ID], Found: err == nil, Err: err}
		}
	})
}

// insertPart writes users of one shard and returns which of them were new.
func (s *Store) insertPart(ctx context.Context, shard int, users []storage.User, at []int) (map[storage.UserID]bool, error) {
	made := make(map[storage.UserID]bool, len(at))
	err := s.transactOn(ctx, "users", shard, func(w *writer) error {
		ids := make([]any, len(at))
		clear(made)
		for k, i := range at {
			ids[k] = int64(users[i].ID)
			made[users[i].ID] = true
		}
		err := w.Read(len(ids), db.Listed(sqlExistingUsers, len(ids)), ids, db.EachRow(db.OneColumn, func(id storage.UserID) { delete(made, id) }))
		if err != nil || len(made) == 0 {
			return err
		}
		fresh := slices.DeleteFunc(storage.Chosen(users, at), func(u storage.User) bool { return !made[u.ID] })
		n, err := db.WriteRows(w.Tx, s.sql.Text(sqlInsertUsers), fresh, userArguments)
		if err != nil {
			return err
		}
		if n != len(made) {
			return db.ErrAgain // another caller has made one of them since the read
		}
		return w.insertBeside(fresh)
	})
	return made, err
}

// insertBeside gives new users their words and their counts. Edges may have come before their user: the counts
// they made stay.
func (w *writer) insertBeside(users []storage.User) error {
	for _, u := range users {
		w.touchUser(u.ID)
		w.change.AddProfile(u.ID)
	}
	if err := w.writeWords(users...); err != nil {
		return err
	}
	_, err := db.WriteRows(w.Tx, w.store.sql.Text(sqlInsertNewCounts), users, func(args []any, u storage.User) []any {
		return append(args, int64(u.ID), int64(u.CreatedAt.Day()))
	})
	return err
}
