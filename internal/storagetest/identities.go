package storagetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/contents"
)

// identities: which users the identities of providers belong to.
type identities struct{ *harness }

// identity is a new identity.
func (s identities) identity() storage.Identity {
	return storage.Identity{Issuer: "https://id.example.org/", Subject: fmt.Sprintf("auth0|%d", s.id())}
}

func (s identities) link(t *testing.T, id storage.Identity, user storage.UserID) {
	t.Helper()
	must.OK(t, s.store.LinkIdentity(t.Context(), id, user, at(1)))
}

// wantOwners looks identities up together; 0 means that an identity belongs to nobody.
func (s identities) wantOwners(t *testing.T, ids []storage.Identity, owners ...storage.UserID) {
	t.Helper()
	for i, r := range storage.IdentityLookups.Read(t.Context(), s.store, ids...) {
		check.That(t, r.Err == nil && r.Value == owners[i] && r.Found == (owners[i] != 0), "identity %d of %+v: %+v, want %d", i, ids[i], r, owners[i])
	}
}

func (s identities) ALinkIsFound(t *testing.T) {
	a, b, users := s.identity(), s.identity(), s.ids(2)
	s.wantOwners(t, []storage.Identity{a}, 0)
	s.link(t, a, users[0])
	s.link(t, b, users[1])
	s.wantOwners(t, []storage.Identity{b, s.identity(), a, b}, users[1], 0, users[0], users[1])
}

func (s identities) AgainItChangesNothing(t *testing.T) {
	id, user := s.identity(), s.id()
	for range 2 {
		s.link(t, id, user)
	}
	s.wantOwners(t, []storage.Identity{id}, user)
}

func (s identities) ItStaysThatOfItsUser(t *testing.T) {
	id, users := s.identity(), s.ids(2)
	s.link(t, id, users[0])
	wantIs(t, s.store.LinkIdentity(t.Context(), id, users[1], at(2)), storage.ErrKeyTaken)
	s.wantOwners(t, []storage.Identity{id}, users[0])
}

// If the case of a letter, a blank, or the end of the issuer differs, it is another identity.
func (s identities) TheyAreComparedExactly(t *testing.T) {
	n := s.id().String()
	ids := []storage.Identity{
		{Issuer: "https://a.example/", Subject: "x" + n}, {Issuer: "https://a.example/", Subject: "X" + n}, {Issuer: "https://a.example/", Subject: "x" + n + " "},
		{Issuer: "https://a.example", Subject: "/x" + n}, {Issuer: "https://A.example/", Subject: "x" + n}, {Issuer: "https://a.example/", Subject: "é" + n},
		{Issuer: "https://a.example/", Subject: "e\u0301" + n}, {Issuer: "https://a.example/", Subject: "%" + n}, {Issuer: "https://a.example/", Subject: "'; --" + n},
		{Issuer: strings.Repeat("i", storage.MaxIdentityText), Subject: strings.Repeat("s", storage.MaxIdentityText-len(n)) + n},
	}
	users := s.ids(len(ids))
	for i, id := range ids {
		s.link(t, id, users[i])
	}
	s.wantOwners(t, ids, users...)
}

func (s identities) WhatIsNoneIsNotFound(t *testing.T) {
	long := strings.Repeat("x", storage.MaxIdentityText+1)
	good, user := s.identity(), s.id()
	s.link(t, good, user)
	s.link(t, storage.Identity{Issuer: long[1:], Subject: "x"}, user)
	s.link(t, storage.Identity{Issuer: "x", Subject: long[1:]}, user)
	s.wantOwners(t, []storage.Identity{{}, {Issuer: good.Issuer}, {Subject: good.Subject}, good, {Issuer: long, Subject: "x"}, {Issuer: "x", Subject: long}, {Issuer: "x", Subject: "\xff"}, {Issuer: "x", Subject: "a\nb"}},
		0, 0, 0, user, 0, 0, 0, 0)
}

func (s identities) AUserMayHaveSeveral(t *testing.T) {
	a, b, user := s.identity(), s.identity(), s.id()
	s.link(t, a, user)
	s.link(t, b, user)
	s.wantOwners(t, []storage.Identity{a, b}, user, user)
}

func (s identities) OneOfManyGetsIt(t *testing.T) {
	id, users := s.identity(), s.ids(workers)
	errs := make([]error, workers)
	var all sync.WaitGroup
	for i, user := range users {
		all.Go(func() { errs[i] = s.store.LinkIdentity(t.Context(), id, user, at(1)) })
	}
	all.Wait()
	var owner storage.UserID
	for i, err := range errs {
		switch {
		case err == nil && owner == 0:
			owner = users[i]
		case !errors.Is(err, storage.ErrKeyTaken):
			t.Errorf("user %d: %v", i, err)
		}
	}
	s.wantOwners(t, []storage.Identity{id}, owner)
}

