package storagetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/judge"
)

// accounts: registering, passwords and profiles.
type accounts struct{ *harness }

// A claimer can leave a claim on a handle, as a crash in Register does before the user is
// made.
type claimer interface {
	Claim(ctx context.Context, handle string, id storage.UserID, at storage.Micros) error
}

func (s accounts) EverythingOfAUserIsRegistered(t *testing.T) {
	user := storage.User{
		ID: s.id(), Handle: "ada_1", Name: "Ада 👩‍🚀", Bio: "línea 1\nlínea 2", AvatarURL: "/ü.png",
		CreatedAt: at(1), UpdatedAt: at(2),
	}
	must.OK(t, s.store.Register(t.Context(), user, "$argon2id$hash"))
	wantEqual(t, "user", s.userOf(t, user.ID), user)
	wantEqual(t, "handle", found(t, storage.HandleLookups.Read(t.Context(), s.store, user.Handle), 1)[0], user.ID)
	wantEqual(t, "password", s.passwordOf(t, user.ID), "$argon2id$hash")
	got := s.countsOf(t, user.ID)
	wantEqual(t, "followings", got.Following, 0)
	wantEqual(t, "followers", got.Follower, 0)
}

func (s accounts) EdgesMayComeBeforeTheirUser(t *testing.T) {
	user := person(s.id())
	s.apply(t, storage.Inverse, follow(storage.Inverse, user.ID, s.id(), 1))
	s.register(t, user)
	wantEqual(t, "followers", s.countsOf(t, user.ID).Follower, 1)
}

func (s accounts) ATakenHandleIsRefused(t *testing.T) {
	made, registered := s.newUsers(t, 1)[0], person(s.id())
	s.register(t, registered)
	for _, owner := range []storage.User{made, registered} {
		user := person(s.id())
		free := user.Handle
		user.Handle = owner.Handle
		wantIs(t, s.store.Register(t.Context(), user, "hash"), storage.ErrHandleTaken)
		wantMissing(t, storage.UserLookups.Read(t.Context(), s.store, user.ID), 1)
		wantMissing(t, storage.CountLookups.Read(t.Context(), s.store, user.ID), 1)
		wantMissing(t, storage.PasswordLookups.Read(t.Context(), s.store, user.ID), 1)
		wantEqual(t, "the handle's owner", found(t, storage.HandleLookups.Read(t.Context(), s.store, owner.Handle), 1)[0], owner.ID)

		user.Handle = free
		s.register(t, user)
	}
}

func (s accounts) AnExistingUserIsRefused(t *testing.T) {
	made, registered := s.newUsers(t, 1)[0], person(s.id())
	s.register(t, registered)
	for _, old := range []storage.User{made, registered} {
		password := s.passwordOf(t, old.ID)
		again := person(s.id())
		again.ID, again.Name = old.ID, "Changed"
		wantIs(t, s.store.Register(t.Context(), again, "another hash"), storage.ErrUserExists)
		wantIs(t, s.store.Register(t.Context(), old, "another hash"), storage.ErrUserExists)
		wantEqual(t, "user", s.userOf(t, old.ID), old)
		wantEqual(t, "password", s.passwordOf(t, old.ID), password)

		// Nobody has the handle that was asked for.
		wantMissing(t, storage.HandleLookups.Read(t.Context(), s.store, again.Handle), 1)
		again.ID = s.id()
		s.register(t, again)
	}
}

// Whoever is late has no handle: others may have it.
func (s accounts) AUserWhoIsMadeAtOnceHasOneHandle(t *testing.T) {
	for n := range 10 {
		id := s.id()
		tries := make([]storage.User, workers)
		made := make([]error, workers)
		for i := range tries {
			tries[i] = person(id)
			tries[i].Handle = fmt.Sprintf("at_once_%d_%d", n, i)
		}
		together(func(worker int) {
			if worker%2 == 0 {
				made[worker] = s.store.Register(t.Context(), tries[worker], "")
			} else if r := s.store.CreateUsers(t.Context(), tries[worker:worker+1])[0]; r.Err != nil || !r.Value {
				made[worker] = cmp.Or(r.Err, storage.ErrUserExists)
			}
		})
		user := s.userOf(t, id)
		for i, r := range answers(t, storage.HandleLookups.Read(t.Context(), s.store, handlesOf(tries)...), workers) {
			wantEqual(t, "owner of a handle", r, map[bool]storage.UserID{tries[i].Handle == user.Handle: id}[true])
			if (made[i] == nil) != (tries[i].Handle == user.Handle) || made[i] != nil && !errors.Is(made[i], storage.ErrUserExists) {
				t.Errorf("%s is made: %v; the user has %s", tries[i].Handle, made[i], user.Handle)
			}
		}
	}
}

