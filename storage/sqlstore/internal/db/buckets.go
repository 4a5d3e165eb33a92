package db

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kith/storage"
)

// Which shard owns a bucket is data: every shard records which buckets it has (kith_buckets), and
// an epoch, which rises when they change. Nothing else says who owns what, so that a move is
// decided by one transaction of one database.

// ClaimState is what a shard records of buckets.
type ClaimState int

const (
	Owned    ClaimState = iota // it serves them
	Leaving                    // it serves them, and notes what is written: they are being copied to the other shard
	Closed                     // it serves reads, and takes no writes: they are about to move
	Left                       // they belong to the other shard, or store; their rows have not been removed yet
	Arriving                   // they are being copied from the other shard
)

// OtherStore is the other end of a move to another store.
const OtherStore = -2

// A Claim is a row of kith_buckets.
type Claim struct {
	storage.BucketRange
	State ClaimState
	Other int    // the shard at the other end of a move
	Token string // of the process that moves
	Since storage.Micros

	Seen time.Time // when this process first read it as it is; not stored
}

// The epoch and the buckets of a shard at one moment. Served by the primary keys.
const sqlReadBuckets = `
SELECT e.epoch, b.first_bucket, b.last_bucket, b.state, b.other, b.token, b.changed_at
FROM kith_epoch e
LEFT JOIN kith_buckets b ON b.first_bucket >= 0
WHERE e.id = 1
ORDER BY b.first_bucket`

// Served by the primary key.
const sqlPresentEpoch = `
SELECT epoch
FROM kith_epoch
WHERE id = 1`

var sqlBeginEpoch = Both(`
INSERT OR IGNORE INTO kith_epoch (id, epoch)
VALUES (1, 1)`)

const (
	SQLWriteClaim = `
INSERT INTO kith_buckets (first_bucket, last_bucket, state, other, token, changed_at)
VALUES (?, ?, ?, ?, ?, ?)`

	// Every transaction that writes holds this lock, so that the buckets do not change meanwhile, and finds no row in a
	// database that has been restored, see [ErrRestored]. The id
	// is an argument, which is always 1, because only statements with arguments are kept prepared. Served
	// by the primary key.
	sqlEpoch = `
SELECT e.epoch
FROM kith_epoch e
JOIN kith_admitted a ON a.id = 1
WHERE e.id = ? /*! LOCK IN SHARE MODE */`
)

// isServed reports whether the shard's rows of the buckets are the ones to read.
func (c Claim) isServed() bool {
	switch c.State {
	case Owned, Leaving, Closed:
		return true
	case Left:
		return c.Other == OtherStore // it is read until all programs use the other store
	}
	return false
}

// served are the buckets of which a shard has the rows to read.
func served(claims []Claim) storage.Choice {
	var ranges []storage.BucketRange
	for _, c := range claims {
		if c.isServed() {
			ranges = append(ranges, c.BucketRange)
		}
	}
	return storage.ChooseBuckets(ranges...)
}

// Served reports which buckets a shard has now. The map knows it then, too.
func (d *DB) Served(ctx context.Context, ordinal int) (storage.Served, error) {
	if err := d.learn(ctx, d.Shard(ordinal)); err != nil {
		return storage.Served{}, err
	}
	var now known
	_ = d.mapping(func() (bool, error) {
		now = d.known[ordinal]
		return false, nil
	})
	others := slices.ContainsFunc(now.claims, func(c Claim) bool { return !c.isServed() })
	return storage.Served{Epoch: now.epoch, Life: now.epoch / newLife, Buckets: served(now.claims), Others: others}, nil
}

// Refresh reads which shard owns which bucket, and opens shards that have been added. If a shard
// cannot be read, its buckets stay as they were known.
func (d *DB) Refresh(ctx context.Context) error {
	asked := time.Now()
	d.refreshing.Lock()
	defer d.refreshing.Unlock()
	if d.refreshed.After(asked) {
		return nil // the caller that had the lock has refreshed the map
	}
	begun := time.Now()
	err := errors.Join(d.learnShards(ctx), d.readClaims(ctx))
	d.refreshed = begun
	return err
}

// Look reads which shard owns which bucket, unless that has been read of all shards within a time. Shards that do not answer stay as they
// were known.
func (d *DB) Look(ctx context.Context, within time.Duration) {
	late := false
	_ = d.mapping(func() (bool, error) {
		late = slices.ContainsFunc(d.known, func(k known) bool { return time.Since(k.asked) > within })
		return false, nil
	})
	if late {
		_ = d.Refresh(ctx)
	}
}

