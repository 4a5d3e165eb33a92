package reconcile

import (
	"context"
	"fmt"

	"kith/storage"
)

// halves is what has been read of one edge's rows in the logs: the last of each
// side.
type halves struct {
	pair storage.Pair
	last [2]storage.Edge // by side
	seen [2]bool
}

func (h *halves) note(r Row) { h.last[r.Side], h.seen[r.Side] = r.Edge, true }

// paired tells whether both sides were last left the same.
func (h *halves) paired() bool {
	return h.seen[storage.Forward] && h.seen[storage.Inverse] && h.last[storage.Forward] == h.last[storage.Inverse]
}

// settled tells whether an edge's rows agree, and are what the logs have told: a log
// may tell of a row a moment before readers see it.
func (h *halves) settled(r bothRows) bool {
	if r.forward != r.inverse {
		return false
	}
	for side, last := range h.last {
		if h.seen[side] && last != r.forward {
			return false
		}
	}
	return true
}

// bothRows are the rows of one edge, type None at time 0 where there is none.
type bothRows struct{ forward, inverse storage.Edge }

// readBoth reads both rows of each edge, the inverse ones first, see [Differences].
// Those of a shard that does not answer have an Err.
func readBoth(ctx context.Context, store Edges, edges []*halves) []storage.Result[bothRows] {
	results := make([]storage.Result[bothRows], len(edges))
	for start := 0; start < len(edges); start += readAtOnce {
		chunk := edges[start:min(start+readAtOnce, len(edges))]
		pairs := make([]storage.Pair, len(chunk))
		for i, h := range chunk {
			pairs[i] = h.pair
		}
		inverse := store.Edges(ctx, storage.Inverse, pairs)
		forward := store.Edges(ctx, storage.Forward, pairs)
		for i, p := range pairs {
			r := &results[start+i]
			for side, row := range map[storage.Side]storage.Result[storage.Edge]{storage.Forward: forward[i], storage.Inverse: inverse[i]} {
				if row.Err != nil {
					r.Err = fmt.Errorf("read %s from %d to %d: %w", side, p.From, p.To, row.Err)
				}
			}
			r.Found = r.Err == nil
			r.Value = bothRows{rowOf(p, forward[i].Value), rowOf(p, inverse[i].Value)}
		}
	}
	return results
}

// rowOf is a row as it was read, which lacks its key where there is none.
func rowOf(p storage.Pair, e storage.Edge) storage.Edge {
	e.From, e.To = p.From, p.To
	return e
}

// tell counts findings and tells of them.
func (c *common) tell(findings ...Finding) {
	for _, f := range findings {
		c.Metrics.Found(c.mode, f.Kind, 1)
		if c.Found != nil {
			c.Found(f)
		}
	}
}

// repair makes findings none, if it is to. It returns which were repaired and which
// are left, and why where they should not be.
func (c *common) repair(ctx context.Context, findings []Finding) (repaired []Finding, left []storage.Pair, err error) {
	if !c.Repair || len(findings) == 0 {
		return nil, pairsOf(findings), nil
	}
	var rows []storage.Edge
	_, left, err = Mend(ctx, c.Store, pairsOf(findings))
	unmended := map[storage.Pair]bool{}
	for _, p := range left {
		unmended[p] = true
	}
	for _, f := range findings {
		if !unmended[f.Pair()] {
			c.Metrics.Repaired(c.mode, f.Kind, 1)
			repaired = append(repaired, f)
			rows = append(rows, f.Forward)
		}
	}
	if c.OnRepair != nil && len(rows) > 0 {
		c.OnRepair(ctx, rows)
	}
	return repaired, left, err
}