func (s accounts) OneHandleIsRegisteredOnce(t *testing.T) {
	for range 5 {
		users := make([]storage.User, workers)
		for i, id := range s.ids(workers) {
			users[i] = person(id)
			users[i].Handle = users[0].Handle
		}
		s.wantOneRegistered(t, users, storage.ErrHandleTaken)
	}
}

func (s accounts) OneIDIsRegisteredOnce(t *testing.T) {
	for range 5 {
		users := make([]storage.User, workers)
		for i, id := range s.ids(workers) {
			users[i] = person(id)
		}
		for i := range users {
			users[i].ID = users[0].ID
		}
		s.wantOneRegistered(t, users, storage.ErrUserExists)
	}
}

// The crash leaves nothing but the claim.
func (s accounts) AnOldClaimWithoutAUserIsTakenOver(t *testing.T) {
	user, gone := person(s.id()), s.id()
	s.claim(t, user.Handle, gone, user.CreatedAt-judge.ClaimTTL-1)
	s.register(t, user)
	wantEqual(t, "user", s.userOf(t, user.ID), user)
	wantEqual(t, "the handle's owner", found(t, storage.HandleLookups.Read(t.Context(), s.store, user.Handle), 1)[0], user.ID)

	late := person(gone)
	late.Handle = user.Handle
	wantIs(t, s.store.Register(t.Context(), late, "hash"), storage.ErrHandleTaken)
}

func (s accounts) AYoungClaimWithoutAUserIsKept(t *testing.T) {
	user, other := person(s.id()), s.id()
	s.claim(t, user.Handle, other, user.CreatedAt-judge.ClaimTTL)
	wantIs(t, s.store.Register(t.Context(), user, "hash"), storage.ErrHandleTaken)
	wantMissing(t, storage.UserLookups.Read(t.Context(), s.store, user.ID), 1)

	owner := person(other)
	owner.Handle = user.Handle
	s.register(t, owner)
}

func (s accounts) AnOldClaimWithAUserIsKept(t *testing.T) {
	made, registered := s.newUsers(t, 1)[0], person(s.id())
	s.register(t, registered)
	for _, owner := range []storage.User{made, registered} {
		user := person(s.id())
		user.Handle, user.CreatedAt = owner.Handle, owner.CreatedAt+100*judge.ClaimTTL
		wantIs(t, s.store.Register(t.Context(), user, "hash"), storage.ErrHandleTaken)
		wantEqual(t, "the handle's owner", found(t, storage.HandleLookups.Read(t.Context(), s.store, owner.Handle), 1)[0], owner.ID)
	}
}

// The user exists, but was made with another handle.
func (s accounts) AnOldClaimOfSomebodyElseByNowIsTakenOver(t *testing.T) {
	other, user := s.newUsers(t, 1)[0], person(s.id())
	s.claim(t, user.Handle, other.ID, user.CreatedAt-judge.ClaimTTL-1)
	s.register(t, user)
	wantEqual(t, "the handle's owner", found(t, storage.HandleLookups.Read(t.Context(), s.store, user.Handle), 1)[0], user.ID)
	wantEqual(t, "the other", s.userOf(t, other.ID), other)
}

func (s accounts) AnOldClaimIsTakenOverOnce(t *testing.T) {
	for range 5 {
		users := make([]storage.User, workers)
		for i, id := range s.ids(workers) {
			users[i] = person(id)
			users[i].Handle = users[0].Handle
		}
		s.claim(t, users[0].Handle, s.id(), users[0].CreatedAt-judge.ClaimTTL-1)
		s.wantOneRegistered(t, users, storage.ErrHandleTaken)
	}
}

func (s accounts) AClaimOfOnesOwnIsUsed(t *testing.T) {
	for _, age := range []storage.Micros{0, 1, judge.ClaimTTL, 2 * judge.ClaimTTL} {
		registered, made := person(s.id()), person(s.id())
		for _, user := range []storage.User{registered, made} {
			s.claim(t, user.Handle, user.ID, user.CreatedAt-age)
		}
		s.register(t, registered)
		wantList(t, "made", answers(t, s.store.CreateUsers(t.Context(), []storage.User{made}), 1), []bool{true})
		wantList(t, "users", found(t, storage.UserLookups.Read(t.Context(), s.store, registered.ID, made.ID), 2),
			[]storage.User{registered, made})
	}
}

