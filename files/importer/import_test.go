package importer

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kith/files/graphfile"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

var (
	ctx   = context.Background()
	start = time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
	base  = storage.MicrosOf(start) - window
)

// keeper is a store in memory that also keeps checkpoints.
type keeper struct {
	*oracle.Store
	saved map[string][]byte
}

func newKeeper() *keeper { return &keeper{oracle.New(), map[string][]byte{}} }

func (k *keeper) LoadCheckpoint(_ context.Context, key string) ([]byte, bool, error) {
	value, found := k.saved[key]
	return value, found, nil
}

func (k *keeper) SaveCheckpoint(_ context.Context, key string, value []byte) error {
	k.saved[key] = bytes.Clone(value)
	return nil
}

func (k *keeper) DeleteCheckpoint(_ context.Context, key string) error {
	delete(k.saved, key)
	return nil
}

// edge reads one row of a side. ok is false if the row does not exist.
func (k *keeper) edge(t *testing.T, side storage.Side, from, to storage.UserID) (e storage.Edge, ok bool) {
	t.Helper()
	r := storage.EdgeLookups[side].Read(ctx, k, storage.Pair{From: from, To: to})[0]
	must.OK(t, r.Err)
	return r.Value, r.Found
}

// file writes a file to import; a name that ends in .gz is compressed.
func file(t *testing.T, name, text string) string {
	t.Helper()
	data := []byte(text)
	if strings.HasSuffix(name, ".gz") {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err := z.Write(data)
		must.OK(t, err)
		must.OK(t, z.Close())
		data = b.Bytes()
	}
	path := filepath.Join(t.TempDir(), name)
	must.OK(t, os.WriteFile(path, data, 0o600))
	return path
}

// bare is a report without the fields that differ from run to run.
func bare(r Report) Report {
	r.Elapsed, r.Resumable = 0, false
	return r
}

func mustRun(t *testing.T, store storage.Store, config Config) Report {
	t.Helper()
	if config.Start.IsZero() {
		config.Start = start
	}
	report, err := Run(ctx, store, config)
	must.OK(t, err)
	return report
}

func TestImportReportsEveryLine(t *testing.T) {
	tombstone := storage.Edge{From: 1, To: 5, Type: storage.None, UpdateTime: 77}
	block := storage.Edge{From: 1, To: 6, Type: storage.Blocking, UpdateTime: 78}
	path := file(t, "graph.txt", strings.Join([]string{
		"# a comment", // 1
		"",            // 2
		"1 2",         // 3
		"2,1,100.5",   // 4
		"1 2",         // 5: a duplicate, in the same chunk or not
		"3 3",         // 6: a self-follow
		"0 3",         // 7: malformed
		"1 5",         // a tombstone exists
		"1 6 99",      // a block exists
		"1 4",         // 10: u4 cannot be made
		"x",           // 11: malformed
		"1\t7",        // 12: without a line end
	}, "\n"))
	want := Report{Lines: 12, UsersMade: 4, Edges: 3, Duplicates: 1, Existed: 2, SelfFollows: 1, Malformed: 2, Refused: 1}

	for _, lines := range []int{1, 2, 3, 100} {
		t.Run(fmt.Sprint(lines, " lines a chunk"), func(t *testing.T) {
			k := newKeeper()
			k.CreateUsers(ctx, []storage.User{{ID: 1, Handle: "maya", Name: "Maya"}, {ID: 9, Handle: "u4", Name: "in the way"}})
			k.Apply(ctx, storage.Forward, []storage.Edge{tombstone, block}, storage.IfAbsent)
			var problems []string
			got := mustRun(t, k, Config{Files: []string{path}, Chunk: lines, Problems: 10, OnProblem: func(p Problem) {
				problems = append(problems, strings.TrimPrefix(p.String(), filepath.Dir(path)+"/"))
			}})
			check.That(t, bare(got) == want, "report\n%+v, want\n%+v", bare(got), want)
			for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
				for _, e := range []storage.Edge{
					{From: 1, To: 2, Type: storage.Following, UpdateTime: base + 2}, // the third line of the file
					{From: 2, To: 1, Type: storage.Following, UpdateTime: 100_500_000},
					{From: 1, To: 7, Type: storage.Following, UpdateTime: base + 11},
					tombstone, block,
				} {
					row, _ := k.edge(t, side, e.From, e.To)
					check.That(t, row == e, "%s holds %+v, want %+v", side, row, e)
				}
				_, ok := k.edge(t, side, 1, 4)
				check.That(t, !ok, "%s has an edge to a user that could not be made", side)
			}
			all := strings.Join(problems, "\n")
			for _, wanted := range []string{`graph.txt:7: an id must be between`, `graph.txt:11: want`, `"x"`, "u4"} {
				check.That(t, strings.Contains(all, wanted) && len(problems) == 3, "problems\n%s\nwithout %q, or not three", all, wanted)
			}
			u := storage.UserLookups.Read(ctx, k, 1, 7)
			check.That(t, u[0].Value.Handle == "maya" && u[1].Value.Handle == "u7" && u[1].Value.Name == "u7", "users %+v", u)
			check.That(t, len(k.saved) == 0, "a finished import left its checkpoint")
			again := mustRun(t, k, Config{Files: []string{path}, Chunk: lines, Start: start.Add(time.Hour)})
			// Duplicates are distinguished from existing edges only within a chunk, because both exist now.
			check.That(t, again.Edges == 0 && again.UsersMade == 0 && again.Duplicates+again.Existed == 6, "importing again wrote something: %+v", again)
		})
	}
}

