package sqlstore

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/finding"
	"kith/storage/reaction"
	"kith/storage/sides"
	"kith/storage/sqlstore/internal/db"
)

// mostCompared is how many rows of one owner a statement of openCompared reads.
const mostCompared = 70

// openCompared opens a store that compares an owner's rows in parts, and returns the statements of comparisons that it has run.
func openCompared(t *testing.T, location string) (*Store, *[]Statement) {
	run := new([]Statement)
	s := openSmall(t, location, func(_ context.Context, st Statement) {
		if strings.HasPrefix(st.Lookup, "reconcile.") {
			*run = append(*run, st)
		}
	})
	s.rowsOfOwner = mostCompared
	return s, run
}

// An owner of very many rows is compared by some peers at a time, which come to the same as all rows at once.
func TestOneOwnerIsComparedInParts(t *testing.T) {
	onBothEngines(t, func(t *testing.T, location string) {
		const owner, rows = 500, 1000
		s, run := openCompared(t, location)
		for _, side := range storage.AllSides {
			var edges []storage.Edge
			for i := range storage.UserID(rows) {
				pair, post := side.Pair(owner, 1000+i/2*7), int64(0)
				if !side.HasItem() {
					pair = side.Pair(owner, 1000+i*7)
				} else if post = 1000; side.Truth() == storage.Relations {
					post = 101 + int64(i%2)
				} else {
					post += int64(i % 2)
				}
				edges = append(edges, storage.Edge{From: pair.From, To: pair.To, Item: post, Type: storage.EdgeType(i % 9 % 2), UpdateTime: storage.Micros(5 + i)})
			}
			must.All(t, s.Apply(t.Context(), side, append(edges,
				storage.Edge{From: side.Pair(owner-1, 7).From, To: side.Pair(owner-1, 7).To, Item: 101, Type: 1, UpdateTime: 5},
				storage.Edge{From: side.Pair(owner+1, 7).From, To: side.Pair(owner+1, 7).To, Item: 101, Type: 1, UpdateTime: 5}), storage.IfNewer))
			one := sides.OwnerRange{After: owner - 1, UpTo: owner}
			for _, parts := range []int{1, 7} {
				cut := sides.Cut{Parts: parts}
				want := make(map[int]sides.Digest)
				for _, e := range edges {
					want[cut.Group(e.Pair())] = want[cut.Group(e.Pair())].Plus(sides.Digest{Rows: 1, Mixed: e.Mix()})
				}
				*run = nil
				got, err := s.Digests(t.Context(), side, 0, one, cut, nil)
				check.That(t, err == nil && maps.Equal(got, want), "%s, %d parts: digests differ, %v", side, parts, err)
				check.Least(t, "statements", len(*run), rows/mostCompared)
				var read []storage.Edge
				groups := sides.Choose(cut.Groups(), storage.Indexes(cut.Groups()))
				err = s.GroupRows(t.Context(), side, 0, one, cut, groups, func(e storage.Edge) { read = append(read, e) })
				slices.SortFunc(read, func(a, b storage.Edge) int { return int(a.UpdateTime - b.UpdateTime) })
				check.That(t, err == nil && slices.Equal(read, edges), "%s, %d parts: %d rows, want %d, %v", side, parts, len(read), len(edges), err)
				for _, st := range *run {
					check.Most(t, "rows that a statement reads", st.Rows, max(mostCompared+1, cut.Groups()))
				}
			}
			digests, err := s.OwnerDigests(t.Context(), side, 0, one)
			all, failed := s.OwnerDigests(t.Context(), side, 0, sides.OwnerRange{UpTo: math.MaxInt64})
			check.That(t, err == nil && failed == nil && len(digests) == 1 && digests[owner] == all[owner], "%s: of the owner: %v, want %v", side, digests, all[owner])
		}
		for _, side := range []storage.Side{storage.Forward, storage.Inverse, storage.Favorites, storage.FavoriteInbox} {
			one, all := sides.OwnerRange{After: owner - 1, UpTo: owner}, sides.OwnerRange{UpTo: math.MaxInt64}
			for _, set := range []string{"1 = 1", "following_count = following_count + 3, follower_count = 2, favorite_count = 3, total_favorited = 7"} {
				if set != "1 = 1" {
					s.execute(t, "UPDATE user_counts SET "+set+" WHERE user_id = 500")
				}
				*run = nil
				wrong, err := s.WrongCounts(t.Context(), side, 0, one)
				must.OK(t, err)
				check.Least(t, "statements", len(*run), rows/mostCompared)
				want, err := s.WrongCounts(t.Context(), side, 0, all)
				must.OK(t, err)
				want = slices.DeleteFunc(want, func(w sides.WrongCount) bool { return w.User != owner })
				check.Equal(t, side.String()+": wrong counts", wrong, want)
			}
		}
	})
}

