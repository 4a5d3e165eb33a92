package social

import (
	"context"
	"slices"
	"time"

	"kith/storage"
)

// settleTime bounds what is done at once for rows that have been committed, also for a
// client who does not wait.
const settleTime = 5 * time.Second

// settle brings forward rows that have just been written to their other sides at once,
// in every redundancy mode, and so on with what follows from them there: a block ends
// the follow that comes the other way, an accepted request begins one. Then it hands
// all of it to the mode, which carries what could not be written.
//
// What is committed is brought to its end also when the client has gone.
//
// A crash in here leaves the rows that it has not come to where they are. The modes
// stream and binlog carry them; after that, and in the mode sync, doing the same again or
// reconcile does. Everything may be applied twice: versions decide.
func (t *Relations) settle(ctx context.Context, written []storage.Written) (all []storage.Written, stale bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	told := map[storage.Row]bool{}
	for fresh := written; ; {
		fresh = slices.DeleteFunc(slices.Clone(fresh), func(w storage.Written) bool {
			known := told[w.Row] // what is there already is told again
			told[w.Row] = true
			return known
		})
		if len(fresh) == 0 {
			break
		}
		var also []storage.Written
		for _, side := range [...]storage.Side{storage.Forward, storage.Requests} {
			more, err := t.inverse(ctx, side, fresh)
			stale = stale || err != nil
			also = append(also, more...)
		}
		all = append(all, fresh...)
		fresh = also
	}
	if len(all) == 0 {
		return nil, false
	}
	return all, t.Redundancy.Carry(ctx, all) != nil || stale
}

// inverse applies the rows of one side, where that has not been done, and notes for
// which it has been now. It returns what follows from them.
func (t *Relations) inverse(ctx context.Context, side storage.Side, rows []storage.Written) (also []storage.Written, err error) {
	var edges []storage.Edge
	var index []int
	for i, w := range rows {
		if w.Side == side && !w.Inverse {
			edges = append(edges, w.Edge)
			index = append(index, i)
		}
	}
	if len(edges) == 0 {
		return nil, nil
	}
	for j, r := range t.Store.Apply(ctx, side.Replica(), edges, storage.IfNewer) {
		if r.Err != nil {
			err = r.Err
			continue
		}
		rows[index[j]].Inverse = true
		also = append(also, r.Value.Also...)
	}
	return also, err
}
