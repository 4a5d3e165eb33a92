package reconcile

import (
	"context"

	"kith/storage"
)

// halves is what the logs have said of one edge's rows so far: the last row of each side.
type halves struct {
	key  Key
	last [2]storage.Edge // forward and inverse
	seen [2]bool
}

func (h *halves) note(r Row) {
	half := r.Side - r.Side.Truth()
	h.last[half], h.seen[half] = r.Edge, true
}

// paired reports whether the last rows of both sides are the same.
func (h *halves) paired() bool { return h.seen[0] && h.seen[1] && h.last[0] == h.last[1] }

// settled reports whether an edge's rows agree, and are what the logs say: a row may be in a log a
// moment before readers see it in its table.
func (h *halves) settled(r bothRows) bool {
	if r.forward != r.inverse {
		return false
	}
	for half, last := range h.last {
		if h.seen[half] && last != r.forward {
			return false
		}
	}
	return true
}

func keysOfHalves(edges []*halves) []Key {
	keys := make([]Key, len(edges))
	for i, h := range edges {
		keys[i] = h.key
	}
	return keys
}

// reportFindings counts and reports findings.
func (c *common) reportFindings(findings ...Finding) {
	for _, f := range findings {
		c.Metrics.Found(c.mode, f.Kind, 1)
		if c.Found != nil {
			c.Found(f)
		}
	}
}

// repair repairs findings, if repairs are wanted. It returns which findings were repaired, which
// edges are left, and an error if some are left that should not be.
func (c *common) repair(ctx context.Context, findings []Finding) (repaired []Finding, left []Key, err error) {
	if !c.Repair || len(findings) == 0 {
		return nil, keysOf(findings), nil
	}
	if c.BeforeRepair != nil {
		c.BeforeRepair(keysOf(findings))
	}
	m, err := RepairEdges(ctx, c.Store, keysOf(findings))
	unrepaired := map[Key]bool{}
	for _, k := range m.Left {
		unrepaired[k] = true
	}
	rows := m.After
	for _, f := range findings {
		if !unrepaired[f.Key()] {
			c.Metrics.Repaired(c.mode, f.Kind, 1)
			repaired = append(repaired, f)
			rows = append(rows, storage.Row{Side: f.Side, Edge: f.Forward})
		}
	}
	if c.OnRepair != nil && (len(rows) > 0 || c.BeforeRepair != nil) {
		c.OnRepair(ctx, rows)
	}
	return repaired, m.Left, err
}