// So are the counts of an owner's items, and who follows an owner of those who block.
func TestItemsAndBlocksOfOneOwnerAreComparedInParts(t *testing.T) {
	onBothEngines(t, func(t *testing.T, location string) {
		const owner, rows = 500, 1000
		s, run := openCompared(t, location)
		one, all := sides.OwnerRange{After: owner - 1, UpTo: owner}, sides.OwnerRange{UpTo: math.MaxInt64}
		s.execute(t, `INSERT INTO post (author_id, post_id, client_key, text, media, created_at) VALUES (500, 1, '1', '', '[]', 1), (500, 2, '2', '', '[]', 1), (500, 3, '3', '', '[]', 1), (500, 4, '4', '', '[]', 1)`)
		for _, side := range []storage.Side{storage.FavoriteInbox, storage.Relations, storage.RelationInbox} {
			var edges []storage.Edge
			for i := range storage.UserID(rows) {
				pair := side.Pair(owner, 1000+i*7)
				pair.Item = int64(2 + i%9/3) // of posts: 2 to 4
				edges = append(edges, pair.Edge(storage.EdgeType(i%9%2), storage.Micros(5+i)))
			}
			edges = append(edges, side.Pair(owner-1, 7).Edge(1, 5), side.Pair(owner+1, 7).Edge(1, 5))
			must.All(t, s.Apply(t.Context(), side, edges, storage.IfNewer))
			for _, change := range []string{
				"UPDATE user_counts SET version = 0",
				"UPDATE post_counts SET favorite_count = favorite_count + 2 WHERE author_id = 500 AND post_id = 2",
				"DELETE FROM post_counts WHERE author_id = 500 AND post_id = 4",
				"DELETE FROM post WHERE author_id = 500 AND post_id = 3",
				"INSERT INTO post_counts (author_id, post_id, favorite_count) VALUES (500, 1, 7), (500, 9, 3)",
				"UPDATE relation_counts SET incoming = incoming + 1, outgoing = outgoing - 1 WHERE owner = 500 AND kind = 3",
				"DELETE FROM relation_counts WHERE owner = 500 AND kind = 2",
				"INSERT INTO relation_counts (owner, kind, incoming, outgoing) VALUES (500, 8, 1, 1)",
			} {
				if strings.Contains(change, "relation") == (side == storage.FavoriteInbox) {
					continue
				}
				s.execute(t, change)
				*run = nil
				wrong, err := s.WrongItemCounts(t.Context(), side, 0, one)
				must.OK(t, err)
				check.Least(t, "statements", len(*run), rows/mostCompared)
				want, err := s.WrongItemCounts(t.Context(), side, 0, all)
				must.OK(t, err)
				want = slices.DeleteFunc(want, func(w sides.WrongCount) bool { return w.User != owner })
				check.Equal(t, side.String()+": wrong counts after "+change, wrong, want)
			}
			s.execute(t, "DELETE FROM relation_counts WHERE owner = 500")
		}
		var blocks, follows []storage.Edge
		for i := range storage.UserID(rows) {
			blocks = append(blocks, storage.Edge{From: 1000 + i*7, To: owner, Type: storage.Blocking - storage.EdgeType(i%5/4), UpdateTime: 5})
			follows = append(follows, storage.Edge{From: owner, To: 1000 + i*14, Type: storage.Following, UpdateTime: 5})
		}
		must.All(t, s.Apply(t.Context(), storage.Forward, follows, storage.IfNewer))
		must.All(t, s.Apply(t.Context(), storage.Inverse, blocks, storage.IfNewer))
		s.execute(t, "UPDATE following SET type = 1 WHERE from_user_id = 500")
		*run = nil
		forbidden, err := s.ForbiddenFollows(t.Context(), 0, one)
		must.OK(t, err)
		check.Least(t, "statements", len(*run), rows/mostCompared)
		want, err := s.ForbiddenFollows(t.Context(), 0, all)
		check.That(t, err == nil && len(want) > rows/5 && slices.Equal(forbidden, want), "%d follows, want %d, %v", len(forbidden), len(want), err)
	})
}

