package storagetest

import (
	"strings"
	"testing"

	"kith/internal/must"
	"kith/storage"
)

// users: looking users up by id and by handle.
type users struct{ *harness }

func (s users) UnknownIDsAreNotFound(t *testing.T) {
	known, unknown := s.newUsers(t, 2), s.ids(3)
	results := storage.UserLookups.Read(t.Context(), s.store,
		unknown[0], known[0].ID, unknown[1], known[1].ID, unknown[2],
	)
	wantFound(t, results, false, true, false, true, false)
}

func (s users) UnknownHandlesAreNotFound(t *testing.T) {
	known := s.newUsers(t, 2)
	results := storage.HandleLookups.Read(t.Context(), s.store,
		"nobody_1", known[0].Handle, "", known[1].Handle, "nobody_2",
	)
	wantFound(t, results, false, true, false, true, false)
}

// Handles are compared byte by byte: not as patterns, numbers or words.
func (s users) HandlesAreComparedExactly(t *testing.T) {
	handles := []string{"a_b", "axb", "007", "7", "07", "7e0", "0x7", "null", "_", "__", "tess", "tes"}
	users := make([]storage.User, len(handles))
	for i, id := range s.ids(len(handles)) {
		users[i] = person(id)
		users[i].Handle = handles[i]
	}
	for i, made := range answers(t, s.store.CreateUsers(t.Context(), users), len(users)) {
		must.That(t, made, "user with handle %q was not made", handles[i])
	}
	got := found(t, storage.HandleLookups.Read(t.Context(), s.store, handles...), len(handles))
	wantList(t, "ids by handle", got, idsOf(users))
	wantMissing(t, storage.HandleLookups.Read(t.Context(), s.store, "a%", "___", "0", "tess ", " tes", "'7'"), 6)
}

// A text that is not a handle finds nobody, and does not fail the rest of its batch.
func (s users) WhatIsNoHandleIsNotFound(t *testing.T) {
	p := s.newUsers(t, 1)[0]
	texts := []string{
		"é", "\u212aelvin", "ſ", "名前", "😀", "a\x00b", "\xff\xfe", "", "TESS", "a b", "a'b", `a\`,
		strings.Repeat("x", storage.MaxHandleLength+1), strings.Repeat("é", 500_000),
	}
	wantMissing(t, storage.HandleLookups.Read(t.Context(), s.store, texts...), len(texts))
	for _, text := range texts {
		wantMissing(t, storage.HandleLookups.Read(t.Context(), s.store, text), 1)
		beside := storage.HandleLookups.Read(t.Context(), s.store, text, p.Handle, text)
		wantFound(t, beside, false, true, false)
		wantEqual(t, "the handle beside it", beside[1].Value, p.ID)
	}
}

func idsOf(users []storage.User) []storage.UserID {
	return storage.Each(users, func(u storage.User) storage.UserID { return u.ID })
}

func handlesOf(users []storage.User) []string {
	return storage.Each(users, func(u storage.User) string { return u.Handle })
}
