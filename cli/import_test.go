package cli

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"kith/files/graphfile"
	"kith/files/importer"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/social"
	"kith/storage"
)

func graph(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "graph.txt")
	must.OK(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// command parses arguments as the program does, and runs them.
func command(t *testing.T, store storage.Store, arguments ...string) (out, complaints string, err error) {
	t.Helper()
	var program struct {
		Import ImportCmd `cmd:""`
	}
	var stdout, stderr bytes.Buffer
	settings := &Settings{}
	settings.rules.Store(&social.Rules{RequestTTL: time.Hour, RequestPause: time.Hour})
	parser, err := kong.New(&program, Vars, kong.Writers(&stdout, &stderr),
		kong.BindTo(context.Background(), (*context.Context)(nil)), kong.BindTo(store, (*storage.Store)(nil)), kong.Bind(settings))
	must.OK(t, err)
	k, err := parser.Parse(arguments)
	must.OK(t, err)
	if err = program.Import.Prepare(&Settings{}, k); err == nil {
		err = k.Run()
	}
	return stdout.String(), stderr.String(), err
}

func TestImportCommand(t *testing.T) {
	path := graph(t, "1 2\n2 1\n1 2\n3 3\nx\n")
	store := oracle.New()
	out, complaints, err := command(t, store, "import", path)
	must.That(t, errors.Is(err, malformed(1)), "%v", err)
	check.Has(t, "what is printed", out, "imported 2 edges and 2 users in ", "duplicates               1  (", "existed                  0\n", "self-follows             1\n", "malformed                1\n")
	check.Equal(t, "complaints", complaints, path+":5: want `from to [time]`: \"x\"\n")
	check.Equal(t, "edges in the store", len(store.Snapshot().Forward), 2)
}

// A gateway's declarations say whether a number in a file of relations is a thing's or a user's.
func TestDeclaredKindsLeadToThingsInFiles(t *testing.T) {
	write := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		must.OK(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	kinds := write("kith.yaml", "relations:\n  subscribes: {number: 100, to: Show}\n  worksWith: {number: 101}\n")
	users := write("users.csv", "id,handle\n1,ada\n2,bob\n")
	rows := write("r.csv", "from,to,kind,at,related,ends_at,attributes\n"+
		"1,5,100,50,true,,\n2,thing:5,100,50,true,,\n2,2,100,50,true,,\n1,2,101,50,true,,\n"+
		"1,thing:5,101,50,true,,\n1,thing:2,1,50,true,,\n") // kinds of users, one of them Kith's own
	store := oracle.New()
	_, complaints, err := command(t, store, "import", "--relations="+kinds, users, rows)
	check.That(t, errors.Is(err, malformed(2)) && strings.Count(complaints, "relations of this kind lead to users") == 2, "%v: %s", err, complaints)
	for i, n := range storage.KindLookups.Read(t.Context(), store, storage.OwnerKind{Owner: storage.Foreign(5), Kind: 100}, storage.OwnerKind{Owner: storage.Foreign(2), Kind: 100}, storage.OwnerKind{Owner: 2, Kind: 101}) {
		check.Equal(t, fmt.Sprint("edges of look-up ", i), n.Value.Incoming, []int64{2, 1, 1}[i])
	}
	_, _, err = command(t, store, "import", "--relations=none.yaml", users)
	check.That(t, err != nil && strings.Contains(err.Error(), "--relations (KITH_RELATIONS)"), "%v", err)
}

// Scripts see by the exit code that lines were left out.
func TestMalformedLinesHaveAnExitCode(t *testing.T) {
	for text, want := range map[string]int{"1 2\n": 0, "1 2\nx\n": 2, "x\n": 1} {
		code, _, complaints := ran(t, "import", "--store=sqlite:"+t.TempDir()+"/kith.db", graph(t, text))
		check.Equal(t, text+complaints, code, want)
	}
}

// The name of a file cannot make the terminal do anything, nor look like another line.
func TestNamesOfFilesAreEscaped(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "a\x1b[2J\x07\u009b\u202e\rb\nkith: c.csv")
	must.OK(t, os.WriteFile(path, []byte("1 2\nx\n"), 0o600))
	for _, args := range [][]string{
		{"import", "--store=sqlite:" + filepath.Join(folder, "kith.db"), path},
		{"import", "--store=sqlite:" + filepath.Join(folder, "kith.db"), path + "x"},
		{"export", "--store=sqlite:" + filepath.Join(folder, "kith.db"), path},
		{"doctor", "--store=sqlite:" + path},
	} {
		_, out, complaints := ran(t, args...)
		text := out + complaints
		if strings.ContainsAny(text, "\x1b\x07\u009b\u202e\r") || strings.Contains(text, "\nkith: c") || !strings.Contains(text, `a\u001b[2J`) {
			t.Errorf("%s: %q", args[0], text)
		}
	}
}

// A flag says what the lines contain.
func TestImportOfARelation(t *testing.T) {
	store := oracle.New()
	_, _, err := command(t, store, "import", "--relation=blocking", graph(t, "1 2\n"))
	must.OK(t, err)
	rows := store.Snapshot().Forward
	check.That(t, len(rows) == 1 && rows[0].Type == storage.Blocking, "following holds %+v", rows)
}

func TestStrictImportFails(t *testing.T) {
	path := graph(t, "1 2\nx\n")
	_, _, err := command(t, oracle.New(), "import", "--strict", "--chunk=1", path)
	check.That(t, errors.Is(err, importer.ErrMalformed) && strings.Contains(err.Error(), path+":2:"), "error %v", err)
}

func TestOnlySomeProblemsAreShown(t *testing.T) {
	out, complaints, err := command(t, oracle.New(), "import", graph(t, strings.Repeat("x\n", 100)+"1 2\n"))
	must.That(t, errors.Is(err, malformed(100)), "%v", err)
	n := strings.Count(complaints, "\n")
	check.That(t, n == shownProblems+1 && strings.Contains(out, "malformed              100"), "%d lines of complaints, summary\n%s", n, out)
}

// A file that contains nothing to import is an error. A file that is imported already is not.
func TestImportOfNothingFails(t *testing.T) {
	store := oracle.New()
	for _, text := range []string{"", "# nobody\n", "x\n\x00\n", "3 3\n", "id,handle\n1,u2\n", "id,handle\n"} {
		_, _, err := command(t, store, "import", graph(t, text))
		check.That(t, errors.Is(err, importer.ErrNothing) && !strings.Contains(err.Error(), "\n"), "%q: %v", text, err)
	}
	for range 2 {
		_, _, err := command(t, store, "import", graph(t, "x\n1 2\n"))
		check.That(t, errors.Is(err, malformed(1)), "%v", err)
	}
}

func TestAdvice(t *testing.T) {
	for _, tt := range []struct {
		report importer.Report
		err    error
		want   string
	}{
		{importer.Report{Lines: 5, Resumable: true}, importer.ErrInterrupted, "to go on from there"},
		{importer.Report{Lines: 5, Resumable: true}, storage.ErrUnavailable, "to go on from there"},
		{importer.Report{Lines: 5}, importer.ErrInterrupted, "to begin anew"},
		{importer.Report{}, importer.ErrInterrupted, "interrupted"},
	} {
		if err := advise(tt.err, tt.report); !errors.Is(err, tt.err) || !strings.HasSuffix(err.Error(), tt.want) && !strings.Contains(err.Error(), tt.want+":") {
			t.Errorf("%+v: %q, want …%s", tt.report, err, tt.want)
		}
	}
}

func TestPlainProgress(t *testing.T) {
	var out bytes.Buffer
	p := &progress{name: "import", out: &out, every: time.Hour, began: time.Now().Add(-4 * time.Second)}
	step := importer.Progress{Report: importer.Report{Lines: 1500, Edges: 1234}, Resumed: true, Bytes: 50, TotalBytes: 200, EdgesPerSecond: 60_000}
	p.importing(step)
	p.importing(step) // it is too early for a line
	p.every = 0
	p.importing(step)
	step.TotalBytes = 0
	p.importing(step)
	check.Equal(t, "the lines", out.String(), "import: going on after 1,500 lines\nimport:  25 %, 1,234 edges, 60,000 edges/s, 12s left\nimport: 1,234 edges, 60,000 edges/s\n")
}

func TestBarProgress(t *testing.T) {
	var out bytes.Buffer
	p := &progress{name: "import", out: &out, terminal: true, began: time.Now().Add(-4 * time.Second)}
	p.done() // an import may fail before it begins
	step := importer.Progress{Report: importer.Report{Edges: 1234}, Bytes: 50, TotalBytes: 200, EdgesPerSecond: 60_000}
	p.importing(step)
	p.problem(importer.Problem{File: "f", Line: 7, Reason: errors.New("odd")})
	p.done()
	check.Has(t, "what is printed", out.String(), "25%", "1,234 edges, 60,000 edges/s, 12s left", "f:7: odd\n")
	spinner := &progress{name: "import", out: &out, terminal: true}
	step.TotalBytes = 0
	spinner.importing(step)
	spinner.done()
}

// A report for programs is one JSON value.
func TestImportReportAsJSON(t *testing.T) {
	out, _, err := command(t, oracle.New(), "import", "--output=json", graph(t, "from,to\n1 2\n2 1\n3 3\nx\n"))
	must.That(t, errors.Is(err, malformed(1)), "%v", err)
	var report map[string]float64
	err = json.Unmarshal([]byte(out), &report)
	must.That(t, err == nil, "%v: %s", err, out)
	check.That(t, report["edges"] == 2 && report["lines"] == 5 && report["malformed"] == 1 && report["seconds"] > 0 && report["edgesPerSecond"] > 0, "%v", out)
	_, ok := report["elapsed"]
	check.That(t, !ok, "a time without a unit: %v", out)
}

// A header says which column is from. What it does not say is in the report.
func TestHeadersOfEdgeListsAreObeyed(t *testing.T) {
	for header, want := range map[string]struct {
		from, to storage.UserID
		unknown  string
	}{
		"from,to": {1, 2, ""}, "to,from": {2, 1, ""}, "followee_id,follower_id": {2, 1, ""}, "user,follower": {2, 1, ""}, "target,source,when": {2, 1, ""},
		"a,b": {1, 2, "a, b"}, "to,from,weight": {2, 1, "weight"},
	} {
		store := oracle.New()
		out, _, err := command(t, store, "import", graph(t, header+"\n1,2,1700000000\n"))
		must.OK(t, err)
		row := storage.EdgeLookups[storage.Forward].Read(t.Context(), store, storage.Pair{From: want.from, To: want.to})[0]
		check.That(t, row.Value.Type == storage.Following, "%s: %d does not follow %d", header, want.from, want.to)
		isTold := strings.Contains(out, "unknown columns")
		check.That(t, isTold == (want.unknown != "") && strings.Contains(out, want.unknown+"\n"), "%s: the report is %s", header, out)
	}
	_, _, err := command(t, oracle.New(), "import", graph(t, "time,from,to\n5,1,2\n"))
	check.Is(t, "time first", err, graphfile.ErrHeader)
}

// TestImportOfAccounts: lists of accounts are imported by the rules of a gateway, and tell which lines are refused.
func TestImportOfAccounts(t *testing.T) {
	store := oracle.New()
	users := graph(t, "id,handle,name\n1,maya,Maya\n2,zoe,Zoe\n3,ben,Ben\n4,ana,Ana\n")
	_, _, err := command(t, store, "import", users)
	must.OK(t, err)
	locked := true
	_, _, err = store.UpdateProfile(t.Context(), 3, storage.ProfileChange{Locked: &locked}, storage.MicrosOf(time.Now()))
	must.OK(t, err)
	_, _, err = command(t, store, "import", "--relation=blocking", graph(t, "4 1\n"))
	must.OK(t, err)
	bring := func(kind, text, summary string, refused ...string) {
		t.Helper()
		file := graph(t, text)
		out, complaints, err := command(t, store, "import", "--user=Maya", "--accounts="+kind, file)
		want := error(malformed(len(refused)))
		if summary == "" { // nothing is imported
			want = importer.ErrNothing
		}
		if len(refused) == 0 && err != nil || len(refused) > 0 && !errors.Is(err, want) || !strings.Contains(out, summary) {
			t.Errorf("%s: %v: %s", kind, err, out)
		}
		for _, want := range refused {
			check.That(t, strings.Contains(complaints, file+want), "%s: %q does not tell %q", kind, complaints, want)
		}
	}
	types := func() map[storage.Pair]storage.EdgeType {
		all := make(map[storage.Pair]storage.EdgeType)
		for _, row := range store.Snapshot().Forward {
			if row.From == 1 {
				all[row.Pair()] = row.Type
			}
		}
		return all
	}
	bring("follows", "Account address,Show boosts\nZoe@example.org,true\nnobody@example.org,true\nben@example.org,true\n@ana.bsky.social\n,\n", "imported 2 edges", ":3: ", ":5: ", ":6: ")
	to := func(id storage.UserID) storage.Pair { return storage.Pair{From: 1, To: id} }
	check.Equal(t, "followed", types(), map[storage.Pair]storage.EdgeType{to(2): storage.Following, to(3): storage.Requested})
	bring("blocks", "zoe@example.org\nben\n", "imported 2 edges")
	check.Equal(t, "blocked", types(), map[storage.Pair]storage.EdgeType{to(2): storage.Blocking, to(3): storage.Blocking})
	check.Equal(t, "who follow a blocked user", storage.CountLookups.Read(t.Context(), store, 2)[0].Value.Follower, 0)
	bring("follows", "zoe\n", "", ":1: ") // a block wins
	var packed strings.Builder
	z := gzip.NewWriter(&packed)
	_, err = z.Write([]byte("ana,true\n"))
	must.OK(t, err)
	must.OK(t, z.Close())
	bring("mutes", packed.String(), "imported 1 edges")
	bring("lists", "Near,ben\nNear,ana\n,ana\n", "", ":1: ", ":2: ", ":3: ") // in a block
	for _, wrong := range [][]string{{"--user=nobody"}, {"--user=maya", "--relation=blocking"}, {"--accounts=lists"}, {"--user=maya", "--chunk=1"}, {"--user=maya", "--max-load=0.5"}} {
		_, _, err := command(t, store, append(append([]string{"import"}, wrong...), users)...)
		check.Says(t, wrong, err, "--")
	}
	_, _, err = command(t, store, "import", "--strict", "--user=maya", graph(t, "nobody\nana\n"))
	check.Says(t, "strict", err, ":1: ")
}

// silentShard has a shard of lists that does not answer.
type silentShard struct{ storage.Store }

func (silentShard) CreateList(context.Context, storage.UserList) (storage.UserList, bool, error) {
	return storage.UserList{}, false, storage.ErrUnavailable
}

// A line of accounts that is not read because a shard is down is not malformed: the same command has to be run again.
func TestAnOutageIsNoFaultOfALine(t *testing.T) {
	store := oracle.New()
	_, _, err := command(t, store, "import", graph(t, "id,handle,name\n1,maya,Maya\n2,zoe,Zoe\n"))
	must.OK(t, err)
	_, complaints, err := command(t, silentShard{store}, "import", "--user=maya", "--accounts=lists", graph(t, "Near,zoe\n"))
	check.That(t, errors.Is(err, storage.ErrUnavailable) && strings.Contains(err.Error(), "run the same command again") && complaints == "", "%v: %s", err, complaints)
}

// TestAListThatIsMissingIsNoFailure: the same command fails again, before there is a store, and before another list is imported.
func TestAListThatIsMissingIsNoFailure(t *testing.T) {
	store := filepath.Join(t.TempDir(), "kith.db")
	missing := filepath.Join(t.TempDir(), "missing")
	for _, args := range [][]string{{missing}, {"--user=maya", missing}, {"--user=maya", graph(t, "zoe\n"), missing}, {"--user=maya", t.TempDir()}} {
		code, _, complaints := ran(t, append([]string{"import", "--store=sqlite:" + store}, args...)...)
		_, err := os.Stat(store)
		check.That(t, code == 78 && err != nil, "%v: code %d, store %v: %s", args, code, err, complaints)
	}
}