// A user with very many edges is counted in parts, and not while nobody can follow the user. Of two who do that at once, one does.
func TestAUserWithManyEdgesIsRecountedWithoutItsLock(t *testing.T) {
	onBothEngines(t, func(t *testing.T, location string) {
		const owner, rows, most = 500, 300, 70
		counted, during := 0, func() {}
		var until []storage.Micros // of the lease, at each part
		var s *Store
		s = openSmall(t, location, func(_ context.Context, st Statement) {
			switch {
			case st.Lookup == "recount", st.Lookup == "recount.items":
				check.Most(t, "rows that are read under the lock", st.Rows, 1)
				check.That(t, !strings.Contains(st.Text, "COUNT(*)"), "counted under the lock: %s", st.Text)
			case strings.Contains(st.Text, "COUNT(*)") && during != nil:
				if counted++; counted == 2 {
					during()
				}
				holders, err := s.Holders(t.Context(), "recount")
				check.That(t, err == nil && len(holders) == 1, "%v, %v", holders, err)
				until = slices.AppendSeq(until, maps.Values(holders))
			}
		})
		s.rowsOfOwner = most
		for _, side := range db.Counted {
			edges := make([]storage.Edge, rows)
			for i := range edges {
				pair := side.Pair(owner, 1000+storage.UserID(i))
				if side.HasItem() {
					pair.Item = 1
				}
				edges[i] = pair.Edge(storage.Following, 5)
			}
			if side == storage.FavoriteInbox {
				s.execute(t, "INSERT INTO post (author_id, post_id, client_key, text, media, created_at) VALUES (500, 1, '1', '', '[]', 1)")
			}
			must.All(t, s.Apply(t.Context(), side, edges[9:], storage.IfNewer))
			s.execute(t, "UPDATE user_counts SET following_count = following_count + 3, follower_count = 2, favorite_count = 3, total_favorited = 7 WHERE user_id = 500")
			counted = 0
			during = func() {
				must.All(t, s.Apply(t.Context(), side, edges[:9], storage.IfNewer))
				check.Is(t, "another recount at once", s.Recount(t.Context(), side, []storage.UserID{owner})[0].Err, storage.ErrUnavailable)
			}
			until = nil
			must.All(t, s.Recount(t.Context(), side, []storage.UserID{owner}))
			check.Least(t, "statements that count", counted, rows/mostCompared)
			// A process that dies keeps others out for minutes, and one that counts for an hour keeps its lease.
			for i := range until[1:] {
				check.That(t, until[i] < until[i+1] && until[i+1] < storage.MicrosOf(time.Now().Add(10*time.Minute)), "the lease ends at %v", until)
			}
			n := storage.CountLookups.Read(t.Context(), s, owner)[0].Value
			check.Equal(t, side.String()+" after writes in between", n.Of(side), int64(rows))
		}
		for _, side := range []storage.Side{storage.FavoriteInbox, storage.Relations, storage.RelationInbox} {
			edges := make([]storage.Edge, rows)
			for i := range edges {
				pair := side.Pair(owner, 5000+storage.UserID(i))
				pair.Item = 1
				edges[i] = pair.Edge(storage.Related, 5)
			}
			must.All(t, s.Apply(t.Context(), side, edges[9:], storage.IfNewer))
			if side == storage.FavoriteInbox {
				s.execute(t, "UPDATE post_counts SET favorite_count = favorite_count + 3 WHERE author_id = 500")
			} else {
				s.execute(t, "UPDATE relation_counts SET outgoing = outgoing + 3, incoming = incoming - 2 WHERE owner = 500")
			}
			items := []storage.PostID{{Author: owner, Number: 1}}
			counted = 0
			during = func() {
				must.All(t, s.Apply(t.Context(), side, edges[:9], storage.IfNewer))
				check.Is(t, "another recount at once", s.RecountItems(t.Context(), side, items)[0].Err, storage.ErrUnavailable)
			}
			must.All(t, s.RecountItems(t.Context(), side, items))
			check.Least(t, "statements that count items", counted, rows/mostCompared)
			during = nil
			wrong, err := s.WrongItemCounts(t.Context(), side, 0, sides.OwnerRange{After: owner - 1, UpTo: owner})
			check.That(t, err == nil && len(wrong) == 0, "%s after writes in between: %+v, %v", side, wrong, err)
		}
	})
}

