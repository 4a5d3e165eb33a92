package testenv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Data returns the path of a real data set, "wiki-vote.txt.gz" or
// "expected/wiki-vote.pairs.jsonl". It looks in $KITH_TEST_DATA if that is set,
// else in ../shared/data beside the module. The data are not part of the repository, so the test is
// skipped if they are absent, even under CI.
func Data(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("KITH_TEST_DATA")
	if dir == "" {
		root, err := moduleRoot()
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(root, "..", "shared", "data")
	}
	path := filepath.Join(dir, filepath.FromSlash(name))
	switch _, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		t.Skipf("no data set %s: set KITH_TEST_DATA to the folder that holds %s", path, name)
	case err != nil:
		t.Fatal(err)
	}
	return path
}

// moduleRoot walks up from the working directory, which go test sets to the
// package's folder, to the folder of go.mod.
func moduleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find module root: no go.mod above %s", start)
		}
	}
}
