package sqlstore_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
	"kith/storage/storagetest"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// generous is a time limit that a busy machine does not reach.
const generous = 30 * time.Second

func TestConformanceSQLite(t *testing.T) {
	for _, shards := range []int{1, 4} {
		t.Run(fmt.Sprintf("%d shards", shards), func(t *testing.T) {
			t.Parallel()
			storagetest.Run(t, func(t *testing.T) storage.Store {
				return open(t, sqlite(t, shards))
			})
		})
	}
}

func TestConformanceMariaDB(t *testing.T) {
	servers := testenv.SharedMariaDB(t, 2)
	storagetest.Run(t, func(t *testing.T) storage.Store {
		return open(t, mysql(servers.FreshDatabases(t, 2)))
	})
}

// sqlite is the location of a new store of so many files.
func sqlite(t testing.TB, shards int) string {
	paths := make([]string, shards)
	for i := range paths {
		paths[i] = filepath.Join(t.TempDir(), fmt.Sprintf("kith%d.db", i))
	}
	return "sqlite:" + strings.Join(paths, ";")
}

func mysql(dsns []string) string { return "mysql:" + strings.Join(dsns, ";") }

func open(t testing.TB, location string) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), sqlstore.Config{Location: location, StatementTimeout: generous})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
