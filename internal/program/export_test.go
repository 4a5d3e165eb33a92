package program_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kith/files/graphfile"
	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/internal/testgraph"
	"kith/storage"
	"kith/storage/sides"
	"kith/storage/sqlstore"
)

// peopled makes a store with a generated graph, blocks, requests in every state, and hidden users.
func peopled(t *testing.T, graph testgraph.Shape, shards []database) []database {
	t.Helper()
	laidOut(t, shards...)
	g := testgraph.Generate(t, graph)
	edges := g.Edges(t)
	text := "id,handle,name,bio,state\n"
	for i, e := range edges[:200] {
		text += fmt.Sprintf("%d,person_%d,\"P, \"\"%d\"\"\",\"two\nlines\",%s\n", e.From, e.From, i, []string{"", "deactivated"}[i%2])
	}
	var blocks, asked strings.Builder
	for i, e := range edges[:1500] {
		fmt.Fprintf(map[bool]*strings.Builder{true: &blocks, false: &asked}[i%3 == 0], "%d %d %d.%06d\n", e.To, e.From, 1_600_000_000+i, i)
	}
	users := written(t, "people.csv", text)
	store := kithtest.Args("--store", location(shards...))
	for _, args := range [][]string{
		{"import", users, g.File},
		{"import", "--relation=blocking", written(t, "blocks.txt", blocks.String())},
		{"import", "--relation=friend_request", written(t, "asked.txt", asked.String())},
	} {
		kithtest.Ends(t, 0, kithtest.Args(args...), store)
	}
	s := opened(t, shards)
	for i, e := range edges[2000:2100] { // edges that have ended
		kind := []storage.EdgeType{storage.None, storage.Blocking}[i%2]
		for _, r := range s.ChangeEdges(t.Context(), storage.Forward, storage.UserID(e.From), []storage.EdgeChange{{To: storage.UserID(e.To), Type: kind, At: 1_800_000_000_000_000}}, storage.ChangeOptions{}) {
			must.OK(t, r.Err)
			propagateAll(t, s, r.Value.Written())
		}
	}
	return shards
}

func opened(t *testing.T, shards []database) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), sqlstore.Config{Location: location(shards...)})
	must.OK(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// propagateAll applies rows to their other sides.
func propagateAll(t *testing.T, s *sqlstore.Store, rows []storage.Written) {
	t.Helper()
	for len(rows) > 0 {
		w := rows[0]
		rows = rows[1:]
		for _, r := range s.Apply(t.Context(), w.Side.Replica(), []storage.Edge{w.Edge}, storage.IfNewer) {
			must.OK(t, r.Err)
			rows = append(rows, r.Value.Also...)
		}
	}
}

// digests returns the digests of all tables of edges of a store.
func digests(t *testing.T, shards []database) (sums [len(storage.Sides)]sides.Digest) {
	t.Helper()
	s := opened(t, shards)
	for _, side := range storage.Sides {
		for shard := range shards {
			groups, err := s.Digests(t.Context(), side, shard, sides.OwnerRange{UpTo: 1<<63 - 1}, sides.Cut{Parts: 1}, nil)
			must.OK(t, err)
			for _, d := range groups {
				sums[side] = sums[side].Plus(d)
			}
		}
	}
	return sums
}

func export(dir string, shards []database) kithtest.Option {
	return kithtest.Args("export", "--store", location(shards...), dir)
}

// TestKilledExportGoesOn kills an export in the middle of a shard, several times. The export then continues after the shards
// that are complete, and writes the same files as an export that was not killed. An import makes an equal store of them.
func TestKilledExportGoesOn(t *testing.T) {
	t.Parallel()
	onMariaDB(t, func(t *testing.T, make func(testing.TB, int) []database) {
		from := peopled(t, testgraph.Small, make(t, 4))
		whole, dir := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "killed")
		end := kithtest.Ends(t, 0, export(whole, from))
		for _, kind := range []graphfile.Kind{"users", "following", "blocking", "ended", "friend_request", "accepted_request", "cancelled_request"} {
			check.Has(t, "kinds", end.Stdout, "  "+string(kind)+" ")
		}
		killed := 0
		for try := 0; killed < 2; try++ {
			must.That(t, try != 20, "every export was over before it was killed")
			name := filepath.Join(dir, fmt.Sprintf("following-%04d.txt.gz", killed+1))
			running := kithtest.Launch(t, export(dir, from))
			running.Until(t, "the shard is under way or over", func() bool {
				_, part := os.Stat(name + ".part")
				_, over := os.Stat(name)
				return part == nil || over == nil
			})
			if end := running.Kill(t); end.Code == -1 {
				killed++
			} else {
				dir = filepath.Join(t.TempDir(), "killed")
			}
			if _, err := os.Stat(dir); err == nil {
				noHalfFiles(t, dir, whole)
			}
		}
		end = kithtest.Run(t, export(dir, from))
		must.That(t, end.Code == 0, "gone on with: %+v", end)
		sameFiles(t, dir, whole)
		check.Has(t, "how old the parts are", end.Stdout, "\nwent on with an interrupted export: its shards are as of 20")
		refused(t, kithtest.Run(t, export(dir, from)), dir, "holds a whole export, made 20", ": choose another folder")
		sameFiles(t, dir, whole)
		to := newSQLite(t, 3)
		kithtest.Ends(t, 0, kithtest.Args("import", "--strict", "--store", location(to...), dir))
		check.Equal(t, "digests", digests(t, to), digests(t, from))
		countsAgree(t, to...)
	})
}

