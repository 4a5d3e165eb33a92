package exporter

import (
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kith/files/graphfile"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// While one user renames itself and then follows everybody, or nobody, in one transaction, again and
// again, each export has all of the follows or none. They are those of the time that the name says, or of the
// time before. Its pages are so short that each page would see another step.
func TestFilesOfAShardAreOfOneMoment(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { momentsOf(t, "sqlite:"+filepath.Join(t.TempDir(), "kith.db")) })
	t.Run("mariadb", func(t *testing.T) { momentsOf(t, "mysql:"+testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0]) })
}

const followed = 30

func momentsOf(t *testing.T, location string) {
	store := opened.Store(t, sqlstore.Config{Location: location})
	var users []storage.User
	for id := storage.UserID(1); id <= 1+followed; id++ {
		users = append(users, storage.User{ID: id, Handle: fmt.Sprintf("user_%d", id), Name: "0"})
	}
	must.All(t, store.CreateUsers(t.Context(), users))
	steps, stop, stopped := 0, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				steps++
				step(t, store, steps)
			}
		}
	}()
	seen := map[int]bool{}
	for export := 0; export < 300 && len(seen) < 10 && !t.Failed(); export++ {
		dir := t.TempDir()
		mustExport(t, store, Config{Dir: dir, Page: 2})
		seen[checkMoment(t, dir)] = true
	}
	close(stop)
	<-stopped
	check.That(t, len(seen) >= 10, "the exports came across %d of %d steps", len(seen), steps)
}

// step renames user 1 to n, and then makes it follow everybody or nobody.
func step(t *testing.T, store *sqlstore.Store, n int) {
	name := fmt.Sprint(n)
	_, _, err := store.UpdateProfile(t.Context(), 1, storage.ProfileChange{Name: &name}, storage.Micros(n))
	check.That(t, err == nil, "%v", err)
	var changes []storage.EdgeChange
	for id := storage.UserID(2); id <= 1+followed; id++ {
		changes = append(changes, storage.EdgeChange{To: id, Type: []storage.EdgeType{storage.None, storage.Following}[n%2], At: storage.Micros(n)})
	}
	for _, r := range store.ChangeEdges(t.Context(), storage.Forward, 1, changes, storage.ChangeOptions{}) {
		check.That(t, r.Err == nil, "%v", r.Err)
	}
}

// checkMoment reads an export's step from the name of user 1, and checks that the follows fit it.
func checkMoment(t *testing.T, dir string) (n int) {
	t.Helper()
	record := csv.NewReader(strings.NewReader(text(t, dir, graphfile.Users)))
	records, err := record.ReadAll()
	must.OK(t, err)
	_, err = fmt.Sscan(records[1][2], &n)
	must.OK(t, err)
	times := map[storage.Micros]int{}
	rows := map[graphfile.Kind]int{}
	for _, r := range []graphfile.Kind{graphfile.Follows, graphfile.Ended} {
		for line := range strings.Lines(text(t, dir, r)) {
			if l, found, _ := graphfile.ParseLine([]byte(line)); found {
				rows[r]++
				times[l.Time]++
			}
		}
	}
	all := rows[graphfile.Follows] + rows[graphfile.Ended]
	if all != 0 && all != followed || rows[graphfile.Follows] != 0 && rows[graphfile.Ended] != 0 || len(times) > 1 {
		t.Errorf("step %d: %v rows, of the times %v", n, rows, times)
	}
	for at := range times {
		check.That(t, int(at) == n || int(at) == n-1, "the follows are of step %d, the name of step %d", at, n)
	}
	return n
}

// text returns the content of the file of a kind, "" if there is no file.
func text(t *testing.T, dir string, kind graphfile.Kind) string {
	t.Helper()
	file, err := os.Open(filepath.Join(dir, fileName(kind, 0, true)))
	if os.IsNotExist(err) {
		return ""
	}
	must.OK(t, err)
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	must.OK(t, err)
	all, err := io.ReadAll(unzipped)
	must.OK(t, err)
	return string(all)
}
