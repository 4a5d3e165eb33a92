package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/graph/declared"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/finding"
	"kith/storage/sides"
	"kith/storage/sqlstore"
)

// A grower is a store that gets shards while it is in use by several programs.
type grower struct {
	t       *testing.T
	mover   *sqlstore.Store
	writers []*sqlstore.Store // each of another program
	add     string            // the address of the next shard
	users   int

	location string
	pause    time.Duration // of each writer between its writes, which sets the rate

	acknowledged sync.Map // storage.Pair → storage.EdgeType: the last answer to each pair's one writer
	posts        sync.Map // storage.PostID → *atomic.Int64: how many comments each has
	identities   sync.Map // storage.Identity → storage.UserID
	moderated    sync.Map // storage.ModerationEntry → true
	numbers      atomic.Int64
	writes       atomic.Int64
	slowest      atomic.Int64
	failures     atomic.Int64
	late         atomic.Bool // writes may be refused, because they come too late
}

func newGrower(t *testing.T, location, add string, users int) *grower {
	g := &grower{t: t, mover: open(t, location), add: add, users: users, location: location, pause: 8 * time.Millisecond}
	if !testenv.AllTests() {
		g.pause *= 5 // the same data is moved or copied; figures come from the long tests
	}
	var list []storage.User
	for id := 1; id <= users; id++ {
		list = append(list, storage.User{ID: storage.UserID(id), Handle: fmt.Sprintf("user%d", id), Name: "山", CreatedAt: 1, UpdatedAt: 1}) // words need not be ASCII
	}
	must.All(t, g.mover.CreateUsers(t.Context(), list))
	g.use(g.mover, location)
	return g
}

// use makes the writers use another store.
func (g *grower) use(s *sqlstore.Store, location string) {
	g.mover, g.location, g.writers = s, location, nil
	for range 2 {
		g.writers = append(g.writers, open(g.t, location))
	}
}

// write makes the writers write rows of every kind until the context ends.
func (g *grower) write(ctx context.Context, seed uint64) *sync.WaitGroup {
	var wg sync.WaitGroup
	for i, s := range g.writers {
		wg.Go(func() { s.Watch(ctx) })
		for j := range 3 {
			n := 3*i + j
			wg.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(n)))
				for ctx.Err() == nil {
					// Each pair is written by one goroutine, so that the last answer is the present state.
					from := storage.UserID(1 + r.IntN(g.users))
					to := storage.UserID(1 + r.IntN(g.users))
					if from == to || int(from+to)%(3*len(g.writers)) != n {
						continue
					}
					time.Sleep(g.pause)
					began := time.Now()
					g.one(s, r, from, to)
					took := time.Since(began).Milliseconds()
					for old := g.slowest.Load(); took > old && !g.slowest.CompareAndSwap(old, took); old = g.slowest.Load() {
					}
					g.writes.Add(1)
				}
			})
		}
	}
	return &wg
}

