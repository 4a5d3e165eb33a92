package sqlstore_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/doctor"
	"kith/storage/sqlstore"
)

// An added shard is one database for all processes, whether their locations name it or not. A copy of it takes its place once it
// is readmitted: then the former one takes no writes, and processes that have it open say so.
func TestAnAddedShardIsOneDatabase(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := func(name string) string { return filepath.Join(folder, name) }
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		must.OK(t, os.Symlink(file("b.db"), file("link to b")))
		oneDatabase(t, "sqlite", []string{file("a.db"), file("b.db"), file("c.db")}, file("link to b"), func(t *testing.T, from, to string) {
			execOn(t, from, "VACUUM INTO '"+to+"'")
		}, func(t *testing.T, address string) {
			must.OK(t, os.Remove(address))
		})
	})
	t.Run("mysql", func(t *testing.T) {
		t.Parallel()
		testenv.NotOn(t, "a store there is one shard", "tidb")
		server := testenv.SharedMariaDB(t, 1)[0]
		dsns := testenv.Servers{server}.FreshDatabases(t, 3)
		bySocket := strings.Replace(dsns[1], "tcp("+server.Addr()+")", "unix("+server.Socket()+")", 1)
		oneDatabase(t, "mysql", dsns, bySocket, func(t *testing.T, from, to string) {
			for _, table := range column(t, connect(t, from), "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()") {
				there := to[strings.LastIndex(to, "/")+1:] + "." + table
				execOn(t, from, "CREATE TABLE "+there+" LIKE "+table)
				if strings.HasPrefix(table, "kith_") { // nobody has been registered
					execOn(t, from, "INSERT INTO "+there+" SELECT * FROM "+table)
				}
			}
		}, func(t *testing.T, address string) {
			execOn(t, address, "DROP DATABASE "+address[strings.LastIndex(address, "/")+1:])
		})
	})
}

// oneDatabase adds the second database to a store on the first one, by another name of it, too, and replaces it by the third one.
func oneDatabase(t *testing.T, driver string, addresses []string, alias string, copied func(t *testing.T, from, to string), lost func(t *testing.T, address string)) {
	a, b, c := addresses[0], addresses[1], addresses[2]
	running := open(t, driver+":"+a)
	_, err := running.AddShard(t.Context(), b)
	must.OK(t, err)
	_, err = running.Move(t.Context(), half(0, 1), sqlstore.MoveConfig{Token: "mover", Keep: time.Millisecond})
	must.OK(t, err)
	copied(t, b, c)
	open(t, driver+":"+a+";"+alias) // the same database
	refused := func(location, says string, mayAnswer bool) {
		t.Helper()
		store, err := sqlstore.Open(t.Context(), sqlstore.Config{Location: location})
		if err == nil {
			store.Close()
		}
		if !errors.Is(err, storage.ErrLayout) || errors.Is(err, storage.ErrUnavailable) != mayAnswer || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "kith shards readmit 1") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", location, err)
		}
		if found, _ := sqlstore.Examine(t.Context(), sqlstore.Config{Location: location}, nil); !slices.ContainsFunc(found, func(f doctor.Finding) bool {
			return f.Level == doctor.Fail && f.Check == "layout" && strings.Contains(f.Says, "kith shards readmit 1")
		}) {
			t.Errorf("doctor: %+v", found)
		}
	}
	refused(driver+":"+a+";"+c, "is another database", false)

	there := storage.UserID(1)
	for running.ShardOf(there) != 1 {
		there++
	}
	register := func(s *sqlstore.Store) error {
		return s.Register(t.Context(), storage.User{ID: there, Handle: "h" + there.String(), Name: "N", CreatedAt: 1, UpdatedAt: 1}, "")
	}
	with, err := sqlstore.Open(t.Context(), sqlstore.Config{Location: driver + ":" + a + ";" + c, Readmits: true})
	must.OK(t, err)
	before, err := with.Served(t.Context(), 1)
	must.OK(t, err)
	must.OK(t, with.Readmit(t.Context(), 1))
	after, err := with.Served(t.Context(), 1)
	check.That(t, err == nil && after.Life == before.Life+1, "life %d after %d, %v", after.Life, before.Life, err)
	with.Close()
	// Before the process learns of it, too, nothing is written to the former database.
	if err := register(running); !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), "nothing is written there before kith shards readmit") {
		t.Errorf("written to the former database: %v", err)
	}
	_ = running.Refresh(t.Context())
	const says = "start it again, without the old address in KITH_STORE"
	err = register(running)
	check.That(t, errors.Is(err, storage.ErrUnavailable) && strings.Contains(err.Error(), says), "written to the former database: %v", err)
	r := storage.UserLookups.Read(t.Context(), running, there)[0]
	check.That(t, errors.Is(r.Err, storage.ErrUnavailable) && strings.Contains(r.Err.Error(), says), "read from the former database: %+v", r)
	health := running.Ping(t.Context())
	check.That(t, health[0].Err == nil && health[1].Err != nil, "%+v", health)
	for i, location := range []string{a, a + ";" + c} {
		s := open(t, driver+":"+location)
		if i == 0 {
			err := register(s)
			check.That(t, err == nil, "%v", err)
		}
		r := storage.UserLookups.Read(t.Context(), s, there)[0]
		check.That(t, r.Found, "%s: not what is in the new database: %+v", location, r)
		s.Close()
	}
	refused(driver+":"+a+";"+b, "is another database", false)

	lost(t, c) // then the store takes what is left, once somebody says so
	refused(driver+":"+a+";"+b, "is perhaps another database, as the former does not answer", true)
	with, err = sqlstore.Open(t.Context(), sqlstore.Config{Location: driver + ":" + a + ";" + b, Readmits: true})
	must.OK(t, err)
	must.OK(t, with.Readmit(t.Context(), 1))
	err = register(with)
	check.That(t, err == nil, "%v", err)
	with.Close()
	open(t, driver+":"+a)
}