// Later lines are newer, the order continues across files, and all times are before the start.
// A first line that names the columns is not malformed, even where a chunk begins after it or files were joined.
func TestHeaderLineIsSkipped(t *testing.T) {
	for name, text := range map[string]string{
		"edges.csv": "\xef\xbb\xbffrom,to,time\r\n1,2,5\r\n2,1,6\r\n",
		"tabs":      "# who follows whom\n\n\"from\"\t\"to\"\n1\t2\n2\t1\n",
		"joined":    "source,target\n1,2\nsource,target\n2,1\n",
	} {
		r := mustRun(t, newKeeper(), Config{Files: []string{file(t, name, text)}, Strict: true, Chunk: 1})
		check.That(t, r.Edges == 2 && r.Malformed == 0, "%s: %+v", name, r)
	}
	k := newKeeper()
	r := mustRun(t, k, Config{Files: []string{file(t, "later.csv", "1,2\nfrom,to\n2,1\n")}})
	check.That(t, r.Edges == 2 && r.Malformed == 1, "names behind an edge: %+v", r)
}

func TestUntimedLinesKeepTheirOrder(t *testing.T) {
	k := newKeeper()
	one, two := file(t, "one.txt", "1 9\n# pause\n1 8\n1 7\n"), file(t, "two.txt.gz", "1 6\n1 5")
	mustRun(t, k, Config{Files: []string{one, two}, Chunk: 2})
	page := storage.PageLookups[storage.Forward].Read(ctx, k, storage.PageQuery{Owner: 1, Limit: 10})[0].Value
	var order []storage.UserID
	for _, e := range page {
		order = append(order, e.To)
		check.That(t, e.UpdateTime < storage.MicrosOf(start), "%+v is not before the import's start", e)
	}
	check.Equal(t, "newest first", order, []storage.UserID{5, 6, 7, 8, 9})
}

func TestStrictStopsAtTheFirstMalformedLine(t *testing.T) {
	k := newKeeper()
	path := file(t, "graph.txt", "1 2\n2 3\n3 4\nnonsense\n4 5\n")
	report, err := Run(ctx, k, Config{Files: []string{path}, Chunk: 2, Strict: true, Start: start})
	must.That(t, errors.Is(err, ErrMalformed) && strings.Contains(err.Error(), path+":4:"), "error %v", err)
	check.That(t, report.Edges == 2 && report.Resumable, "report %+v, want the edges of the first chunk", report)
	_, ok := k.edge(t, storage.Forward, 3, 4)
	check.That(t, !ok, "the chunk of the malformed line was written")
	got := mustRun(t, k, Config{Files: []string{path}, Chunk: 2, Start: start.Add(time.Hour)})
	check.Equal(t, "gone on with", bare(got), (Report{Lines: 5, UsersMade: 5, Edges: 4, Malformed: 1}))
}

