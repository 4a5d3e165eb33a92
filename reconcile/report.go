package reconcile

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"kith/storage"
)

// A Report is what a full scan has come to, with what earlier runs of it have.
type Report struct {
	Began   time.Time
	Seconds float64 // that it ran
	Resumed bool    // it went on from where another run had ended
	Repair  bool

	Rows       [2]int64 // digested, by storage.Side
	Groups     int      // that edges fall into
	GroupsRead int      // that differed
	RowsRead   int64    // of those groups
	Bytes      int64    // that moved from the databases, estimated

	Found     map[Kind]int
	Repaired  map[Kind]int
	Unsettled int       // suspects that changed whenever they were read
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

// totals copies the counts of kinds: found, repaired.
func (r Report) totals() [2]map[Kind]int {
	return [2]map[Kind]int{maps.Clone(r.Found), maps.Clone(r.Repaired)}
}

// report copies the state's report.
func (f *full) report() Report {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.state.Report
	r.Seconds += time.Since(f.began).Seconds()
	totals := r.totals()
	r.Found, r.Repaired = totals[0], totals[1]
	r.Findings = slices.Clone(r.Findings)
	return r
}

// measure counts what has been found since.
func (f *full) measure(before [2]map[Kind]int) {
	for _, kind := range Kinds() {
		f.cfg.Metrics.Found(ModeFull, kind, f.state.Report.Found[kind]-before[0][kind])
		f.cfg.Metrics.Repaired(ModeFull, kind, f.state.Report.Repaired[kind]-before[1][kind])
	}
}

// LastFull returns the report of the last full scan that went to its end, without its
// findings; false when there was none.
func LastFull(ctx context.Context, store Checkpoints) (Report, bool, error) {
	value, found, err := store.LoadCheckpoint(ctx, lastCheckpoint)
	if err != nil || !found {
		return Report{}, false, err
	}
	var r Report
	if err := gob.NewDecoder(bytes.NewReader(value)).Decode(&r); err != nil {
		return Report{}, false, fmt.Errorf("read the report of the last full scan: %w", err)
	}
	return r, true, nil
}

func saveLast(ctx context.Context, store Checkpoints, r Report) error {
	r.Findings = nil
	var value bytes.Buffer
	if err := gob.NewEncoder(&value).Encode(r); err != nil {
		return fmt.Errorf("keep the report of the full scan: %w", err)
	}
	return store.SaveCheckpoint(ctx, lastCheckpoint, value.Bytes())
}

// MarshalJSON writes the report with every kind, and the number that is left.
func (r Report) MarshalJSON() ([]byte, error) {
	kinds := func(n map[Kind]int) map[Kind]int {
		all := make(map[Kind]int)
		for _, kind := range Kinds() {
			all[kind] = n[kind]
		}
		return all
	}
	findings := r.Findings
	if findings == nil {
		findings = []Finding{}
	}
	return json.Marshal(struct {
		Began         time.Time    `json:"began"`
		Seconds       float64      `json:"seconds"`
		Resumed       bool         `json:"resumed"`
		Repair        bool         `json:"repair"`
		FollowingRows int64        `json:"followingRows"`
		FollowerRows  int64        `json:"followerRows"`
		Groups        int          `json:"groups"`
		GroupsRead    int          `json:"groupsRead"`
		RowsRead      int64        `json:"rowsRead"`
		Bytes         int64        `json:"bytesMoved"`
		Found         map[Kind]int `json:"found"`
		Repaired      map[Kind]int `json:"repaired"`
		Left          int          `json:"left"`
		Unsettled     int          `json:"unsettled"`
		Findings      []Finding    `json:"findings"`
	}{
		r.Began, r.Seconds, r.Resumed, r.Repair, r.Rows[storage.Forward], r.Rows[storage.Inverse],
		r.Groups, r.GroupsRead, r.RowsRead, r.Bytes, kinds(r.Found), kinds(r.Repaired), r.Left(), r.Unsettled, findings,
	})
}

// MarshalJSON writes ids as text, as GraphQL does, and null for rows that do not
// exist.
func (f Finding) MarshalJSON() ([]byte, error) {
	type row struct {
		Type       storage.EdgeType `json:"type"`
		UpdateTime storage.Micros   `json:"updateTime"`
	}
	rowOf := func(e storage.Edge) *row {
		if absent(e) {
			return nil
		}
		return &row{e.Type, e.UpdateTime}
	}
	if f.Kind == WrongCount {
		return json.Marshal(struct {
			Kind  Kind   `json:"kind"`
			Table string `json:"table"`
			User  string `json:"user"`
			Have  int64  `json:"have"`
			Are   int64  `json:"are"`
		}{f.Kind, f.Side.String(), f.User.String(), f.Have, f.Are})
	}
	return json.Marshal(struct {
		Kind      Kind   `json:"kind"`
		From      string `json:"from"`
		To        string `json:"to"`
		Following *row   `json:"following"`
		Follower  *row   `json:"follower"`
	}{f.Kind, f.Forward.From.String(), f.Forward.To.String(), rowOf(f.Forward), rowOf(f.Inverse)})
}
