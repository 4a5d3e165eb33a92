package program_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
)

// A terminal obeys control characters in the names of a store's files, so that no command writes them as they are.
func TestNamesOfStoresAreEscaped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, second, list := filepath.Join(dir, "a\x1b[2Jb.db"), filepath.Join(dir, "c\x1b]0;t\x07\u009b\r\u202e.db"), filepath.Join(dir, "list.txt")
	must.OK(t, os.WriteFile(list, []byte("1 2\n"), 0o600))
	store := kithtest.Args("--store", "sqlite:"+first, "--redundancy", "sync")
	check := func(text, name string) {
		t.Helper()
		check.That(t, !strings.ContainsAny(text, "\x1b\x07\u009b\u202e\r") && strings.Contains(text, name), "it says %q, want %q in it", text, name)
	}
	// A gateway names the file of a store that has one only.
	check(kithtest.Start(t, kithtest.Args("--store", "sqlite:"+filepath.Join(dir, "d\x1b[2Jd.db"), "--redundancy", "sync")).Stdout(), `the graph in `+dir+`/d\u001b[2Jd.db`)
	for _, tt := range []struct{ args, name string }{
		{"import|" + list, `a\u001b[2Jb.db was made`},
		{"migrate", `a\u001b[2Jb.db  version`},
		{"shards|add|" + second, `c\u001b]0;t\u0007\u009b\u000d\u202e.db is shard 1`},
		{"shards|add|" + second, `c\u001b]0;t\u0007\u009b\u000d\u202e.db is shard 1`},
		{"shards", `c\u001b]0;t\u0007\u009b\u000d\u202e.db  0 buckets`},
		{"doctor", `a\u001b[2Jb.db`},
	} {
		end := kithtest.Run(t, kithtest.Args(strings.Split(tt.args, "|")...), store)
		check(end.Stdout+end.Stderr, tt.name)
	}
	check(kithtest.Start(t, store).Stdout(), "the graph on 2 sqlite shard(s)")
}
