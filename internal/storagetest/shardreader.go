package storagetest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/contents"
)

// shardReader: everything that a shard holds, as of one moment, for stores that can read so. Users and
// rows of other tests are in the store, too.
type shardReader struct{ *harness }

// pageLimits are one row a page, some rows, and all rows at once.
var pageLimits = []int{1, 7, many}

func (s shardReader) EveryUserComesOnceOnItsShard(t *testing.T) {
	people := s.newUsers(t, 30)
	people = append(people, s.shown(t))
	s.apply(t, storage.Forward, follow(storage.Forward, s.id(), people[0].ID, 1)) // of a user who does not exist
	gone := erase(s).erased(t).ID
	byID := func(a, b storage.User) int { return cmp.Compare(a.ID, b.ID) }
	slices.SortFunc(people, byID)
	for _, limit := range pageLimits {
		var all []storage.User
		s.eachShard(t, func(t *testing.T, ordinal int, at contents.Moment) {
			users := usersAt(t, at, limit)
			check.That(t, slices.IsSortedFunc(users, func(a, b contents.Account) int { return byID(a.User, b.User) }), "not in order: %v", users)
			for _, u := range users {
				wantEqual(t, "shard", storage.NewShardMap(s.store.Shards()).Of(u.User.ID), ordinal)
				check.That(t, u.User.ID != gone, "user %d has been erased", gone)
				if _, ours := slices.BinarySearchFunc(people, u.User, byID); ours {
					all = append(all, u.User)
				}
			}
		})
		slices.SortFunc(all, byID)
		wantList(t, "users", all, people)
	}
}

// shown makes a user with every field set.
func (s shardReader) shown(t *testing.T) storage.User {
	t.Helper()
	u := person(s.id())
	for i, text := range u.Texts() {
		*text = fmt.Sprintf("a \"text\",\nof %d lines", i)
	}
	u.CreatedAt, u.UpdatedAt = at(3), at(4)
	u.FollowingsVisibility, u.FollowersVisibility, u.Undiscoverable, u.Locked = storage.ToFollowers, storage.ToNobody, true, true
	u.Attributes = `{"a":"<&>"}`
	answers(t, s.store.CreateUsers(t.Context(), []storage.User{u}), 1)
	return u
}

func (s shardReader) StatesComeAlong(t *testing.T) {
	want := map[storage.UserID]storage.UserState{}
	for _, state := range []storage.UserState{storage.Active, storage.Deactivated, storage.Deleting} {
		user := s.newUsers(t, 1)[0].ID
		s.setStateTo(t, user, state)
		want[user] = state
	}
	s.eachShard(t, func(t *testing.T, _ int, at contents.Moment) {
		for _, u := range usersAt(t, at, 2) {
			if state, ours := want[u.User.ID]; ours {
				wantEqual(t, "state", u.State, state)
				delete(want, u.User.ID)
			}
		}
	})
	wantEqual(t, "users that did not come", len(want), 0)
}

func (s shardReader) setStateTo(t *testing.T, user storage.UserID, state storage.UserState) {
	t.Helper()
	_, err := s.store.SetState(t.Context(), user, state, at(1))
	must.OK(t, err)
}

func (s shardReader) EveryRowComesInKeyOrder(t *testing.T) {
	onSides(t, storage.Truths[:], func(t *testing.T, side storage.Side) {
		var rows []storage.Edge
		for _, owner := range s.ids(6) {
			for i, peer := range s.ids(9) {
				row := edge(side, owner, peer, typesOf(side)[i%3], at(i))
				rows = append(rows, row)
				for range i % 3 {
					if side.HasItem() { // an author has several posts
						row.Item--
						rows = append(rows, row)
					}
				}
			}
		}
		s.apply(t, side, rows...)
		slices.SortFunc(rows, func(a, b storage.Edge) int { return side.Compare(a.Pair(), b.Pair()) })
		for _, limit := range pageLimits {
			var all []storage.Edge
			s.eachShard(t, func(t *testing.T, ordinal int, at contents.Moment) {
				page := rowsAt(t, at, side, limit)
				check.That(t, slices.IsSortedFunc(page, func(a, b storage.Edge) int { return side.Compare(a.Pair(), b.Pair()) }), "not in order: %v", page)
				for _, e := range page {
					wantEqual(t, "shard", storage.NewShardMap(s.store.Shards()).Of(e.From), ordinal)
					if slices.ContainsFunc(rows, func(own storage.Edge) bool { return own.Pair() == e.Pair() }) {
						all = append(all, e)
					}
				}
			})
			slices.SortFunc(all, func(a, b storage.Edge) int { return side.Compare(a.Pair(), b.Pair()) })
			wantList(t, "rows", all, rows)
		}
	})
}

