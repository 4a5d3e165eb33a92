package storagetest

import (
	"fmt"
	"testing"

	"kith/internal/must"
	"kith/storage"
)

// profile: who may see a user's lists, whether the user is suggested, and whether it is locked.
type profile struct{ *harness }

func (s profile) VisibilityComesBack(t *testing.T) {
	for _, followings := range visibilities {
		for _, followers := range visibilities {
			for flags := range 4 {
				undiscoverable, locked := flags&1 != 0, flags&2 != 0
				made, registered := person(s.id()), person(s.id())
				for _, user := range []*storage.User{&made, &registered} {
					user.FollowingsVisibility, user.FollowersVisibility, user.Undiscoverable, user.Locked = followings, followers, undiscoverable, locked
				}
				answers(t, s.store.CreateUsers(t.Context(), []storage.User{made}), 1)
				s.register(t, registered)
				wantEqual(t, "user who was made", s.userOf(t, made.ID), made)
				wantEqual(t, "user who was registered", s.userOf(t, registered.ID), registered)
			}
		}
	}
}

var visibilities = []storage.Visibility{storage.ToEveryone, storage.ToFollowers, storage.ToNobody}

// A change to the default value is a change, too.
func (s profile) WhatIsGivenOfTheVisibilityIsChanged(t *testing.T) {
	followings, followers, undiscoverable, locked := storage.ToEveryone, storage.ToFollowers, false, false
	for given := 1; given < 16; given++ {
		user, other := person(s.id()), person(s.id())
		user.FollowingsVisibility, user.FollowersVisibility, user.Undiscoverable, user.Locked = storage.ToNobody, storage.ToNobody, true, true
		s.register(t, user)
		s.register(t, other)

		var change storage.ProfileChange
		want := user
		want.UpdatedAt = at(77)
		if given&1 != 0 {
			change.FollowingsVisibility, want.FollowingsVisibility = &followings, followings
		}
		if given&2 != 0 {
			change.FollowersVisibility, want.FollowersVisibility = &followers, followers
		}
		if given&4 != 0 {
			change.Undiscoverable, want.Undiscoverable = &undiscoverable, undiscoverable
		}
		if given&8 != 0 {
			change.Locked, want.Locked = &locked, locked
		}
		before := s.countsOf(t, user.ID).Version
		got, _, err := s.store.UpdateProfile(t.Context(), user.ID, change, at(77))
		must.OK(t, err)
		what := fmt.Sprintf("with values %04b", given)
		wantEqual(t, "user reported "+what, got, want)
		wantEqual(t, "user "+what, s.userOf(t, user.ID), want)
		wantEqual(t, "the other "+what, s.userOf(t, other.ID), other)
		if now := s.countsOf(t, user.ID).Version; now <= before {
			t.Errorf("the version was %d and is %d", before, now)
		}
	}
}
