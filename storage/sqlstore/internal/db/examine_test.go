package db

import (
	"database/sql"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage/doctor"
)

// TestAShardThatIsLeftOutIsMissed: who leaves a database out of KITH_STORE hears how many there are, as from every other command.
func TestAShardThatIsLeftOutIsMissed(t *testing.T) {
	dir := t.TempDir()
	files := []string{filepath.Join(dir, "0.db"), filepath.Join(dir, "1.db"), filepath.Join(dir, "2.db")}
	for scheme, addresses := range map[string][]string{"sqlite:": files, "mysql:": testenv.SharedMariaDB(t, 1).FreshDatabases(t, 3)} {
		d, err := Open(t.Context(), Config{Location: scheme + strings.Join(addresses, ";")})
		must.OK(t, err)
		must.OK(t, d.Close())
		all, shards := Examine(t.Context(), Config{Location: scheme + strings.Join(addresses[:2], ";")}, func(*sql.DB) {})
		failed := slices.DeleteFunc(all, func(f doctor.Finding) bool { return f.Level != doctor.Fail || f.Check != "layout" })
		check.That(t, len(failed) == 1 && failed[0].Says == "the store has 3 shards, 2 are given" && len(shards) == 2, "%s %d shards, %+v", scheme, len(shards), failed)
	}
}
