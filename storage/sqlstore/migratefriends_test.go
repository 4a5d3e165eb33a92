package sqlstore

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/shard"
)

// A store from before there were friends comes to know those that it has, also when the
// migration was cut off in its middle.
func TestFriendsOfAnOlderStoreAreCounted(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) {
		checkOlderStore(t, "sqlite:"+filepath.Join(t.TempDir(), "kith.db"), 10, false)
	})
	t.Run("MariaDB", func(t *testing.T) {
		checkOlderStore(t, "mysql:"+testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0], friendCountVersion-1, false)
	})
	t.Run("MariaDB, column without counts", func(t *testing.T) {
		checkOlderStore(t, "mysql:"+testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0], friendCountVersion-1, true)
	})
}

func checkOlderStore(t *testing.T, location string, version int64, cutOff bool) {
	makeOlderStore(t, location, version, cutOff)
	s, err := Open(t.Context(), Config{Location: location})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ids := make([]storage.UserID, friends)
	for i := range ids {
		ids[i] = storage.UserID(i + 1)
	}
	for i, r := range s.Counts(t.Context(), ids) {
		if want := int64(ids[i] % 2); r.Err != nil || r.Value.Friend != want {
			t.Fatalf("user %d: %+v, want %d friends", ids[i], r, want)
		}
	}
}

// friends is the number of users of the older store, more than one stretch of them.
const friends = friendStretch*2 + 500

// makeOlderStore makes a store of an older version, in which all users have two
// followings, one of them a mutual one where the user's id is odd.
func makeOlderStore(t *testing.T, location string, version int64, cutOff bool) {
	t.Helper()
	cfg := Config{Location: location}.withDefaults()
	d, addresses, err := parseLocation(location)
	if err != nil {
		t.Fatal(err)
	}
	s := &Store{cfg: cfg, sql: d, place: shard.NewMap(1)}
	if err := s.connect(t.Context(), addresses); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p, err := s.migrator(s.shards[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	var counts, followings, fans []string
	for id := 1; id <= friends; id++ {
		counts = append(counts, fmt.Sprintf("(%d, 2, 1)", id))
		followings = append(followings, fmt.Sprintf("(%d, %d, 1, 5)", id, id+1_000_000), fmt.Sprintf("(%d, %d, 1, 6)", id, id+2_000_000))
		fans = append(fans, fmt.Sprintf("(%d, %d, %d, 7)", id, id+1_000_000, id%2))
	}
	statements := []string{
		"INSERT INTO user_counts (user_id, following_count, follower_count) VALUES " + strings.Join(counts, ","),
		"INSERT INTO following (from_user_id, to_user_id, type, update_time) VALUES " + strings.Join(followings, ","),
		"INSERT INTO follower (to_user_id, from_user_id, type, update_time) VALUES " + strings.Join(fans, ","),
	}
	if cutOff {
		statements = append(statements, sqlAddFriendCount)
	}
	for _, text := range statements {
		if _, err := s.shards[0].write.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
}