// one writes something, and logs a failure.
func (g *grower) one(s *sqlstore.Store, r *rand.Rand, from, to storage.UserID) {
	ctx := context.Background()
	at := storage.MicrosOf(time.Now())
	pair := storage.Pair{From: from, To: to}
	var err error
	switch r.IntN(15) {
	case 0:
		_, _, err = s.SetMark(ctx, pair, storage.MarkChange{Remark: new(fmt.Sprint(at))})
		if errors.Is(err, storage.ErrNoEdge) {
			err = nil
		}
	case 1:
		change := storage.EdgeChange{To: to, Item: declared.Dismissals.Number, Type: storage.EdgeType(min(r.IntN(4), 1)), At: at}
		err = s.ChangeEdges(ctx, storage.Relations, from, []storage.EdgeChange{change}, storage.ChangeOptions{Inverse: true})[0].Err
	case 2:
		_, _, err = s.UpdateProfile(ctx, from, storage.ProfileChange{Bio: new(fmt.Sprint(at))}, at)
	case 3:
		err = s.MarkActive(ctx, []storage.UserID{from, to}, at.Day())
	case 4:
		err = g.publish(ctx, s, r, from, at)
	case 5:
		err = g.comment(ctx, s, from, to, at)
	case 6:
		err = g.favorite(ctx, s, from, to, storage.EdgeType(min(r.IntN(4), 1)), at)
	case 7:
		id := storage.Identity{Issuer: "https://id.example.org", Subject: fmt.Sprint("auth0|", g.numbers.Add(1))}
		if err = s.LinkIdentity(ctx, id, from, at); err == nil {
			g.identities.Store(id, from)
		}
	case 8:
		e := storage.ModerationEntry{Owner: from, At: at, User: from, Action: storage.Suspended, By: "operator", Reason: "spam", Until: at + storage.Micros(to)}
		var added bool
		if e, added, err = s.Moderate(ctx, e); added {
			g.moderated.Store(e, true)
		}
	default:
		kind := storage.Following
		if r.IntN(3) == 0 {
			kind = storage.None
		}
		changed := s.ChangeEdges(ctx, storage.Forward, from, []storage.EdgeChange{{To: to, Type: kind, At: at}}, storage.ChangeOptions{})[0]
		if err = changed.Err; err == nil && changed.Value.Changed {
			g.acknowledged.Store(pair, kind)
			if err = s.Apply(ctx, storage.Inverse, []storage.Edge{changed.Value.Row}, storage.IfNewer)[0].Err; err != nil {
				g.acknowledged.Delete(pair) // on one side only, until it changes again
			}
		}
	}
	if err != nil && !(g.late.Load() && errors.Is(err, storage.ErrUnavailable)) {
		g.failures.Add(1)
		g.t.Errorf("a write of %d and %d: %v", from, to, err)
	}
}

// publish publishes a post, and sometimes deletes it again.
func (g *grower) publish(ctx context.Context, s *sqlstore.Store, r *rand.Rand, author storage.UserID, at storage.Micros) error {
	id := storage.PostID{Author: author, Number: g.numbers.Add(1)}
	_, _, err := s.Publish(ctx, storage.PostRow{PostID: id, Key: fmt.Sprint(id.Number), Text: "x", At: at})
	if err == nil && r.IntN(4) == 0 {
		_, err = s.DeletePost(ctx, id)
	} else if err == nil {
		g.posts.Store(id, new(atomic.Int64))
	}
	return err
}

// comment adds a comment to the first post of an author that is found, and sometimes deletes the comment.
func (g *grower) comment(ctx context.Context, s *sqlstore.Store, author, by storage.UserID, at storage.Micros) error {
	page := storage.PostPageLookups.Read(ctx, s, storage.PlaceQuery{Of: storage.PostID{Author: author}, Limit: 1})[0]
	if page.Err != nil || len(page.Value) == 0 {
		return page.Err
	}
	comments, kept := g.posts.Load(page.Value[0].PostID)
	if !kept {
		return nil // it is about to be deleted
	}
	number := g.numbers.Add(1)
	c, _, err := s.AddComment(ctx, storage.Comment{CommentID: storage.CommentID{Author: page.Value[0].Author, Number: number}, Post: page.Value[0].Number, By: by, Key: fmt.Sprint(number), Text: "x", CreatedAt: at})
	if err != nil {
		return err
	}
	comments.(*atomic.Int64).Add(1)
	if number%3 == 0 {
		if _, err = s.DeleteComment(ctx, c.CommentID, by); err == nil {
			comments.(*atomic.Int64).Add(-1)
		}
	}
	return err
}

// favorite makes or ends a favorite of the first post of an author that is found, and applies its other side.
func (g *grower) favorite(ctx context.Context, s *sqlstore.Store, user, author storage.UserID, kind storage.EdgeType, at storage.Micros) error {
	page := storage.PostPageLookups.Read(ctx, s, storage.PlaceQuery{Of: storage.PostID{Author: author}, Limit: 1})[0]
	if page.Err != nil || len(page.Value) == 0 {
		return page.Err
	}
	change := page.Value[0].PostID.Favorite(kind, at)
	r := s.ChangeEdges(ctx, storage.Favorites, user, []storage.EdgeChange{change}, storage.ChangeOptions{Peace: true})[0]
	err, changed := r.Err, r.Value
	if err != nil || !changed.Changed {
		return err
	}
	g.acknowledged.Store(changed.Row.Pair(), changed.Row.Type)
	if err = s.Apply(ctx, storage.FavoriteInbox, []storage.Edge{changed.Row}, storage.IfNewer)[0].Err; err != nil {
		g.acknowledged.Delete(changed.Row.Pair())
	}
	return err
}

