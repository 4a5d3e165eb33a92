package program_test

import (
	"fmt"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/kithtest"
)

// The next version migrates a store of this one: two programs are killed while they fill a table, then two run at once and come to the
// end, with every user filled and every migration recorded once. This version does not start on the new tables.
func TestTheNextVersionMigrates(t *testing.T) {
	t.Parallel()
	next := kithtest.Next(t)
	onEachStore(t, func(t *testing.T, make func(testing.TB, int) []database) {
		shards := laidOut(t, make(t, 2)[:1]...)
		const users = 10_000
		for first := 1; first <= users; first += 1000 {
			var rows []string
			for id := first; id < first+1000; id++ {
				rows = append(rows, fmt.Sprintf("(%d, 'old_%d', 'Jörg', 1, 1)", id, id))
			}
			shards[0].exec(t, "INSERT INTO users (user_id, handle, name, created_at, updated_at) VALUES "+strings.Join(rows, ", "))
		}
		options := []kithtest.Option{next, kithtest.Args("migrate", "--store", location(shards...))}
		db := shards[0].open(t)
		notes := func() (n int) {
			_ = db.QueryRow("SELECT COUNT(*) FROM next_note").Scan(&n) // there is no table at first
			return n
		}
		filled := 0
		for range 2 {
			running := kithtest.Launch(t, options...)
			if shards[0].driver == "mysql" { // on SQLite the fill is one transaction, and what is killed has never been
				running.Until(t, "notes", func() bool { return notes() > filled })
			}
			running.Kill(t)
			filled = notes()
			check.That(t, filled != users, "the fill was not killed on its way")
			t.Logf("killed with %d of %d notes", filled, users)
		}
		first, second := kithtest.Launch(t, options...), kithtest.Launch(t, options...)
		for _, c := range []*kithtest.Command{first, second} {
			end := c.Wait(t)
			check.That(t, end.Code == 0 && strings.HasSuffix(end.Stdout, "  version 3\n"), "%+v", end)
		}
		check.Equal(t, "notes", total(t, "SELECT COUNT(*) FROM next_note WHERE note = 'note of Jörg'", shards...), users)
		check.Equal(t, "migrations that are recorded", shards[0].text(t, "SELECT COUNT(*) FROM kith_migrations WHERE version_id > 0"), "3")
		refused(t, migrate(t, shards...), "--store (KITH_STORE): ", "its tables are at version 3, this program knows 1: start a newer one")
	})
}
