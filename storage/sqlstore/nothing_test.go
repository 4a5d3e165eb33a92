package sqlstore

import (
	"path/filepath"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// TestNothingIsWritten: writes of no rows have no results.
func TestNothingIsWritten(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Config{Location: "sqlite:" + filepath.Join(t.TempDir(), "kith.db"), StatementTimeout: time.Minute})
	must.OK(t, err)
	defer s.Close()
	ctx := t.Context()
	results := len(s.Apply(ctx, storage.Forward, nil, storage.IfNewer)) + len(s.RepairInverse(ctx, nil)) +
		len(s.Restore(ctx, storage.Restored{}))
	check.Equal(t, "results", results, 0)
}
