package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	"kith/storage"
	"kith/storage/sleep"
)

// confirmRounds is how often an edge that keeps changing is read before it is given up.
const confirmRounds = 5

// Confirm reads suspected edges two or more times, a window apart, and returns those that disagree:
// the inverse row was the same at two readings, and differed from the forward row at both. A row on
// its way would have arrived in between. Confirm also returns how many edges changed at every
// reading; nothing is known about these.
func Confirm(ctx context.Context, store Edges, keys []Key, window time.Duration) (found []Finding, unsettled int, err error) {
	edges := make([]*halves, len(keys))
	for i, k := range keys {
		edges[i] = &halves{key: k}
	}
	found, unsettled, _, err = confirm(ctx, store, edges, func(int) error { return sleep.For(ctx, window) })
	return found, unsettled, err
}

// confirm is Confirm for edges whose rows may be in logs: if an edge agrees, but is not yet what
// the logs say, it is read again. wait waits before each reading but the first. If some edges cannot be read, it returns them
// with the error, and what it has found of the others.
func confirm(ctx context.Context, store Edges, edges []*halves, wait func(round int) error) (found []Finding, unsettled int, unread []*halves, err error) {
	before := map[Key]storage.Edge{} // inverse rows that differed at the last reading
	for round := 0; len(edges) > 0 && round < confirmRounds; round++ {
		if round > 0 {
			if err := wait(round); err != nil {
				return nil, 0, nil, err
			}
		}
		rows, failed := readSurely(ctx, store, keysOfHalves(edges))
		if failed != nil {
			err = failed
		}
		var open []*halves
		differed := map[Key]storage.Edge{}
		for i, h := range edges {
			f, differ := compare(h.key.Side, rows[i].Value)
			was, known := before[h.key]
			switch {
			case rows[i].Err != nil:
				unread = append(unread, h)
			case differ && known && was == f.Inverse:
				found = append(found, f)
			case differ:
				differed[h.key] = f.Inverse
				open = append(open, h)
			case round == 0 && !h.settled(rows[i].Value):
				open = append(open, h)
			}
		}
		edges, before = open, differed
	}
	return found, len(edges), unread, err
}

// readSurely is readBoth, retried while a shard does not answer in time.
func readSurely(ctx context.Context, store Edges, keys []Key) (rows []storage.Result[bothRows], err error) {
	err = whileAway(ctx, func() error {
		rows = readBoth(ctx, store, keys)
		for _, r := range rows {
			if r.Err != nil {
				return r.Err
			}
		}
		return nil
	})
	return rows, err
}

// whileAway retries a read while a shard does not answer in time.
func whileAway(ctx context.Context, read func() error) error {
	const tries = 6
	for try := 1; ; try++ {
		err := read()
		if err == nil || ctx.Err() != nil || !errors.Is(err, storage.ErrUnavailable) || try == tries {
			return err
		}
		if err := sleep.For(ctx, 50*time.Millisecond<<try); err != nil {
			return err
		}
	}
}

// confirmed is what a part of a scan has found, and the outcome of it.
type confirmed struct {
	found     []Finding
	unsettled int
	off       map[storage.UserID]countsOff // because of what was found
	offPosts  map[storage.PostID]int32     // the same, of posts
	repaired  map[Kind]int
}

func (f *full) confirm(ctx context.Context, suspects []Key) (c confirmed, err error) {
	if c.found, c.unsettled, err = Confirm(ctx, f.store, suspects, f.cfg.Window); err != nil {
		return c, err
	}
	if c.off, err = f.countsOff(ctx, c.found); err == nil {
		c.off, c.offPosts, err = f.favoritesOff(ctx, c.found, c.off)
	}
	return c, err
}

// repair repairs the edges found, unless the scan is a dry run. A row that cannot be repaired is left and
// logged; only the end of the context is an error.
func (f *full) repair(ctx context.Context, c *confirmed) error {
	if !f.cfg.Repair || len(c.found) == 0 {
		return nil
	}
	left := make(map[Key]bool)
	for chunk := range slices.Chunk(c.found, unsettledAtOnce) {
		f.noteUnsettled(ctx, mayFollow(chunk))
		m, err := RepairEdges(ctx, f.store, keysOf(chunk))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			f.cfg.Logger.ErrorContext(ctx, "edges not repaired", "edges", len(m.Left), "error", err)
		}
		for _, k := range m.Left {
			left[k] = true
		}
	}
	c.repaired = make(map[Kind]int)
	for _, d := range c.found {
		if !left[d.Key()] {
			c.repaired[d.Kind]++
		}
	}
	return nil
}