func (s accounts) UsersMadeOtherwiseHaveNoPassword(t *testing.T) {
	user := s.newUsers(t, 1)[0]
	wantEqual(t, "password", s.passwordOf(t, user.ID), "")
}

func (s accounts) APasswordIsReplaced(t *testing.T) {
	registered, made, other := person(s.id()), s.newUsers(t, 1)[0], person(s.id())
	s.register(t, registered)
	s.register(t, other)
	for _, user := range []storage.User{registered, made} {
		for i, hash := range []string{"$argon2id$v=19$new", "$argon2id$v=19$new", "newer"} { // also the same hash again
			old := s.passwordOf(t, user.ID)
			now := s.setPassword(t, user.ID, storage.PasswordChange{Old: old, New: hash, At: at(100 + i)})
			wantEqual(t, "password", now, storage.Password{Hash: hash})
			wantEqual(t, "password", s.passwordOf(t, user.ID), hash)
		}
		user.UpdatedAt = at(102)
		wantEqual(t, "user", s.userOf(t, user.ID), user)
	}
	wantEqual(t, "password of the other", s.passwordOf(t, other.ID), hashOf(other.ID))
	wantEqual(t, "the other", s.userOf(t, other.ID), other)
}

// A writer that has seen a password other than the present one replaces nothing.
func (s accounts) OnlyTheOldPasswordIsReplaced(t *testing.T) {
	user := person(s.id())
	s.register(t, user)
	for _, ends := range []bool{false, true} {
		for _, old := range []string{"", "another", hashOf(user.ID) + " "} {
			_, err := s.store.SetPassword(t.Context(), user.ID, storage.PasswordChange{Old: old, New: "new", At: at(9), EndsTokens: ends})
			wantIs(t, err, storage.ErrPasswordChanged)
		}
	}
	wantEqual(t, "password", s.passwordOf(t, user.ID), hashOf(user.ID))
	wantEqual(t, "user", s.userOf(t, user.ID), user)
	wantList(t, "changes", s.changesOf(t, user.ID), nil)
}

// Gateways are notified of passwords as they are of states, and the times of both rise.
func (s accounts) ChangedPasswordsAreListed(t *testing.T) {
	user := person(s.id())
	s.register(t, user)
	change := func(n int, ends bool) storage.Micros {
		old := s.passwordOf(t, user.ID)
		return s.setPassword(t, user.ID, storage.PasswordChange{Old: old, New: old + "+", At: at(n), EndsTokens: ends}).ChangedAt
	}
	listed := func(state storage.UserState, n, passwordAt int) {
		t.Helper()
		want := changedTo(user.ID, state, n)
		want.PasswordAt = at(passwordAt)
		wantList(t, "changes", s.changesOf(t, user.ID), []storage.StateChange{want})
		password := found(t, storage.PasswordLookups.Read(t.Context(), s.store, user.ID), 1)[0]
		wantEqual(t, "time of the password", password.ChangedAt, at(passwordAt))
	}
	wantEqual(t, "time of a password hashed anew", change(5, false), 0)
	wantList(t, "changes", s.changesOf(t, user.ID), nil)
	wantEqual(t, "time of the password", change(10, true), at(10))
	listed(storage.Active, 10, 10)
	wantEqual(t, "time by a clock that is late", change(3, true), at(11))
	listed(storage.Active, 11, 11)
	wantEqual(t, "time of a password hashed anew", change(12, false), at(11))
	s.setState(t, user.ID, storage.Deactivated, 20, true)
	listed(storage.Deactivated, 20, 11)
	wantEqual(t, "time of the password", change(15, true), at(21))
	listed(storage.Deactivated, 21, 21)
	s.setState(t, user.ID, storage.Active, 22, true)
	listed(storage.Active, 22, 21)
}

func (s accounts) OneOfSeveralAtOnceChangesThePassword(t *testing.T) {
	user := person(s.id())
	s.register(t, user)
	var errs [workers]error
	together(func(worker int) {
		change := storage.PasswordChange{Old: hashOf(user.ID), New: fmt.Sprint("of ", worker), At: at(1), EndsTokens: true}
		_, errs[worker] = s.store.SetPassword(t.Context(), user.ID, change)
	})
	won := 0
	for worker, err := range errs {
		if err == nil {
			won++
			wantEqual(t, "password", s.passwordOf(t, user.ID), fmt.Sprint("of ", worker))
		} else {
			wantIs(t, err, storage.ErrPasswordChanged)
		}
	}
	wantEqual(t, "changes", won, 1)
}

