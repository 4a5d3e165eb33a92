package importer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kith/files/graphfile"
	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// Lists that name their relation keep it, whatever the relation of the import is. They are read in an
// order in which nothing but their own lines follows from them.
func TestListsNameTheirRelation(t *testing.T) {
	k := newKeeper()
	files := []string{
		file(t, "pending.txt", "# relation: friend_request\n3 4 100\n"),
		file(t, "accepted.txt", "# relation: accepted_request\n4 3 50\n"),
		file(t, "ended.txt", "# relation: ended\n3 4 60\n4 3 61\n7 8 5\n"),
		file(t, "bare.txt", "# relations are what --relation says\n5 6\n"),
	}
	r := mustRun(t, k, Config{Files: files, Relation: graphfile.Blocks})
	check.That(t, r.Edges == 6 && r.UsersMade == 4, "%+v", r) // no user is made for an edge that has ended
	for pair, want := range map[storage.Pair][4]storage.EdgeType{
		{From: 3, To: 4}: {0, 0, storage.Pending, storage.Pending},
		{From: 4, To: 3}: {0, 0, storage.Accepted, storage.Accepted},
		{From: 5, To: 6}: {storage.Blocking, storage.Blocking},
	} {
		check.Equal(t, pair, typesOf(t, k, pair.From, pair.To), want)
	}
	e, found := k.edge(t, storage.Inverse, 7, 8)
	check.That(t, found && e.UpdateTime == 5e6, "the end of 7→8 is %+v on the other side", e)
	_, err := Open(Config{Files: []string{file(t, "likes.txt", "# relation: liking\n1 2\n")}})
	check.Says(t, "an unknown relation", err, "liking")
}

// TestJoinedListsAreOfOneRelation: a second head is a comment only if it says the same.
func TestJoinedListsAreOfOneRelation(t *testing.T) {
	follows, blocks := "# relation: following\n1 2\n", "# relation: blocking\n1 3\n"
	r := mustRun(t, newKeeper(), Config{Files: []string{file(t, "a.txt", follows+follows+"3 1\n")}})
	check.That(t, r.Edges == 2 && r.Duplicates == 1, "%+v", r)
	for text, want := range map[string]string{
		follows + blocks:           "line 3 begins a list of blocking, and this is one of following",
		"# of a friend\n" + blocks: "line 2 begins a list of blocking, and this is one of following",
	} {
		k := newKeeper()
		_, err := Run(ctx, k, Config{Files: []string{file(t, "joined.txt", text)}})
		check.That(t, err != nil && strings.Contains(err.Error(), "joined.txt: "+want), "%q: %v", text, err)
		check.Equal(t, "1→3", typesOf(t, k, 1, 3), [4]storage.EdgeType{})
	}
}

// A line with time 0 is written on both sides.
func TestTheFirstTimeOfAll(t *testing.T) {
	k := newKeeper()
	mustRun(t, k, Config{Files: []string{file(t, "a.txt", "1 2 0\n")}})
	check.Equal(t, "1→2", typesOf(t, k, 1, 2), [4]storage.EdgeType{storage.Following, storage.Following})
}

// A folder can only be imported if it is an export. Its users are those of its users files.
func TestAFolderIsAnExport(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) { must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)) }
	_, err := Open(Config{Files: []string{dir}})
	check.Says(t, "without a manifest", err, "it is no export")
	put(graphfile.ManifestName, "{}")
	_, err = Open(Config{Files: []string{filepath.Join(dir, graphfile.ManifestName)}}) // as in DIR/*
	check.Says(t, "a manifest", err, "give its folder")
	users, follows := "id,handle,state\n1,ada,\n2,bob,deactivated\n", "# relation: following\n1 2 5\n1 9 6\n"
	put("users-0000.csv", users)
	put("following-0000.txt", follows)
	manifest := `{"format":1,"store":"x","gzip":false,"done":[{"part":0,"shard":0,"buckets":[{"first":0,"last":1023}],"files":[` +
		`{"name":"users-0000.csv","kind":"users","bytes":41,"rows":2,"digest":"0000000000000000"},` +
		`{"name":"following-0000.txt","kind":"following","bytes":34,"rows":2,"digest":"0000000000000000"}]}]}`
	for wrong, text := range map[string]string{
		"0 of 1024 buckets":    `{"format":1,"store":"x","done":[]}`,
		"1023 of 1024 buckets": strings.Replace(manifest, `"last":1023`, `"last":1022`, 1),
		"has the format 2":     strings.Replace(manifest, `"format":1`, `"format":2`, 1),
		"has 34 bytes":         strings.Replace(manifest, `"bytes":34`, `"bytes":37`, 1),
		"no such file":         strings.Replace(manifest, "following-0000", "following-0001", 1),
		"has 1025 parts":       `{"format":1,"store":"x","done":[{}` + strings.Repeat(",{}", 1024) + `]}`,
		"more than 16777216":   `{"format":1,"store":"` + strings.Repeat("x", 16<<20) + `","done":[]}`,
		"0 of 1024":            `{"format":1,"store":"x","done":[{}` + strings.Repeat(",{}", 1023) + `]}`,
		"is not in its folder": strings.Replace(manifest, "following-0000", "../following-0000", 1),
	} {
		put(graphfile.ManifestName, text)
		_, err := Open(Config{Files: []string{dir}})
		check.That(t, err != nil && strings.Contains(err.Error(), wrong), "%v, want %q", err, wrong)
	}
	put(graphfile.ManifestName, manifest)
	k := newKeeper()
	var problem Problem
	r := mustRun(t, k, Config{Files: []string{dir}, Problems: 5, OnProblem: func(p Problem) { problem = p }})
	check.That(t, r.Edges == 1 && r.UsersMade == 2 && r.Refused == 1 && errors.Is(problem.Reason, errUnlisted), "%+v, %v", r, problem)
	check.That(t, !storage.UserLookups.Read(ctx, k, 9)[0].Found, "somebody was made whom no users file has")
	s := storage.StateLookups.Read(ctx, k, 1, 2)
	check.That(t, s[0].Value.State == storage.Active && s[1].Value.State == storage.Deactivated, "states %v", s)
}

// Users with times of their own are counted as made, even if the run was killed after it had made them.
func TestKilledImportOfUsersWithTimes(t *testing.T) {
	files := []string{file(t, "u.csv", "id,handle,created_at,state\n1,a,5,deactivated\n2,b,6,\n3,c,7,deleting\n")}
	for n := 1; n < 8; n++ {
		for _, late := range []bool{false, true} {
			k := newKeeper()
			if _, err := Run(ctx, &mortal{k, n, late}, Config{Files: files, Chunk: 2, Start: start}); err == nil || len(k.saved) == 0 {
				continue
			}
			r := mustRun(t, k, Config{Files: files, Chunk: 2})
			check.That(t, r.UsersMade == 3, "killed at write %d (late: %v): %+v", n, late, r)
			for i, s := range storage.StateLookups.Read(ctx, k, 1, 2, 3) {
				want := []storage.UserState{storage.Deactivated, storage.Active, storage.Deleting}[i]
				check.That(t, s.Value.State == want, "killed at write %d (late: %v): user %d is in state %d", n, late, i+1, s.Value.State)
			}
		}
	}
}
