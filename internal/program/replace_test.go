package program_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"kith/internal/kithtest"
	"kith/internal/testenv"
)

// The first server of a store is taken out of use while a gateway serves it. All buckets move to another
// shard, an empty database replaces shard 0, and the old one is removed. On servers the mode is binlog,
// and follows that were made shortly before are still on both sides in the end.
func TestTheFirstServerIsTakenOutOfUse(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, make func(testing.TB, int) []database) {
		testenv.NotOn(t, "a store there is one shard", "tidb")
		shards := make(t, 4) // the first of them is on one server
		old, second, third := shards[0], shards[1], shards[3]
		mode, follows := "sync", int64(0)
		if old.driver == "mysql" {
			mode = "binlog"
		}
		settings := func(d ...database) kithtest.Option {
			return kithtest.Args("--store", location(d...), "--redundancy", mode, "--jwt-secret", secret)
		}
		g := kithtest.Start(t, settings(old))
		run := func(code int, args ...string) kithtest.End {
			t.Helper()
			end := kithtest.Run(t, kithtest.Args(args...), kithtest.Args("--store", location(old), "--redundancy", mode))
			if end.Code != code || code != 0 && strings.Count(end.Stderr, "\n") != 1 {
				t.Fatalf("kith %v ended with %d\n%s%s", args, end.Code, end.Stdout, end.Stderr)
			}
			return end
		}
		people := 0
		join := func(g *kithtest.Gateway) string {
			t.Helper()
			people++
			return tokenOf(t, g, "", fmt.Sprintf(`register(handle: "person_%d", name: "P", password: "correct horse")`, people))
		}
		var me struct{ Viewer struct{ ID string } }
		dataAs(t, g, join(g), `{ viewer { id } }`, &me)
		first := me.Viewer.ID
		follow := func(g *kithtest.Gateway) {
			t.Helper()
			if _, text := askAs(t, g, join(g), `mutation { follow(userId: `+first+`) { changed } }`); !strings.Contains(text, `"changed":true`) {
				t.Fatal(text)
			}
			follows++
		}
		for range 5 {
			follow(g)
		}
		run(0, "shards", "add", plain(second))
		for say, args := range map[string][]string{
			"--shard: it is missing":           {"shards", "replace", plain(third)},
			"there is no shard 2":              {"shards", "replace", plain(third), "--shard", "2"},
			"has buckets 0–1023":               {"shards", "replace", plain(third), "--shard", "0"},
			"is shard 1 already":               {"shards", "replace", plain(second), "--shard", "0"},
			"--keep: it must be from 2s to 24": {"shards", "replace", plain(third), "--shard", "0", "--keep", "1s"},
		} {
			if end := run(1, args...); !strings.Contains(end.Stderr, say) {
				t.Errorf("kith %v says %q, want %q", args, end.Stderr, say)
			}
		}
		run(0, "shards", "move", "--from", "0", "--to", "1", "--buckets", "0-1023", "--keep", "2s", "--max-load", "1")
		follow(g)
		if out := run(0, "shards", "replace", plain(third), "--shard", "0", "--keep", "2s").Stdout; strings.Count(out, "\n") != 2 || !strings.Contains(out, "is not needed any more") {
			t.Errorf("kith shards replace says %q", out)
		}
		old.remove(t)

		follow(g)
		if status, text := g.Get(t, "/readyz"); status != http.StatusOK {
			t.Errorf("/readyz is %d: %s", status, text)
		}
		another := kithtest.Start(t, settings(third))
		follow(another)
		both := func() bool {
			return total(t, "SELECT COUNT(*) FROM following", second) == follows && total(t, "SELECT COUNT(*) FROM follower", second) == follows
		}
		g.Until(t, "all follows are on both sides", both)
	})
}

// plain is an address in the form in which it is given for an added shard.
func plain(d database) string {
	if _, behind, found := strings.Cut(d.address, "@"); found {
		address, _, _ := strings.Cut(behind, "?")
		return address
	}
	return d.address
}

// remove removes the database.
func (d database) remove(t testing.TB) {
	t.Helper()
	if d.driver == "sqlite" {
		for _, tail := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(d.address + tail); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
		return
	}
	_, name, _ := strings.Cut(plain(d), "/")
	d.exec(t, "DROP DATABASE `"+name+"`")
}