// readClaims reads the buckets of all shards, and makes the map from them.
func (d *DB) readClaims(ctx context.Context) error {
	shards := d.All()
	failed := EveryShard(len(shards), func(i int) error { return d.learn(ctx, shards[i]) })
	if failed != nil && !d.mapped.Load() {
		return failed // at the start, when no map is known
	}
	return cmp.Or(failed, d.mapping(d.remap))
}

// known is what was last read of a shard's buckets.
type known struct {
	asked  time.Time
	epoch  int64
	claims []Claim
}

// learn reads the buckets of a shard. If there is a map, they are in it at once, because another shard may not answer; unless the map of the
// others is from before moves that have ended: then the map stays until they have been read, too.
func (d *DB) learn(ctx context.Context, n *Shard) error {
	asked := time.Now()
	epoch, claims, err := d.claimsOf(ctx, n)
	if err != nil {
		return err
	}
	if d.isNewLife(n, epoch) {
		d.report(false) // before the map lets this process write there
	}
	return d.mapping(func() (late bool, err error) {
		was := d.known[n.Ordinal]
		if asked.Before(was.asked) {
			return false, nil // somebody has asked later, and got the answer before
		}
		d.known[n.Ordinal] = known{was.asked, epoch, seenSince(was.claims, claims)}
		if epoch != was.epoch && d.mapped.Load() {
			late, _ = d.remap()
		}
		d.known[n.Ordinal].asked = asked
		return late, nil
	})
}

// isNewLife reports whether a shard has been readmitted since it was last read.
func (d *DB) isNewLife(n *Shard, epoch int64) (is bool) {
	_ = d.mapping(func() (bool, error) {
		was := d.known[n.Ordinal].epoch
		is = was != 0 && epoch/newLife != was/newLife
		return false, nil
	})
	return is
}

// mapping runs what reads or changes what is known, one at a time, and reports if it changes the map late. It reports later, because the
// listener may wait for a Redis that does not answer.
func (d *DB) mapping(change func() (late bool, err error)) error {
	late, err := func() (bool, error) {
		d.learning.Lock()
		defer d.learning.Unlock()
		d.known = append(d.known, make([]known, len(d.All())-len(d.known))...)
		return change()
	}()
	if late {
		d.report(true)
	}
	return err
}

func (d *DB) report(here bool) {
	if report := d.misread.Load(); report != nil {
		(*report)(here)
	}
}

// OnMisread has a function called when this process may have read what is not, or no longer, in the store: a shard has been readmitted, or
// buckets have moved, and this process has not looked for longer than a mover waits: then it is here only.
func (d *DB) OnMisread(report func(here bool)) { d.misread.Store(&report) }

// MoverWaits is how long a mover waits before rows are written where they have moved: who looks every 100 ms knows by then where to read.
const MoverWaits = 150 * time.Millisecond

// remap makes the map from what is known, and reports whether that is later than a mover waits. [storage.ErrLayout] if no shard has some
// bucket.
func (d *DB) remap() (late bool, err error) {
	a, err := assignmentOf(storage.Each(d.known, func(k known) int64 { return k.epoch }), storage.Each(d.known, func(k known) []Claim { return k.claims }))
	if err != nil {
		return false, err
	}
	before := d.Map.Now()
	d.Map.Set(a)
	d.remapped.Wake()
	isLate := func(bucket int) bool {
		from, _ := before.Owner(bucket)
		to, _ := a.Owner(bucket)
		return from != to && time.Since(d.known[from].asked) > MoverWaits
	}
	return d.mapped.Swap(true) && slices.ContainsFunc(allBuckets, isLate), nil
}

var allBuckets = storage.Indexes(storage.Buckets)

// Watch keeps the map fresh until the context is done: it looks at all shards every so often. While a shard does not answer, the others are
// looked at all the same.
func (d *DB) Watch(ctx context.Context, every func() time.Duration) {
	var looking sync.WaitGroup
	defer looking.Wait()
	var listing atomic.Bool
	look := func(is *atomic.Bool, look func(context.Context) error) {
		if is.CompareAndSwap(false, true) {
			looking.Go(func() {
				defer is.Store(false)
				_ = look(ctx) // a shard that does not answer is reported by its look-ups
			})
		}
	}
	for last := time.Now(); ctx.Err() == nil; {
		if d.remapped.WakesWithin(ctx, every()-time.Since(last)); time.Since(last) < every() {
			continue // the map says how often
		}
		last = time.Now()
		look(&listing, d.learnShards)
		for _, n := range d.All() {
			look(&n.asked, func(ctx context.Context) error { return d.learn(ctx, n) })
		}
	}
}

// seenSince notes since when claims have been as they are. No clock of another machine is used.
func seenSince(before, claims []Claim) []Claim {
	now := time.Now()
	for i, c := range claims {
		claims[i].Seen = now
		for _, was := range before {
			if c.Seen = was.Seen; c == was {
				claims[i].Seen = was.Seen
			}
		}
	}
	return claims
}

