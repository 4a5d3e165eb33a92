package storagetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// creation: making users, with their handles and their counts.
type creation struct{ *harness }

func (s creation) AnEmptyBatchHasNoResults(t *testing.T) {
	answers(t, s.store.CreateUsers(t.Context(), nil), 0)
	answers(t, s.store.CreateUsers(t.Context(), []storage.User{}), 0)
}

func (s creation) EveryFieldComesBack(t *testing.T) {
	ids := s.ids(6)
	users := []storage.User{
		{Handle: "plain", Name: "Plain", Bio: "A bio.", AvatarURL: "https://example.org/a.png?b=1&c=%20", Website: "http://example.org"},
		{Handle: "bare"},
		{Handle: "world_1", Name: "Ελένη 李小龍 محمد हिन्दी", Bio: "línea 1\nlínea 2\ttab\r\n", AvatarURL: "/ü.png"},
		{Handle: "emoji", Name: "👩‍👩‍👧‍👦 🏳️‍🌈 𝒦𝒾𝓉𝒽", Bio: "e\u0301 is not \u00e9 🇳🇿"},
		{Handle: "quotes", Name: `Robert'); DROP TABLE users;-- "\" \0 %_?`, Bio: " spaces around "},
		{
			Handle:    strings.Repeat("h", storage.MaxHandleLength),
			Name:      strings.Repeat("🙂", storage.MaxNameLength),
			Bio:       strings.Repeat("𝄞", 500),
			AvatarURL: strings.Repeat("é", 500),
			Website:   strings.Repeat("ü", 500),
		},
	}
	for i := range users {
		users[i].ID, users[i].CreatedAt, users[i].UpdatedAt = ids[i], at(i), at(1_000_001*i+7)
	}
	answers(t, s.store.CreateUsers(t.Context(), users), len(users))
	for i, got := range found(t, storage.UserLookups.Read(t.Context(), s.store, ids...), len(ids)) {
		wantEqual(t, "user "+users[i].Handle, got, users[i])
	}
}

func (s creation) ItReportsWhoWasMade(t *testing.T) {
	old, fresh := s.newUsers(t, 2), s.ids(2)
	batch := []storage.User{person(fresh[0]), old[0], person(fresh[1]), old[1]}
	wantList(t, "made", answers(t, s.store.CreateUsers(t.Context(), batch), 4), []bool{true, false, true, false})
	wantList(t, "made again", answers(t, s.store.CreateUsers(t.Context(), batch), 4), make([]bool, 4))
	wantList(t, "users", found(t, storage.UserLookups.Read(t.Context(), s.store, idsOf(batch)...), 4), batch)
	wantList(t, "handles", found(t, storage.HandleLookups.Read(t.Context(), s.store, handlesOf(batch)...), 4), idsOf(batch))
}

func (s creation) CountsAreMadeWithTheUser(t *testing.T) {
	users := s.newUsers(t, 9)
	for i, got := range found(t, storage.CountLookups.Read(t.Context(), s.store, idsOf(users)...), len(users)) {
		check.That(t, got.Following == 0 && got.Follower == 0, "user %d starts with %+v", users[i].ID, got)
	}
}

func (s creation) AnExistingUserIsNotChanged(t *testing.T) {
	old := s.newUsers(t, 1)[0]
	other := s.id()
	s.apply(t, storage.Forward, follow(storage.Forward, old.ID, other, 1))
	before := s.countsOf(t, old.ID)

	changed := storage.User{
		ID: old.ID, Handle: old.Handle, Name: "Changed", Bio: "Changed", AvatarURL: "changed", CreatedAt: at(8), UpdatedAt: at(9),
	}
	wantList(t, "made", answers(t, s.store.CreateUsers(t.Context(), []storage.User{changed}), 1), []bool{false})
	wantEqual(t, "user", found(t, storage.UserLookups.Read(t.Context(), s.store, old.ID), 1)[0], old)
	wantEqual(t, "counts", s.countsOf(t, old.ID), before)
}

