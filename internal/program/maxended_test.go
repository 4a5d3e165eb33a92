package program_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
)

// A shard that has lost its rows does not make a repair end their other sides, unless the operator says so.
func TestARepairEndsFewRows(t *testing.T) {
	t.Parallel()
	const follows = 3000
	folder := t.TempDir()
	var lines strings.Builder
	for i := range follows {
		fmt.Fprintf(&lines, "%d %d\n", 1+i%60, 100+i)
	}
	file := written(t, "follows.txt", lines.String())
	store := "--store=sqlite:" + filepath.Join(folder, "kith.db")
	kithtest.Ends(t, 0, kithtest.Args("import", store, file))
	db, err := sql.Open("sqlite", filepath.Join(folder, "kith.db"))
	must.OK(t, err)
	defer db.Close()
	_, err = db.Exec("DELETE FROM following")
	must.OK(t, err)
	followers := func() (n int) {
		must.OK(t, db.QueryRow("SELECT COUNT(*) FROM follower WHERE type = 1").Scan(&n))
		return n
	}
	repair := []string{"reconcile", "full", "--repair", "--window=1ms", "--max-load=1", store}
	kithtest.Run(t, kithtest.Args(repair...)).Fails(t, "a repair that ends everything", 1, "3000 rows of 3000 of shard 0 are missing")
	check.Equal(t, "rows that are left", followers(), follows)
	kithtest.Ends(t, 0, kithtest.Args(append(repair, "--max-ended=1")...))
	check.Equal(t, "rows that are left", followers(), 0)
}