// claimsOf reads the epoch and the buckets of a shard. If there are none, it records those of the beginning.
func (d *DB) claimsOf(ctx context.Context, n *Shard) (epoch int64, claims []Claim, err error) {
	read := func() error {
		return d.Query(ctx, "buckets", n.Ordinal, 1, sqlReadBuckets, nil, claimScan(&epoch, &claims))
	}
	if err = read(); err == nil && epoch == 0 {
		if d.mapped.Load() {
			return 0, nil, fmt.Errorf("shard %d (%s): %w", n.Ordinal, n.Name, ErrRestored) // it had an epoch at the start
		}
		if err = d.beginEpoch(ctx, n); err != nil {
			return 0, nil, fmt.Errorf("record the buckets of shard %d (%s): %w", n.Ordinal, n.Name, d.Dialect.StorageError(ctx, err))
		}
		err = read()
	}
	return epoch, claims, err
}

// epochOf reads the epoch of a database, 0 if it has none yet.
func (d *DB) epochOf(ctx context.Context, n *Shard) (epoch int64, err error) {
	err = n.Write.QueryRowContext(ctx, sqlPresentEpoch).Scan(&epoch)
	switch {
	case errors.Is(err, sql.ErrNoRows) || isNoTable(err):
		return 0, nil
	case err != nil:
		err = fmt.Errorf("read the epoch of shard %d (%s): %w", n.Ordinal, n.Name, d.Dialect.StorageError(ctx, err))
	}
	return epoch, err
}

// claimScan scans what [sqlReadBuckets] reads.
func claimScan(epoch *int64, claims *[]Claim) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		var first, last, state, other, since sql.NullInt64
		var token sql.NullString
		err := rows.Scan(epoch, &first, &last, &state, &other, &token, &since)
		if first.Valid {
			*claims = append(*claims, Claim{
				BucketRange: storage.BucketRange{First: int(first.Int64), Last: int(last.Int64)}, State: ClaimState(state.Int64),
				Other: int(other.Int64), Token: token.String, Since: storage.Micros(since.Int64),
			})
		}
		return err
	}
}

// beginEpoch records the buckets that a shard has from the beginning, unless they are recorded.
func (d *DB) beginEpoch(ctx context.Context, n *Shard) error {
	tx, err := n.Write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := admitted(ctx, tx); err != nil {
		return err
	}
	result, err := tx.ExecContext(ctx, d.Dialect.Text(sqlBeginEpoch))
	if err != nil {
		return err
	}
	if begun, err := result.RowsAffected(); err != nil || begun == 0 {
		return err
	}
	if r := d.begins(n.Ordinal); r.Len() > 0 {
		if _, err := tx.ExecContext(ctx, SQLWriteClaim, r.First, r.Last, int(Owned), -1, "", int64(storage.MicrosOf(time.Now()))); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// assignmentOf makes an assignment of what the shards record. Shards are not read at one moment: if
// two have a bucket, the shard to which it is moving has been read later.
func assignmentOf(epochs []int64, claims [][]Claim) (*storage.Assignment, error) {
	a := &storage.Assignment{Epochs: epochs}
	assigned := make([]bool, storage.Buckets)
	give := func(c Claim, to int, state ClaimState) {
		a.Assign(c.BucketRange, to, uint8(state))
		for b := c.First; b <= c.Last; b++ {
			assigned[b] = true
		}
	}
	// The last shard that is given a bucket counts: an owner overrides a shard that the bucket is
	// leaving, and that one overrides a shard that it has left.
	for _, states := range [][]ClaimState{{Left}, {Leaving, Closed}, {Owned}} {
		for i, list := range claims {
			for _, c := range list {
				switch {
				case c.State != states[0] && c.State != states[len(states)-1]:
				case c.State == Left && c.Other == OtherStore:
					give(c, i, Left) // it is read until all programs use the other store
				case c.State == Left && c.Other < len(claims):
					give(c, c.Other, Closed) // nobody writes before the other has opened it
				case c.State != Left:
					give(c, i, c.State)
				}
			}
		}
	}
	for b, is := range assigned {
		if !is {
			return nil, fmt.Errorf("%w: no shard has bucket %d", storage.ErrLayout, b)
		}
	}
	return a, nil
}

// Claims is what every shard records, as last read; nothing of a shard that has just been added and not been read.
func (d *DB) Claims() (claims [][]Claim) {
	_ = d.mapping(func() (bool, error) {
		claims = storage.Each(d.known, func(k known) []Claim { return k.claims })
		return false, nil
	})
	return claims
}
