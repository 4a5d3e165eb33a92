package kithtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// demos are the files of stores with the demo graph, by their number.
var demos struct {
	sync.Mutex
	files map[int][]database
}

// DemoStore is a store of SQLite files that has the demo graph, as --store takes it. A test binary
// loads the graph once, which takes a second of processor time, and copies it for each test.
func DemoStore(t testing.TB, shards int) string {
	t.Helper()
	folder := t.TempDir()
	var paths []string
	for i := range shards {
		paths = append(paths, filepath.Join(folder, fmt.Sprintf("kith%d.db", i)))
	}
	store := "sqlite:" + strings.Join(paths, ";")
	demos.Lock()
	defer demos.Unlock()
	if made := demos.files[shards]; made != nil {
		for i, path := range paths {
			made[i].write(t, path)
		}
		return store
	}
	if end := Start(t, Args("--demo", "--store", store)).Interrupt(t); end.Code != 0 {
		t.Fatalf("load the demo graph: %+v", end)
	}
	files := make([]database, shards)
	for i, path := range paths {
		files[i] = readDatabase(t, path)
	}
	if demos.files == nil {
		demos.files = map[int][]database{}
	}
	demos.files[shards] = files
	return store
}

// database is a SQLite database that no process has open: its file and its write-ahead log, which stays if a process ends while
// something still reads.
type database struct{ file, log []byte }

func readDatabase(t testing.TB, path string) (d database) {
	t.Helper()
	var err error
	if d.file, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	if d.log, err = os.ReadFile(path + "-wal"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return d
}

func (d database) write(t testing.TB, path string) {
	t.Helper()
	for name, bytes := range map[string][]byte{path: d.file, path + "-wal": d.log} {
		if len(bytes) == 0 {
			continue
		}
		if err := os.WriteFile(name, bytes, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
