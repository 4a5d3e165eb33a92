package sqlstore

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/contents"
)

// An export looks for what few rows have among the rows of some users at a time, however many rows there are.
func TestRareAnnotationsAreLookedForInParts(t *testing.T) {
	t.Parallel()
	const users = 3*ownersAtOnce + 100
	var run []Statement
	s := openSmall(t, "sqlite:"+filepath.Join(t.TempDir(), "0.db"), func(_ context.Context, st Statement) {
		if st.Lookup == "shard.rows" {
			run = append(run, st)
		}
	})
	exec := func(text string, args ...any) {
		t.Helper()
		_, err := s.db.Shard(0).Write.ExecContext(t.Context(), text, args...)
		must.OK(t, err)
	}
	const each = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
	exec(each+"INSERT INTO user_counts (user_id) SELECT i FROM n", users)
	exec(each+"INSERT INTO following (from_user_id, to_user_id, type, update_time) SELECT i, 1000000, 1, 7 FROM n", users)
	exec(each+"INSERT INTO friend_request (from_user_id, to_user_id, type, update_time, message) SELECT i, 1000000, 1, 7, '' FROM n", users)
	var want []storage.UserID
	for _, id := range []storage.UserID{3, ownersAtOnce, ownersAtOnce + 1, users} {
		exec("UPDATE following SET first_at = 5 WHERE from_user_id = ?", int64(id))
		exec("UPDATE friend_request SET message = 'hello' WHERE from_user_id = ?", int64(id))
		want = append(want, id)
	}
	for _, id := range []storage.UserID{users + 10, users + 20} { // whose counts are gone
		exec("INSERT INTO following (from_user_id, to_user_id, type, update_time, first_at) VALUES (?, 1, 1, 7, 5)", int64(id))
		exec("INSERT INTO friend_request (from_user_id, to_user_id, type, update_time, message) VALUES (?, 1, 1, 7, 'hello')", int64(id))
		want = append(want, id)
	}
	for _, kind := range []storage.AnnotationKind{storage.AnnotationMessage, storage.AnnotationFirst} {
		for _, limit := range []int{1, 2, 1000} {
			run = nil
			var got []storage.UserID
			began := time.Now()
			err := s.ReadShard(t.Context(), 0, func(at contents.Moment) error {
				for last := (storage.Pair{}); ; {
					page, err := at.Annotations(t.Context(), kind, last, limit)
					for _, one := range page {
						got, last = append(got, one.From), one.Pair
					}
					if err != nil || len(page) < limit {
						return err
					}
				}
			})
			must.OK(t, err)
			t.Logf("kind %d by %d: %d statements in %s", kind, limit, len(run), time.Since(began))
			check.That(t, slices.Equal(got, want), "kind %d by %d: of %v, want %v", kind, limit, got, want)
		}
		for _, st := range run {
			all := strings.NewReplacer("first_at IS NOT NULL", "1 = 1", "message <> ''", "1 = 1").Replace(st.Text)
			var rows int
			must.OK(t, s.db.Shard(0).Read.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM ("+all+")", append(slices.Clone(st.Args[:len(st.Args)-1]), 1<<40)...).Scan(&rows))
			check.Most(t, "rows that a statement goes through", rows, ownersAtOnce+2)
		}
	}
}
