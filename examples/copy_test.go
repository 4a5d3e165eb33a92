package examples_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

// A copy that is made of what kith changes prints has the digests that come with it, in Go and in @kith/client; one that has missed a line names
// the user.
func TestCopiesProveThemselves(t *testing.T) {
	t.Parallel()
	location := "sqlite:" + filepath.Join(t.TempDir(), "kith.db")
	changes := func(more ...string) []string {
		t.Helper()
		out := kithtest.Run(t, kithtest.Args(append([]string{"changes", "--until-now", "--store", location}, more...)...)).Stdout
		return strings.SplitAfter(strings.TrimSpace(out), "\n")
	}
	writeEdges(t, location, 0) // makes the store
	var position struct{ Cursor string }
	must.OK(t, json.Unmarshal([]byte(changes()[0]), &position))
	writeEdges(t, location, 300)
	lines := changes("--after", position.Cursor, "--kinds", "follows,requests,favorites,digests")

	program := filepath.Join(t.TempDir(), "copy")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./copy")
	build.Dir, build.Env = "go", append(os.Environ(), "GOWORK=off") // a module of its own
	out, err := build.CombinedOutput()
	must.That(t, err == nil, "%v: %s", err, out)
	lost, subject, user, digests := 0, "", "", 0
	latest := make(map[string]int) // lines of follows, by subject
	var late []string              // those that others have overtaken
	for i, line := range lines {
		var e struct {
			Type, Subject string
			Data          map[string]string
		}
		must.OK(t, json.Unmarshal([]byte(line), &e))
		if e.Type == "kith.digests" && digests == 0 {
			digests = i
		}
		if before, again := latest[e.Subject]; again && e.Type == "kith.follows" {
			late = append(late, lines[before])
		}
		if e.Type == "kith.follows" {
			latest[e.Subject] = i
		}
		switch {
		case e.Data["relation"] == "following":
			lost, subject, user = i, e.Subject, e.Data["from"]
		case e.Type == "kith.follows" && e.Subject == subject:
			lost = 0 // it has changed again
		}
	}
	must.That(t, lost != 0, "there is no line of a follow that is the last of its subject")
	must.That(t, len(late) > 0, "no follow has changed twice")
	damaged := slices.Clone(lines)
	damaged[lost] = fmt.Sprintf(`{"type": "kith.follows", "subject": %q, "data": {"damaged": "it has no time"}}`, subject) + "\n"
	for _, command := range [][]string{{program}, {"node", "testdata/client/copy.mjs"}} {
		testenv.Needs(t, command[0])
		for _, c := range []struct {
			lines []string
			want  string // the users of what differs
			code  int
		}{
			{lines, "", 0},
			{slices.Insert(slices.Clone(lines), digests, late...), "", 0}, // as of a shard that has given the users away, and whose log is read later
			{slices.Delete(slices.Clone(lines), lost, lost+1), `"users":["` + user + `"]`, 1},
			{damaged, `"users":["` + user + `"]`, 1},
		} {
			cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
			cmd.Stdin, cmd.Stderr = strings.NewReader(strings.Join(c.lines, "")), os.Stderr
			out, err := cmd.Output()
			var exit *exec.ExitError
			must.That(t, err == nil || errors.As(err, &exit), "%v", err)
			said := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
			var end struct{ Digests, Differ int }
			if err := json.Unmarshal(said[len(said)-1], &end); err != nil || end.Digests != 3*storage.Buckets || end.Differ != c.code || cmd.ProcessState.ExitCode() != c.code || len(said) != 1+c.code {
				t.Errorf("%v has %+v, and said %s (%v)", command, end, out, err)
			}
			check.That(t, c.want == "" || strings.Contains(string(said[0]), c.want), "%v names %s, want %s", command, said[0], c.want)
		}
	}
}

// writeEdges writes edges of every kind and type, with times of every length.
func writeEdges(t *testing.T, location string, edges storage.UserID) {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Location: location})
	must.OK(t, err)
	defer store.Close()
	users, post := []storage.User{}, storage.PostID{Author: 1, Number: 71}
	for id := range storage.UserID(40) {
		users = append(users, storage.User{ID: id + 1, Handle: "u" + (id + 1).String()})
	}
	store.CreateUsers(t.Context(), users) // or they are there
	_, _, err = store.Publish(t.Context(), storage.PostRow{PostID: post, Key: "key", Text: "hello", At: 3e6})
	must.OK(t, err)
	for n := range edges {
		from, c := n%40+1, storage.EdgeChange{To: n*7%40 + 1, Type: storage.EdgeType(n % 3), At: storage.Micros(1_700_000_000_000_000 + int64(n)*[...]int64{1_000_000, 1_000_003, 500_000}[n%3])}
		side := storage.Forward
		switch n / 100 {
		case 1:
			side, c.Type = storage.Requests, storage.EdgeType(n%6)
		case 2:
			side, c.To, c.Item, c.Type = storage.Favorites, post.Author, post.Number, storage.EdgeType(n%2)
		}
		if from != c.To {
			store.ChangeEdges(t.Context(), side, from, []storage.EdgeChange{c}, storage.ChangeOptions{}) // some are not allowed
		}
	}
}
