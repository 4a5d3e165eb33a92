package reconcile

import (
	"encoding/json"
	"maps"
	"slices"
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

// MarshalJSON writes the report with every kind, and the number of disagreements left.
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
		RequestRows   int64        `json:"friendRequestRows"`
		InboxRows     int64        `json:"friendRequestInboxRows"`
		FavoriteRows  int64        `json:"favoriteRows"`
		FavoriteInbox int64        `json:"favoriteInboxRows"`
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
		r.Began, r.Seconds, r.Resumed, r.Repair, r.Rows[storage.Forward], r.Rows[storage.Inverse], r.Rows[storage.Requests], r.Rows[storage.Inbox],
		r.Rows[storage.Favorites], r.Rows[storage.FavoriteInbox],
		r.Groups, r.GroupsRead, r.RowsRead, r.Bytes, kinds(r.Found), kinds(r.Repaired), r.Left(), r.Unsettled, findings,
	})
}

// MarshalJSON writes ids as text, as GraphQL does, and null for rows that do not exist.
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
	type edge struct {
		Kind Kind   `json:"kind"`
		Pair string `json:"pair"`
		From string `json:"from"`
		To   string `json:"to"`
		Post int64  `json:"post,omitempty,string"`
	}
	e := edge{f.Kind, f.Side.String(), f.Forward.From.String(), f.Forward.To.String(), f.Forward.Post}
	switch {
	case f.Kind == WrongCount:
		table := f.Side.String()
		if f.Friends {
			table = "" // they are in two
		}
		return json.Marshal(struct {
			Kind  Kind   `json:"kind"`
			Count string `json:"count"`
			Table string `json:"table,omitempty"`
			User  string `json:"user"`
			Post  int64  `json:"post,omitempty,string"`
			Have  int64  `json:"have"`
			Are   int64  `json:"are"`
		}{f.Kind, f.count(), table, f.User.String(), f.Post, f.Have, f.Are})
	case f.Kind == Forbidden:
		return json.Marshal(struct {
			edge
			Following *row `json:"following"`
			Block     *row `json:"block"`
		}{e, rowOf(f.Forward), rowOf(f.Inverse)})
	case f.Side == storage.Favorites:
		return json.Marshal(struct {
			edge
			Favorite *row `json:"favorite"`
			Inbox    *row `json:"favoriteInbox"`
		}{e, rowOf(f.Forward), rowOf(f.Inverse)})
	case f.Side == storage.Requests:
		return json.Marshal(struct {
			edge
			Request *row `json:"friendRequest"`
			Inbox   *row `json:"friendRequestInbox"`
		}{e, rowOf(f.Forward), rowOf(f.Inverse)})
	}
	return json.Marshal(struct {
		edge
		Following *row `json:"following"`
		Follower  *row `json:"follower"`
	}{e, rowOf(f.Forward), rowOf(f.Inverse)})
}
