package sqlstore_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/doctor"
	"kith/storage/sqlstore"
)

// A database with tables of somebody else is refused, and nothing is made there.
func TestForeignDatabasesAreRefused(t *testing.T) {
	t.Parallel()
	refused := func(t *testing.T, db *sql.DB, location, tables string) {
		t.Helper()
		if _, err := db.Exec("CREATE TABLE users (id INTEGER PRIMARY KEY)"); err != nil {
			t.Fatal(err)
		}
		cfg := sqlstore.Config{Location: location}
		store, err := sqlstore.Open(t.Context(), cfg)
		if err == nil {
			store.Close()
		}
		if !errors.Is(err, storage.ErrLayout) || !strings.Contains(err.Error(), "not Kith's (users)") || strings.Contains(err.Error(), "\n") {
			t.Errorf("opening it: %v", err)
		}
		if found := sqlstore.Examine(t.Context(), cfg, "", nil); found.Count(doctor.Fail) != 1 {
			t.Errorf("doctor: %+v", found)
		}
		var n int
		if err := db.QueryRow(tables).Scan(&n); err != nil || n != 1 {
			t.Errorf("%d tables, %v", n, err)
		}
	}
	t.Run("SQLite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "theirs.db")
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		refused(t, db, "sqlite:"+path, "SELECT COUNT(*) FROM sqlite_master")
	})
	t.Run("MySQL", func(t *testing.T) {
		dsn := testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0]
		db, err := sql.Open("mysql", dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		refused(t, db, "mysql:"+dsn, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()")
	})
}

// A store that has to exist is not made.
func TestStoresThatMustExist(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "typo.db")
	for _, location := range []string{"sqlite:" + path, "mysql:" + testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0]} {
		for _, made := range []bool{false, true} {
			if made {
				store, err := sqlstore.Open(t.Context(), sqlstore.Config{Location: location})
				if err != nil || !store.Made() {
					t.Fatal(err, "or it is not said that it was made")
				}
				store.Close()
			}
			store, err := sqlstore.Open(t.Context(), sqlstore.Config{Location: location, MustExist: true})
			if err == nil {
				if store.Made() {
					t.Error("it was made before")
				}
				store.Close()
			}
			if made != (err == nil) || err != nil && !strings.Contains(err.Error(), "there is no store at ") {
				t.Errorf("%s, made %t: %v", location, made, err)
			}
			if _, err := os.Stat(path); !made && strings.HasPrefix(location, "sqlite") && err == nil {
				t.Error("the file was made")
			}
		}
	}
}
