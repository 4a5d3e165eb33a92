package storagetest

import (
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// lifecycle: the store as a whole.
type lifecycle struct {
	*harness
	open func(t *testing.T) storage.Store
}

func (s lifecycle) EmptyUntilAUserIsMade(t *testing.T) {
	store := opened(t, s.open)
	wantEmpty(t, store, true)
	user := person(s.id())
	wantList(t, "made", answers(t, store.CreateUsers(t.Context(), []storage.User{user}), 1), []bool{true})
	wantEmpty(t, store, false)
}

func (s lifecycle) OneUserOnAnyShardIsEnough(t *testing.T) {
	for range 3 {
		store := opened(t, s.open)
		answers(t, store.CreateUsers(t.Context(), []storage.User{person(s.ids(3)[2])}), 1)
		wantEmpty(t, store, false)
	}
}

func (s lifecycle) EdgesAloneLeaveItEmpty(t *testing.T) {
	store := opened(t, s.open)
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		answers(t, store.Apply(t.Context(), side, []storage.Edge{follow(side, s.id(), s.id(), 1)}, storage.IfNewer), 1)
	}
	wantEmpty(t, store, true)
}

func (s lifecycle) PingAnswersForEveryShard(t *testing.T) {
	shards := s.store.Ping(t.Context())
	must.That(t, len(shards) > 0, "no shard")
	for i, shard := range shards {
		wantEqual(t, "ordinal", shard.Shard, i)
		check.That(t, shard.Err == nil, "shard %d: %v", i, shard.Err)
		check.That(t, shard.Name != "", "shard %d has no name", i)
	}
}

// If the store is closed during a call, the call returns its whole answer or an error.
func (s lifecycle) CloseMayMeetCallsUnderWay(t *testing.T) {
	store := s.open(t)
	users := []storage.User{person(s.id()), person(s.id()), person(s.id())}
	answers(t, store.CreateUsers(t.Context(), users), 3)

	together(func(worker int) {
		if worker == 0 {
			check.Is(t, "close", store.Close(), nil)
			return
		}
		for range 50 {
			for i, result := range storage.UserLookups.Read(t.Context(), store, idsOf(users)...) {
				check.That(t, result.Err != nil || result.Found && result.Value == users[i], "got %+v, want %+v or an error", result, users[i])
			}
		}
	})
}

func wantEmpty(t *testing.T, store storage.Store, want bool) {
	t.Helper()
	empty, err := storage.IsEmpty(t.Context(), store)
	must.That(t, err == nil, "empty: %v", err)
	wantEqual(t, "empty", empty, want)
}
