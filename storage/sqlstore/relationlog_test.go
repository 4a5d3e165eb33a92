package sqlstore

import (
	"errors"
	"fmt"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// A large write removes the oldest entries of the log, and no others.
func TestLargeWritesShortenTheLog(t *testing.T) {
	for _, large := range []bool{false, true} {
		s := openSmall(t, twoFiles(t), nil)
		shard := s.shards.Of(1)
		write := func(n int, at storage.Micros) {
			edges := make([]storage.Edge, n)
			for i := range edges {
				edges[i] = storage.Edge{From: 1, To: storage.UserID(i + 2), Type: storage.Following, UpdateTime: at}
			}
			must.All(t, s.Apply(t.Context(), storage.Forward, edges, storage.IfNewer))
		}
		write(10, 1)
		begin := int64(logKept + 100) // as if the log had had so many entries
		_, err := s.db.Shard(shard).Write.ExecContext(t.Context(), fmt.Sprintf("UPDATE sqlite_sequence SET seq = %d WHERE name = 'relation_log'", begin))
		must.OK(t, err)
		n := 999
		if large {
			n = 1000
		}
		write(n, 2)
		_, err = s.ReadLog(t.Context(), shard, 0, 1)
		check.That(t, errors.Is(err, storage.ErrLogPruned) == large, "after a write of %d rows the first is read with %v", n, err)
		entries, err := s.ReadLog(t.Context(), shard, begin, 2*n)
		check.That(t, err == nil && len(entries) == n, "%d of %d new entries are left: %v", len(entries), n, err)
	}
}