// checkPosts checks that the posts are as the writers know them, and that they are counted.
func (g *grower) checkPosts() {
	g.t.Helper()
	posts := 0
	g.posts.Range(func(id, comments any) bool {
		posts++
		r := storage.PostLookups.Read(g.t.Context(), g.mover, id.(storage.PostID))[0]
		if want := comments.(*atomic.Int64).Load(); r.Err != nil || !r.Found || r.Value.Counts.Comments != want {
			g.t.Errorf("post %v: found %t with %d comments (%v), acknowledged were %d", id, r.Found, r.Value.Counts.Comments, r.Err, want)
		}
		return true
	})
	check.That(g.t, posts != 0, "nothing has been published")
	for ordinal, address := range g.mover.Addresses() {
		for _, wrong := range []string{
			"SELECT user_id FROM user_counts WHERE post_count <> (SELECT COUNT(*) FROM post WHERE author_id = user_id AND state = 0)",
			"SELECT author_id FROM post_counts c WHERE comment_count <> (SELECT COUNT(*) FROM comment m WHERE m.author_id = c.author_id AND m.post_id = c.post_id)",
		} {
			users := g.owners(address, wrong)
			check.That(g.t, len(users) == 0, "shard %d: %s: users %v", ordinal, wrong, users)
		}
	}
}

// checkEdges checks that a store has each edge as it was acknowledged.
func (g *grower) checkEdges(s *sqlstore.Store) {
	g.t.Helper()
	for _, sides := range [][]storage.Side{{storage.Forward, storage.Inverse}, {storage.Favorites, storage.FavoriteInbox}} {
		var pairs []storage.Pair
		var kinds []storage.EdgeType
		g.acknowledged.Range(func(pair, kind any) bool {
			if p := pair.(storage.Pair); sides[0].HasItem() == (p.Item != 0) {
				pairs, kinds = append(pairs, p), append(kinds, kind.(storage.EdgeType))
			}
			return true
		})
		for _, side := range sides {
			for i, r := range storage.EdgeLookups[side].Read(g.t.Context(), s, pairs...) {
				check.That(g.t, r.Err == nil && r.Value.Type == kinds[i], "%s of %v is %v (%v), acknowledged was %d", side, pairs[i], r.Value, r.Err, kinds[i])
			}
		}
	}
}

// check checks that the store is as the writers know it, with everything on the shard that owns it.
func (g *grower) check() {
	g.t.Helper()
	g.checkRows()
	g.checkPosts()
}