// noHalfFiles checks that every file with its final name is complete.
func noHalfFiles(t *testing.T, dir, whole string) {
	t.Helper()
	for _, name := range exported(t, dir) {
		got, _ := os.ReadFile(filepath.Join(dir, name))
		want, _ := os.ReadFile(filepath.Join(whole, name))
		check.That(t, bytes.Equal(got, want), "%s has %d bytes, not the %d of a whole one", name, len(got), len(want))
	}
}

// exported returns the names of the files that are complete, without the manifest.
func exported(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must.OK(t, err)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".part") && e.Name() != graphfile.ManifestName {
			names = append(names, e.Name())
		}
	}
	return names
}

func sameFiles(t *testing.T, dir, whole string) {
	t.Helper()
	check.Equal(t, "files", exported(t, dir), exported(t, whole))
	noHalfFiles(t, dir, whole)
	_, err := graphfile.WholeExport(dir)
	check.That(t, err == nil, "%v", err)
}

// TestExportSurvivesItsServer: one of two servers is down, and the shards of the other are exported and kept.
func TestExportSurvivesItsServer(t *testing.T) {
	t.Parallel()
	server := testenv.MariaDB(t)
	from := peopled(t, testgraph.Small, []database{
		{"mysql", testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0]},
		{"mysql", server.CreateDatabase(t, "kith")},
	})
	var dir string
	var end kithtest.End
	for try := 0; end.Code == 0; try++ {
		must.That(t, try != 20, "every export was over before the server was killed")
		if try > 0 {
			server.Restart(t)
		}
		dir = t.TempDir()
		running := kithtest.Launch(t, export(dir, from))
		running.Until(t, "the second shard", func() bool {
			_, err := os.Stat(filepath.Join(dir, "users-0001.csv.gz.part"))
			return err == nil || running.Ended()
		})
		server.Kill(t)
		end = running.Wait(t)
	}
	progress := regexp.MustCompile(`(?m)^export: .*\n`) // if it takes seconds
	want := regexp.MustCompile(`(?s)^kith: read shard\..* on shard 1 \(` + regexp.QuoteMeta(server.Addr()) + `/kith\): .*; run the same command again: it goes on after what is whole\n$`)
	said := progress.ReplaceAllString(end.Stderr, "")
	check.That(t, end.Code == 1 && want.MatchString(said) && strings.Count(said, "\n") == 1, "with a server gone: %+v", end)
	check.Lacks(t, "the error", end.Stderr, "app:app")
	_, err := os.Stat(filepath.Join(dir, "following-0001.txt.gz.part"))
	check.That(t, err != nil, "half a file was left")
	server.Restart(t)
	end = kithtest.Run(t, export(dir, from))
	check.That(t, end.Code == 0 && strings.HasPrefix(end.Stdout, "exported ") && strings.Contains(end.Stderr, "going on after 1 of 2 shards"), "gone on with: %+v", end)
	_, err = graphfile.WholeExport(dir)
	check.That(t, err == nil, "%v", err)
}

// TestExportToAFullDisk fills a file system of 128 KiB that only the export uses. The users of the demo graph do not fit.
func TestExportToAFullDisk(t *testing.T) {
	t.Parallel()
	if exec.CommandContext(t.Context(), "unshare", "-Urm", "mount", "-t", "tmpfs", "none", t.TempDir()).Run() != nil {
		t.Skip("file systems cannot be mounted here")
	}
	dir := t.TempDir()
	script := `mount -t tmpfs -o size=128k none "$1" && "$2" export --plain --store "$3" "$1"; code=$?; ls "$1"; exit $code`
	var out, complaints bytes.Buffer
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "unshare", "-Urm", "sh", "-c", script, "sh", dir, kithtest.Binary(t), kithtest.DemoStore(t, 1))
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	want := regexp.MustCompile(`^kith: /.*\.part: no space left on device; make room and run the same command again: it goes on after what is whole\n$`)
	check.That(t, err != nil && want.MatchString(complaints.String()), "%v: %s", err, complaints.String())
	check.Equal(t, "what is left", out.String(), graphfile.ManifestName+"\n")
}

// A mistyped store is not made by commands that read one, nor by those that repair one, nor is the folder of an export. An import
// says that it has made one.
func TestMistypedStores(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	typo, users := filepath.Join(folder, "typo.db"), filepath.Join(folder, "users.csv")
	must.OK(t, os.WriteFile(users, []byte("id,handle,name\n1,one,One\n"), 0o600))
	for _, args := range [][]string{{"export", filepath.Join(folder, "out")}, {"reconcile", "full"}, {"shards", "status"}} {
		end := kithtest.Run(t, kithtest.Args(append(args, "--store", "sqlite:"+typo)...))
		end.Fails(t, args, 1, "there is no store at "+typo)
	}
	left, err := os.ReadDir(folder)
	check.That(t, err == nil && len(left) == 1, "something was made: %v, %v", left, err)
	for _, made := range []bool{true, false} {
		end := kithtest.Run(t, kithtest.Args("import", users, "--store", "sqlite:"+typo))
		check.That(t, end.Code == 0 && made == strings.Contains(end.Stderr, "there was no store: "), "an import, the store is new: %t: %+v", made, end)
	}
}
