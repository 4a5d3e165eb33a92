package program_test

import (
	"fmt"
	"strings"
	"testing"

	"kith/internal/kithtest"
)

// The migration that gives the users of an older version their words is killed on its way, twice, and then runs to its end: every user
// has its words, and a search finds the first and the last of them.
func TestAKilledMigrationOfWordsGoesOn(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, make func(testing.TB, int) []database) {
		shards := laidOut(t, make(t, 2)[:1]...)
		const users, words = 40_000, 4 // the handle, its two parts, and the name
		for first := 1; first <= users; first += 1000 {
			var rows []string
			for id := first; id < first+1000; id++ {
				rows = append(rows, fmt.Sprintf("(%d, 'old_%d', 'Jörg', '', '', '', 1, 1)", id, id))
			}
			shards[0].exec(t, "INSERT INTO users (user_id, handle, name, bio, avatar_url, password_hash, created_at, updated_at) VALUES "+strings.Join(rows, ", "))
		}
		shards[0].exec(t, "DELETE FROM kith_migrations WHERE version_id >= 109")
		if shards[0].driver == "sqlite" { // it has no ADD COLUMN IF NOT EXISTS, by which a migration could run again
			for _, added := range []string{"users DROP COLUMN attributes", "post DROP COLUMN attributes", "edge_marks DROP COLUMN attributes", "following DROP COLUMN first_at", "user_states DROP COLUMN suspended_at"} {
				shards[0].exec(t, "ALTER TABLE "+added)
			}
		}

		if shards[0].driver == "sqlite" { // which records a migration together with its statements
			shards[0].exec(t, "ALTER TABLE users DROP COLUMN locked")
		}
		filled := func() int64 { return total(t, "SELECT COUNT(*) FROM user_words", shards...) }
		if shards[0].driver == "mysql" { // on SQLite the fill is one transaction, and what is killed has never been
			for kill := range int64(2) {
				running := kithtest.Launch(t, kithtest.Args("migrate", "--store", location(shards...)))
				running.Until(t, "words", func() bool { return filled() > users*words*(kill+1)/5 })
				if end := running.Kill(t); end.Code != -1 {
					t.Fatalf("ended before it was killed: %+v", end)
				}
				t.Logf("killed with %d of %d words", filled(), users*words)
			}
		} else {
			running := kithtest.Launch(t, kithtest.Args("migrate", "--store", location(shards...)))
			running.Kill(t)
		}
		laidOut(t, shards...)
		if n := filled(); n != users*words {
			t.Errorf("%d words, want %d", n, users*words)
		}
		for id := range map[string]int{"old_1": 1, fmt.Sprint("old_", users): users} {
			if n := total(t, fmt.Sprintf("SELECT COUNT(*) FROM user_words WHERE word = '%s'", id), shards...); n != 1 {
				t.Errorf("%s has %d rows", id, n)
			}
		}
	})
}
