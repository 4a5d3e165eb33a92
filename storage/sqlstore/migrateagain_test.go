package sqlstore_test

import (
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
)

// On a server each statement of a migration commits by itself, so a crash may come between a
// statement and the record that it has run. So all statements are run again, over tables that have rows.
// (SQLite commits a migration together with its record.)
func TestMigrationsMayRunAgain(t *testing.T) {
	dsns := testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)
	user := storage.User{
		ID: 1, Handle: "ada", Name: "Ada", CreatedAt: 1e15, UpdatedAt: 1e15,
		FollowersVisibility: storage.ToNobody, Undiscoverable: true,
	}
	first := open(t, mysql(dsns))
	must.OK(t, first.CreateUsers(t.Context(), []storage.User{user})[0].Err)
	last, err := first.Migrations(t.Context())
	must.OK(t, err)
	db := connect(t, dsns[0])
	// A program that was killed at the very start has left the table of versions without a row.
	for _, forget := range []string{"DELETE FROM kith_migrations WHERE version_id > 0", "DELETE FROM kith_migrations"} {
		for _, undo := range []string{forget, "DROP TABLE kith_secrets"} {
			_, err := db.ExecContext(t.Context(), undo)
			must.OK(t, err)
		}
		store := open(t, mysql(dsns))
		r := storage.UserLookups.Read(t.Context(), store, 1)[0]
		check.That(t, r.Err == nil && r.Value == user, "%+v", r)
		now, err := store.Migrations(t.Context())
		check.That(t, err == nil && now[0].Version == last[0].Version, "%+v, %v, was %+v", now, err, last)
	}
}
