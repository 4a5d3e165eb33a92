package program_test

import (
	"net/http"
	"strings"
	"testing"

	"kith/internal/kithtest"
	"kith/internal/testenv"
)

// A store grows to two shards and becomes one again, while a gateway serves it. The gateway then closes its
// connections to the second database.
func TestAStoreGrowsAndShrinks(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, make func(testing.TB, int) []database) {
		testenv.NotOn(t, "a store there is one shard", "tidb")
		shards := make(t, 2)
		settings := kithtest.Args("--store", location(shards[0]), "--redundancy", "sync")
		g := kithtest.Start(t, settings, kithtest.Args("--jwt-secret", secret))
		run := func(code int, say string, args ...string) {
			t.Helper()
			end := kithtest.Run(t, kithtest.Args(args...), settings)
			if end.Code != code || code != 0 && strings.Count(end.Stderr, "\n") != 1 || !strings.Contains(end.Stdout+end.Stderr, say) {
				t.Fatalf("kith %v ended with %d, want %q\n%s%s", args, end.Code, say, end.Stdout, end.Stderr)
			}
		}
		run(1, "it can be replaced, not removed", "shards", "remove", "--shard", "0")
		run(1, "there is no shard 1", "shards", "remove", "--shard", "1")
		run(0, "is shard 1", "shards", "add", plain(shards[1]))
		run(0, "rows copied", "shards", "move", "--from", "0", "--to", "1", "--buckets", "900-1023", "--keep", "2s", "--max-load", "1")
		run(1, "has buckets 900–1023", "shards", "remove", "--shard", "1")
		run(0, "rows copied", "shards", "move", "--from", "1", "--to", "0", "--buckets", "900-1023", "--keep", "2s", "--max-load", "1")
		run(0, "is not needed any more", "shards", "remove", "--shard", "1", "--keep", "2s")
		shards[1].remove(t)
		tokenOf(t, g, "", `register(handle: "person", name: "P", password: "correct horse")`)
		g.Until(t, "it is ready", func() bool { status, _ := g.Get(t, "/readyz"); return status == http.StatusOK })
		run(0, "1024 buckets: 0–1023\n", "shards")
	})
}
