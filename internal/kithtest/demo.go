package kithtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"kith/internal/must"
)

// demos are the files of stores with the demo graph, by their number.
var demos struct {
	sync.Mutex
	files map[int][][]byte
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
			must.OK(t, os.WriteFile(path, made[i], 0o600))
		}
		return store
	}
	end := Start(t, Args("--demo", "--store", store)).Interrupt(t)
	must.That(t, end.Code == 0, "load the demo graph: %+v", end)
	files := make([][]byte, shards)
	for i, path := range paths {
		var err error
		files[i], err = os.ReadFile(path)
		must.OK(t, err)
		_, err = os.Stat(path + "-wal")
		must.That(t, err != nil, "the program has not folded its write-ahead log into the file: something still read when it ended")
	}
	if demos.files == nil {
		demos.files = map[int][][]byte{}
	}
	demos.files[shards] = files
	return store
}
