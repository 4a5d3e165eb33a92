package storagetest

import (
	"fmt"
	"slices"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// userList: all users, shard by shard.
type userList struct{ *harness }

func (s userList) EveryUserIsListedOnceOnItsShard(t *testing.T) {
	users := s.newUsers(t, 30)
	s.apply(t, storage.Forward, follow(storage.Forward, s.id(), users[0].ID, 1)) // of a user who does not exist
	gone := erase(s).erased(t).ID
	shards := storage.NewShardMap(s.store.Shards())
	for _, limit := range []int{1, 4, 100} {
		var all []storage.UserID
		for ordinal := range s.store.Shards() {
			list := s.all(t, ordinal, limit)
			check.That(t, slices.IsSorted(list), "not in order: %v", list)
			for _, id := range list {
				wantEqual(t, "shard", shards.Of(id), ordinal)
			}
			all = append(all, list...)
		}
		slices.Sort(all)
		wantList(t, fmt.Sprintf("users with limit %d", limit), all, slices.Sorted(slices.Values(idsOf(users))))
	}
	check.That(t, !slices.Contains(s.all(t, shards.Of(gone), 100), gone), "user %d has been erased", gone)
}

// all reads the users of a shard page by page. A page that is shorter than its limit is the last
// one.
func (s userList) all(t *testing.T, ordinal, limit int) []storage.UserID {
	t.Helper()
	var list []storage.UserID
	for after := storage.UserID(0); ; after = list[len(list)-1] {
		page := one(t, s.harness, storage.UserIDLookups, storage.ShardQuery[storage.UserID]{Shard: ordinal, After: after, Limit: limit})
		must.That(t, len(page) <= limit, "%d users, want %d at most", len(page), limit)
		list = append(list, page...)
		if len(page) < limit || len(list) > many {
			return list
		}
	}
}
