// Package reconcile finds where the two sides of edges disagree, and makes the
// Inverse side what the Forward side is: `following` wins always.
//
// [Full] compares everything, mostly inside the databases. [Incremental] looks at
// what has changed since it was last run, [Realtime] at what changes now.
package reconcile

import (
	"context"
	"fmt"
	"slices"

	"kith/storage"
)

// A Kind of disagreement.
type Kind string

// The kinds, of which the first four are about an inverse row.
const (
	Missing    Kind = "missing"     // there is a forward row, and no inverse one
	Extra      Kind = "extra"       // there is an inverse row, and no forward one
	WrongType  Kind = "wrong_type"  // the types differ
	WrongTime  Kind = "wrong_time"  // the types are the same, and the times differ
	WrongCount Kind = "wrong_count" // a count is not the number of rows of its side
)

// Kinds are all kinds, in the order in which they are told.
func Kinds() []Kind { return []Kind{Missing, Extra, WrongType, WrongTime, WrongCount} }

// A Finding is one disagreement.
type Finding struct {
	Kind Kind

	// The two rows of an edge. One that does not exist is type [storage.None] at
	// time 0.
	Forward, Inverse storage.Edge

	// Of [WrongCount]: whose count, on which side, what it is and what it should be.
	Side      storage.Side
	User      storage.UserID
	Have, Are int64
}

// Pair names the edge of a finding about an inverse row.
func (f Finding) Pair() storage.Pair { return f.Forward.Pair() }

// String tells the finding in one line.
func (f Finding) String() string {
	if f.Kind == WrongCount {
		return fmt.Sprintf("%-11s  user %d: %s says %d, there are %d", f.Kind, f.User, f.Side, f.Have, f.Are)
	}
	return fmt.Sprintf("%-11s  %d → %d: following %s, follower %s", f.Kind, f.Forward.From, f.Forward.To, rowText(f.Forward), rowText(f.Inverse))
}

func rowText(e storage.Edge) string {
	if absent(e) {
		return "has no row"
	}
	return fmt.Sprintf("type %d at %d", e.Type, e.UpdateTime)
}

// absent tells that a row does not exist, or might as well not.
func absent(e storage.Edge) bool { return e.Type == storage.None && e.UpdateTime == 0 }

// compare judges the two rows of an edge; false when they agree. Where there is no
// row, it is given as type None at time 0.
func compare(forward, inverse storage.Edge) (Finding, bool) {
	f := Finding{Forward: forward, Inverse: inverse}
	switch {
	case forward == inverse:
		return Finding{}, false
	case absent(inverse):
		f.Kind = Missing
	case absent(forward):
		f.Kind = Extra
	case forward.Type != inverse.Type:
		f.Kind = WrongType
	default:
		f.Kind = WrongTime
	}
	return f, true
}

// Edges reads single edges, see [storage.EdgeReader].
type Edges interface {
	Edges(ctx context.Context, side storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge]
}

// readAtOnce is how many edges are asked for together.
const readAtOnce = 500

// Differences reads both rows of each pair and returns those that differ, in the
// order of the pairs. The inverse rows are read first: whatever event has made one
// of them had its forward row committed before, so that the forward rows are never
// seen older than that.
func Differences(ctx context.Context, store Edges, pairs []storage.Pair) ([]Finding, error) {
	var found []Finding
	for chunk := range slices.Chunk(pairs, readAtOnce) {
		inverse, err := readRows(ctx, store, storage.Inverse, chunk)
		if err != nil {
			return nil, err
		}
		forward, err := readRows(ctx, store, storage.Forward, chunk)
		if err != nil {
			return nil, err
		}
		for i := range chunk {
			if f, differ := compare(forward[i], inverse[i]); differ {
				found = append(found, f)
			}
		}
	}
	return found, nil
}

// readRows reads one row of each pair; those that do not exist are type None at
// time 0.
func readRows(ctx context.Context, store Edges, side storage.Side, pairs []storage.Pair) ([]storage.Edge, error) {
	rows := make([]storage.Edge, len(pairs))
	for i, r := range store.Edges(ctx, side, pairs) {
		if r.Err != nil {
			return nil, fmt.Errorf("read %s from %d to %d: %w", side, pairs[i].From, pairs[i].To, r.Err)
		}
		rows[i] = r.Value
		rows[i].From, rows[i].To = pairs[i].From, pairs[i].To
	}
	return rows, nil
}
