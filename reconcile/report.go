package reconcile

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"kith/storage"
)

// A Report is the result of a full scan, including that of its earlier runs.
type Report struct {
	Began   time.Time
	Seconds float64 // duration
	Resumed bool    // it continued an earlier run
	Repair  bool

	Rows       [len(storage.AllSides)]int64 // digested, by storage.Side
	Groups     int                          // into which edges fall, of all pairs of tables
	GroupsRead int                          // those that differed
	RowsRead   int64                        // of those groups
	Bytes      int64                        // that moved from the databases, estimated

	Found     map[Kind]int
	Repaired  map[Kind]int
	Unsettled int       // suspects that changed at every reading
	Findings  []Finding // the first of them
}

// Total is how many disagreements were found.
func (r Report) Total() int { return total(r.Found) }

// Left is how many disagreements were found and not repaired.
func (r Report) Left() int { return total(r.Found) - total(r.Repaired) }

func total(kinds map[Kind]int) int {
	n := 0
	for _, k := range kinds {
		n += k
	}
	return n
}

// report copies the state's report.
func (f *full) report() Report {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.state.Report
	r.Seconds += time.Since(f.began).Seconds()
	r.Found, r.Repaired = maps.Clone(r.Found), maps.Clone(r.Repaired)
	r.Findings = slices.Clone(r.Findings)
	return r
}

// status is what is kept of a finished scan: everything it has found, in all of its runs.
func (r Report) status(at time.Time) Status {
	return Status{
		Mode: ModeFull, At: storage.MicrosOf(at), Began: storage.MicrosOf(r.Began), Found: ofEveryKind(r.Found), Repaired: ofEveryKind(r.Repaired),
	}
}

// ofEveryKind has numbers of all kinds, also of those of which there is none.
func ofEveryKind(numbers map[Kind]int) map[Kind]int {
	all := map[Kind]int{}
	for _, kind := range Kinds() {
		all[kind] = numbers[kind]
	}
	return all
}

// namesInJSON are the names of tables, by [storage.Side].
var namesInJSON = [len(storage.AllSides)]string{"following", "follower", "friendRequest", "friendRequestInbox", "favorite", "favoriteInbox", "relation", "relationInbox"}

// MarshalJSON writes the report with every kind, and the number of disagreements left.
func (r Report) MarshalJSON() ([]byte, error) {
	m := map[string]any{
		"began": r.Began, "seconds": r.Seconds, "resumed": r.Resumed, "repair": r.Repair,
		"groups": r.Groups, "groupsRead": r.GroupsRead, "rowsRead": r.RowsRead, "bytesMoved": r.Bytes,
		"found": ofEveryKind(r.Found), "repaired": ofEveryKind(r.Repaired), "left": r.Left(), "unsettled": r.Unsettled,
		"findings": append([]Finding{}, r.Findings...), // never null
	}
	for side, name := range namesInJSON {
		m[name+"Rows"] = r.Rows[side]
	}
	return json.Marshal(m)
}

// MarshalJSON writes ids as text, as GraphQL does, and null for rows that do not exist.
func (f Finding) MarshalJSON() ([]byte, error) {
	m := map[string]any{"kind": f.Kind}
	if item := cmp.Or(f.Post, f.Forward.Item); item != 0 {
		m[f.item("post", "relationKind")] = strconv.FormatInt(item, 10)
	}
	if f.Kind == WrongCount {
		m["count"], m["user"], m["have"], m["are"] = f.count(), f.User.String(), f.Have, f.Are
		if !f.Friends { // they are in two tables
			m["table"] = f.Side.String()
		}
		return json.Marshal(m)
	}
	if f.User != 0 {
		m["user"] = f.User.String()
		return json.Marshal(m)
	}
	row := func(e storage.Edge) any {
		if absent(e) {
			return nil
		}
		return map[string]any{"type": e.Type, "updateTime": e.UpdateTime}
	}
	inverse := namesInJSON[f.Side.Replica()]
	if f.Kind == Forbidden {
		inverse = "block"
	}
	m["pair"], m["from"], m["to"] = f.Side.String(), f.Forward.From.String(), f.Forward.To.String()
	m[namesInJSON[f.Side]], m[inverse] = row(f.Forward), row(f.Inverse)
	return json.Marshal(m)
}

// Progress is the progress of a full scan. Its unit of work is about one statement.
type Progress struct {
	Resumed     bool
	Doing       string // in a few words
	Done, Total int64
	Rows        int64 // digested
	Found       int   // so far
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
