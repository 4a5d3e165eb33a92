package importer

import (
	"slices"
	"strings"
	"testing"

	"kith/files/graphfile"
	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// imported runs an import of one edge list and returns its report.
func imported(t *testing.T, k *keeper, relation graphfile.Kind, text string) Report {
	t.Helper()
	report, err := Run(ctx, k, Config{Files: []string{file(t, "edges-"+string(relation)+".txt", text)}, Start: start, Relation: relation})
	must.OK(t, err)
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
	check.That(t, r.Edges == 1 && r.Existed == 1 && r.SelfFollows == 1 && r.Duplicates == 1, "%+v", r)
	for pair, want := range map[storage.Pair][4]storage.EdgeType{
		{From: 1, To: 2}: {storage.Blocking, storage.Blocking},
		{From: 2, To: 1}: {storage.None, storage.None, storage.Cancelled, storage.Cancelled}, // ended, on both sides
		{From: 3, To: 4}: {storage.Following, storage.Following},                             // existing rows stay
	} {
		check.Equal(t, pair, typesOf(t, k, pair.From, pair.To), want)
	}
	e, _ := k.edge(t, storage.Inverse, 2, 1)
	check.That(t, e.UpdateTime != 0, "the end of the follow was not propagated to its other side")
	c := storage.CountLookups.Read(ctx, k, 1)[0].Value
	check.That(t, c.Following == 0 && c.Follower == 0, "counts of who blocks: %+v", c)
}

// A user who has blocked the follower is not followed, and nothing is written on the other side.
func TestImportOfFollowsTowardsWhoBlocks(t *testing.T) {
	k := newKeeper()
	imported(t, k, graphfile.Blocks, "1 2\n")
	r := imported(t, k, graphfile.Follows, "2 1\n2 3\n")
	check.That(t, r.Edges == 1 && r.Existed == 1, "%+v", r)
	check.Equal(t, "2→1", typesOf(t, k, 2, 1), [4]storage.EdgeType{})
	for _, side := range storage.Sides {
		_, found := k.edge(t, side, 2, 1)
		check.That(t, !found, "there is a row in %s", side)
	}
}

func TestImportOfRequests(t *testing.T) {
	k := newKeeper()
	r := imported(t, k, graphfile.Requests, "1 2\n3 4\n4 3\n")
	check.That(t, r.Edges == 3, "%+v", r)
	check.Equal(t, "1→2", typesOf(t, k, 1, 2), [4]storage.EdgeType{0, 0, storage.Pending, storage.Pending})
	// Both users have asked, so both follow, on all sides.
	for _, pair := range []storage.Pair{{From: 3, To: 4}, {From: 4, To: 3}} {
		got := typesOf(t, k, pair.From, pair.To)
		check.That(t, got == [4]storage.EdgeType{storage.Following, storage.Following, storage.Accepted, storage.Accepted}, "%v is %v", pair, got)
		c := storage.CountLookups.Read(ctx, k, pair.From)[0].Value
		check.That(t, c.Following == 1 && c.Follower == 1 && c.Friend == 1, "counts of %d: %+v", pair.From, c)
	}
}

func TestUnknownRelation(t *testing.T) {
	_, err := Run(ctx, newKeeper(), Config{Files: []string{file(t, "a.txt", "1 2\n")}, Relation: "liking"})
	check.That(t, err != nil && strings.Contains(err.Error(), "liking"), "%v", err)
}

// Relations lead to things by the product's ids. Those to nobody and to oneself are refused, as
// mutations refuse them; what has ended is no claim that its ends exist.
func TestRelationsLeadToThingsAndUsers(t *testing.T) {
	k := newKeeper()
	var problems []string
	r := mustRun(t, k, Config{Files: []string{file(t, "u.csv", "id,handle\n1,ada\n2,bob\n"), file(t, "r.csv", "from,to,kind,at,related,ends_at,attributes\n"+
		"1,thing:5,100,50,true,,\n"+ // line 2
		"2,thing:5,100,50,true,,\n"+
		"1,2,101,50,true,,\n"+
		"1,5,101,50,true,,\n"+ // nobody
		"1,6,101,50,false,,\n"+
		"1,1,101,50,true,,\n"+
		"1,thing:6,100,50,true,,{broken\n1,thing:6,100,50,true,,[1]\n"+ // lines 8 and 9
		"1,thing:4611686018427387904,100,50,true,,\n1,4611686018427387909,100,50,true,,\n1,thing:0,100,50,true,,\n1,thing:,100,50,true,,\nthing:1,2,100,50,true,,\n")},
		Problems: 9, OnProblem: func(p Problem) { problems = append(problems, p.String()[strings.Index(p.String(), "r.csv"):]) },
	})
	check.That(t, r.Relations == 4 && r.Refused == 1 && r.Malformed == 8, "%+v", r)
	for _, want := range []string{"r.csv:8: attributes must be a JSON object", "r.csv:5: there is nothing that it belongs to", "r.csv:7: nobody is in a relation to itself", "r.csv:10: an id must be"} {
		check.That(t, slices.ContainsFunc(problems, func(p string) bool { return strings.HasPrefix(p, want) }), "%q lacks %q", problems, want)
	}
	for i, n := range storage.KindLookups.Read(ctx, k, storage.OwnerKind{Owner: storage.Foreign(5), Kind: 100}, storage.OwnerKind{Owner: 1, Kind: 100}, storage.OwnerKind{Owner: 2, Kind: 101}) {
		want := []storage.KindCount{{Incoming: 2}, {Outgoing: 1}, {Incoming: 1}}[i]
		check.That(t, n.Value == want, "%d: %+v, want %+v", i, n, want)
	}
}
