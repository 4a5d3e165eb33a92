package sqlstore

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/finding"
)

// onShards opens a store of so many shards, and counts the rows and statements of a look-up.
func onShards(t *testing.T, n int, lookup string) (s *Store, rows, statements *atomic.Int64) {
	dir := t.TempDir()
	var files []string
	for i := range n {
		files = append(files, filepath.Join(dir, fmt.Sprint(i, ".db")))
	}
	rows, statements = new(atomic.Int64), new(atomic.Int64)
	return openSmall(t, "sqlite:"+strings.Join(files, ";"), func(_ context.Context, st Statement) {
		if st.Lookup == lookup {
			rows.Add(int64(st.Rows))
			statements.Add(1)
		}
	}), rows, statements
}

// What is read for the first rows of all shards does not grow with the shards, wherever the first rows are.
func TestTheFirstOfAllShardsAreReadOnce(t *testing.T) {
	t.Parallel()
	const shards, users, limit = 16, 3200, 400
	s, rows, _ := onShards(t, shards, "words")
	var list []storage.User
	for i := range users {
		id := storage.UserID(i + 1)
		name := fmt.Sprintf("even%04d", i)
		if s.shards.Of(id) < 2 {
			name = fmt.Sprintf("a%04d even%04d", i, i) // they come first by the other word
		}
		list = append(list, storage.User{ID: id, Handle: fmt.Sprint("z", i), Name: name, CreatedAt: 1})
	}
	must.All(t, s.CreateUsers(t.Context(), list))
	for prefix, most := range map[string]int64{"even": 2 * limit, "a": 4 * limit} {
		var want []storage.UserID
		for _, u := range list {
			if strings.Contains(" "+u.Name, " "+prefix) {
				want = append(want, u.ID)
			}
		}
		rows.Store(0)
		got, err := finding.WordLookups.Get(t.Context(), s, finding.WordQuery{Prefix: prefix, Limit: limit})
		must.OK(t, err)
		check.That(t, slices.Equal(got, want[:min(limit, len(want))]), "%s: %d users %v, want the first of %d %v", prefix, len(got), got, len(want), want)
		check.Most(t, "rows that are read for "+prefix, rows.Load(), most)
	}
}

// Rows of users who are moving to a shard, or have left it, take few statements.
func TestRowsOfOthersTakeFewStatements(t *testing.T) {
	t.Parallel()
	const users, limit = 4000, 20
	s, _, statements := onShards(t, 2, "words")
	var list []storage.User
	for id := range storage.UserID(users) {
		list = append(list, storage.User{ID: id + 1, Handle: fmt.Sprint("z", id), Name: fmt.Sprintf("even%05d", id), CreatedAt: 1})
	}
	must.All(t, s.CreateUsers(t.Context(), list))
	_, err := s.db.Shard(0).Write.ExecContext(t.Context(), "ATTACH '"+s.db.Shard(1).Name+"' AS other")
	must.OK(t, err)
	_, err = s.db.Shard(0).Write.ExecContext(t.Context(), "INSERT INTO user_words SELECT user_id, word FROM other.user_words")
	must.OK(t, err)
	for name, one := range map[string]struct {
		stay func(bucket int) bool // on shard 0; the others are on shard 1
		most int64
	}{
		"nobody": {func(int) bool { return false }, 1},
		"a few":  {func(bucket int) bool { return bucket%100 == 7 }, 20},
		"half":   {func(bucket int) bool { return bucket < storage.Buckets/2 }, 4},
	} {
		now := *s.shards.Now()
		for b := range storage.Buckets {
			shard := 1
			if one.stay(b) {
				shard = 0
			}
			now.Assign(storage.BucketRange{First: b, Last: b}, shard, 0)
		}
		s.shards.Set(&now)
		statements.Store(0)
		_, err := finding.WordLookups.Get(t.Context(), s, finding.WordQuery{Prefix: "even", Limit: limit})
		must.OK(t, err)
		check.Most(t, "statements if on the shard stays "+name, statements.Load(), one.most)
	}
}
