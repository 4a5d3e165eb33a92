package program_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
)

// A store gets a second shard, on its own server. Rows that are lost there are found by the mode that reads logs, although
// its settings name only the first shard.
func TestIncrementalReadsTheLogOfAnAddedShard(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, make func(testing.TB, int) []database) {
		shards := make(t, 2)
		if shards[0].driver == "mysql" {
			testenv.NeedsBinlog(t)
		}
		first := kithtest.Args("--store", location(shards[0]))
		run := func(args ...string) string {
			t.Helper()
			return kithtest.Ends(t, 0, kithtest.Args(args...), first).Stdout
		}
		incremental := func() (r struct {
			Begun           []string
			Found, Repaired map[string]int
		}) {
			t.Helper()
			must.OK(t, json.Unmarshal([]byte(run("reconcile", "incremental", "--repair", "--output=json", "--window=50ms")), &r))
			return r
		}
		var edges strings.Builder
		for id := 1; id <= 100; id++ {
			fmt.Fprintf(&edges, "%d %d\n", id, id%100+1)
		}
		file := written(t, "edges.txt", edges.String())
		run("import", file)
		check.Equal(t, "scans begun at first", len(incremental().Begun), 1)
		run("shards", "add", plain(shards[1]))
		// The log of a server that is new to the mode is read from now on, a relation_log from its beginning.
		r := incremental()
		check.That(t, len(r.Begun) == map[string]int{"mysql": 1}[shards[0].driver] && len(r.Found) == 0, "after the shard has been added: %+v", r)
		run("shards", "split", "--from", "0", "--to", "1", "--keep", "2s")

		s := opened(t, shards[:1])
		var there []storage.UserID
		for id := storage.UserID(1); id <= 100; id++ {
			if s.ShardOf(id) == 1 {
				there = append(there, id)
			}
		}
		change := storage.EdgeChange{To: there[7], Type: storage.Following, At: storage.MicrosOf(time.Now())}
		must.That(t, must.Value(t, s.ChangeEdges(t.Context(), storage.Forward, there[0], []storage.EdgeChange{change}, storage.ChangeOptions{})[0]).Changed, "nothing changed")
		r = incremental()
		check.That(t, r.Found["missing"] == 1 && r.Repaired["missing"] == 1 && len(r.Begun) == 0, "an inverse row is lost: %+v", r)
		row := storage.EdgeLookups[storage.Inverse].Read(t.Context(), s, storage.Pair{From: there[0], To: there[7]})[0]
		check.Equal(t, "the row afterwards", row.Value.Type, storage.Following)
		r = incremental()
		check.That(t, len(r.Found) == 0 && len(r.Begun) == 0, "once more: %+v", r)
		run("reconcile", "full", "--max-load=1", "--window=50ms")
	})
}