func TestLongLines(t *testing.T) {
	long := strings.Repeat("9", bufferSize)
	text := "1 2\n# " + long + long + "\n2 3\n1 " + long + "\n" + strings.Repeat(" ", bufferSize+5) + "7 8\n3 4\n# " + long + long
	for _, name := range []string{"long.txt", "long.txt.gz"} {
		var problems []Problem
		got := mustRun(t, newKeeper(), Config{Files: []string{file(t, name, text)}, Chunk: 1, Problems: 5, OnProblem: func(p Problem) { problems = append(problems, p) }})
		check.Equal(t, name, bare(got), (Report{Lines: 7, UsersMade: 4, Edges: 3, Malformed: 2}))
		if len(problems) != 2 || problems[0].Line != 4 || problems[1].Line != 5 || !errors.Is(problems[0].Reason, graphfile.ErrLong) || len(problems[0].Text) > 2*maxExcerpt {
			t.Errorf("%s: problems %v", name, problems)
		}
	}
}

func TestMarksAndLineEndsOfOtherSystems(t *testing.T) {
	k := newKeeper()
	got := mustRun(t, k, Config{Files: []string{file(t, "dos.csv", "\xef\xbb\xbf1,2\r\n2,3,1709212455\r\n")}})
	if want := (Report{Lines: 2, UsersMade: 3, Edges: 2}); bare(got) != want {
		t.Errorf("%+v, want %+v", bare(got), want)
	}
}

func TestStandardInput(t *testing.T) {
	k := newKeeper()
	got := mustRun(t, k, Config{Files: []string{"-"}, Stdin: strings.NewReader("1 2\n2 1\n")})
	want := (Report{Lines: 2, UsersMade: 2, Edges: 2})
	check.That(t, !got.Resumable && bare(got) == want, "%+v, want %+v and not resumable", got, want)
}

func TestFilesThatCannotBeRead(t *testing.T) {
	good := file(t, "good.txt", "1 2\n")
	whole := must.File(t, file(t, "whole.txt.gz", strings.Repeat("1 2\n", 1000)))
	for _, path := range []string{filepath.Join(t.TempDir(), "missing"), t.TempDir(), file(t, "cut.txt", string(whole[:len(whole)-9])), file(t, "u.csv", "id,handle,password\n1,a,b\n")} {
		k := newKeeper()
		_, err := Run(ctx, k, Config{Files: []string{good, path}})
		check.Says(t, path, err, filepath.Base(path))
	}
	_, err := Run(ctx, newKeeper(), Config{Files: []string{good}, Chunk: -1})
	check.That(t, err != nil, "a negative chunk: error %v", err)
}

// Whatever the size of the chunks, the import stores each pair of the file once.
func TestImportIsTheSetOfTheFile(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		pairs := map[storage.Pair]storage.Micros{}
		users := map[storage.UserID]bool{}
		var text strings.Builder
		for line := range 300 {
			from, to := storage.UserID(1+random.IntN(15)), storage.UserID(1+random.IntN(15))
			fmt.Fprintf(&text, "%d%s%d\n", from, []string{" ", "\t", ",", " , "}[random.IntN(4)], to)
			pair := storage.Pair{From: from, To: to}
			if _, twice := pairs[pair]; from != to && !twice {
				pairs[pair] = base + storage.Micros(line)
				users[from], users[to] = true, true
			}
		}
		k := newKeeper()
		got := mustRun(t, k, Config{Files: []string{file(t, "set.txt", text.String())}, Chunk: 1 + random.IntN(100)})
		if got.Edges != int64(len(pairs)) || got.UsersMade != int64(len(users)) || got.Edges+got.Duplicates+got.SelfFollows != 300 {
			t.Errorf("seed %d: %+v for %d pairs of %d users", seed, got, len(pairs), len(users))
		}
		var counts storage.Counts
		for from := storage.UserID(1); from <= 15; from++ {
			c := storage.CountLookups.Read(ctx, k, from)[0].Value
			counts.Following += c.Following
			counts.Follower += c.Follower
			for to := storage.UserID(1); to <= 15; to++ {
				at, want := pairs[storage.Pair{From: from, To: to}]
				for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
					e, ok := k.edge(t, side, from, to)
					check.That(t, ok == want && e.UpdateTime == at, "seed %d: %s has %d → %d: %v at %d, want %v at %d", seed, side, from, to, ok, e.UpdateTime, want, at)
				}
			}
		}
		check.That(t, counts.Following == got.Edges && counts.Follower == got.Edges, "seed %d: counts sum to %+v, want %d", seed, counts, got.Edges)
	}
}
