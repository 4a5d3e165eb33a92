package social

import (
	"context"
	"slices"
	"time"

	"kith/storage"
)

// settleTime bounds the work done at once for committed rows, even if the client has disconnected.
const settleTime = 5 * time.Second

// settle propagates newly written forward rows to their other sides at once,
// in every redundancy mode, and then the consequences written there: a block ends
// the follow in return, an accepted request begins one. Then it hands
// all rows to the mode, which propagates those that could not be written.
//
// It completes committed rows even if the client has disconnected.
//
// A crash leaves the rows that it has not reached as they are. In the modes
// stream and binlog the mode propagates them; otherwise repeating the change or
// reconcile does. Everything may be applied twice: versions decide.
func (t *Relations) settle(ctx context.Context, written []storage.Written) (all []storage.Written, stale bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	seen := map[storage.Row]bool{}
	for fresh := written; ; {
		fresh = slices.DeleteFunc(slices.Clone(fresh), func(w storage.Written) bool {
			known := seen[w.Row] // rows that exist already are handed over again
			seen[w.Row] = true
			return known
		})
		if len(fresh) == 0 {
			break
		}
		var also []storage.Written
		for _, side := range storage.Truths {
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
	return all, t.Redundancy.Propagate(ctx, all) != nil || stale
}

// inverse applies the rows of one side that have not been applied yet, and marks those that it has
// applied. It returns their consequences.
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
