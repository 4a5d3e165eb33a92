package reconcile

import (
	"time"

	"kith/storage"
)

// Progress is how far a full scan is. Its unit of work is about a statement.
type Progress struct {
	Resumed     bool
	Doing       string // in a few words
	Done, Total int64
	Rows        int64         // digested
	Found       int           // so far
	Left        time.Duration // what it will take at the speed so far; 0 while that is unknown
}

// A meter knows how fast work was done in this run.
type meter struct {
	began  time.Time
	before int64 // what was done then
}

// progress computes how far the scan is, from its state.
func (f *full) progress() Progress {
	var digested, counted, stretches int64
	for shard := range f.plan {
		stretches += int64(len(f.plan[shard]))
		for side := range 2 {
			digested += int64(f.plan.done(shard, f.state.Digested[side][shard]))
			counted += int64(f.plan.done(shard, f.state.Counted[side][shard]))
		}
	}
	p := Progress{
		Resumed: f.state.Report.Resumed, Found: f.state.Report.Total(),
		Rows: f.state.Report.Rows[storage.Forward] + f.state.Report.Rows[storage.Inverse],
	}
	slices := int64(f.slices)
	if digested < 2*stretches {
		p.Doing = "adding up digests"
	} else if int64(f.state.NextSlice) < slices {
		p.Doing = "comparing rows"
	} else {
		p.Doing = "comparing counts"
	}
	// A slice takes a statement for each stretch and side, at most.
	p.Done = digested + int64(f.state.NextSlice)*2*stretches + counted
	p.Total = 2*stretches + slices*2*stretches + 2*stretches
	now := time.Now()
	if f.meter.began.IsZero() {
		f.meter = meter{now, p.Done}
	}
	if done := p.Done - f.meter.before; done > 0 {
		p.Left = time.Duration(float64(now.Sub(f.meter.began)) * float64(p.Total-p.Done) / float64(done))
	}
	return p
}