// checkRows is check for writers that publish nothing.
func (g *grower) checkRows() {
	g.t.Helper()
	ctx, s := g.t.Context(), g.mover
	must.OK(g.t, s.Refresh(ctx))
	g.checkEdges(s)
	g.identities.Range(func(id, user any) bool {
		r := storage.IdentityLookups.Read(ctx, s, id.(storage.Identity))[0]
		check.That(g.t, r.Err == nil && r.Value == user.(storage.UserID), "%v is of user %d (%v), acknowledged was %d", id, r.Value, r.Err, user)
		return true
	})
	logged := map[storage.ModerationEntry]bool{}
	last := map[storage.UserID]storage.Micros{}
	g.moderated.Range(func(entry, _ any) bool {
		e := entry.(storage.ModerationEntry)
		logged[e] = false
		return true
	})
	for q := (storage.PlaceQuery{Limit: 1000}); ; {
		page, err := storage.ModerationLookups.Get(ctx, s, q)
		must.OK(g.t, err)
		for _, e := range page {
			if _, newer := last[e.User]; !newer {
				last[e.User] = e.Until
			}
			logged[e], q.After = true, e.Place()
		}
		if len(page) < q.Limit {
			break
		}
	}
	for e, there := range logged {
		if is, err := storage.StateLookups.Get(ctx, s, e.User); !there || err != nil || is.Until != last[e.User] {
			g.t.Errorf("%+v is in the log: %t; suspended until %d (%v), the log says %d", e, there, is.Until, err, last[e.User])
		}
	}
	for ordinal, address := range s.Addresses() {
		wrong, err := s.WrongItemCounts(ctx, storage.FavoriteInbox, ordinal, sides.OwnerRange{UpTo: 1 << 62})
		check.That(g.t, err == nil && len(wrong) == 0, "counts of posts on shard %d are wrong: %v (%v)", ordinal, wrong, err)
		for _, side := range []storage.Side{storage.Forward, storage.Inverse, storage.Favorites, storage.FavoriteInbox} {
			wrong, err := s.WrongCounts(ctx, side, ordinal, sides.OwnerRange{UpTo: 1 << 62})
			check.That(g.t, err == nil && len(wrong) == 0, "counts of shard %d are wrong: %v (%v)", ordinal, wrong, err)
		}
		for table, owner := range map[string]string{
			"users": "user_id", "user_counts": "user_id", "following": "from_user_id", "follower": "to_user_id",
			"edge_marks": "from_user_id", "user_states": "user_id", "moderation_log": "owner_id",
			"post": "author_id", "post_counts": "author_id", "comment": "author_id",
			"favorite": "from_user_id", "favorite_inbox": "to_user_id", "relation": "from_user_id", "relation_inbox": "to_user_id",
		} {
			for _, id := range g.owners(address, "SELECT DISTINCT "+owner+" FROM "+table) {
				if s.ShardOf(id) != ordinal {
					g.t.Errorf("shard %d has rows of user %d in %s, which shard %d owns", ordinal, id, table, s.ShardOf(id))
				}
			}
		}
	}
	ids := make([]storage.UserID, g.users)
	handles := make([]string, g.users)
	for i := range ids {
		ids[i], handles[i] = storage.UserID(i+1), fmt.Sprintf("user%d", i+1)
	}
	for i, r := range storage.UserLookups.Read(ctx, s, ids...) {
		check.That(g.t, r.Err == nil && r.Found, "user %d: found %t (%v)", ids[i], r.Found, r.Err)
	}
	for i, r := range storage.HandleLookups.Read(ctx, s, handles...) {
		check.That(g.t, r.Err == nil && r.Value == ids[i], "handle %s is that of %d (%v)", handles[i], r.Value, r.Err)
	}
}

func (g *grower) owners(address, query string) (ids []storage.UserID) {
	g.t.Helper()
	rows, err := connect(g.t, address).Query(query)
	must.OK(g.t, err)
	defer rows.Close()
	for rows.Next() {
		var id storage.UserID
		must.OK(g.t, rows.Scan(&id))
		ids = append(ids, id)
	}
	return ids
}

// grow runs f for a store of one shard on each engine, with a database to add as another shard.
func grow(t *testing.T, users int, f func(*grower)) {
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		f(newGrower(t, sqlite(t, 1), filepath.Join(t.TempDir(), "another.db"), users))
	})
	t.Run("MariaDB", func(t *testing.T) {
		t.Parallel()
		testenv.NotOn(t, "TiDB spreads itself", "tidb")
		servers := testenv.SharedMariaDB(t, 2)
		f(newGrower(t, "mysql:"+servers.FreshDatabases(t, 1)[0], servers.FreshDatabases(t, 2)[1], users))
	})
}

// A shard is added to a store, gets half of the first shard's buckets, and later gives them back, while
// programs write that do not know about it.
func TestBucketsMoveUnderLoad(t *testing.T) {
	grow(t, 300, func(g *grower) {
		t, ctx := g.t, g.t.Context()
		writing, stop := context.WithCancel(ctx)
		writers := g.write(writing, 1)
		for g.writes.Load() < 300 {
			time.Sleep(time.Millisecond) // until there is something to move
		}
		to, err := g.mover.AddShard(ctx, g.add)
		must.That(t, err == nil && to == 1, "shard %d has been added: %v", to, err)
		for _, plan := range []sqlstore.Move{
			{Buckets: storage.BucketRange{First: 512, Last: 1023}, From: 0, To: 1},
			{Buckets: storage.BucketRange{First: 600, Last: 700}, From: 1, To: 0},
		} {
			before := g.writes.Load()
			report, err := g.mover.Move(ctx, plan, sqlstore.MoveConfig{Token: "test", Keep: 2 * time.Second})
			must.OK(t, err)
			check.That(t, report.Repaired == 0, "%d rows had been written without a note", report.Repaired)
			check.That(t, report.Waited <= 5*time.Second, "writes had to wait for %s", report.Waited)
			t.Logf("%s: %+v, %d writes meanwhile, the slowest took %d ms", plan, report, g.writes.Load()-before, g.slowest.Swap(0))
		}
		stop()
		writers.Wait()
		g.check()
		left := g.mover.Moves()
		check.That(t, len(left) == 0, "moves are left: %v", left)
	})
}

