package move

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// The steps of a move are changes of claims, each in one transaction of one shard:
//
//	to    → arriving           what is copied may be written there
//	from  owned → leaving      what is written is noted, and copied again
//	from  leaving → closed     nothing is written while the last rows are copied
//	to    arriving, dated      it has all rows; the decision has the same date
//	from  closed → left        the decision: before it a move can go back, from here it goes on
//	to    arriving → owned     it serves them
//	from  left → nothing       the rows have been removed
//
// Everything that a move needs to continue is in the claims, so a move that has been given up may
// be continued by another mover, or by a gateway whose writes wait.

// errStep means that a claim is not as a step expects it: another process has continued the move,
// or undone it.
var errStep = errors.New("the buckets are not as they were")

const (
	// Served by the primary key.
	sqlLockEpoch = `
SELECT epoch
FROM kith_epoch
WHERE id = 1 /*! FOR UPDATE */`

	// Served by the primary key.
	sqlRaiseEpoch = `
UPDATE kith_epoch
SET epoch = epoch + 1
WHERE id = 1`

	// Served by the primary key.
	sqlClaims = `
SELECT first_bucket, last_bucket, state, other, token, changed_at
FROM kith_buckets
ORDER BY first_bucket`

	// Served by the primary key.
	sqlRemoveClaim = `
DELETE FROM kith_buckets
WHERE first_bucket = ?`

	// Served by the primary key.
	sqlAllArrived = `
UPDATE kith_buckets
SET changed_at = ?
WHERE first_bucket = ?`

	// Served by the primary key.
	sqlClaimHeld = `
SELECT state, token
FROM kith_buckets
WHERE first_bucket = ? /*! LOCK IN SHARE MODE */`
)

// removing is the date of buckets that have left, once their rows are being removed: they cannot come back.
const removing = storage.Micros(0)

// stepFor is how long a step may take: by then the transactions it waits for have ended.
const stepFor = 20 * time.Second

// step changes the claims of a shard: change gets all of them, and returns their new values. The writes of also are
// in the same transaction. step waits for the transactions under way on the shard, which hold its epoch, but not for
// long, because transactions that begin meanwhile wait behind it.
func step(ctx context.Context, d *db.DB, ordinal int, change func([]db.Claim) ([]db.Claim, error), also ...func(*db.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, stepFor)
	defer cancel()
	err := d.ExclusiveShortWait(ctx, "buckets", ordinal, func(tx *db.Tx) error {
		if err := lockEpoch(tx); err != nil {
			return err
		}
		var old []db.Claim
		if err := tx.Read(1, sqlClaims, nil, eachClaim(&old)); err != nil {
			return err
		}
		wanted, err := change(old)
		if err != nil {
			return err
		}
		for _, write := range also {
			if err := write(tx); err != nil {
				return err
			}
		}
		return writeClaims(tx, old, joined(wanted))
	})
	if err == nil {
		_, err = d.Served(ctx, ordinal) // that the map knows it; of others it may not hear now
	}
	return err
}

// lockEpoch waits until no transaction holds the epoch of a shard. errStep, if the database is no shard.
func lockEpoch(tx *db.Tx) error {
	var epoch int64
	_, err := tx.ReadOne(sqlLockEpoch, nil, &epoch)
	if err == nil && epoch <= 0 {
		err = errStep
	}
	return err
}

// eachClaim reads what sqlClaims finds.
func eachClaim(claims *[]db.Claim) func(*sql.Rows) error {
	return db.AppendTo(claims, func(c *db.Claim) []any { return []any{&c.First, &c.Last, &c.State, &c.Other, &c.Token, &c.Since} })
}

func writeClaims(tx *db.Tx, old, wanted []db.Claim) error {
	for _, c := range old {
		if _, err := tx.Exec(1, sqlRemoveClaim, c.First); err != nil {
			return err
		}
	}
	for _, c := range wanted {
		if _, err := tx.Exec(1, db.SQLWriteClaim, c.First, c.Last, int(c.State), c.Other, c.Token, int64(c.Since)); err != nil {
			return err
		}
	}
	_, err := tx.Exec(1, sqlRaiseEpoch)
	return err
}

// joined joins owned claims that are side by side; they are in order.
func joined(claims []db.Claim) (list []db.Claim) {
	for _, c := range claims {
		if n := len(list); n > 0 && c.State == db.Owned && list[n-1].State == db.Owned && list[n-1].Last+1 == c.First {
			list[n-1].Last = c.Last
			continue
		}
		list = append(list, c)
	}
	return list
}

// cut takes a range out of the claim that has it, which must be in one of some states, and puts
// another claim there, unless that has no buckets.
func cut(claims []db.Claim, r storage.BucketRange, put db.Claim, states ...db.ClaimState) (list []db.Claim, err error) {
	done := false
	for _, c := range claims {
		inside := c.Contains(r.First) && c.Contains(r.Last)
		if !inside || !slices.Contains(states, c.State) || c.State != db.Owned && c.BucketRange != r {
			list = append(list, c)
			continue
		}
		done = true
		before, after := c, c
		before.Last, after.First = r.First-1, r.Last+1
		for _, part := range []db.Claim{before, put, after} {
			if part.Len() > 0 {
				list = append(list, part)
			}
		}
	}
	if !done {
		return nil, fmt.Errorf("%w: %d–%d", errStep, r.First, r.Last)
	}
	return list, nil
}

// find is the claim of exactly a range; false if there is none.
func find(claims []db.Claim, r storage.BucketRange) (db.Claim, bool) {
	i := slices.IndexFunc(claims, func(c db.Claim) bool { return c.BucketRange == r })
	if i < 0 {
		return db.Claim{}, false
	}
	return claims[i], true
}

// leaves reports whether a claim's buckets leave for a shard.
func leaves(c db.Claim, to int) bool {
	return (c.State == db.Leaving || c.State == db.Closed) && c.Other == to
}

// owned is the claim of buckets that do not move.
func owned(r storage.BucketRange) db.Claim {
	return db.Claim{BucketRange: r, State: db.Owned, Other: -1, Since: now()}
}

func now() storage.Micros { return storage.MicrosOf(time.Now()) }

// Rescue ends the waits of writes for moves that have stopped: moves that are decided are
// continued, and the others go back to a state in which nothing waits. A claim that has just been
// closed is left alone, however long the caller has waited for others: its mover is at work.
func Rescue(ctx context.Context, d *db.DB) {
	claims := d.Claims()
	for i, list := range claims {
		for _, c := range list {
			switch {
			case time.Since(c.Seen) < db.GivenUp:
			case c.State == db.Closed:
				_ = reopen(ctx, d, i, c) // those who wait try again
			case c.State == db.Left && c.Other >= 0 && c.Other < len(claims):
				if to, ok := find(claims[c.Other], c.BucketRange); ok && to.State == db.Arriving {
					_ = open(ctx, d, Plan{c.BucketRange, i, c.Other})
				}
			}
		}
	}
}

// reopen lets buckets be used again that have been closed and not decided. Their mover, if it is
// alive, finds that they are not as they were.
func reopen(ctx context.Context, d *db.DB, ordinal int, closed db.Claim) error {
	return step(ctx, d, ordinal, func(old []db.Claim) ([]db.Claim, error) {
		if c, ok := find(old, closed.BucketRange); !ok || c.Since != closed.Since || c.Token != closed.Token {
			return nil, errStep
		}
		open := closed
		open.State, open.Since = db.Leaving, now()
		return cut(old, closed.BucketRange, open, db.Closed)
	})
}
