package sqlstore_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"kith/internal/testenv"
	"kith/storage"
)

// The users of a store of an older version get their words. A fill that was killed after some of its steps, before the migration was
// recorded, continues behind the last user who has words.
func TestUsersOfAnOlderVersionGetTheirWords(t *testing.T) {
	dsns := testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)
	file := sqlite(t, 1)
	for location, driver := range map[string][2]string{
		mysql(dsns): {"mysql", dsns[0]},
		file:        {"sqlite", strings.TrimPrefix(file, "sqlite:")},
	} {
		t.Run(driver[0], func(t *testing.T) {
			const n = 1000
			var users []storage.User
			for id := range storage.UserID(n) {
				users = append(users, storage.User{ID: id + 1, Handle: fmt.Sprintf("user_%d", id+1), Name: "Ünal Oldtimer", CreatedAt: 1e15, UpdatedAt: 1e15})
			}
			first := open(t, location)
			for _, r := range first.CreateUsers(t.Context(), users) {
				if r.Err != nil {
					t.Fatal(r.Err)
				}
			}
			db, err := sql.Open(driver[0], driver[1])
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			older := []string{"DELETE FROM kith_migrations WHERE version_id >= 109"}
			for _, added := range []string{"users DROP COLUMN locked", "users DROP COLUMN attributes", "post DROP COLUMN attributes", "edge_marks DROP COLUMN attributes", "following DROP COLUMN first_at", "user_states DROP COLUMN suspended_at"} {
				older = append(older, "ALTER TABLE "+added) // of later migrations, which SQLite cannot run again
			}
			for upTo, missing := range map[int]int{0: 0, 450: 2} { // of those that it has come to, the second fill looks at nobody again
				for _, text := range append(older, fmt.Sprintf("DELETE FROM user_words WHERE user_id > %d OR user_id <= %d", upTo, missing)) {
					if _, err := db.ExecContext(t.Context(), text); err != nil {
						t.Fatal(err)
					}
				}
				store := open(t, location)
				for _, prefix := range []string{"unal", "oldtimer", "user_"} {
					ids, err := store.WithWord(t.Context(), prefix, 2*n)
					if err != nil || len(ids) != n-missing {
						t.Errorf("%d users with %q, %v: want %d", len(ids), prefix, err, n-missing)
					}
				}
				for _, text := range append(older, "DELETE FROM user_words") {
					if _, err := db.ExecContext(t.Context(), text); err != nil {
						t.Fatal(err)
					}
				}
				open(t, location)
			}
		})
	}
}