func (s shardReader) RelationsHaveTheirDetails(t *testing.T) {
	user := s.newUsers(t, 1)[0].ID
	want := make(map[storage.Pair]storage.Detail)
	for i, to := range s.ids(3) {
		pair := storage.Pair{From: user, To: to, Item: int64(101 + i)}
		want[pair] = storage.Detail{EndsAt: at(100 * i), Attributes: storage.Attributes(fmt.Sprintf(`{"a":%d}`, i))}
		change := storage.EdgeChange{To: to, Item: pair.Item, Type: storage.Related, At: at(1), Detail: storage.DetailChange{EndsAt: want[pair].EndsAt, Attributes: values("a", fmt.Sprint(i))}}
		found(t, s.store.ChangeEdges(t.Context(), storage.Relations, user, []storage.EdgeChange{change}, storage.ChangeOptions{}), 1)
	}
	s.eachShard(t, func(t *testing.T, _ int, at contents.Moment) {
		rows, err := at.Relations(t.Context(), storage.Pair{From: user - 1}, many)
		wantIs(t, err, nil)
		for _, row := range rows {
			if row.From == user {
				wantEqual(t, "detail", row.Detail, want[row.Pair()])
				delete(want, row.Pair())
			}
		}
	})
	wantEqual(t, "relations missing", len(want), 0)
}

func (s shardReader) ATombstoneAtTimeZeroIsNoRow(t *testing.T) {
	onSides(t, storage.Truths[:], func(t *testing.T, side storage.Side) {
		e := edge(side, s.id(), s.id(), storage.None, 0)
		s.apply(t, side, e)
		s.eachShard(t, func(t *testing.T, _ int, at contents.Moment) {
			check.That(t, !slices.Contains(rowsAt(t, at, side, many), e), "%+v has come", e)
		})
	})
}

func (s shardReader) EveryIdentityComesOnceInItsBucket(t *testing.T) {
	var want []storage.LinkedIdentity
	for i, user := range s.ids(20) {
		l := storage.LinkedIdentity{Identity: identities(s).identity(), User: user, At: at(i)}
		must.OK(t, s.store.LinkIdentity(t.Context(), l.Identity, l.User, l.At))
		want = append(want, l)
	}
	byDigest := func(a, b storage.LinkedIdentity) int { return cmp.Compare(a.Digest(), b.Digest()) }
	slices.SortFunc(want, byDigest)
	for _, limit := range pageLimits {
		var all []storage.LinkedIdentity
		s.eachShard(t, func(t *testing.T, ordinal int, at contents.Moment) {
			page := allPages(t, limit, func(last *storage.LinkedIdentity) ([]storage.LinkedIdentity, error) {
				if last == nil {
					return at.Identities(t.Context(), "", limit)
				}
				return at.Identities(t.Context(), last.Digest(), limit)
			})
			check.That(t, slices.IsSortedFunc(page, byDigest), "not in order: %v", page)
			for _, l := range page {
				wantEqual(t, "shard", storage.NewShardMap(s.store.Shards()).OfHandle(l.Digest()), ordinal)
				if slices.Contains(want, l) {
					all = append(all, l)
				}
			}
		})
		slices.SortFunc(all, byDigest)
		wantList(t, "identities", all, want)
	}
}

