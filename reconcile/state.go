package reconcile

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"time"

	"kith/storage"
)

// Names of checkpoints.
const (
	fullCheckpoint = "reconcile/full"
	lastCheckpoint = "reconcile/full/last"
)

// stateLayout changes when an older state cannot be gone on with.
const stateLayout = 1

// mostExplained bounds a state, which has to fit into a column of 16 MB.
const mostExplained = 200_000

// A state is how far a full scan has come: what is kept of it when it ends early.
type state struct {
	Layout    int
	Shards    int
	Repair    bool
	SliceRows int64

	Digested  [2][]storage.UserID // by side and shard: the last owner whose digest is in Sums
	Sums      []sum               // see full.indexOf
	NextSlice int                 // of those that full.cut makes of Sums
	Counted   [2][]storage.UserID // by side and shard: the last owner whose count was compared

	// Explained is by how much inverse counts are off because of rows that were
	// found to be wrong, for at most mostExplained users. Wrong counts of others are
	// findings of their own.
	Explained map[storage.UserID]int64

	Report Report
}

func (f *full) newState() state {
	s := state{
		Layout: stateLayout, Shards: f.shards, Repair: f.cfg.Repair, SliceRows: f.cfg.SliceRows,
		Sums: make([]sum, groups(f.shards)),
		Report: Report{
			Began: f.began, Repair: f.cfg.Repair,
			Groups: groups(f.shards), Found: make(map[Kind]int), Repaired: make(map[Kind]int),
		},
		Explained: make(map[storage.UserID]int64),
	}
	for side := range 2 {
		s.Digested[side] = make([]storage.UserID, f.shards)
		s.Counted[side] = make([]storage.UserID, f.shards)
	}
	return s
}

// take adds what was found to the report.
func (s *state) take(c confirmed, list int) {
	for _, d := range c.found {
		s.Report.Found[d.Kind]++
		if len(s.Report.Findings) < list {
			s.Report.Findings = append(s.Report.Findings, d)
		}
		off := counted(d.Forward) - counted(d.Inverse)
		if _, known := s.Explained[d.Forward.To]; off != 0 && (known || len(s.Explained) < mostExplained) {
			s.Explained[d.Forward.To] += off
		}
	}
	for kind, n := range c.repaired {
		s.Report.Repaired[kind] += n
	}
	s.Report.Unsettled += c.unsettled
}

// counted is what an edge adds to a count.
func counted(e storage.Edge) int64 {
	if e.Type == storage.Following {
		return 1
	}
	return 0
}

// load takes up an earlier scan, if there is one of this kind, or begins one.
func (f *full) load(ctx context.Context) error {
	f.state = f.newState()
	value, found, err := f.cfg.Store.LoadCheckpoint(ctx, fullCheckpoint)
	if err != nil || !found || f.cfg.Restart {
		return err
	}
	// What is decoded over the new state's maps and slices would be mixed with them.
	var earlier state
	if err := gob.NewDecoder(bytes.NewReader(value)).Decode(&earlier); err != nil {
		f.cfg.Logger.WarnContext(ctx, "the earlier scan cannot be gone on with", "error", err)
		return nil
	}
	if earlier.Layout != stateLayout || earlier.Shards != f.shards || earlier.Repair != f.cfg.Repair {
		f.cfg.Logger.InfoContext(ctx, "the earlier scan was another, and is begun anew")
		return nil
	}
	earlier.fill(f.newState())
	earlier.Report.Resumed = true
	f.state = earlier
	return nil
}

// fill makes the maps that gob leaves out when they are empty.
func (s *state) fill(empty state) {
	if s.Explained == nil {
		s.Explained = empty.Explained
	}
	if s.Report.Found == nil {
		s.Report.Found = empty.Report.Found
	}
	if s.Report.Repaired == nil {
		s.Report.Repaired = empty.Report.Repaired
	}
}

// commit changes the state at once, and saves it now and then. A state that cannot
// be saved costs only work.
func (f *full) commit(ctx context.Context, change func(*state)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.state.Report.totals()
	change(&f.state)
	f.measure(before)
	if time.Since(f.saved) >= f.cfg.SaveEvery {
		if err := f.save(ctx); err != nil && ctx.Err() == nil {
			f.cfg.Logger.WarnContext(ctx, "how far the scan is was not saved", "error", err)
		}
		f.saved = time.Now()
	}
	f.cfg.OnProgress(f.progress())
}

func (f *full) save(ctx context.Context) error {
	s := f.state
	s.Report.Seconds += time.Since(f.began).Seconds()
	var value bytes.Buffer
	if err := gob.NewEncoder(&value).Encode(s); err != nil {
		return fmt.Errorf("save how far the full scan is: %w", err)
	}
	return f.cfg.Store.SaveCheckpoint(ctx, fullCheckpoint, value.Bytes())
}

// saveAtEnd saves the state of a scan that ends early.
func (f *full) saveAtEnd(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.save(ctx); err != nil {
		f.cfg.Logger.WarnContext(ctx, "how far the scan is was not saved", "error", err)
	}
}
