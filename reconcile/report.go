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
	s := Status{
		Mode: ModeFull, At: storage.MicrosOf(at), Began: storage.MicrosOf(r.Began),
		Found: map[Kind]int64{}, Repaired: map[Kind]int64{},
	}
	for _, kind := range Kinds() {
		s.Found[kind], s.Repaired[kind] = int64(r.Found[kind]), int64(r.Repaired[kind])
	}
	return s
}

// namesInJSON are the names of tables, by [storage.Side].
var namesInJSON = [len(storage.AllSides)]string{"following", "follower", "friendRequest", "friendRequestInbox", "favorite", "favoriteInbox", "relation", "relationInbox"}

// MarshalJSON writes the report with every kind, and the number of disagreements left.
func (r Report) MarshalJSON() ([]byte, error) {
	found, repaired := make(map[Kind]int), make(map[Kind]int)
	for _, kind := range Kinds() {
		found[kind], repaired[kind] = r.Found[kind], r.Repaired[kind]
	}
	m := map[string]any{
		"began": r.Began, "seconds": r.Seconds, "resumed": r.Resumed, "repair": r.Repair,
		"groups": r.Groups, "groupsRead": r.GroupsRead, "rowsRead": r.RowsRead, "bytesMoved": r.Bytes,
		"found": found, "repaired": repaired, "left": r.Left(), "unsettled": r.Unsettled,
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
	if post := cmp.Or(f.Post, f.Forward.Post); post != 0 {
		m["post"] = strconv.FormatInt(post, 10)
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