// The reader does not see rows that are written after its first page, and the writers do not wait for it.
func (s shardReader) AllIsOfOneMoment(t *testing.T) {
	users := s.newUsers(t, 3)
	slices.SortFunc(users, func(a, b storage.User) int { return cmp.Compare(a.ID, b.ID) })
	from := users[1].ID
	peer, ended := s.id(), s.id()
	was := []storage.Edge{follow(storage.Forward, from, peer, 1), edge(storage.Forward, from, ended, storage.None, at(1))}
	s.apply(t, storage.Forward, was...)
	ordinal := storage.NewShardMap(s.store.Shards()).Of(from)
	err := part[contents.Reader](t, s.harness).ReadShard(t.Context(), ordinal, func(at1 contents.Moment) error {
		_, err := at1.Users(t.Context(), 0, 1)
		must.OK(t, err)
		name := "renamed"
		_, _, err = s.store.UpdateProfile(t.Context(), from, storage.ProfileChange{Name: &name}, at(9))
		must.OK(t, err)
		s.setStateTo(t, from, storage.Deactivated)
		s.apply(t, storage.Forward, edge(storage.Forward, from, peer, storage.None, at(9)),
			follow(storage.Forward, from, ended, 9), follow(storage.Forward, from, s.id(), 9))
		for _, u := range usersAt(t, at1, 2) {
			if u.User.ID == from {
				wantEqual(t, "user", u, contents.Account{User: users[1]})
			}
		}
		rows := slices.DeleteFunc(rowsAt(t, at1, storage.Forward, 2), func(e storage.Edge) bool { return e.From != from })
		slices.SortFunc(was, func(a, b storage.Edge) int { return cmp.Compare(a.To, b.To) })
		wantList(t, "rows", rows, was)
		return nil
	})
	must.OK(t, err)
	wantEqual(t, "name afterwards", s.userOf(t, from).Name, "renamed")
}

func (s shardReader) EachBucketIsServedOnce(t *testing.T) {
	shards := make([]int, storage.Buckets)
	s.eachShard(t, func(t *testing.T, _ int, at contents.Moment) {
		wantEqual(t, "number of buckets", len(at.Served()), storage.Buckets)
		for b := range shards {
			if at.Served().Has(b) {
				shards[b]++
			}
		}
	})
	for b, n := range shards {
		check.That(t, n == 1, "%d shards have bucket %d", n, b)
	}
}

func (s shardReader) TheReadersErrorComesBack(t *testing.T) {
	enough := errors.New("enough")
	err := part[contents.Reader](t, s.harness).ReadShard(t.Context(), 0, func(contents.Moment) error { return enough })
	check.That(t, errors.Is(err, enough), "%v, want %v", err, enough)
}

func (s shardReader) AnEndedContextReadsNothing(t *testing.T) {
	err := part[contents.Reader](t, s.harness).ReadShard(ended(t), 0, func(at contents.Moment) error {
		_, err := at.Users(ended(t), 0, 1)
		return err
	})
	wantEndedErr(t, "shard", err)
}

// eachShard reads all shards, one after another.
func (s shardReader) eachShard(t *testing.T, read func(t *testing.T, ordinal int, at contents.Moment)) {
	t.Helper()
	r := part[contents.Reader](t, s.harness)
	for ordinal := range r.Shards() {
		err := r.ReadShard(t.Context(), ordinal, func(at contents.Moment) error {
			read(t, ordinal, at)
			return nil
		})
		must.OK(t, err)
	}
}

// usersAt reads all users page by page.
func usersAt(t *testing.T, at contents.Moment, limit int) []contents.Account {
	t.Helper()
	return allPages(t, limit, func(last *contents.Account) ([]contents.Account, error) {
		if last == nil {
			return at.Users(t.Context(), 0, limit)
		}
		return at.Users(t.Context(), last.User.ID, limit)
	})
}

// rowsAt reads all rows of a side page by page.
func rowsAt(t *testing.T, at contents.Moment, side storage.Side, limit int) []storage.Edge {
	t.Helper()
	return allPages(t, limit, func(last *storage.Edge) ([]storage.Edge, error) {
		if last == nil {
			return at.Rows(t.Context(), side, storage.Pair{}, limit)
		}
		return at.Rows(t.Context(), side, last.Pair(), limit)
	})
}

// allPages reads pages until one is shorter than the limit. last is nil at first.
func allPages[V any](t *testing.T, limit int, next func(last *V) ([]V, error)) (all []V) {
	t.Helper()
	var last *V
	for {
		page, err := next(last)
		must.OK(t, err)
		must.That(t, len(page) <= limit, "%d in a page, want %d at most", len(page), limit)
		all = append(all, page...)
		if len(page) < limit || len(all) > many {
			return all
		}
		last = &page[len(page)-1]
	}
}
