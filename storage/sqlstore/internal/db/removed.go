package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"kith/storage"
)

// The last shard may be removed, if it has no buckets and no rows. So the numbers of the other shards stay,
// without a gap. The database that was the shard records that it is gone, and that no other has taken its
// place; then the list of shard 0 records that. Another database may become a shard of that number later.

// removed is the address of a shard that has been removed.
const removed = ""

// errRemoved is the error of a database that was a shard.
var errRemoved = fmt.Errorf("%w: the shard has been removed", storage.ErrUnavailable)

// SQLForgetShard records on a database that it is no longer a shard, and on shard 0 that a shard of the
// beginning is gone.
const SQLForgetShard = `
REPLACE INTO kith_shards (ordinal, address)
VALUES (?, '')`

// A list is what kith_shards of shard 0 has: the addresses of shards that have been added, and [removed] for those of the
// beginning that have been removed.
type list map[int]string

func (d *DB) listed(ctx context.Context) (list, error) {
	listed := make(list)
	err := d.Query(ctx, "shards", 0, 1, sqlAddedShards, nil, func(rows *sql.Rows) error {
		var ordinal int
		var address string
		err := rows.Scan(&ordinal, &address)
		listed[ordinal] = address
		return err
	})
	return listed, err
}

// number is how many shards a store has that had laidOut shards at the beginning.
func (l list) number(laidOut int) (n int) {
	for n = 1; ; n++ {
		address, known := l[n]
		if known && address == removed || !known && n >= laidOut {
			return n
		}
	}
}

// given is how many shards have to be given: those of the beginning in front of the first that has been removed.
func (l list) given(laidOut int) (n int) {
	for n = 1; n < laidOut; n++ {
		if _, known := l[n]; known {
			break
		}
	}
	return n
}

// listShard records where an added shard is.
func (d *DB) listShard(ctx context.Context, ordinal int, plain string) error {
	return d.Transact(ctx, "shards", 0, func(tx *Tx) error {
		_, err := tx.Exec(1, SQLRecordShard, ordinal, plain)
		return err
	})
}

// Unlist records on shard 0 that a shard has been removed. It reports whether it was listed.
func (d *DB) Unlist(ctx context.Context, ordinal int) (was bool, err error) {
	listed, err := d.listed(ctx)
	if err != nil || ordinal >= listed.number(d.laidOut) {
		return false, err
	}
	return true, d.Transact(ctx, "shards", 0, func(tx *Tx) error {
		_, err := tx.Exec(1, SQLForgetShard, ordinal)
		return err
	})
}

// addedAgain opens the database that has become a shard of the number of one that was removed. [errRemoved] if
// there is no such database: then the list names none, or still the one that is gone.
func (d *DB) addedAgain(ctx context.Context, gone *Shard) (*Shard, error) {
	listed, err := d.listed(ctx)
	if err != nil {
		return nil, err
	}
	if listed[gone.Ordinal] == removed {
		return nil, errRemoved
	}
	address, err := d.withCredentials(listed[gone.Ordinal])
	if err != nil {
		return nil, err
	}
	opened, err := d.connect(ctx, d.cfg, gone.Ordinal, []string{address})
	if err != nil {
		return nil, err
	}
	is, err := d.Dialect.identity(ctx, opened[0])
	was, wasErr := d.Dialect.identity(ctx, gone)
	if err = errors.Join(err, wasErr, opened[0].close()); err == nil && is == was {
		err = errRemoved
	}
	if err != nil {
		return nil, err
	}
	return d.follow(ctx, gone, listed[gone.Ordinal])
}

// isFresh returns an error if a database has been a shard.
func (d *DB) isFresh(ctx context.Context, n *Shard) error {
	epoch, err := d.epochOf(ctx, n)
	if err == nil && epoch <= 0 {
		err = fmt.Errorf("%w: %s has been a shard before: take an empty database", storage.ErrLayout, n.Name)
	}
	return err
}

// drop removes the shards from a number on from the list. A reader that still has one of them finds no rows
// there until its connections are closed, which happens after every statement has ended.
func (d *DB) drop(from int) {
	if from >= len(d.All()) {
		return
	}
	d.change(func(list []*Shard) []*Shard {
		for _, n := range list[from:] {
			if old, ok := d.gone.Swap(n.Ordinal, n); ok {
				d.replaced = append(d.replaced, old.(*Shard))
			}
			time.AfterFunc(d.cfg.writeTimeout(), func() { _ = n.close() })
		}
		return slices.Clip(list[:from])
	})
}
