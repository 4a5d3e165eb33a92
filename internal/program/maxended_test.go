package program_test

import (
	"fmt"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/kithtest"
)

// A shard that has lost its rows does not make a repair end their other sides, unless the operator says so.
func TestARepairEndsFewRows(t *testing.T) {
	t.Parallel()
	const follows = 3000
	shard := newSQLite(t, 1)[0]
	var lines strings.Builder
	for i := range follows {
		fmt.Fprintf(&lines, "%d %d\n", 1+i%60, 100+i)
	}
	file := written(t, "follows.txt", lines.String())
	store := "--store=" + location(shard)
	kithtest.Ends(t, 0, kithtest.Args("import", store, file))
	shard.exec(t, "DELETE FROM following")
	followers := func() int64 { return total(t, "SELECT COUNT(*) FROM follower WHERE type = 1", shard) }
	repair := []string{"reconcile", "full", "--repair", "--window=1ms", "--max-load=1", store}
	kithtest.Run(t, kithtest.Args(repair...)).Fails(t, "a repair that ends everything", 1, "3000 rows of 3000 of shard 0 are missing")
	check.Equal(t, "rows that are left", followers(), follows)
	kithtest.Ends(t, 0, kithtest.Args(append(repair, "--max-ended=1")...))
	check.Equal(t, "rows that are left", followers(), 0)
}
