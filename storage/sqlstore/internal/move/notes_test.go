package move_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"kith/internal/must"
	"kith/internal/storagetest"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
	"kith/storage/sqlstore/internal/db"
	"kith/storage/sqlstore/internal/move"
)

// TestLongEveryWriteIsNoted: while all buckets leave, the store keeps its promises. Its notes are enough
// to make the other shard's rows correct: nothing else is ever copied here.
func TestLongEveryWriteIsNoted(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	storagetest.Run(t, func(t *testing.T) storage.Store {
		dir := t.TempDir()
		location := fmt.Sprintf("sqlite:%s;%s", filepath.Join(dir, "a.db"), filepath.Join(dir, "b.db"))
		d, err := db.Open(t.Context(), db.Config{Location: location, StatementTimeout: time.Minute})
		must.OK(t, err)
		plans := []move.Plan{
			{Buckets: storage.EvenBuckets(0, 2), From: 0, To: 1},
			{Buckets: storage.EvenBuckets(1, 2), From: 1, To: 0},
		}
		for _, p := range plans {
			must.OK(t, move.Note(t.Context(), d, p))
		}
		s, err := sqlstore.Open(t.Context(), sqlstore.Config{Location: location, StatementTimeout: time.Minute})
		must.OK(t, err)
		t.Cleanup(func() {
			defer d.Close()
			s.Close()
			for _, p := range plans {
				if n, err := move.Unnoted(context.Background(), d, p); err != nil || n > 0 {
					t.Errorf("%s: %d rows had been written without a note (%v)", p, n, err)
				}
			}
		})
		return s
	})
}