func (s accounts) setPassword(t *testing.T, id storage.UserID, change storage.PasswordChange) storage.Password {
	t.Helper()
	now, err := s.store.SetPassword(t.Context(), id, change)
	must.OK(t, err)
	return now
}

func (s accounts) NobodyHasNoPasswordToReplace(t *testing.T) {
	for _, id := range s.strangers(t) {
		_, err := s.store.SetPassword(t.Context(), id, storage.PasswordChange{New: "hash", At: at(1), EndsTokens: true})
		wantIs(t, err, storage.ErrUserUnknown)
		wantList(t, "changes", s.changesOf(t, id), nil)
		wantMissing(t, storage.PasswordLookups.Read(t.Context(), s.store, id), 1)
	}
}

func (s accounts) WhatIsGivenOfAProfileIsChanged(t *testing.T) {
	for given := range 1 << len(storage.UserTexts) {
		user, other := person(s.id()), person(s.id())
		for _, text := range user.Texts() {
			*text = "a text"
		}
		s.register(t, user)
		s.register(t, other)

		var change storage.ProfileChange
		want := user
		want.UpdatedAt = at(77)
		changes := change.Texts()
		for i, text := range want.Texts() {
			if given>>i&1 != 0 {
				*text = fmt.Sprintf("Ναί 👩‍🚀\n%d", i)
				*changes[i] = new(*text)
			}
		}
		if given == 0 {
			want.UpdatedAt = user.UpdatedAt
		}
		got, changed, err := s.store.UpdateProfile(t.Context(), user.ID, change, at(77))
		must.OK(t, err)
		what := fmt.Sprintf("with texts %b", given)
		wantEqual(t, "changed "+what, changed, given != 0)
		_, changed, err = s.store.UpdateProfile(t.Context(), user.ID, change, at(78))
		wantIs(t, err, nil)
		wantEqual(t, "changed again "+what, changed, false)
		wantEqual(t, "user reported "+what, got, want)
		wantEqual(t, "user "+what, s.userOf(t, user.ID), want)
		wantEqual(t, "password "+what, s.passwordOf(t, user.ID), hashOf(user.ID))
		wantEqual(t, "the other "+what, s.userOf(t, other.ID), other)
	}
}

func (s accounts) AnEmptyTextIsAText(t *testing.T) {
	user := person(s.id())
	var change storage.ProfileChange
	changes := change.Texts()
	for i, text := range user.Texts() {
		*text, *changes[i] = "a text", new("")
	}
	s.register(t, user)
	got, _, err := s.store.UpdateProfile(t.Context(), user.ID, change, at(5))
	must.OK(t, err)
	want := storage.User{ID: user.ID, Handle: user.Handle, CreatedAt: user.CreatedAt, UpdatedAt: at(5)}
	wantEqual(t, "user reported", got, want)
	wantEqual(t, "user", s.userOf(t, user.ID), want)
}

func (s accounts) TheVersionRisesWithTheProfile(t *testing.T) {
	users := s.newUsers(t, 2)
	ids := idsOf(users)
	for _, name := range []string{"Another", "A third"} {
		before := found(t, storage.CountLookups.Read(t.Context(), s.store, ids...), 2)
		_, _, err := s.store.UpdateProfile(t.Context(), ids[0], storage.ProfileChange{Name: &name}, at(5))
		must.OK(t, err)
		now := found(t, storage.CountLookups.Read(t.Context(), s.store, ids...), 2)
		check.That(t, now[0].Version > before[0].Version, "the version was %d and is %d", before[0].Version, now[0].Version)
		wantEqual(t, "followings", now[0].Following, before[0].Following)
		wantEqual(t, "followers", now[0].Follower, before[0].Follower)
		wantEqual(t, "counts of the other", now[1], before[1])
	}
}

func (s accounts) NobodyHasNoProfileToChange(t *testing.T) {
	name := "A"
	for _, id := range s.strangers(t) {
		counts := storage.CountLookups.Read(t.Context(), s.store, id)[0]
		got, _, err := s.store.UpdateProfile(t.Context(), id, storage.ProfileChange{Name: &name}, at(1))
		wantIs(t, err, storage.ErrUserUnknown)
		wantEqual(t, "user reported", got, storage.User{})
		wantMissing(t, storage.UserLookups.Read(t.Context(), s.store, id), 1)
		wantEqual(t, "counts", storage.CountLookups.Read(t.Context(), s.store, id)[0], counts)
	}
}

