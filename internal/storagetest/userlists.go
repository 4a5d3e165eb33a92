package storagetest

import (
	"fmt"
	"testing"

	"kith/internal/check"
	"kith/storage"
	"kith/storage/contents"
)

// userLists are the lists of users.
type userLists struct{ *harness }

func (s userLists) TheyAreCreatedChangedAndDeleted(t *testing.T) {
	owner := s.newUsers(t, 1)[0].ID
	one := s.createList(t, owner, 5, "one")
	wantEqual(t, "number", one.Number, 5)
	name, public := "first", true
	for n, step := range []struct {
		change  storage.ListChange
		changed bool
	}{
		{storage.ListChange{}, false}, {storage.ListChange{Name: &one.Name, Public: &one.Public}, false},
		{storage.ListChange{Name: &name}, true}, {storage.ListChange{Public: &public}, true}, {storage.ListChange{Name: &name, Public: &public}, false},
	} {
		step.change.Apply(&one)
		now, changed, err := s.store.UpdateList(t.Context(), one.ListID, step.change)
		wantIs(t, err, nil)
		wantEqual(t, fmt.Sprintf("changed in step %d", n), changed, step.changed)
		wantEqual(t, fmt.Sprintf("list in step %d", n), now, one)
		s.wantLists(t, storage.ListsQuery{Owner: owner, UpTo: 9, Limit: 9}, one)
	}
	deleted, err := s.store.DeleteList(t.Context(), one.ListID)
	wantIs(t, err, nil)
	wantEqual(t, "deleted", deleted, true)
	s.wantLists(t, storage.ListsQuery{Owner: owner, UpTo: 9, Limit: 9})
	_, err = s.store.DeleteList(t.Context(), one.ListID)
	wantIs(t, err, storage.ErrListUnknown)
	_, _, err = s.store.UpdateList(t.Context(), one.ListID, storage.ListChange{Public: &public})
	wantIs(t, err, storage.ErrListUnknown)
}

// Two lists that are created at the same time, or behind the newest one, have numbers of their own.
func (s userLists) TheNewestComeFirst(t *testing.T) {
	owner, other := s.newUsers(t, 1)[0].ID, s.newUsers(t, 1)[0].ID
	var lists []storage.UserList
	for i, number := range []int64{5, 5, 3, 100} {
		lists = append(lists, s.createList(t, owner, number, fmt.Sprint(i)))
	}
	s.createList(t, other, 6, "y")
	for i, want := range []int64{5, 6, 7, 100} {
		wantEqual(t, "number", lists[i].Number, want)
	}
	lists[1].Public = true
	_, _, err := s.store.UpdateList(t.Context(), lists[1].ListID, storage.ListChange{Public: &lists[1].Public})
	wantIs(t, err, nil)
	s.wantLists(t, storage.ListsQuery{Owner: owner, UpTo: 1000, Limit: 2}, lists[3], lists[2])
	s.wantLists(t, storage.ListsQuery{Owner: owner, UpTo: 7, Limit: 9}, lists[2], lists[1], lists[0])
	s.wantLists(t, storage.ListsQuery{Owner: owner, UpTo: 1000, Public: true, Limit: 9}, lists[1])
}

// A list with members stays, and a list that is gone gets none.
func (s userLists) MembersNeedAList(t *testing.T) {
	users := idsOf(s.newUsers(t, 2))
	list := s.createList(t, users[0], 5, "x").ListID
	member := storage.Pair{From: users[0], To: users[1], Item: list.Kind()}
	found(t, relations(s).change(t, users[0], storage.ChangeOptions{}, storage.EdgeChange{To: member.To, Item: member.Item, Type: storage.Related, At: at(1)}), 1)
	deleted, err := s.store.DeleteList(t.Context(), list)
	wantIs(t, err, nil)
	wantEqual(t, "deleted with a member", deleted, false)
	found(t, relations(s).change(t, users[0], storage.ChangeOptions{}, storage.EdgeChange{To: member.To, Item: member.Item, Type: storage.None, At: at(2)}), 1)
	deleted, err = s.store.DeleteList(t.Context(), list)
	wantIs(t, err, nil)
	wantEqual(t, "deleted", deleted, true)
	again := relations(s).change(t, users[0], storage.ChangeOptions{}, storage.EdgeChange{To: member.To, Item: member.Item, Type: storage.Related, At: at(3)})
	wantIs(t, again[0].Err, storage.ErrListUnknown)
	relations(s).wantAllRight(t)
}

func (s userLists) TheirNumberIsBounded(t *testing.T) {
	owner := s.newUsers(t, 1)[0].ID
	var most []storage.UserList
	for i := range storage.MaxLists - 1 {
		most = append(most, storage.UserList{ListID: storage.ListID{Owner: owner, Number: int64(i + 1)}, Name: fmt.Sprint(i)})
	}
	answers(t, s.store.Restore(t.Context(), storage.Restored{Lists: most}), len(most)) // at once
	s.createList(t, owner, storage.MaxLists, "the last")
	_, _, err := s.store.CreateList(t.Context(), storage.UserList{ListID: storage.ListID{Owner: owner, Number: 9000}, Name: "x"})
	wantIs(t, err, storage.ErrLimitReached)
	wantIs(t, s.store.Restore(t.Context(), storage.Restored{Lists: []storage.UserList{{ListID: storage.ListID{Owner: owner, Number: 9000}, Name: "x"}}})[0].Err, storage.ErrLimitReached)
	_, err = s.store.DeleteList(t.Context(), storage.ListID{Owner: owner, Number: 7})
	wantIs(t, err, nil)
	s.createList(t, owner, 9000, "x")
	last := s.newUsers(t, 1)[0].ID
	s.createList(t, last, storage.MaxListNumber, "the last number")
	_, _, err = s.store.CreateList(t.Context(), storage.UserList{ListID: storage.ListID{Owner: last, Number: 5}, Name: "x"})
	wantIs(t, err, storage.ErrLimitReached)
}

