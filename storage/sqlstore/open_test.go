package sqlstore_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage/sqlstore"
)

// TestLockedFile: if another program keeps a file locked, it is not waited for again and again.
func TestLockedFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kith.db")
	other, err := sql.Open("sqlite", path)
	must.OK(t, err)
	defer other.Close()
	other.SetMaxOpenConns(1)
	for _, statement := range []string{"CREATE TABLE t (x)", "BEGIN EXCLUSIVE"} {
		_, err := other.Exec(statement)
		must.OK(t, err)
	}
	began := time.Now()
	_, err = sqlstore.Open(t.Context(), sqlstore.Config{Location: "sqlite:" + path})
	must.That(t, err != nil && strings.Contains(err.Error(), "locked"), "%v", err)
	check.Most(t, "the error came after", time.Since(began), 15*time.Second)
}