// Each worker writes its own text of the three, again and again.
func (s accounts) ProfilesMayBeChangedAtOnce(t *testing.T) {
	user := s.newUsers(t, 1)[0]
	together(func(worker int) {
		for i := range 5 {
			before := s.countsOf(t, user.ID).Version
			text := fmt.Sprintf("text %d of %d", i, worker)
			change := storage.ProfileChange{Name: &text}
			switch worker % 3 {
			case 1:
				change = storage.ProfileChange{Bio: &text}
			case 2:
				change = storage.ProfileChange{AvatarURL: &text}
			}
			_, _, err := s.store.UpdateProfile(t.Context(), user.ID, change, at(9))
			check.Is(t, fmt.Sprintf("worker %d", worker), err, nil)
			now := s.countsOf(t, user.ID).Version
			check.That(t, now > before, "the version was %d and is %d after a change", before, now) // two may have been made together
		}
	})
	user.UpdatedAt = at(9)
	user.Name, user.Bio, user.AvatarURL = "the last", "the last", "the last"
	got := s.userOf(t, user.ID)
	for _, text := range []*string{&got.Name, &got.Bio, &got.AvatarURL} {
		if strings.HasPrefix(*text, "text ") { // of the last worker
			*text = "the last"
		}
	}
	wantEqual(t, "user", got, user)
}

// strangers are ids without a user: nothing is known of the first, and the second has edges.
func (s accounts) strangers(t *testing.T) []storage.UserID {
	t.Helper()
	ids := s.ids(2)
	s.apply(t, storage.Inverse, follow(storage.Inverse, ids[1], s.id(), 1))
	return ids
}

// register makes a user with a password of its own.
func (h *harness) register(t *testing.T, user storage.User) {
	t.Helper()
	err := h.store.Register(t.Context(), user, hashOf(user.ID))
	must.That(t, err == nil, "register %+v: %v", user, err)
}

// claim leaves a claim on a handle, if the store under test can.
func (s accounts) claim(t *testing.T, handle string, id storage.UserID, at storage.Micros) {
	t.Helper()
	c, ok := s.store.(claimer)
	if !ok {
		t.Skip("the store cannot leave a claim as a crash does")
	}
	must.OK(t, c.Claim(t.Context(), handle, id, at))
}

// wantOneRegistered registers all users at once and checks that one of them exists
// afterwards, and that the others are refused.
func (s accounts) wantOneRegistered(t *testing.T, users []storage.User, refusal error) {
	t.Helper()
	errs := make([]error, len(users))
	together(func(worker int) { errs[worker] = s.store.Register(t.Context(), users[worker], users[worker].Handle) })
	winner := -1
	for i, err := range errs {
		switch {
		case err != nil:
			wantIs(t, err, refusal)
		case winner >= 0:
			t.Errorf("%+v and %+v were registered", users[winner], users[i])
		default:
			winner = i
		}
	}
	must.That(t, winner >= 0, "nobody was registered")
	user := users[winner]
	wantEqual(t, "user", s.userOf(t, user.ID), user)
	wantEqual(t, "password", s.passwordOf(t, user.ID), user.Handle)
	wantEqual(t, "the handle's owner", found(t, storage.HandleLookups.Read(t.Context(), s.store, user.Handle), 1)[0], user.ID)
	for _, other := range users {
		if other.ID != user.ID {
			wantMissing(t, storage.UserLookups.Read(t.Context(), s.store, other.ID), 1)
		}
	}
}

func (h *harness) userOf(t *testing.T, id storage.UserID) storage.User {
	t.Helper()
	return found(t, storage.UserLookups.Read(t.Context(), h.store, id), 1)[0]
}

func (s accounts) passwordOf(t *testing.T, id storage.UserID) string {
	t.Helper()
	return found(t, storage.PasswordLookups.Read(t.Context(), s.store, id), 1)[0].Hash
}

func hashOf(id storage.UserID) string { return "$hash$" + id.String() }

// wantIs checks the kind of an error.
func wantIs(t *testing.T, err, kind error) {
	t.Helper()
	check.Is(t, "error", err, kind)
}
