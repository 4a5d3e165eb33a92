package reconcile

import "time"

// Progress is the progress of a full scan. Its unit of work is about one statement.
type Progress struct {
	Resumed     bool
	Doing       string // in a few words
	Done, Total int64
	Rows        int64         // digested
	Found       int           // so far
	Left        time.Duration // estimated from the speed so far; 0 while that is unknown
}

// meter measures the speed of this run.
type meter struct {
	began  time.Time
	before int64 // work done at that time
}

// progress computes how far the scan is, from its state.
func (f *full) progress() Progress {
	p := Progress{Resumed: f.state.Report.Resumed, Found: f.state.Report.Total()}
	for _, rows := range f.state.Report.Rows {
		p.Rows += rows
	}
	ranges := f.ranges()
	counted := f.rangesDone(f.state.Follows)
	for which := range counts {
		counted += f.rangesDone(f.state.Counted[which])
	}
	p.Done, p.Total = f.behind+counted, f.behind+(1+counts)*ranges
	if left := int64(len(pairs) - f.state.Pair); left > 0 {
		digested := f.digested(&f.state.Coarse) + f.digested(&f.state.Fine)
		sliced := int64(f.state.NextSlice) * 2 * ranges
		p.Done += digested + sliced
		p.Total += f.workOfPair() + (left-1)*2*ranges
		if p.Doing = "adding up digests"; digested == 2*ranges*f.passes() && f.state.NextSlice < f.slices {
			p.Doing = "comparing rows"
		}
	} else {
		p.Doing = "comparing counts"
	}
	now := time.Now()
	if f.meter.began.IsZero() {
		f.meter = meter{now, p.Done}
	}
	if done := p.Done - f.meter.before; done > 0 {
		p.Left = time.Duration(float64(now.Sub(f.meter.began)) * float64(p.Total-p.Done) / float64(done))
	}
	return p
}

// ranges is how many ranges there are on all shards.
func (f *full) ranges() (n int64) {
	for shard := range f.plan {
		n += int64(len(f.plan[shard]))
	}
	return n
}

// rangesDone is about how many ranges the walks have finished; those of a shard count once.
func (f *full) rangesDone(walks []walk) (n int64) {
	least := make(map[int]int, len(walks))
	for _, w := range walks {
		if w.Shard < 0 {
			continue
		}
		done := f.plan.done(w.Shard, w.UpTo)
		if was, known := least[w.Shard]; !known || done < was {
			least[w.Shard] = done
		}
	}
	for _, done := range least {
		n += int64(done)
	}
	return n
}

func (f *full) digested(t *summary) int64 {
	return f.rangesDone(t.Digested[0]) + f.rangesDone(t.Digested[1])
}

// passes is how often the current pair of tables is digested.
func (f *full) passes() int64 {
	if f.state.Fine.Cut.Parts > 0 {
		return 2
	}
	return 1
}

// workOfPair is the work for the current pair of tables. A slice takes at most one statement for
// each range and side.
func (f *full) workOfPair() int64 { return (f.passes() + int64(f.slices)) * 2 * f.ranges() }
