package db

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"kith/storage"
)

// Shards that have been added to a store come behind those of the beginning. Shard 0 lists where they are, and every program
// that has the store open finds them there.

// Served by the primary key.
const sqlAddedShards = `
SELECT ordinal, address
FROM kith_shards
ORDER BY ordinal`

// listed is what kith_shards of shard 0 has: the addresses of the added shards, by their numbers.
func (d *DB) listed(ctx context.Context) (map[int]string, error) {
	listed := make(map[int]string)
	err := d.Query(ctx, "shards", 0, 1, sqlAddedShards, nil, EachEntry(TwoColumns, func(ordinal int, address string) { listed[ordinal] = address }))
	return listed, err
}

// numberOf is how many shards a store has that had laidOut shards at the beginning.
func numberOf(listed map[int]string, laidOut int) (n int) {
	for n = laidOut; listed[n] != ""; n++ {
	}
	return n
}

// learnShards opens the shards that have been added to the store.
func (d *DB) learnShards(ctx context.Context) error {
	d.listing.Lock()
	defer d.listing.Unlock()
	listed, err := d.listed(ctx)
	if err == nil {
		err = d.keepPlaces(ctx, listed)
	}
	for n := len(d.All()); err == nil && listed[n] != ""; n++ {
		err = d.attach(ctx, n, listed[n])
	}
	return err
}

// attach opens an added shard, which has been laid out, and brings its tables up to date.
func (d *DB) attach(ctx context.Context, ordinal int, address string) error {
	listed := address
	address, err := d.withCredentials(address)
	if err != nil {
		return err
	}
	opened, err := d.connect(ctx, d.cfg.existing(), ordinal, []string{address})
	if err != nil {
		return err
	}
	if err = d.haveTables(ctx, opened); err == nil {
		err = d.migrate(ctx, opened)
	}
	n := opened[0]
	n.listed = listed
	var m *meta
	if err == nil {
		m, err = d.readMeta(ctx, n)
	}
	if err == nil && m == nil {
		err = fmt.Errorf("%w: %s is to be shard %d, but is empty", storage.ErrLayout, n.Name, n.Ordinal)
	}
	if err == nil {
		err = d.fits(n, m)
	}
	if err != nil {
		return errors.Join(err, n.close())
	}
	d.grow(n)
	return nil
}

// grow makes a shard known. Readers have the list from before or from after it.
func (d *DB) grow(n *Shard) {
	d.growing.Lock()
	defer d.growing.Unlock()
	list := append(slices.Clip(d.All()), n)
	d.shards.Store(&list)
	if d.grown != nil {
		close(d.grown)
		d.grown = nil
	}
}

// Grown is closed once the store has more shards than a number.
func (d *DB) Grown(than int) <-chan struct{} {
	d.growing.Lock()
	defer d.growing.Unlock()
	if len(d.All()) > than {
		already := make(chan struct{})
		close(already)
		return already
	}
	if d.grown == nil {
		d.grown = make(chan struct{})
	}
	return d.grown
}
