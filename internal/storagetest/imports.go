package storagetest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"kith/internal/must"
	"kith/storage"
)

// imports are files of accounts that are worked on.
type imports struct{ *harness }

// parts are so many parts of an import, due one microsecond after the other.
func (s imports) parts(owner storage.UserID, number int64, n int, dueAt storage.Micros) (parts []storage.ImportPart) {
	for i := range n {
		parts = append(parts, storage.ImportPart{
			ImportID: storage.ImportID{Owner: owner, Number: number}, Part: int64(i), Kind: "FOLLOWS", Line: int64(50*i + 2), Size: 50, Lines: fmt.Sprint("line ", i), DueAt: dueAt + storage.Micros(i),
		})
	}
	return parts
}

func (s imports) add(t *testing.T, parts []storage.ImportPart) []storage.ImportPart {
	t.Helper()
	id, err := s.store.AddImport(t.Context(), parts)
	wantIs(t, err, nil)
	return storage.Each(parts, func(p storage.ImportPart) storage.ImportPart { p.ImportID = id; return p })
}

// want checks all parts of a user, which come without their lines.
func (s imports) want(t *testing.T, owner storage.UserID, want ...storage.ImportPart) {
	t.Helper()
	for i := range want {
		want[i].Lines = ""
	}
	wantList(t, "imports", one(t, s.harness, storage.ImportLookups, owner), want)
}

// wantDue checks which parts of some users are due.
func (s imports) wantDue(t *testing.T, upTo storage.Micros, of map[storage.UserID]bool, want ...storage.ImportPart) {
	t.Helper()
	var due []storage.ImportPart
	for shard := range s.store.Shards() {
		q := storage.ShardQuery[storage.ImportPart]{Shard: shard, Limit: 2, Until: upTo}
		for more, pages := true, 0; more; pages++ {
			must.That(t, pages != 1000, "the pages do not end")
			page := one(t, s.harness, storage.DueImportLookups, q)
			wantEqual(t, "more than the limit", len(page) > q.Limit, false)
			for _, p := range page {
				if of[p.Owner] {
					due = append(due, p)
				}
			}
			if more = len(page) == q.Limit; more {
				q.After = page[1]
			}
		}
	}
	wantList(t, fmt.Sprint("due at ", upTo), due, want)
}

func (s imports) PartsAreDueInTheirOrderUntilTheyAreDone(t *testing.T) {
	owner := s.newUsers(t, 1)[0].ID
	me := map[storage.UserID]bool{owner: true}
	parts := s.add(t, s.parts(owner, 7, 3, 100))
	s.wantDue(t, 99, me)
	s.wantDue(t, 101, me, parts[0], parts[1])
	done := parts[0]
	done.Made, done.Refused, done.Done, done.Lines, done.DueAt = 40, 3, true, "refused", 500
	for _, want := range []bool{true, false} {
		changed, err := s.store.FinishImport(t.Context(), done)
		wantIs(t, err, nil)
		wantEqual(t, "changed", changed, want)
	}
	s.want(t, owner, done, parts[1], parts[2])
	s.wantDue(t, 102, me, parts[1], parts[2])
	wantIs(t, s.store.DeferImports(t.Context(), owner, 102), nil)
	parts[1].DueAt = 102
	s.wantDue(t, 101, me)
	s.wantDue(t, 500, me, parts[1], parts[2], done)
}

func (s imports) RefusedLinesAreReadByPart(t *testing.T) {
	users := s.newUsers(t, 2)
	parts := s.add(t, s.parts(users[0].ID, 7, 6, 100))
	s.add(t, s.parts(users[0].ID, 8, 6, 100))
	s.add(t, s.parts(users[1].ID, 7, 6, 100))
	for i := range 5 {
		if parts[i].Refused = int64(i); i == 3 {
			continue
		}
		parts[i].Made, parts[i].Done, parts[i].Lines = 40, true, fmt.Sprint("refused ", i)
		_, err := s.store.FinishImport(t.Context(), parts[i])
		wantIs(t, err, nil)
	}
	for _, c := range []struct {
		from, to int64
		want     []storage.ImportPart
	}{
		{0, 5, []storage.ImportPart{parts[1], parts[2], parts[4]}}, {2, 3, parts[2:3]}, {3, 4, parts[4:5]}, {5, 5, nil}, {2, 1, nil},
	} {
		wantList(t, fmt.Sprint(c.from, " to ", c.to), one(t, s.harness, storage.RefusedLookups, storage.RefusedQuery{ImportID: parts[0].ImportID, From: c.from, To: c.to}), c.want)
	}
}

func (s imports) NumbersRise(t *testing.T) {
	owner, other := s.newUsers(t, 1)[0].ID, s.newUsers(t, 1)[0].ID
	one, two, three := s.add(t, s.parts(owner, 7, 1, 100)), s.add(t, s.parts(owner, 7, 2, 100)), s.add(t, s.parts(owner, 3, 1, 100))
	s.add(t, s.parts(other, 7, 1, 100))
	wantEqual(t, "number", two[0].Number, 8)
	s.want(t, owner, three[0], two[0], two[1], one[0])
	for _, want := range []bool{true, false} {
		removed, err := s.store.RemoveImport(t.Context(), two[0].ImportID)
		wantIs(t, err, nil)
		wantEqual(t, "removed", removed, want)
	}
	s.want(t, owner, three[0], one[0])
	changed, err := s.store.FinishImport(t.Context(), two[1])
	wantIs(t, err, nil)
	wantEqual(t, "changed what is removed", changed, false)
}

func (s imports) TheOldestThatIsDoneMakesRoom(t *testing.T) {
	owner := s.newUsers(t, 1)[0].ID
	for i := range storage.MaxImports {
		s.add(t, s.parts(owner, int64(10+i), 2, 100))
	}
	_, err := s.store.AddImport(t.Context(), s.parts(owner, 90, 1, 100))
	wantIs(t, err, storage.ErrLimitReached)
	for _, p := range append(s.parts(owner, 11, 2, 100), s.parts(owner, 12, 2, 100)...) {
		p.Done = true
		_, err := s.store.FinishImport(t.Context(), p)
		wantIs(t, err, nil)
	}
	half := s.parts(owner, 10, 1, 100)[0]
	half.Done = true
	_, err = s.store.FinishImport(t.Context(), half)
	wantIs(t, err, nil)
	s.add(t, s.parts(owner, 90, 1, 100))
	numbers := map[int64]bool{}
	for _, p := range one(t, s.harness, storage.ImportLookups, owner) {
		numbers[p.Number] = true
	}
	wantEqual(t, "imports", fmt.Sprint(slices.Sorted(maps.Keys(numbers))), "[10 12 13 14 90]")
}

func (s imports) TheyEndWithTheUser(t *testing.T) {
	nobody := s.id()
	_, err := s.store.AddImport(t.Context(), s.parts(nobody, 7, 1, 100))
	wantIs(t, err, storage.ErrUserUnknown)
	user := s.newUsers(t, 1)[0].ID
	s.add(t, s.parts(user, 7, 60, 100))
	s.setState(t, user, storage.Deleting, 10, true)
	wantIs(t, s.store.Erase(t.Context(), user, at(20)), nil)
	s.want(t, user)
	s.wantDue(t, at(1), map[storage.UserID]bool{user: true})
}