// Lists are as long as asked for although the first rows are of users who have moved, and have changed where they are now.
func TestRowsThatHaveMovedTakeNoPlaces(t *testing.T) {
	grow(t, 120, func(g *grower) {
		t, ctx, s := g.t, g.t.Context(), g.mover
		to, err := s.AddShard(ctx, g.add)
		must.OK(t, err)
		plan := half(0, to)
		var gone, left []storage.UserID
		for id := storage.UserID(1); id <= 120; id++ {
			if plan.Buckets.Contains(id.Bucket()) {
				gone = append(gone, id)
			} else {
				left = append(left, id)
			}
		}
		now := storage.MicrosOf(time.Now())
		change := func(users []storage.UserID, followers int, kind storage.EdgeType, name string, at storage.Micros) {
			for i, id := range users {
				for n := range followers {
					r := s.ChangeEdges(ctx, storage.Forward, users[(i+1+n)%len(users)], []storage.EdgeChange{{To: id, Type: kind, At: at}}, storage.ChangeOptions{Inverse: true})[0]
					check.That(t, r.Err == nil, "%v", r.Err)
				}
				_, _, err := s.UpdateProfile(ctx, id, storage.ProfileChange{Name: &name}, at)
				check.That(t, err == nil, "%v", err)
			}
		}
		change(gone, 2, storage.Following, "Alfa", now-3)
		change(left, 1, storage.Following, "Alfb", now-3)
		for i, users := range [][]storage.UserID{gone, left} {
			for _, id := range users {
				for _, kind := range []declared.Kind{declared.Mutes, declared.Dismissals} { // some end at one time
					mute := storage.EdgeChange{To: 121, Item: kind.Number, Type: storage.Related, At: now - 3, Detail: storage.DetailChange{EndsAt: now - 2 + storage.Micros(i)}}
					must.OK(t, s.ChangeEdges(ctx, storage.Relations, id, []storage.EdgeChange{mute}, storage.ChangeOptions{})[0].Err)
				}
			}
		}
		looked := false
		_, err = s.Move(ctx, plan, sqlstore.MoveConfig{Token: "m", Keep: 10 * time.Millisecond, Step: func(step string) {
			if step != "keep" || looked {
				return
			}
			looked = true
			change(gone, 2, storage.None, "Other", now-1)
			const limit = 7
			var due []storage.UserID
			for after := (storage.RelationRow{}); ; {
				page, err := storage.DueLookups.Get(ctx, s, storage.ShardQuery[storage.RelationRow]{Shard: 0, After: after, Limit: limit, Until: now})
				check.That(t, err == nil, "%v", err)
				for _, r := range page {
					due = append(due, r.From)
				}
				if len(page) < limit {
					break
				}
				after = page[limit-1]
			}
			var twice []storage.UserID
			for _, id := range left {
				twice = append(twice, id, id)
			}
			check.That(t, slices.Equal(due, twice), "due are relations of %v, want twice each of %v", due, left)
			named, err := finding.WordLookups.Get(ctx, s, finding.WordQuery{Prefix: "alf", Limit: limit})
			check.That(t, err == nil && slices.Equal(named, left[:limit]), "named are %v (%v), want %v", named, err, left[:limit])
			famous, err := finding.PopularLookups.Get(ctx, s, finding.PopularQuery{Since: 1, Limit: limit})
			popular := storage.Each(famous, func(p finding.PopularUser) storage.UserID { return p.User })
			check.That(t, err == nil && slices.Equal(popular, left[:limit]), "popular are %v (%v), want %v", popular, err, left[:limit])
		}})
		must.That(t, err == nil && looked, "%v, %v", err, looked)
	})
}
