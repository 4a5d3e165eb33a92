package importer

import (
	"strings"
	"testing"

	"kith/files/graphfile"
	"kith/storage"
)

// imported runs an import of one edge list and returns its report.
func imported(t *testing.T, k *keeper, relation graphfile.Relation, text string) Report {
	t.Helper()
	report, err := Run(ctx, k, Config{Files: []string{file(t, "edges-"+string(relation)+".txt", text)}, Start: start, Relation: relation})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// typesOf reads the same edge from all four tables; 0 means that there is no row.
func typesOf(t *testing.T, k *keeper, from, to storage.UserID) (types [4]storage.EdgeType) {
	t.Helper()
	for i, side := range storage.Sides {
		e, _ := k.edge(t, side, from, to)
		types[i] = e.Type
	}
	return types
}

func TestImportOfBlocks(t *testing.T) {
	k := newKeeper()
	imported(t, k, graphfile.Follows, "2 1\n3 4\n")
	imported(t, k, graphfile.Requests, "2 1\n")
	r := imported(t, k, graphfile.Blocks, "1 2\n3 4\n5 5\n1 2\n")
	if r.Edges != 1 || r.Existed != 1 || r.SelfFollows != 1 || r.Duplicates != 1 {
		t.Errorf("%+v", r)
	}
	for pair, want := range map[storage.Pair][4]storage.EdgeType{
		{From: 1, To: 2}: {storage.Blocking, storage.Blocking},
		{From: 2, To: 1}: {storage.None, storage.None, storage.Cancelled, storage.Cancelled}, // ended, on both sides
		{From: 3, To: 4}: {storage.Following, storage.Following},                             // existing rows stay
	} {
		if got := typesOf(t, k, pair.From, pair.To); got != want {
			t.Errorf("%v is %v, not %v", pair, got, want)
		}
	}
	if e, _ := k.edge(t, storage.Inverse, 2, 1); e.UpdateTime == 0 {
		t.Error("the end of the follow was not propagated to its other side")
	}
	if c := k.Counts(ctx, []storage.UserID{1})[0].Value; c.Following != 0 || c.Follower != 0 {
		t.Errorf("counts of who blocks: %+v", c)
	}
}

// A user who has blocked the follower is not followed, and nothing is written on the other side.
func TestImportOfFollowsTowardsWhoBlocks(t *testing.T) {
	k := newKeeper()
	imported(t, k, graphfile.Blocks, "1 2\n")
	if r := imported(t, k, graphfile.Follows, "2 1\n2 3\n"); r.Edges != 1 || r.Existed != 1 {
		t.Errorf("%+v", r)
	}
	if got := typesOf(t, k, 2, 1); got != [4]storage.EdgeType{} {
		t.Errorf("2→1 is %v", got)
	}
	for _, side := range storage.Sides {
		if _, found := k.edge(t, side, 2, 1); found {
			t.Errorf("there is a row in %s", side)
		}
	}
}

func TestImportOfRequests(t *testing.T) {
	k := newKeeper()
	if r := imported(t, k, graphfile.Requests, "1 2\n3 4\n4 3\n"); r.Edges != 3 {
		t.Errorf("%+v", r)
	}
	if got := typesOf(t, k, 1, 2); got != [4]storage.EdgeType{0, 0, storage.Pending, storage.Pending} {
		t.Errorf("1→2 is %v", got)
	}
	// Both users have asked, so both follow, on all sides.
	for _, pair := range []storage.Pair{{From: 3, To: 4}, {From: 4, To: 3}} {
		if got := typesOf(t, k, pair.From, pair.To); got != [4]storage.EdgeType{storage.Following, storage.Following, storage.Accepted, storage.Accepted} {
			t.Errorf("%v is %v", pair, got)
		}
		if c := k.Counts(ctx, []storage.UserID{pair.From})[0].Value; c.Following != 1 || c.Follower != 1 || c.Friend != 1 {
			t.Errorf("counts of %d: %+v", pair.From, c)
		}
	}
}

func TestUnknownRelation(t *testing.T) {
	_, err := Run(ctx, newKeeper(), Config{Files: []string{file(t, "a.txt", "1 2\n")}, Relation: "liking"})
	if err == nil || !strings.Contains(err.Error(), "liking") {
		t.Errorf("%v", err)
	}
}
