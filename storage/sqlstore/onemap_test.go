package sqlstore

import (
	"context"
	"database/sql"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/finding"
)

// Shards answer one after another. If a bucket's rows are on two of them, and it becomes the other's in between, a list has its users once.
func TestAListOfAllShardsHasEachUserOnceBesideAMove(t *testing.T) {
	const user, other = storage.UserID(1), storage.UserID(2)
	for _, first := range []int{0, 1} { // which shard answers before
		dir := t.TempDir()
		var after func()
		s := openSmall(t, "sqlite:"+filepath.Join(dir, "0.db")+";"+filepath.Join(dir, "1.db"), func(_ context.Context, st Statement) {
			if st.Lookup == "words" && st.Shard == first {
				after()
			}
		})
		must.All(t, s.CreateUsers(t.Context(), []storage.User{{ID: user, Handle: "ada", CreatedAt: 1}, {ID: other, Handle: "bob", CreatedAt: 1}}))
		from := s.shards.Of(user)
		_, err := s.db.Shard(1-from).Write.ExecContext(t.Context(), "INSERT INTO user_words (user_id, word) VALUES (1, 'ada')") // it has been copied
		must.OK(t, err)
		var held []*sql.Conn // all on which the second shard answers
		for range s.db.Shard(1 - first).Read.Stats().MaxOpenConnections {
			conn, err := s.db.Shard(1 - first).Read.Conn(t.Context())
			must.OK(t, err)
			held = append(held, conn)
		}
		after = sync.OnceFunc(func() {
			moved := *s.shards.Now()
			moved.Assign(storage.BucketRange{First: user.Bucket(), Last: user.Bucket()}, 1-from, 0)
			s.shards.Set(&moved)
			for _, conn := range held {
				conn.Close()
			}
		})
		got, err := finding.WordLookups.Get(t.Context(), s, finding.WordQuery{Prefix: "ada", Limit: 10})
		must.OK(t, err)
		check.That(t, slices.Equal(got, []storage.UserID{user}), "shard %d answers first, where the user was on shard %d: %v", first, from, got)
	}
}