// A list that is created again is the one that there is: the newest, if there are several.
func (s userLists) OneIsCreatedOnce(t *testing.T) {
	owner, other := s.newUsers(t, 1)[0].ID, s.newUsers(t, 1)[0].ID
	s.createList(t, other, 4, "x")
	same := s.createList(t, owner, 5, "x")
	capital := s.createList(t, owner, 5, "X")
	public := storage.UserList{ListID: storage.ListID{Owner: owner, Number: 8}, Name: "x", Public: true}
	for i, created := range []bool{true, false} {
		public.Number = 8 + int64(i)
		made, now, err := s.store.CreateList(t.Context(), public)
		wantIs(t, err, nil)
		wantEqual(t, "created", now, created)
		wantEqual(t, "number", made.Number, 8)
	}
	public.Number = 8
	same.Number = 20
	found(t, s.store.Restore(t.Context(), storage.Restored{Lists: []storage.UserList{same}}), 1)
	again, created, err := s.store.CreateList(t.Context(), storage.UserList{ListID: storage.ListID{Owner: owner, Number: 30}, Name: "x"})
	wantIs(t, err, nil)
	wantEqual(t, "created", created, false)
	wantEqual(t, "the newest", again, same)
	first := same
	first.Number = 5
	s.wantLists(t, storage.ListsQuery{Owner: owner, UpTo: 99, Limit: 9}, same, public, capital, first)
}

func (s userLists) NobodyHasLists(t *testing.T) {
	nobody := storage.ListID{Owner: s.id(), Number: 5}
	_, _, err := s.store.CreateList(t.Context(), storage.UserList{ListID: nobody, Name: "x"})
	wantIs(t, err, storage.ErrUserUnknown)
	s.wantLists(t, storage.ListsQuery{Owner: nobody.Owner, UpTo: 9, Limit: 9})
}

func (s userLists) TheyEndWithTheUser(t *testing.T) {
	users := idsOf(s.newUsers(t, 2))
	s.createList(t, users[0], 5, "x")
	stays := s.createList(t, users[1], 5, "x")
	s.setState(t, users[0], storage.Deleting, 10, true)
	wantIs(t, s.store.Erase(t.Context(), users[0], at(20)), nil)
	s.wantLists(t, storage.ListsQuery{Owner: users[0], UpTo: 9, Limit: 9})
	s.wantLists(t, storage.ListsQuery{Owner: users[1], UpTo: 9, Limit: 9}, stays)
}

// Lists come back with their numbers, in any order and again, and those that there are stay.
func (s userLists) TheyAreRestored(t *testing.T) {
	users := idsOf(s.newUsers(t, 2))
	nobody := s.id()
	stays := s.createList(t, users[0], 5, "stays")
	list := func(owner storage.UserID, number int64) storage.UserList {
		return storage.UserList{ListID: storage.ListID{Owner: owner, Number: number}, Name: "restored", Public: number%2 == 0}
	}
	all := []storage.UserList{list(users[1], 4), list(users[0], 5), list(nobody, 1), list(users[0], 9), list(users[0], 2)}
	for i, changed := range []bool{true, false} {
		for k, r := range s.store.Restore(t.Context(), storage.Restored{Lists: all}) {
			isNew, isThere := k != 1 && k != 2, k != 2
			wantIs(t, r.Err, nil)
			wantEqual(t, fmt.Sprintf("found %d", k), r.Found, isThere)
			wantEqual(t, fmt.Sprintf("created %d, time %d", k, i), r.Value, isNew && changed)
		}
	}
	s.wantLists(t, storage.ListsQuery{Owner: users[0], UpTo: 99, Limit: 9}, all[3], stays, all[4])
	s.wantLists(t, storage.ListsQuery{Owner: users[1], UpTo: 99, Limit: 9}, all[0])
	want := map[storage.UserList]bool{all[0]: true, all[3]: true, all[4]: true, stays: true}
	shardReader(s).eachShard(t, func(t *testing.T, _ int, at contents.Moment) {
		var last storage.ListID
		for {
			page, err := at.Lists(t.Context(), last, 2)
			wantIs(t, err, nil)
			for _, l := range page {
				check.That(t, last.Owner <= l.Owner && (last.Owner != l.Owner || last.Number < l.Number), "%+v comes behind %+v", l.ListID, last)
				last = l.ListID
				delete(want, l)
			}
			if len(page) < 2 {
				return
			}
		}
	})
	wantEqual(t, "lists missing", len(want), 0)
}

func (s userLists) createList(t *testing.T, owner storage.UserID, number int64, name string) storage.UserList {
	t.Helper()
	made, created, err := s.store.CreateList(t.Context(), storage.UserList{ListID: storage.ListID{Owner: owner, Number: number}, Name: name})
	wantIs(t, err, nil)
	wantEqual(t, "created", created, true)
	return made
}

func (s userLists) wantLists(t *testing.T, q storage.ListsQuery, want ...storage.UserList) {
	t.Helper()
	got := found(t, storage.ListLookups.Read(t.Context(), s.store, q), 1)[0]
	wantList(t, "lists", got, want)
}