// Users are made with their states, in all orders of a batch, and listed among those whose states have changed. Who exists keeps his.
func (s creation) StatesAreMadeWithTheUser(t *testing.T) {
	old, fresh := s.newUsers(t, 1), s.ids(3)
	batch := []storage.User{person(fresh[0]), old[0], person(fresh[1]), person(fresh[2])}
	states := []storage.UserState{storage.Deactivated, storage.Deactivated, storage.Active, storage.Deleting}
	wantList(t, "made", answers(t, s.store.CreateUsers(t.Context(), batch, states...), 4), []bool{true, false, true, true})
	states[1] = storage.Active
	for i, user := range batch {
		s.wantState(t, user.ID, states[i])
	}
	alone := person(s.id())
	answers(t, s.store.CreateUsers(t.Context(), []storage.User{alone}, storage.Deactivated), 1)
	s.wantState(t, alone.ID, storage.Deactivated)
	wantEqual(t, "changes", len(s.changesOf(t, alone.ID)), 1)
}

func (s creation) AnExistingUserGetsNoOtherHandle(t *testing.T) {
	old := s.newUsers(t, 1)[0]
	renamed := old
	renamed.Handle = "another_handle"
	wantList(t, "made", answers(t, s.store.CreateUsers(t.Context(), []storage.User{renamed}), 1), []bool{false})
	wantEqual(t, "user", found(t, storage.UserLookups.Read(t.Context(), s.store, old.ID), 1)[0], old)
	wantFound(t, storage.HandleLookups.Read(t.Context(), s.store, old.Handle, renamed.Handle), true, false)
}

// Whether such a user is reported as existing or as refused is not specified.
func (s creation) AnExistingUserCannotTakeAHandle(t *testing.T) {
	p := s.newUsers(t, 2)
	thief := p[0]
	thief.Handle = p[1].Handle
	result := s.store.CreateUsers(t.Context(), []storage.User{thief})
	if len(result) != 1 || result[0].Value || (result[0].Err != nil && !errors.Is(result[0].Err, storage.ErrHandleTaken)) {
		t.Errorf("got %+v, want false or %v", result, storage.ErrHandleTaken)
	}
	wantList(t, "users", found(t, storage.UserLookups.Read(t.Context(), s.store, idsOf(p)...), 2), p)
	wantList(t, "handles", found(t, storage.HandleLookups.Read(t.Context(), s.store, handlesOf(p)...), 2), idsOf(p))
}

func (s creation) ATakenHandleIsRefused(t *testing.T) {
	owner := s.newUsers(t, 1)[0]
	ids := s.ids(3)
	batch := []storage.User{person(ids[0]), person(ids[1]), person(ids[2])}
	batch[1].Handle = owner.Handle

	results := s.store.CreateUsers(t.Context(), batch)
	must.Equal(t, "results for 3 users", len(results), 3)
	wantRefused(t, results[1])
	for _, i := range []int{0, 2} {
		check.That(t, results[i].Err == nil && results[i].Value, "the others of the batch: got %+v, want made", results[i])
	}
	wantFound(t, storage.UserLookups.Read(t.Context(), s.store, ids...), true, false, true)
	wantFound(t, storage.CountLookups.Read(t.Context(), s.store, ids...), true, false, true)
	wantEqual(t, "the handle's owner", found(t, storage.HandleLookups.Read(t.Context(), s.store, owner.Handle), 1)[0], owner.ID)
}

// The tombstones of a deleted user hide whoever has its id, and greater ids are not of users. Their handles stay free.
func (s creation) SomeIDsAreNobodys(t *testing.T) {
	for _, id := range []storage.UserID{erase(s).erased(t).ID, storage.MaxUserID + 1, storage.Foreign(5)} {
		user, other := person(id), person(s.id())
		user.Handle = fmt.Sprint("nobodys_", id)
		batch := s.store.CreateUsers(t.Context(), []storage.User{user, other})
		wantIs(t, batch[0].Err, storage.ErrIDUnusable)
		wantEqual(t, "the other of the batch is made", batch[1].Value, true)
		wantIs(t, s.store.CreateUsers(t.Context(), []storage.User{user})[0].Err, storage.ErrIDUnusable)
		wantIs(t, s.store.Register(t.Context(), user, "hash"), storage.ErrIDUnusable)
		wantMissing(t, storage.UserLookups.Read(t.Context(), s.store, id), 1)
		next := person(s.id())
		next.Handle = user.Handle
		wantList(t, "made with the handle", answers(t, s.store.CreateUsers(t.Context(), []storage.User{next}), 1), []bool{true})
	}
}

