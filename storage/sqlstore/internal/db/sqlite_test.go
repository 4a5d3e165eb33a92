package db

import (
	"path/filepath"
	"testing"
	"testing/synctest"

	"kith/internal/must"
)

// A goroutine that is left would be a deadlock at the end of the bubble.
func TestAClosedFileLeavesNothingRunning(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kith.db")
	synctest.Test(t, func(t *testing.T) {
		d, err := Open(t.Context(), Config{Location: "sqlite:" + path})
		must.OK(t, err)
		must.OK(t, d.Close())
	})
}
