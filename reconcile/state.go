package reconcile

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"slices"
	"time"

	"kith/storage"
	"kith/storage/sides"
)

// fullCheckpoint is the name under which the state is kept.
const fullCheckpoint = "reconcile/full"

// stateLayout changes when an older state can no longer be continued.
const stateLayout = 8

// A state has to fit into a column of 16 MB, whatever the number of shards and of disagreements.
// These constants bound it, and mostSums bounds the summaries.
const (
	mostExplained = 160_000
	mostListed    = 50_000
)

// A state is the progress of a full scan: it is stored in case the scan ends early.
type state struct {
	Layout    int
	Repair    bool
	GroupRows int64
	SliceRows int64
	Lives     []int64 // of the shards, see [storage.Served]

	Pair      int     // which pair of tables is compared; after the last one, all rows have been compared
	Coarse    summary // of that pair
	Fine      summary // of what differs in Coarse; not made if Coarse is fine enough
	NextSlice int     // index among the slices of the finest summary
	Unsettled []Key   // edges that may differ because of repairs that were begun, see [full.noteUnsettled]

	Truths, Missing map[int]int64 // on each shard: forward rows that were digested, and that were found to be missing

	Follows []walk         // whose follows were looked at for forbidden ones
	Counted [counts][]walk // whose counts were compared

	// Explained is by how much counts are off because of rows that were found to be wrong, for at
	// most mostExplained counts. If others are wrong, these are findings of their own.
	Explained map[count]int64

	Report Report
}

// emptyState has the maps, which gob leaves out when they are empty.
func emptyState() state {
	return state{
		Truths: make(map[int]int64), Missing: make(map[int]int64), Explained: make(map[count]int64),
		Report: Report{Found: make(map[Kind]int), Repaired: make(map[Kind]int)},
	}
}

func (f *full) newState() state {
	s := emptyState()
	s.Layout, s.Repair, s.GroupRows, s.SliceRows = stateLayout, f.cfg.Repair, f.cfg.GroupRows, f.cfg.SliceRows
	s.Report.Began, s.Report.Repair = f.began, f.cfg.Repair
	s.Follows = newWalks()
	s.beginPair()
	for c := range counts {
		s.Counted[c] = newWalks()
	}
	return s
}

// beginPair clears the sums of the previous pair of tables.
func (s *state) beginPair() {
	s.Coarse, s.Fine, s.NextSlice = newSummary(1, storage.Indexes(sides.Classes)), summary{}, 0
}

// take adds what was found to the report.
func (s *state) take(c confirmed, list int) {
	for _, d := range c.found {
		s.Report.Found[d.Kind]++
		if len(s.Report.Findings) < list {
			s.Report.Findings = append(s.Report.Findings, d)
		}
	}
	for of, off := range c.off {
		if _, known := s.Explained[of]; known || len(s.Explained) < mostExplained {
			s.Explained[of] += off
		}
	}
	for kind, n := range c.repaired {
		s.Report.Repaired[kind] += n
	}
	s.Report.Unsettled += c.unsettled
}

// load loads an earlier scan of this kind, if there is one, or begins a new one.
func (f *full) load(ctx context.Context) error {
	f.state = f.newState()
	for shard := range f.cfg.Store.Shards() {
		served, err := f.served(ctx, shard)
		if err != nil {
			return err
		}
		f.state.Lives = append(f.state.Lives, served.Life)
	}
	value, found, err := f.cfg.Store.LoadCheckpoint(ctx, fullCheckpoint)
	if err != nil || !found || f.cfg.Restart {
		return err
	}
	earlier := emptyState()
	if err := gob.NewDecoder(bytes.NewReader(value)).Decode(&earlier); err != nil {
		f.cfg.Logger.WarnContext(ctx, "reconcile: cannot read the earlier scan: starting a new one", "error", err)
		return nil
	}
	same := len(earlier.Lives) <= len(f.state.Lives) && slices.Equal(earlier.Lives, f.state.Lives[:len(earlier.Lives)])
	if earlier.Layout != stateLayout || earlier.Repair != f.cfg.Repair || !same { // what it has compared is not what a restored shard has
		f.cfg.Logger.InfoContext(ctx, "reconcile: the earlier scan was of another version, had other settings or was before a shard was restored: starting a new one")
		return nil
	}
	earlier.Lives = f.state.Lives
	earlier.Report.Resumed = true
	f.state = earlier
	return nil
}

// commit changes the state in one step, and saves it at intervals.
func (f *full) commit(ctx context.Context, change func(*state)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.state)
	if time.Since(f.saved) >= f.cfg.SaveEvery {
		f.trySave(ctx)
		f.saved = time.Now()
	}
	f.cfg.OnProgress(f.progress())
}

// trySave saves the state. If it cannot be saved, only work is lost.
func (f *full) trySave(ctx context.Context) {
	if err := f.save(ctx); err != nil && ctx.Err() == nil {
		f.cfg.Logger.WarnContext(ctx, "reconcile: cannot save the progress of the scan", "error", err)
	}
}

func (f *full) save(ctx context.Context) error {
	s := f.state
	s.Report.Seconds += time.Since(f.began).Seconds()
	value, err := s.encode()
	if err != nil {
		return fmt.Errorf("save how far the full scan is: %w", err)
	}
	return f.cfg.Store.SaveCheckpoint(ctx, fullCheckpoint, value)
}

func (s *state) encode() ([]byte, error) {
	var value bytes.Buffer
	err := gob.NewEncoder(&value).Encode(s)
	return value.Bytes(), err
}

// saveAtEnd saves the state of a scan that ends early.
func (f *full) saveAtEnd(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.save(ctx); err != nil {
		f.cfg.Logger.WarnContext(ctx, "reconcile: cannot save the progress of the scan", "error", err)
	}
}

// unsettledAtOnce is how many repairs are done together. It also bounds what is unsettled, which is
// part of a state.
const unsettledAtOnce = 5000

// noteUnsettled stores which edges may change because of the repairs about to be done. If a scan is
// killed between a repair and the propagation of what follows from it, the continued scan would not
// find the edges that differ: by then the repaired edge agrees, and the unsettled edge had been
// digested before.
func (f *full) noteUnsettled(ctx context.Context, keys []Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state.Unsettled = keys
	if len(keys) > 0 {
		f.trySave(ctx)
	}
}

// settleUnsettled settles what an earlier run had left unsettled when it was killed.
func (f *full) settleUnsettled(ctx context.Context) error {
	if len(f.state.Unsettled) == 0 {
		return nil
	}
	m, err := RepairEdges(ctx, f.store, f.state.Unsettled)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, storage.ErrUnavailable):
		return err // the scan needs that shard, too
	case err != nil:
		f.cfg.Logger.ErrorContext(ctx, "reconcile: cannot repair edges", "edges", len(m.Left), "error", err)
	}
	f.commit(ctx, func(s *state) { s.Unsettled = nil })
	return nil
}
