package social

import (
	"context"
	"slices"

	"kith/storage"
)

// Lists that are not too long are faster read whole, as one text each, than walked row by
// row; long ones are, where the store keeps them packed. How long they are is known from
// the counts.

// wholePlan is what is read whole.
type wholePlan struct {
	rows       int64 // so many rows of both lists together
	packedFrom int64 // so long a list may be kept packed
	packedMost int64 // so many users of packed lists, 8 bytes each
}

var wholeDefaults = wholePlan{rows: 100_000, packedFrom: 10_000, packedMost: 4 << 20}

// wholeReader is what a [Reader] may be besides: one that may have read counts already, and
// has long lists packed.
type wholeReader interface {
	KnownCounts(ids []storage.UserID) ([]storage.Result[storage.Counts], bool)
	storage.PackedReader
}

// readKnown reads whole lists before the first look, if their lengths are known. It tells whether
// they are.
func (in *intersection) readKnown(ctx context.Context) (planned bool, err error) {
	reader, ok := in.graph.store.(wholeReader)
	if !ok {
		return false, nil
	}
	counts, ok := reader.KnownCounts([]storage.UserID{in.lists[0].Owner, in.lists[1].Owner})
	if !ok {
		return false, nil
	}
	lengths, err := in.lengthsOf(counts)
	if err != nil {
		return false, err
	}
	if in.farShorter(lengths) != nil && max(lengths[0], lengths[1]) > int64(in.graph.firstLook) {
		return false, nil
	}
	return true, in.readWhole(ctx, lengths)
}

// lengths are how long both lists are, by the counts of their owners.
func (in *intersection) lengths(ctx context.Context) ([2]int64, error) {
	return in.lengthsOf(in.graph.store.Counts(ctx, []storage.UserID{in.lists[0].Owner, in.lists[1].Owner}))
}

func (in *intersection) lengthsOf(counts []storage.Result[storage.Counts]) (n [2]int64, err error) {
	for k, r := range counts {
		if r.Err != nil {
			return n, r.Err
		}
		n[k] = r.Value.Of(in.lists[k].Side)
	}
	return n, nil
}

// readWhole reads what is left of both lists: of packed ones, where they are long, and of
// rows, where they are not too long. What it does not read is walked.
func (in *intersection) readWhole(ctx context.Context, lengths [2]int64) error {
	if reader, ok := in.graph.store.(storage.PackedReader); ok && lengths[0]+lengths[1] <= in.graph.whole.packedMost {
		if err := in.readLists(ctx, reader.PackedNeighbours, func(k int) bool { return lengths[k] >= in.graph.whole.packedFrom }); err != nil {
			return err
		}
	}
	rows := int64(0)
	for k, c := range in.lists {
		if !c.end {
			rows += lengths[k]
		}
	}
	if rows > in.graph.whole.rows || rows > int64(in.examinable) {
		return nil
	}
	// Nothing is examined after these: both lists have ended then.
	return in.readLists(ctx, in.graph.store.Neighbours, func(int) bool { return true })
}

// readLists reads the lists that are wanted and have not ended, those of one side together.
// What is not Found is left as it is.
func (in *intersection) readLists(
	ctx context.Context, read func(context.Context, storage.Side, []storage.UserID) []storage.Result[[]storage.UserID], wanted func(k int) bool,
) error {
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		var who []*cursor
		var owners []storage.UserID
		for k, c := range in.lists {
			if c.Side == side && !c.end && wanted(k) {
				who, owners = append(who, c), append(owners, c.Owner)
			}
		}
		if len(owners) == 0 {
			continue
		}
		for i, r := range read(ctx, side, owners) {
			switch c := who[i]; {
			case r.Err != nil:
				return r.Err
			case r.Found:
				c.rest(r.Value)
			}
		}
	}
	return nil
}

// rest takes what lies behind the cursor of the whole list.
func (c *cursor) rest(list []storage.UserID) {
	behind, _ := slices.BinarySearch(list, c.last+1)
	if c.end = true; len(c.ahead) == 0 {
		c.ahead = list[behind:]
	} else {
		c.ahead = slices.Concat(c.ahead, list[behind:])
	}
	if n := len(c.ahead); n > 0 {
		c.last = max(c.last, c.ahead[n-1])
	}
}