func (s creation) ARefusedUserMayComeBackWithAnotherHandle(t *testing.T) {
	owner := s.newUsers(t, 1)[0]
	user := person(s.id())
	free := user.Handle
	user.Handle = owner.Handle
	wantRefused(t, s.store.CreateUsers(t.Context(), []storage.User{user})[0])
	user.Handle = free
	wantList(t, "made", answers(t, s.store.CreateUsers(t.Context(), []storage.User{user}), 1), []bool{true})
	wantEqual(t, "user", found(t, storage.UserLookups.Read(t.Context(), s.store, user.ID), 1)[0], user)
	wantEqual(t, "handle", found(t, storage.HandleLookups.Read(t.Context(), s.store, free), 1)[0], user.ID)
}

func (s creation) OneHandleGoesToOneUserOfABatch(t *testing.T) {
	ids := s.ids(8) // on several shards
	batch := make([]storage.User, len(ids))
	for i, id := range ids {
		batch[i] = person(id)
		batch[i].Handle = "wanted_by_all"
	}
	s.wantOneWinner(t, batch, s.store.CreateUsers(t.Context(), batch))
}

func (s creation) AUserTwiceInABatchIsMadeOnce(t *testing.T) {
	user, other := person(s.id()), person(s.id())
	made := answers(t, s.store.CreateUsers(t.Context(), []storage.User{user, other, user}), 3)
	wantEqual(t, "the other was made", made[1], true)
	check.That(t, made[0] != made[2], "made is %v and %v for the same user, want true once", made[0], made[2])
	wantEqual(t, "user", found(t, storage.UserLookups.Read(t.Context(), s.store, user.ID), 1)[0], user)
}

func (s creation) EdgesMayComeBeforeTheirUser(t *testing.T) {
	user := person(s.id())
	s.apply(t, storage.Forward, follow(storage.Forward, user.ID, s.id(), 1))
	s.apply(t, storage.Inverse, follow(storage.Inverse, user.ID, s.id(), 1))
	wantMissing(t, storage.UserLookups.Read(t.Context(), s.store, user.ID), 1)

	wantList(t, "made", answers(t, s.store.CreateUsers(t.Context(), []storage.User{user}), 1), []bool{true})
	got := s.countsOf(t, user.ID)
	wantEqual(t, "followings", got.Following, 1)
	wantEqual(t, "followers", got.Follower, 1)
}

func (s creation) ALargeBatchIsMade(t *testing.T) {
	users := s.newUsers(t, many)
	for i, got := range found(t, storage.UserLookups.Read(t.Context(), s.store, idsOf(users)...), many) {
		must.That(t, got == users[i], "user %d: got %+v, want %+v", i, got, users[i])
	}
	found(t, storage.CountLookups.Read(t.Context(), s.store, idsOf(users)...), many)

	// In the second run of the import, every other user is new.
	again := make([]storage.User, many)
	for i, id := range s.ids(many) {
		again[i] = person(id)
		if i%2 == 0 {
			again[i] = users[i]
		}
	}
	for i, made := range answers(t, s.store.CreateUsers(t.Context(), again), many) {
		must.That(t, made == (i%2 == 1), "user %d: made is %v", i, made)
	}
}

// wantRefused checks the answer for a user whose handle belongs to another user.
func wantRefused(t *testing.T, result storage.Result[bool]) {
	t.Helper()
	check.That(t, !result.Value && errors.Is(result.Err, storage.ErrHandleTaken), "got made %v, error %v; want %v", result.Value, result.Err, storage.ErrHandleTaken)
}

// wantOneWinner checks that exactly one of the users who asked for one handle has been made,
// that this user has the handle, and that nothing is left of the others.
func (h *harness) wantOneWinner(t *testing.T, asked []storage.User, results []storage.Result[bool]) {
	t.Helper()
	must.That(t, len(results) == len(asked), "%d results for %d users", len(results), len(asked))
	holder := found(t, storage.HandleLookups.Read(t.Context(), h.store, asked[0].Handle), 1)[0]
	users := storage.UserLookups.Read(t.Context(), h.store, idsOf(asked)...)
	answers(t, users, len(asked))
	winners := 0
	for i, user := range asked {
		if results[i].Value {
			winners++
			wantEqual(t, "the handle's owner", holder, user.ID)
		} else {
			wantRefused(t, results[i])
		}
		check.That(t, users[i].Found == results[i].Value, "user %d: made is %v, but found is %v", user.ID, results[i].Value, users[i].Found)
	}
	check.Equal(t, "users got the handle", winners, 1)
}