// Whoever is blocked by very many is read by several statements, and not by one without end.
func TestManyBlocksAreReadInParts(t *testing.T) {
	onBothEngines(t, func(t *testing.T, location string) {
		const famous, blocking, most = 1, 250, 100
		var run []Statement
		s := openSmall(t, location, func(_ context.Context, st Statement) { run = append(run, st) })
		var in, out []storage.Edge
		want := map[storage.UserID][]storage.UserID{2: {1}, 3: nil}
		for i := range storage.UserID(blocking) {
			in = append(in, storage.Edge{From: 10 + i, To: famous, Type: storage.Blocking, UpdateTime: storage.Micros(5 + i/9)})
			want[famous] = append(want[famous], 10+i)
		}
		for i := range storage.UserID(120) { // some of them both ways
			out = append(out, storage.Edge{From: famous, To: 200 + i, Type: storage.Blocking, UpdateTime: 7})
			want[famous] = append(want[famous], 200+i)
		}
		slices.Sort(want[famous])
		want[famous] = slices.Compact(want[famous])
		must.All(t, s.Apply(t.Context(), storage.Inverse, in, storage.IfNewer))
		must.All(t, s.Apply(t.Context(), storage.Forward, append(out, storage.Edge{From: 2, To: famous, Type: storage.Blocking, UpdateTime: 1}), storage.IfNewer))
		for _, s.blocksAtOnce = range []int{most, 1000} {
			run = nil
			users := []storage.UserID{1, 2, 3}
			for i, r := range storage.BlockLookups.Read(t.Context(), s, users...) {
				check.That(t, r.Err == nil && slices.Equal(r.Value, want[users[i]]), "blocks of %d: %v, %v", users[i], r.Value, r.Err)
			}
			for _, st := range run {
				check.Most(t, "rows of a statement", st.Rows, s.blocksAtOnce)
			}
			check.Equal(t, "more than one statement", len(run) > 1, s.blocksAtOnce == most)
		}
	})
}

