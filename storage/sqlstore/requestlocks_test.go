package sqlstore

import (
	"path/filepath"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest"
	"kith/storage"
)

// A request locks the counts of both users if they are on one shard and both sides are written.
// Otherwise it locks the counts of the user who asks.
func TestRequestsLockTheirUsers(t *testing.T) {
	dir := t.TempDir()
	seen := &recorder{}
	s, err := Open(t.Context(), Config{
		Location:    "sqlite:" + filepath.Join(dir, "0.db") + ";" + filepath.Join(dir, "1.db"),
		OnStatement: seen.record,
	})
	must.OK(t, err)
	defer s.Close()
	near, far := storage.UserID(2), storage.UserID(2)
	for s.shards.Of(near) != s.shards.Of(1) {
		near++
	}
	for s.shards.Of(far) == s.shards.Of(1) {
		far++
	}
	users := []storage.User{{ID: 1, Handle: "one"}, {ID: near, Handle: "near"}, {ID: far, Handle: "far"}}
	must.All(t, s.CreateUsers(t.Context(), users))
	for _, c := range []struct {
		to      storage.UserID
		inverse bool
		locked  int
	}{{near, true, 2}, {near, false, 1}, {far, true, 1}, {far, false, 1}} {
		seen.reset()
		options := someRequests
		options.Inverse = c.inverse
		pair := storage.Pair{From: 1, To: c.to}
		for _, act := range []storage.EdgeType{storage.Pending, storage.Cancelled} {
			_, err := storagetest.Request(t.Context(), s, pair, storage.EdgeChange{Type: act, At: 2e15}, options)
			must.OK(t, err)
		}
		locks := 0
		for _, st := range seen.all() {
			if strings.Contains(st.Text, "LEFT JOIN friend_request_inbox i") {
				if locks++; st.Keys != c.locked {
					t.Errorf("user %d of shard %d, both sides: %t: %d are locked, want %d", c.to, s.shards.Of(c.to), c.inverse, st.Keys, c.locked)
				}
			}
		}
		check.Equal(t, "statements lock", locks, 2)
	}
}
