package testenv

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Data returns the path of a real data set, "wiki-vote.txt.gz" or
// "expected/wiki-vote.pairs.jsonl", in the folder $KITH_TEST_DATA. The data are not part of the repository, so the test is
// skipped if the variable is not set, or they are absent, even under CI.
func Data(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("KITH_TEST_DATA")
	if dir == "" {
		t.Skipf("no data set %s: set KITH_TEST_DATA to the folder that holds it", name)
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