// openCounting opens a store of which [rowsRead] counts what it reads.
func openCounting(t *testing.T) *Store {
	t.Helper()
	t.Parallel()
	testenv.NotOn(t, "it does not count the rows that a session reads", "tidb")
	s, err := Open(t.Context(), Config{Location: "mysql:" + testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0], StatementTimeout: time.Minute, MaxConns: 1})
	must.OK(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// Users who are popular are found beside any number of others who have as many followers, and are not active.
func TestPopularUsersAreReadPastIdleOnes(t *testing.T) {
	s := openCounting(t)
	const users, active = 30_000, 50
	for first := 1; first < users; first += 5000 {
		var rows []string
		for id := first; id < first+5000; id++ {
			rows = append(rows, fmt.Sprintf("(%d, %d, %d)", id, 1+id*id%99_999, map[bool]int{true: 20_000}[id%(users/active) == 0]))
		}
		s.execute(t, "INSERT INTO user_counts (user_id, follower_count, active_day) VALUES "+strings.Join(rows, ", "))
	}
	s.execute(t, fmt.Sprintf("INSERT INTO users (user_id, handle, name, bio, avatar_url, created_at, updated_at) SELECT user_id, CONCAT('u', user_id), 'A', '', '', 1, 1 FROM user_counts WHERE user_id %% %d = 0", users/active))
	before := rowsRead(t, s)
	popular, err := finding.PopularLookups.Get(t.Context(), s, finding.PopularQuery{Since: 19_900, Limit: 200})
	check.Most(t, "rows and keys that are read", rowsRead(t, s)-before, 2000)
	check.That(t, err == nil && len(popular) == active, "%d are popular, %v", len(popular), err)
}

// A page is read where its cursor is, also if very many edges are of one time.
func TestPagesAmongEdgesOfOneTime(t *testing.T) {
	s := openCounting(t)
	const followers, page = 20_000, 50
	for first := 1; first < followers; first += 5000 {
		var rows []string
		for id := first; id < first+5000; id++ {
			rows = append(rows, fmt.Sprintf("(7, %d, 1, 9)", id))
		}
		s.execute(t, "INSERT INTO follower (to_user_id, from_user_id, type, update_time) VALUES "+strings.Join(rows, ", "))
	}
	middle := storage.Position{UpdateTime: 9, Peer: followers / 2}
	for name, q := range map[string]storage.PageQuery{
		"after": {Owner: 7, Limit: page, After: middle}, "after, from the end": {Owner: 7, Limit: page, After: middle, Backward: true},
		"before": {Owner: 7, Limit: page, Before: middle}, "before, from the end": {Owner: 7, Limit: page, Before: middle, Backward: true},
	} {
		before := rowsRead(t, s)
		r := storage.PageLookups[storage.Inverse].Read(t.Context(), s, q)[0]
		check.Most(t, "rows that are read "+name, rowsRead(t, s)-before, page+5)
		check.That(t, r.Err == nil && len(r.Value) == page, "%s: %d edges, %v", name, len(r.Value), r.Err)
	}
}

// So are pages of posts, comments and favorites.
func TestPagesAmongPostsOfOneTime(t *testing.T) {
	s := openCounting(t)
	const n, page = 10_000, 50
	for first := 1; first < n; first += 5000 {
		var posts, counts, comments, favorites []string
		for id := first; id < first+5000; id++ {
			posts = append(posts, fmt.Sprintf("(7, %d, '%d', 'x', '[]', 9)", id, id))
			counts = append(counts, fmt.Sprintf("(7, %d)", id))
			comments = append(comments, fmt.Sprintf("(7, %d, 1, 3, '%d', 'x', 9)", id, id))
			favorites = append(favorites, fmt.Sprintf("(7, 7, %d, 1, 9)", id))
		}
		s.execute(t, "INSERT INTO post (author_id, post_id, client_key, text, media, created_at) VALUES "+strings.Join(posts, ", "))
		s.execute(t, "INSERT INTO post_counts (author_id, post_id) VALUES "+strings.Join(counts, ", "))
		s.execute(t, "INSERT INTO comment (author_id, comment_id, post_id, user_id, client_key, text, created_at) VALUES "+strings.Join(comments, ", "))
		s.execute(t, "INSERT INTO favorite (from_user_id, to_user_id, post_id, type, update_time) VALUES "+strings.Join(favorites, ", "))
		s.execute(t, "INSERT INTO favorite_inbox (to_user_id, from_user_id, post_id, type, update_time) VALUES "+strings.Join(favorites, ", "))
	}
	of, middle := storage.PostID{Author: 7, Number: 1}, storage.Place{CreatedAt: 9, Number: n / 2}
	q := storage.PlaceQuery{Of: of, Limit: page, After: middle}
	for name, read := range map[string]func() (rows int, err error){
		"posts":     func() (int, error) { return pageOfKind(t, s, storage.PostPageLookups, q) },
		"comments":  func() (int, error) { return pageOfKind(t, s, storage.CommentPageLookups, q) },
		"favorites": func() (int, error) { return pageOfKind(t, s, storage.FavoritePageLookups, q) },
		"recent posts": func() (int, error) {
			list, err := storage.RecentPostLookups.Get(t.Context(), s, storage.ShardQuery[storage.Place]{Limit: page, After: middle})
			return len(list), err
		},
		"latest posts": func() (int, error) {
			list, err := storage.LatestPostLookups.Get(t.Context(), s, storage.PlaceQuery{Limit: page, After: middle})
			return len(list), err
		},
		"favorites received": func() (int, error) {
			return pageOfKind(t, s, reaction.Lookups, reaction.Query{User: 7, Kind: reaction.Favorites, Limit: page, After: reaction.Reaction{Place: middle, By: 7}})
		},
		"comments received": func() (int, error) {
			return pageOfKind(t, s, reaction.Lookups, reaction.Query{User: 7, Kind: reaction.Comments, Limit: page, After: reaction.Reaction{Place: middle}})
		},
	} {
		before := rowsRead(t, s)
		rows, err := read()
		check.Most(t, "rows and keys that are read of "+name, rowsRead(t, s)-before, 4*page)
		check.That(t, err == nil && rows == page, "%s: %d, %v", name, rows, err)
	}
}

// pageOfKind is how long a page is.
func pageOfKind[K comparable, T any](t *testing.T, s *Store, kind *storage.LookupKind[K, []T], q K) (int, error) {
	t.Helper()
	r := kind.Read(t.Context(), s, q)[0]
	return len(r.Value), r.Err
}