func (s identities) AUserWhoIsErasedHasNone(t *testing.T) {
	users := s.newUsers(t, 2)
	ids := make([]storage.Identity, 8) // on several shards
	owners := make([]storage.UserID, len(ids))
	for i := range ids {
		ids[i] = s.identity()
		s.link(t, ids[i], users[0].ID)
	}
	other := s.identity()
	s.link(t, other, users[1].ID)
	s.setState(t, users[0].ID, storage.Deleting, 1, true)
	must.OK(t, s.store.Erase(t.Context(), users[0].ID, at(2)))
	s.wantOwners(t, ids, owners...)
	s.wantOwners(t, []storage.Identity{other}, users[1].ID)
	s.link(t, ids[0], users[1].ID)
}

func (s identities) unlink(t *testing.T, id storage.Identity, user storage.UserID, want bool) {
	t.Helper()
	was, err := s.store.UnlinkIdentity(t.Context(), id, user)
	check.That(t, err == nil && was == want, "unlinked from %d: %v, %v; want %v", user, was, err, want)
}

func (s identities) UnlinkedItStandsForNobody(t *testing.T) {
	id, other, users := s.identity(), s.identity(), s.ids(2)
	s.unlink(t, id, users[0], false)
	s.link(t, id, users[0])
	s.link(t, other, users[0])
	s.unlink(t, id, users[0], true)
	s.unlink(t, id, users[0], false)
	s.wantOwners(t, []storage.Identity{id, other}, 0, users[0])
	s.link(t, id, users[1])
	s.wantOwners(t, []storage.Identity{id, other}, users[1], users[0])
}

func (s identities) ItIsUnlinkedFromItsUserOnly(t *testing.T) {
	id, users := s.identity(), s.ids(2)
	s.link(t, id, users[0])
	s.unlink(t, id, users[1], false)
	s.wantOwners(t, []storage.Identity{id}, users[0])
}

func (s identities) AUsersAreListedInTheOrderOfTheirLinks(t *testing.T) {
	users := s.ids(2)
	list := func() []storage.LinkedIdentity { return one(t, s.harness, storage.LinkLookups, users[0]) }
	wantList(t, "of nobody", list(), nil)
	var want []storage.LinkedIdentity
	for _, second := range []int{5, 2, 9, 2, 7, 1} { // on several shards
		l := storage.LinkedIdentity{Identity: s.identity(), User: users[0], At: at(second)}
		must.OK(t, s.store.LinkIdentity(t.Context(), l.Identity, l.User, l.At))
		want = append(want, l)
		s.link(t, s.identity(), users[1])
	}
	must.OK(t, s.store.LinkIdentity(t.Context(), want[0].Identity, users[0], at(99))) // again: its time stays
	slices.SortFunc(want, storage.LinkedIdentity.Compare)
	wantList(t, "identities", list(), want)
	s.unlink(t, want[2].Identity, users[0], true)
	wantList(t, "without one", list(), slices.Delete(want, 2, 3))
}

// On one shard a user has no more identities than the bound, so in all at most that many for each shard.
func (s identities) ThereIsABound(t *testing.T) {
	user, other, n := s.id(), s.id(), 0
	shards := part[contents.Reader](t, s.harness).Shards()
	var ids []storage.Identity
	var err error
	for ; err == nil && n <= storage.MaxIdentities*shards; n++ {
		ids = append(ids, s.identity())
		err = s.store.LinkIdentity(t.Context(), ids[n], user, at(1))
	}
	wantIs(t, err, storage.ErrLimitReached)
	if n--; n < storage.MaxIdentities || shards == 1 && n > storage.MaxIdentities {
		t.Errorf("%d on %d shards", n, shards)
	}
	s.wantOwners(t, ids[n:], 0)
	s.link(t, ids[0], user) // again
	s.link(t, ids[n], other)
}

func (s identities) RestoredTheyAreAsElsewhere(t *testing.T) {
	users, taken, known := s.ids(2), s.identity(), s.identity()
	s.link(t, taken, users[1])
	s.link(t, known, users[0])
	a, b := s.identity(), s.identity()
	rows := []storage.LinkedIdentity{
		{Identity: a, User: users[0], At: at(7)}, {Identity: taken, User: users[0], At: at(7)},
		{Identity: known, User: users[0], At: at(7)}, {Identity: b, User: users[0], At: at(6)},
	}
	for _, written := range []bool{true, false} {
		for i, r := range s.store.Restore(t.Context(), storage.Restored{Identities: rows}) {
			switch i {
			case 1:
				wantIs(t, r.Err, storage.ErrKeyTaken)
			case 2:
				wantEqual(t, "known", r, storage.Result[bool]{Found: true})
			default:
				wantEqual(t, "restored", r, storage.Result[bool]{Found: true, Value: written})
			}
		}
	}
	s.wantOwners(t, []storage.Identity{a, taken, known, b}, users[0], users[1], users[0], users[0])
	wantList(t, "identities", one(t, s.harness, storage.LinkLookups, users[0]), []storage.LinkedIdentity{{Identity: known, User: users[0], At: at(1)}, rows[3], rows[0]})
}
