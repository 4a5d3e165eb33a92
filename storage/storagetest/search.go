package storagetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kith/storage"
)

// search: handles by their beginnings.
type search struct{ *harness }

func (s search) HandlesWithThePrefixAscend(t *testing.T) {
	want := s.handled(t, "ab", "ab_", "ab__", "ab_1", "ab_a", "ab_z", "ab0", "ab9", "aba", "abz", "abzz")
	s.handled(t, "a", "aa", "aazz", "a_b", "ac", "ac_ab", "b", "bab", "cab")
	wantList(t, "handles", s.search(t, "ab", "", 100), want)
	wantList(t, "handles with another prefix", handlesIn(s.search(t, "ac", "", 100)), []string{"ac", "ac_ab"})
	wantList(t, "one handle", handlesIn(s.search(t, "abzz", "", 100)), []string{"abzz"})
	for _, prefix := range []string{"abzzz", "zab", "AB", "a%", "%", "ab ", "ä", "a\x00", strings.Repeat("a", 31)} {
		wantList(t, "handles with "+fmt.Sprintf("%q", prefix), s.search(t, prefix, "", 100), nil)
	}
}

// An underscore matches only itself.
func (s search) NoCharacterIsAPattern(t *testing.T) {
	s.handled(t, "m_n", "mxn", "m_", "mx")
	wantList(t, "handles", handlesIn(s.search(t, "m_", "", 100)), []string{"m_", "m_n"})
}

func (s search) PagesFollowEachOther(t *testing.T) {
	var handles []string
	for i := range 40 { // on every shard
		handles = append(handles, fmt.Sprintf("page_%02d", i))
	}
	want := s.handled(t, handles...)
	for _, limit := range []int{1, 7, 39, 40, 41} {
		var got []storage.HandleOwner
		after := ""
		for {
			page := s.search(t, "page_", after, limit)
			if len(page) == 0 {
				break
			}
			if len(page) > limit {
				t.Fatalf("%d handles, want %d at most", len(page), limit)
			}
			if page[0].Handle <= after {
				t.Fatalf("%q does not come behind %q", page[0].Handle, after)
			}
			got = append(got, page...)
			after = page[len(page)-1].Handle
		}
		wantList(t, fmt.Sprintf("handles by pages of %d", limit), got, want)
	}
	wantList(t, "handles behind one that is not there", s.search(t, "page_", "page_055", 2), want[6:8])
	wantList(t, "handles behind one before all", s.search(t, "page_", "a", 2), want[:2])
	wantList(t, "handles behind one after all", s.search(t, "page_", "z", 2), nil)
	wantList(t, "handles behind what is none", s.search(t, "page_", "page_0 ", 2), nil)
}

func (s search) WithoutAPrefixAllAreListed(t *testing.T) {
	want := s.handled(t, "0000", "0000a")
	wantList(t, "the first handles", s.search(t, "", "", 2), want)
}

// handled makes users with handles, and returns them in the handles' order.
func (s search) handled(t *testing.T, handles ...string) []storage.HandleOwner {
	t.Helper()
	users := make([]storage.User, len(handles))
	owners := make([]storage.HandleOwner, len(handles))
	for i, handle := range handles {
		users[i] = person(s.id())
		users[i].Handle = handle
		owners[i] = storage.HandleOwner{Handle: handle, User: users[i].ID}
	}
	answers(t, s.store.CreateUsers(t.Context(), users), len(users))
	slices.SortFunc(owners, func(a, b storage.HandleOwner) int { return strings.Compare(a.Handle, b.Handle) })
	return owners
}

func (s search) search(t *testing.T, prefix, after string, limit int) []storage.HandleOwner {
	t.Helper()
	list, err := s.store.SearchHandles(t.Context(), prefix, after, limit)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func handlesIn(owners []storage.HandleOwner) []string {
	handles := make([]string, len(owners))
	for i, o := range owners {
		handles[i] = o.Handle
	}
	return handles
}
