package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sides"
	"kith/storage/sleep"
)

// RepairStore is what repairing needs of a store.
type RepairStore interface {
	storage.Answerer
	sides.Repairer
}

// repairRounds is how often an edge's rows are read and written before it is given up.
const repairRounds = 10

// errUnsettled says that an edge changed at every attempt to repair it.
var errUnsettled = errors.New("the rows kept changing")

// Repairs is the result of [RepairEdges].
type Repairs struct {
	Rows  int           // inverse rows written, of the given edges
	Left  []Key         // edges that still differ
	After []storage.Row // forward rows that followed from repairs; by now they are on their other side, too
}

// RepairEdges makes the inverse row of each edge match its forward row. Its error is the reason for
// the first edge that it has left. Counts follow the rows.
//
// A row is written only if it is still as observed; then both rows are read again until they agree.
// So an event that comes in between is not undone. An event that was not applied because the
// inverse row had a false, newer time is not lost either: its forward row can still be read.
//
// What follows from a row that is written, such as the end of a follow from a block, is written
// with it, on the forward side. It is propagated to its other side as every edge is repaired: by
// comparing both rows.
func RepairEdges(ctx context.Context, store RepairStore, keys []Key) (all Repairs, err error) {
	for chunk := range slices.Chunk(keys, readAtOnce) {
		m, failed := repairChunk(ctx, store, chunk)
		all.Rows += m.Rows
		all.Left = append(all.Left, m.Left...)
		all.After = append(all.After, m.After...)
		err = cmp.Or(err, failed)
	}
	return all, err
}

func repairChunk(ctx context.Context, store RepairStore, keys []Key) (Repairs, error) {
	written := make(map[Key]storage.Edge) // what was wanted
	pending := keys
	var err error
	for round := range repairRounds {
		if round > 1 { // the second reading only checks that all is well
			if waited := sleep.For(ctx, time.Duration(round)*10*time.Millisecond); waited != nil {
				return repairsOf(keys, written, pending), waited
			}
		}
		var found []Finding
		if found, err = Differences(ctx, store, pending); err != nil {
			continue
		}
		if pending = storage.Each(found, Finding.Key); len(pending) == 0 {
			return repairsOf(keys, written, nil), nil
		}
		var after []Key
		after, err = repair(ctx, store, found, written)
		pending = distinct(append(pending, after...))
	}
	if err == nil {
		err = fmt.Errorf("repair %d edges: %w", len(pending), errUnsettled)
	}
	return repairsOf(keys, written, pending), err
}

// repairsOf computes the outcome for edges. A row that was written, and differs again, is not
// repaired.
func repairsOf(keys []Key, written map[Key]storage.Edge, left []Key) Repairs {
	m := Repairs{Left: left}
	for _, k := range left {
		delete(written, k)
	}
	for _, k := range keys {
		if _, done := written[k]; done {
			m.Rows++
			delete(written, k)
		}
	}
	for k, row := range written {
		m.After = append(m.After, storage.Row{Side: k.Side, Edge: row})
	}
	return m
}

// repair tries to write each inverse row once, and notes those it has written. It returns the edges
// that have, or may have, changed because of it.
func repair(ctx context.Context, store RepairStore, found []Finding, written map[Key]storage.Edge) (after []Key, err error) {
	repairs := storage.Each(found, func(f Finding) sides.Repair {
		return sides.Repair{Side: f.Side, Pair: f.Pair(), Observed: f.Inverse, Want: f.Forward}
	})
	for i, r := range store.RepairInverse(ctx, repairs) {
		f := found[i]
		switch {
		case r.Err != nil: // the error may have come after the write
			after = append(after, mayFollow(found[i:i+1])...)
			err = fmt.Errorf("repair %s from %d to %d: %w", f.Side.Replica(), f.Forward.From, f.Forward.To, r.Err)
		case r.Value.Changed:
			written[f.Key()] = f.Forward
			for _, w := range r.Value.Also {
				after = append(after, keyOf(w.Row))
			}
		}
	}
	return after, err
}

// mayFollow returns the edges that may change when inverse rows are made to match the forward ones,
// see [storage.EdgeWriter]: those of the other user, among follows and requests.
func mayFollow(found []Finding) []Key {
	var keys []Key
	for _, f := range found {
		if !judge.HasConsequences(f.Side.Replica(), f.Forward.Type) {
			continue
		}
		for _, side := range [...]storage.Side{storage.Forward, storage.Requests} {
			keys = append(keys, Key{side, reversed(f.Pair())})
		}
	}
	return keys
}

func reversed(p storage.Pair) storage.Pair { return storage.Pair{From: p.To, To: p.From} }

func setOf(keys []Key) map[Key]bool {
	set := make(map[Key]bool, len(keys))
	for _, k := range keys {
		set[k] = true
	}
	return set
}

// distinct drops duplicate keys.
func distinct(keys []Key) []Key {
	seen := make(map[Key]bool, len(keys))
	return slices.DeleteFunc(keys, func(k Key) bool {
		again := seen[k]
		seen[k] = true
		return again
	})
}
