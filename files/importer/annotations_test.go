package importer

import (
	"fmt"
	"math"
	"testing"

	"kith/graph/declared"
	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

const besideMarks = "from,to,special,remark,attributes\n1,2,true,\"of\ntwo lines\",\n1,2,false,again,\n2,1,false,x,\n1,7,true,,\n1,3,yes,,\n1,3,false,there,\n"

// besideFiles are a follow that is marked, others, and files of each kind of row beside edges.
func besideFiles(t *testing.T) []string {
	return []string{
		file(t, "marks.csv", besideMarks), file(t, "messages.csv.gz", "from,to,message\n3,1,hello\n1,3,hello\n"),
		file(t, "dismissals.csv", "from,to,kind,at,related,ends_at,attributes\n1,2,3,50,true,90,\n8,2,3,50,true,90,\n"),
		file(t, "lists.csv", "owner,list,name,public\n1,7,Cafe\u0301s,true\n8,7,nobody's,true\n1,9223372036854775807,beyond,true\n"),
		file(t, "edges.txt", "1 2\n2 1\n1 3\n"), file(t, "asked.txt", "# relation: friend_request\n3 1 77\n"),
	}
}

func besideSeed(t *testing.T) *keeper {
	t.Helper()
	k, remark := newKeeper(), "mine"
	k.CreateUsers(ctx, []storage.User{{ID: 1, Handle: "one"}, {ID: 3, Handle: "three"}})
	k.Apply(ctx, storage.Forward, []storage.Edge{{From: 1, To: 3, Type: storage.Following, UpdateTime: 5}}, storage.IfAbsent)
	_, _, err := k.SetMark(ctx, storage.Pair{From: 1, To: 3}, storage.MarkChange{Remark: &remark})
	must.OK(t, err)
	return k
}

// checkAnnotation checks that the rows beside edges are those of the files and those that existed before.
func checkAnnotation(t *testing.T, name string, k *keeper) {
	t.Helper()
	for pair, want := range map[storage.Pair]storage.EdgeMark{
		{From: 1, To: 2}: {Special: true, Remark: "of\ntwo lines"}, {From: 2, To: 1}: {Remark: "x"}, {From: 1, To: 3}: {Remark: "mine"}, {From: 1, To: 7}: {},
	} {
		check.Equal(t, fmt.Sprintf("%s: mark %v", name, pair), storage.MarkLookups.Read(ctx, k, pair)[0].Value, want)
	}
	check.Equal(t, name+": the message", storage.MessageLookups.Read(ctx, k, storage.Pair{From: 3, To: 1})[0].Value, "hello")
	lists := storage.ListLookups.Read(ctx, k, storage.ListsQuery{Owner: 1, UpTo: math.MaxInt64, Limit: 9}, storage.ListsQuery{Owner: 8, UpTo: math.MaxInt64, Limit: 9})
	if len(lists[0].Value) != 1 || lists[0].Value[0].Name != "Caf\u00e9s" || lists[0].Value[0].Number != 7 || len(lists[1].Value) != 0 {
		t.Errorf("%s: lists %+v", name, lists)
	}
	dismissed := storage.Edge{From: 1, To: 2, Item: declared.Dismissals.Number, Type: storage.Related, UpdateTime: 50e6}
	ends := storage.Detail{EndsAt: 90e6}
	for _, side := range []storage.Side{storage.Relations, storage.RelationInbox} {
		got := storage.EdgeLookups[side].Read(ctx, k, dismissed.Pair(), declared.Dismissals.Pair(8, 2))
		check.That(t, got[0].Value == dismissed && !got[1].Found, "%s: dismissals: %+v", name, got)
	}
	check.Equal(t, name+": the dismissal", storage.DetailLookups.Read(ctx, k, dismissed.Pair())[0].Value, ends)
}

// Rows beside edges are written after the edges, wherever their files are listed, and no existing row is
// replaced.
func TestBesideEdges(t *testing.T) {
	for _, lines := range []int{1, 2, 100} {
		k := besideSeed(t)
		problems := map[string]error{}
		got := mustRun(t, k, Config{Files: besideFiles(t), Chunk: lines, Problems: 50, OnProblem: func(p Problem) {
			problems[fmt.Sprint(len(problems))+p.String()] = p.Reason
		}})
		want := Report{Lines: 18, UsersMade: 1, Edges: 3, Beside: 4, Relations: 1, Duplicates: 1, Existed: 2, Malformed: 2, Refused: 4}
		if lines == 1 { // each line is a chunk of its own, so the repeated pair exists already
			want.Duplicates, want.Existed = 0, 3
		}
		check.That(t, bare(got) == want, "%d lines: %+v, want %+v", lines, bare(got), want)
		check.That(t, len(problems) == 6, "problems: %v", problems)
		checkAnnotation(t, fmt.Sprint(lines, " lines"), k)
	}
}

// An import that is killed writes these rows once, and counts them once.
func TestKilledImportWritesBesideEdgesOnce(t *testing.T) {
	config := func() Config { return Config{Files: besideFiles(t), Chunk: 2, Start: start} }
	killAtEachWrite(t, 15, besideSeed, config, func(name string, k *keeper, over bool) {
		got := mustRun(t, k, config())
		check.That(t, over || got.Beside+got.Relations+got.Existed == 7, "%s: %+v", name, bare(got))
		checkAnnotation(t, name, k)
	})
}
