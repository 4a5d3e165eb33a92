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
INSERT OR IGNORE INTO users ({users})
VALUES ({?})`))

	sqlInsertNewCounts = db.Both(`
INSERT INTO user_counts (user_id, active_day)
VALUES (?, ?)
ON CONFLICT (user_id) DO UPDATE SET active_day = CASE WHEN active_day < excluded.active_day THEN excluded.active_day ELSE active_day END`)
)

// claimTime bounds how long after a claim its user may be made: half the age at which others may take the claim
// over, so that no call writes a user whose handle has become another user's.
const claimTime = time.Duration(judge.ClaimTTL) * time.Microsecond / 2

// createdAtOnce is how many users are made within [claimTime]: 50,000 took 8 s where tests ran beside it.
const createdAtOnce = 5000

// Register implements [storage.Store].
func (s *Store) Register(ctx context.Context, user storage.User, passwordHash string) error {
	r := s.create(ctx, []storage.User{user}, nil, passwordHash, user.CreatedAt)[0]
	if r.Err == nil && !r.Value {
		return fmt.Errorf("%w: %s", storage.ErrUserExists, user.ID)
	}
	return r.Err
}

// CreateUsers implements [storage.Store]. Handles are claimed at the time of the clock, as imported users were created long ago.
func (s *Store) CreateUsers(ctx context.Context, users []storage.User, states ...storage.UserState) []storage.Result[bool] {
	of := make(map[storage.UserID]storage.UserState, len(states))
	for i, state := range slices.Backward(states) { // the first of each id counts
		of[users[i].ID] = state
	}
	return s.create(ctx, users, of, "", 0)
}

// create makes users whose handles are claimed at a time, 0 for that of the clock when their turn comes.
func (s *Store) create(ctx context.Context, users []storage.User, states map[storage.UserID]storage.UserState, passwordHash string, at storage.Micros) []storage.Result[bool] {
	return db.ReroutedAll(ctx, s.db, len(users), func(chosen []int) []storage.Result[bool] {
		results := make([]storage.Result[bool], 0, len(chosen))
		for some := range slices.Chunk(storage.Chosen(users, chosen), createdAtOnce) {
			c := &creation{s, some, states, passwordHash, cmp.Or(at, storage.MicrosOf(time.Now())), make([]storage.Result[bool], len(some))}
			c.run(ctx)
			results = append(results, c.results...)
		}
		return results
	})
}

// creation makes users: it claims the handles, each on its own shard, and then writes the users whose claims held. Claims for users whom
// others have made meanwhile are given back. One user whose handle is on its own shard takes one transaction. A crash in between leaves
// claims that the next call with the same users recognises as their own.
type creation struct {
	*Store
	users        []storage.User
	states       map[storage.UserID]storage.UserState // others are active
	passwordHash string                               // of all of them, "" for none
	at           storage.Micros                       // when the handles are claimed
	results      []storage.Result[bool]
}

func (c *creation) run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, claimTime)
	defer cancel()
	if u := c.users[0]; len(c.users) == 1 && c.shards.OfHandle(u.Handle) == c.shards.Of(u.ID) && c.createWhole(ctx, u) {
		return
	}
	wanted := c.claimHandles(ctx, c.firstOfEach(ctx))
	c.insertUsers(ctx, wanted)
	c.freeHandle(ctx, wanted)
	late := slices.DeleteFunc(wanted, func(i int) bool { return c.results[i].Value || c.results[i].Err != nil })
	c.giveBack(ctx, storage.Chosen(c.users, late))
}

// errClaimed: somebody has claimed the handle, perhaps the user itself.
var errClaimed = errors.New("the handle is claimed")

// createWhole creates a user whose handle is on the same shard, in one transaction. It returns false if the
// handle is claimed already; then nothing has been written.
func (c *creation) createWhole(ctx context.Context, user storage.User) (known bool) {
	err := c.transactOn(ctx, "users", c.shards.Of(user.ID), func(w *writer) error {
		w.touchHandle(user.Handle)
		var is storage.StateChange
		if _, err := w.ReadOne(sqlStateOf, []any{int64(user.ID)}, &is.State, &is.At); err != nil {
			return err
		} else if err := judge.NewUser(user.ID, is.State); err != nil {
			return err
		}
		n, err := w.Exec(1, c.sql.Text(sqlClaimHandles), user.Handle, int64(user.ID), int64(c.at))
		if err == nil && n == 0 {
			err = errClaimed
		}
		if err != nil {
			return err
		}
		n, err = w.Exec(1, c.sql.Text(sqlInsertUsers), c.arguments(nil, user)...)
		if err == nil && n == 0 {
			err = storage.ErrUserExists // its claim is undone
		}
		if err != nil {
			return err
		}
		return c.insertBeside(w, user)
	})
	switch r := &c.results[0]; {
	case errors.Is(err, errClaimed):
		return false
	case errors.Is(err, storage.ErrUserExists):
		r.Found = true
	default:
		r.Value, r.Found, r.Err = err == nil, err == nil, err
	}
	return true
}

// arguments are the values of {users}.
func (c *creation) arguments(args []any, u storage.User) []any {
	return append(args, slices.Insert(userArguments(nil, u), 2+len(storage.UserTexts), any(nullable(c.passwordHash)))...)
}

// firstOfEach returns the indexes of users that do not exist yet, the first of
// each id.
func (c *creation) firstOfEach(ctx context.Context) []int {
	ids := storage.Each(c.users, func(u storage.User) storage.UserID { return u.ID })
	existing := byUser(ctx, c.Store, "users.exist", ids, sqlExistingUsers, func(*struct{}) []any { return nil })
	seen := make(map[storage.UserID]bool, len(ids))
	var fresh []int
	for i, r := range existing {
		switch {
		case r.Err != nil:
			c.results[i].Err = r.Err
		case r.Found || seen[ids[i]]:
			c.results[i].Found = true
		default:
			seen[ids[i]] = true
			fresh = append(fresh, i)
		}
	}
	states := c.readStandings(ctx, storage.Chosen(ids, fresh)) // after the users: a deletion sets it last
	usable := fresh[:0]
	for k, i := range fresh {
		if c.results[i].Err = cmp.Or(states[k].Err, judge.NewUser(ids[i], states[k].Value.State)); c.results[i].Err == nil {
			usable = append(usable, i)
		}
	}
	return usable
}

// claimHandles claims handles, and returns the indexes of the users who have theirs now.
func (c *creation) claimHandles(ctx context.Context, wanted []int) []int {
	if len(wanted) == 0 {
		return nil
	}
	handles := storage.Each(wanted, func(i int) string { return c.users[i].Handle })
	sure := make([]bool, len(wanted)) // no handle of a part had been claimed
	parts := c.db.Split(len(wanted), c.sql.MaxRows, func(j int) int { return c.shards.OfHandle(handles[j]) })
	db.AtOnce(parts, func(p db.Part) {
		claimed, err := transactOf(ctx, c.Store, "handles", p.Shard, func(w *writer) (int, error) {
			n, err := db.WriteRows(w.Tx, c.sql.Text(sqlClaimHandles), p.At, func(args []any, j int) []any {
				w.touchHandle(handles[j])
				return append(args, handles[j], int64(c.users[wanted[j]].ID), int64(c.at))
			})
			if err == nil && n < len(p.At) {
				err = w.renewClaims(storage.Each(p.At, func(j int) storage.User { return c.users[wanted[j]] }), c.at)
			}
			return n, err
		})
		for _, j := range p.At {
			c.results[wanted[j]].Err = err
			sure[j] = claimed == len(p.At)
		}
	})
	var mine, doubtful []int
	var asked []string
	for j, i := range wanted {
		switch {
		case c.results[i].Err != nil:
		case sure[j]:
			mine = append(mine, i)
		default:
			doubtful, asked = append(doubtful, i), append(asked, handles[j])
		}
	}
	claims := c.readUserIDs(ctx, asked)
	owners := c.readUsers(ctx, storage.Each(claims, func(claim storage.Result[storage.UserID]) storage.UserID { return claim.Value }))
	for k, owner := range owners {
		i := doubtful[k]
		r := &c.results[i]
		switch err := cmp.Or(claims[k].Err, owner.Err); {
		case err != nil:
			r.Err = err
		case claims[k].Value == c.users[i].ID: // perhaps somebody else has made it meanwhile
		case owner.Found && owner.Value.Handle == asked[k]:
			r.Err = fmt.Errorf("%w: %s belongs to user %s", storage.ErrHandleTaken, asked[k], owner.Value.ID)
		default:
			r.Err = c.claim(ctx, c.users[i].ID, asked[k], c.at)
		}
		if r.Err == nil {
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

func (c *creation) insertUsers(ctx context.Context, wanted []int) {
	if len(wanted) == 0 {
		return
	}
	slices.SortFunc(wanted, func(a, b int) int { return int(c.users[a].ID - c.users[b].ID) })
	parts := c.db.Split(len(wanted), c.sql.MaxRows, func(j int) int { return c.shards.Of(c.users[wanted[j]].ID) })
	db.AtOnce(parts, func(p db.Part) {
		at := storage.Chosen(wanted, p.At)
		made, err := c.insertPart(ctx, p.Shard, storage.Chosen(c.users, at))
		for _, i := range at {
			c.results[i] = storage.Result[bool]{Value: made[c.users[i].ID], Found: err == nil, Err: err}
		}
	})
}

// freeHandle ends the claim of a user who registers with a password and was surely not made: whoever tries again has another id, to which the
// handle would be taken by the first try. Other users have the same id again, and their claim.
func (c *creation) freeHandle(ctx context.Context, wanted []int) {
	if err := c.results[0].Err; c.passwordHash == "" || len(wanted) == 0 || err == nil || errors.Is(err, db.ErrInDoubt) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second) // the client may have gone
	defer cancel()
	_ = c.releaseHandle(ctx, c.users[0].ID, c.users[0].Handle) // else others may take it over after [storage.ClaimTTL]
}

// insertPart writes users of one shard and returns which of them were new.
func (c *creation) insertPart(ctx context.Context, shard int, users []storage.User) (made map[storage.UserID]bool, err error) {
	err = c.transactOn(ctx, "users", shard, func(w *writer) error {
		made = make(map[storage.UserID]bool, len(users))
		for _, u := range users {
			made[u.ID] = true
		}
		ids := storage.Each(users, func(u storage.User) any { return int64(u.ID) })
		err := w.Read(len(ids), db.Listed(sqlExistingUsers, len(ids)), ids, db.EachRow(db.OneColumn, func(id storage.UserID) { delete(made, id) }))
		if err != nil || len(made) == 0 {
			return err
		}
		fresh := storage.Filter(users, func(u storage.User) bool { return made[u.ID] })
		n, err := db.WriteRows(w.Tx, c.sql.Text(sqlInsertUsers), fresh, c.arguments)
		if err != nil {
			return err
		}
		if n != len(made) {
			return db.ErrAgain // another caller has made one of them since the read
		}
		return c.insertBeside(w, fresh...)
	})
	return made, err
}

// insertBeside gives new users their words, their counts and their states. Edges may have come before their user: the counts
// they made stay.
func (c *creation) insertBeside(w *writer, users ...storage.User) error {
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
	if err != nil {
		return err
	}
	now := storage.MicrosOf(time.Now()) // gateways look for changed states by their times
	hidden := storage.Filter(users, func(u storage.User) bool { return c.states[u.ID] != storage.Active })
	_, err = db.WriteRows(w.Tx, w.store.sql.Text(sqlWriteState), hidden, func(args []any, u storage.User) []any {
		w.change.AddStanding(u.ID)
		return append(args, int64(u.ID), int64(c.states[u.ID]), int64(now))
	})
	return err
}
