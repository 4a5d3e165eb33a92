package reconcile

import (
	"cmp"
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
func Confirm(ctx context.Context, store storage.Answerer, keys []Key, window time.Duration) (found []Finding, unsettled int, err error) {
	edges := storage.Each(keys, func(k Key) *halves { return &halves{key: k} })
	found, unsettled, _, err = confirm(ctx, store, edges, window)
	return found, unsettled, err
}

// confirm is Confirm for edges whose rows may be in logs: if an edge agrees, but is not yet what
// the logs say, it is read again. If some edges cannot be read, it returns them
// with the error, and what it has found of the others.
func confirm(ctx context.Context, store storage.Answerer, edges []*halves, window time.Duration) (found []Finding, unsettled int, unread []*halves, err error) {
	before := map[Key]storage.Edge{} // inverse rows that differed at the last reading
	for round := 0; len(edges) > 0 && round < confirmRounds; round++ {
		if round > 0 {
			if err := sleep.For(ctx, window); err != nil {
				return nil, 0, nil, err
			}
		}
		keys := storage.Each(edges, func(h *halves) Key { return h.key })
		var rows []storage.Result[bothRows]
		if failed := whileAway(ctx, func() error { rows = readBoth(ctx, store, keys); return errorOf(rows) }); failed != nil {
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
	off       map[count]int64 // by how much counts are, because of what was found
	repaired  map[Kind]int
}

func (f *full) confirm(ctx context.Context, suspects []Key) (c confirmed, err error) {
	if c.found, c.unsettled, err = Confirm(ctx, f.store, suspects, f.cfg.Window); err != nil {
		return c, err
	}
	c.off, err = f.explain(ctx, c.found)
	return c, err
}

// twice reads suspects again and again, a window apart, until each has been the same at two readings, or is not wrong any
// more. It returns apart those that changed at every reading. key is what has to be the same.
func twice[T any, K comparable](ctx context.Context, window time.Duration, suspects []T, key func(T) K, again func([]T) ([]T, error)) (same, changing []T, err error) {
	for round := 1; len(suspects) > 0 && round < confirmRounds; round++ {
		if err := sleep.For(ctx, window); err != nil {
			return nil, nil, err
		}
		before := make(map[K]bool, len(suspects))
		for _, s := range suspects {
			before[key(s)] = true
		}
		now, err := again(suspects)
		if err != nil {
			return nil, nil, err
		}
		suspects = nil
		for _, s := range now {
			if before[key(s)] {
				same = append(same, s)
			} else {
				suspects = append(suspects, s)
			}
		}
	}
	return same, suspects, nil
}

// repair repairs the rows found, unless the scan is a dry run. A row that cannot be repaired is left and
// logged; only the end of the context is an error.
func (f *full) repair(ctx context.Context, c *confirmed) error {
	if !f.cfg.Repair {
		return nil
	}
	c.repaired = make(map[Kind]int)
	for chunk := range slices.Chunk(c.found, unsettledAtOnce) {
		keys := storage.Each(chunk, Finding.Key)
		var left []Key
		var err error
		if chunk[0].Kind == Forbidden { // then all are
			keys, left, err = f.endForbidden(ctx, chunk)
		} else {
			f.noteUnsettled(ctx, mayFollow(chunk))
		}
		m, failed := RepairEdges(ctx, f.store, keys)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		unrepaired := setOf(append(left, m.Left...))
		if err = cmp.Or(err, failed); err != nil {
			f.cfg.Logger.ErrorContext(ctx, "reconcile: cannot repair edges", "edges", len(unrepaired), "error", err)
		}
		for _, d := range chunk {
			if !unrepaired[d.Key()] {
				c.repaired[d.Kind]++
			}
		}
	}
	return nil
}
