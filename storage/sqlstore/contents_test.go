package sqlstore_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/doctor"
	"kith/storage/sqlstore"
)

// A database with tables of somebody else is refused, and nothing is made there.
func TestForeignDatabasesAreRefused(t *testing.T) {
	t.Parallel()
	refused := func(t *testing.T, db *sql.DB, location, made, tables string) {
		t.Helper()
		_, err := db.Exec(made)
		must.OK(t, err)
		cfg := sqlstore.Config{Location: location}
		store, err := sqlstore.Open(t.Context(), cfg)
		if err == nil {
			store.Close()
		}
		if !errors.Is(err, storage.ErrLayout) || !strings.Contains(err.Error(), "not Kith's (users)") || strings.Contains(err.Error(), "\n") {
			t.Errorf("opening it: %v", err)
		}
		found, _ := sqlstore.Examine(t.Context(), cfg, nil)
		check.That(t, found.Count(doctor.Fail) == 1, "doctor: %+v", found)
		var n int
		err = db.QueryRow(tables).Scan(&n)
		check.That(t, err == nil && n == 1, "%d tables, %v", n, err)
	}
	const table, view = "CREATE TABLE users (id INTEGER PRIMARY KEY)", "CREATE VIEW users AS SELECT 1"
	t.Run("only views", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "theirs.db")
		refused(t, connect(t, path), "sqlite:"+path, view, "SELECT COUNT(*) FROM sqlite_master")
	})
	t.Run("SQLite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "theirs.db")
		refused(t, connect(t, path), "sqlite:"+path, table, "SELECT COUNT(*) FROM sqlite_master")
	})
	t.Run("MySQL", func(t *testing.T) {
		dsn := testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0]
		refused(t, connect(t, dsn), "mysql:"+dsn, table, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()")
	})
}

// A server that goes away while it is looked whether there is a store is named.
func TestWhoGoesAwayAtTheStartIsNamed(t *testing.T) {
	t.Parallel()
	dsn := testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0]
	cfg, err := driver.ParseDSN(dsn)
	must.OK(t, err)
	link := testenv.NewLink(t, cfg.Addr)
	cfg.Net, cfg.Addr = "tcp", link.Addr
	asked := link.SilenceAt("kith_migrations")
	go func() { <-asked; link.Cut() }()
	_, err = sqlstore.Open(t.Context(), sqlstore.Config{Location: "mysql:" + cfg.FormatDSN()})
	check.Says(t, "opening it", err, "shard 0: "+link.Addr)
}

// A store that has to exist is not made.
func TestStoresThatMustExist(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "typo.db")
	for _, location := range []string{"sqlite:" + path, "mysql:" + testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0]} {
		for _, made := range []bool{false, true} {
			if made {
				store, err := sqlstore.Open(t.Context(), sqlstore.Config{Location: location})
				must.That(t, err == nil && store.Made(), "%v or it is not said that it was made", err)
				store.Close()
			}
			store, err := sqlstore.Open(t.Context(), sqlstore.Config{Location: location, MustExist: true})
			if err == nil {
				check.That(t, !store.Made(), "it was made before")
				store.Close()
			}
			check.That(t, made == (err == nil) && (err == nil || strings.Contains(err.Error(), "there is no store at ")), "%s, made %t: %v", location, made, err)
			_, err = os.Stat(path)
			check.That(t, made || !strings.HasPrefix(location, "sqlite") || err != nil, "the file was made")
		}
	}
}

// If there is a store, an empty database among its shards is refused, and nothing is made there: its address is wrong, or it has
// lost its data.
func TestEmptyShardsAreRefused(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	dsns := testenv.SharedMariaDB(t, 1).FreshDatabases(t, 3)
	for _, of := range []struct{ scheme, first, second, typo string }{
		{"sqlite:", filepath.Join(folder, "a.db"), filepath.Join(folder, "b.db"), filepath.Join(folder, "typo.db")},
		{"mysql:", dsns[0], dsns[1], dsns[2]},
	} {
		store, err := sqlstore.Open(t.Context(), sqlstore.Config{Location: of.scheme + of.first + ";" + of.second})
		must.OK(t, err)
		store.Close()
		for _, location := range []string{of.scheme + of.first + ";" + of.typo, of.scheme + of.typo + ";" + of.second} {
			for _, mustExist := range []bool{false, true} {
				cfg := sqlstore.Config{Location: location, MustExist: mustExist}
				store, err := sqlstore.Open(t.Context(), cfg)
				if err == nil {
					store.Close()
				}
				if !errors.Is(err, storage.ErrLayout) || !strings.Contains(err.Error(), "its address is wrong, or it is lost and not restored yet") || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s, must exist %t: %v", location, mustExist, err)
				}
				if found, _ := sqlstore.Examine(t.Context(), cfg, nil); !slices.ContainsFunc(found, func(f doctor.Finding) bool {
					return f.Level == doctor.Fail && f.Check == "layout" && strings.Contains(f.Says, "it is empty")
				}) {
					t.Errorf("doctor: %+v", found)
				}
			}
		}
		if of.scheme == "sqlite:" {
			_, err := os.Stat(of.typo)
			check.That(t, err != nil, "the file was made")
			continue
		}
		check.Equal(t, "tables were made", tablesOf(t, of.typo), 0)
	}
}

// A start while a shard that was added has been emptied, to be restored, makes no table there: kith_admitted would let gateways
// write before the rows are back.
func TestEmptiedShardsAreLeftAlone(t *testing.T) {
	testenv.NotOn(t, "a store on TiDB is one shard", "tidb")
	t.Parallel()
	servers := testenv.SharedMariaDB(t, 1)
	dsns := servers.FreshDatabases(t, 2)
	cfg := sqlstore.Config{Location: "mysql:" + dsns[0]}
	store, err := sqlstore.Open(t.Context(), cfg)
	must.OK(t, err)
	added, err := driver.ParseDSN(dsns[1])
	must.OK(t, err)
	_, err = store.AddShard(t.Context(), added.Addr+"/"+added.DBName)
	check.Says(t, "an address as kith shards shows it", err, "the address of a shard is tcp(host:port)/database")
	_, err = store.AddShard(t.Context(), "tcp("+added.Addr+")/"+added.DBName)
	store.Close()
	must.OK(t, err)
	servers[0].Exec(t, "DROP DATABASE "+added.DBName)
	servers[0].CreateDatabase(t, added.DBName)
	if store, err = sqlstore.Open(t.Context(), cfg); err == nil {
		store.Close()
	}
	n := tablesOf(t, dsns[1])
	check.That(t, errors.Is(err, storage.ErrLayout) && n == 0, "%d tables were made: %v", n, err)
}

// tablesOf counts the tables of a database.
func tablesOf(t *testing.T, dsn string) (n int) {
	t.Helper()
	must.OK(t, connect(t, dsn).QueryRow("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()").Scan(&n))
	return n
}
