package storagetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/finding"
)

// search: users by the words of their names and handles.
type search struct{ *harness }

func (s search) AWordIsFoundByItsBeginning(t *testing.T) {
	sota := s.named(t, "sota_m", "Sōta Müller-Łoś")
	other := s.named(t, "other1", "Otto")
	for _, prefix := range []string{"sota", "so", "s", "muller", "mul", "los", "sota_m", "sota_", "mu"} {
		s.wantFound(t, prefix, sota)
	}
	s.wantFound(t, "ot", other)
	for _, prefix := range []string{"ota", "sotam", "Sota", "sōta", "uller", "s%", "so_a", "sota ", "", "\x00", strings.Repeat("s", 40)} {
		s.wantFound(t, prefix)
	}
}

func (s search) AWordIsFoundWithAndWithoutJoiners(t *testing.T) {
	with, without := s.named(t, "with", "علی\u200cرضا"), s.named(t, "without", "علیرضا")
	for _, text := range []string{"علی\u200cر", "علیر"} {
		s.wantFound(t, finding.SearchedWords(text)[0], with, without)
	}
	s.wantFound(t, "رض", with)
}

func (s search) ScriptsWithoutSpacesAreFoundByAnyPart(t *testing.T) {
	yamada, kim, mixed := s.named(t, "yamada", "山田太郎 Tarō"), s.named(t, "minjun", "김민준"), s.named(t, "mixed", "T恤_store")
	for _, part := range []string{"山", "山田", "山田太郎", "田太", "太郎", "郎", "taro"} {
		s.wantFound(t, part, yamada)
	}
	s.wantFound(t, "민준", kim)
	for _, part := range []string{"t恤", "恤", "store"} {
		s.wantFound(t, part, mixed)
	}
	for _, part := range []string{"aro", "山太", "tore"} {
		s.wantFound(t, part)
	}
	long := s.named(t, "long", strings.Repeat("一二三四五六七八九十", 10)) // more ends than are kept, and longer ones
	s.wantFound(t, "一二三四五六七八九十", long)
	s.wantFound(t, "四五六七八九十一二三", long)
}

func (s search) NamesMayBeWrittenInManyWays(t *testing.T) {
	for name, want := range map[string]string{
		"user_name42x __x": "user_name42x x user name42x", "ΑΛΈΞΗΣ Οδυσσεύς": "αλεξησ οδυσσευσ", "Straße ﬁn": "strasse fin", "ｶﾞｸ": "カク", "_ ! _": "",
		"علی\u200cرضا": "علیرضا علی رضا", "क्\u200dष": "कष क ष",
	} {
		want := strings.Fields("han_dle_ " + want + " han dle")
		if name == "ｶﾞｸ" {
			want = append(want, "ク")
		}
		check.Equal(t, name, finding.Words(storage.User{Handle: "_han_dle_", Name: name}), want)
	}
	for text, want := range map[string]string{"USER_NAME": "user_name", "Σίσυφος!": "σισυφοσ", "_太郎!": "太郎", "Müller-Łoś": "muller los",
		"علی\u200cرضا": "علیرضا", "sof\u00adt a\ufe0fb\u200d \u3164c": "soft ab c"} {
		check.Equal(t, text, finding.SearchedWords(text), strings.Fields(want))
	}
	for _, text := range []string{"", "_", " __ !", "́"} {
		got := finding.SearchedWords(text)
		check.That(t, got == nil, "%q looks for %q", text, got)
	}
}

func (s search) UsersOfAllShardsComeInTheOrderOfWords(t *testing.T) {
	const n = 20
	want := make([]storage.UserID, 3*n)
	for i := range n { // each shard has some of them
		id := s.named(t, fmt.Sprintf("order_%02d", i), fmt.Sprintf("Order%02d", n-i))
		want[2*n-1-i], want[2*n+i] = id, id // order01 … order20, order_00 … order_19; and order, of all
		want[i] = id
	}
	slices.Sort(want[:n])
	for _, limit := range []int{1, 7, n, n + 3, 3 * n, many} {
		ids, err := finding.WordLookups.Get(t.Context(), s.store, finding.WordQuery{Prefix: "order", Limit: limit})
		must.OK(t, err)
		wantList(t, fmt.Sprintf("the first %d", limit), ids, want[:min(limit, len(want))])
	}
	s.wantFound(t, "order", want[:n]...)
}

func (s search) ANewNameHasNewWords(t *testing.T) {
	user := s.named(t, "keeps_handle", "Before Marriage")
	name := "After Marriage"
	_, _, err := s.store.UpdateProfile(t.Context(), user, storage.ProfileChange{Name: &name}, at(9))
	must.OK(t, err)
	s.wantFound(t, "before")
	for _, prefix := range []string{"after", "marriage", "keeps_h"} {
		s.wantFound(t, prefix, user)
	}
	bio := "Nothing of the name"
	_, _, err = s.store.UpdateProfile(t.Context(), user, storage.ProfileChange{Bio: &bio}, at(10))
	must.OK(t, err)
	s.wantFound(t, "after", user)
	s.wantFound(t, "nothing")
}

func (s search) RegisteredUsersAreFound(t *testing.T) {
	user := person(s.id())
	user.Handle, user.Name = "registered", "Rosa Regina"
	s.register(t, user)
	s.wantFound(t, "regi", user.ID)
	s.wantFound(t, "rosa", user.ID)
}

func (s search) ErasedUsersAreNotFound(t *testing.T) {
	user := person(s.id())
	user.Name = "Erasmus"
	s.register(t, user)
	s.wantFound(t, "erasmus", user.ID)
	s.setState(t, user.ID, storage.Deleting, 10, true)
	must.OK(t, s.store.Erase(t.Context(), user.ID, at(20)))
	s.wantFound(t, "erasmus")
}

// named makes a user.
func (s search) named(t *testing.T, handle, name string) storage.UserID {
	t.Helper()
	user := person(s.id())
	user.Handle, user.Name = handle, name
	must.That(t, answers(t, s.store.CreateUsers(t.Context(), []storage.User{user}), 1)[0], "user %s was not made", handle)
	return user.ID
}

// wantFound asks for a prefix in both ways. Users who are asked about twice are answered twice.
func (s search) wantFound(t *testing.T, prefix string, want ...storage.UserID) {
	t.Helper()
	slices.Sort(want)
	ids := found(t, finding.WordLookups.Read(t.Context(), s.store, finding.WordQuery{Prefix: prefix, Limit: many}), 1)[0]
	slices.Sort(ids)
	wantList(t, fmt.Sprintf("users with %q", prefix), slices.Compact(ids), want)
	asked := slices.Concat(want, s.ids(2), want) // two of them do not exist
	have := found(t, finding.UserWordLookups.Read(t.Context(), s.store, finding.UserWord{Users: asked, Prefix: prefix}), 1)[0]
	wantList(t, fmt.Sprintf("of them, with %q", prefix), have, slices.Concat(want, want))
}
