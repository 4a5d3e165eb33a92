package cluster

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

// TestARestoredShardIsReadAgain: versions that were lost with a shard come again. What was kept under them is forgotten before anything is
// written there, and by those who only read, even if nobody tells them that the shard is readmitted.
func TestARestoredShardIsReadAgain(t *testing.T) {
	for name, redis := range map[string]func() string{
		"Redis":    func() string { return testenv.Redis(t).URL() },
		"no Redis": func() string { return "" },
	} {
		for _, writes := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, written to %t", name, writes), func(t *testing.T) {
				t.Parallel()
				path, ctx := filepath.Join(t.TempDir(), "kith.db"), t.Context()
				at := redis()
				g := openFeedGatewayOf(t, Config{Redis: at, RedisCache: at != "", Redundancy: Sync}, sqlstore.Config{Location: "sqlite:" + path}, 0)
				store := g.caches.store.(*sqlstore.Store)
				for !g.caches.local.IsOn() {
					time.Sleep(time.Millisecond)
				}
				rename := func(to string) {
					t.Helper()
					_, _, err := store.UpdateProfile(ctx, 1, storage.ProfileChange{Name: &to}, 5)
					must.OK(t, err)
				}
				shown := func() string { return storage.ProfileLookups.Read(ctx, g.caches.Reader(), 1)[0].Value.User.Name }
				must.OK(t, store.CreateUsers(ctx, []storage.User{{ID: 1, Handle: "one", Name: "new"}})[0].Err)
				rename("saved")
				rename("lost")
				lost := storage.UserChange{User: 1, Counts: storage.Counts{Version: 2}}
				for len(g.caches.local.Behind([]storage.UserChange{lost})) > 0 { // events of the writes still arrive
					must.Equal(t, "what is shown", shown(), "lost")
				}

				restore(t, path, "UPDATE users SET name = 'saved'", "UPDATE user_counts SET version = version - 1")
				want := "saved"
				if writes {
					want = "written"
					rename(want)
				} else {
					must.OK(t, store.Refresh(ctx)) // as once in a second
				}
				check.Equal(t, "what is shown", shown(), want)
			})
		}
	}
}

// restore makes of a store what its backup had, by statements, and readmits it.
func restore(t *testing.T, path string, statements ...string) {
	t.Helper()
	file, err := sql.Open("sqlite", path)
	must.OK(t, err)
	defer file.Close()
	for _, statement := range append(statements, "DELETE FROM kith_admitted") {
		_, err := file.ExecContext(t.Context(), statement)
		must.OK(t, err)
	}
	operator, err := sqlstore.Open(t.Context(), sqlstore.Config{Location: "sqlite:" + path, Readmits: true})
	must.OK(t, err)
	defer operator.Close()
	must.OK(t, operator.Readmit(t.Context(), 0))
}

// TestPostsAreInFeedsAgainAfterARestore: while the dump is loaded and the binlogs are not replayed, whoever reads a feed finds that its newest
// posts are gone, and leaves them out from then on. Inboxes that are built meanwhile lack them, too.
func TestPostsAreInFeedsAgainAfterARestore(t *testing.T) {
	t.Parallel()
	of := sqlstore.Config{Location: "sqlite:" + filepath.Join(t.TempDir(), "kith.db")}
	before := opened.Store(t, of)
	post := storage.PostID{Author: 1, Number: 1}
	err := before.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "one"}, {ID: 2, Handle: "two"}})[0].Err
	if err == nil {
		_, _, err = before.Publish(t.Context(), storage.PostRow{PostID: post, Key: "1", Text: "a", At: storage.MicrosOf(time.Now().Add(-time.Hour))})
	}
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		before.Apply(t.Context(), side, []storage.Edge{{From: 2, To: 1, Type: storage.Following, UpdateTime: 1}}, storage.IfNewer)
	}
	must.OK(t, err)
	g := openFeedGatewayOf(t, Config{Redis: testenv.Redis(t).URL(), Redundancy: Sync}, of, 500*time.Millisecond)
	g.wait(t, 1)
	g.caches.RecentPosts().Remove(post) // as the reader of a feed does
	wait := func(until func(page []int64) bool) {
		t.Helper()
		must.Soon(t, "the page is the right one", func() bool { return until(g.page(t, 2)) })
	}
	wait(func([]int64) bool { return g.counted(t, "kith_feed_inbox_pages_total") > 0 })
	restore(t, strings.TrimPrefix(of.Location, "sqlite:"))
	must.OK(t, g.caches.store.(*sqlstore.Store).Refresh(t.Context()))
	g.wait(t, 1)
	wait(func(page []int64) bool { return slices.Equal(page, []int64{post.Number}) })
}

// TestWhatIsReadWhereAUserWasIsNotKept: a gateway that stands still for a moment reads a user who has moved, and was changed since, where the
// user was. That is forgotten as soon as the gateway knows of the move.
func TestWhatIsReadWhereAUserWasIsNotKept(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), t.Context()
	of := sqlstore.Config{Location: "sqlite:" + filepath.Join(dir, "0.db") + ";" + filepath.Join(dir, "1.db")}
	g := openFeedGatewayOf(t, Config{Redis: testenv.Redis(t).URL(), Redundancy: Sync}, of, 0)
	store := g.caches.store.(*sqlstore.Store)
	for !g.caches.local.IsOn() {
		time.Sleep(time.Millisecond)
	}
	elsewhere, err := sqlstore.Open(ctx, of)
	must.OK(t, err)
	defer elsewhere.Close()
	user := storage.UserID(1)
	for store.ShardOf(user) != 0 {
		user++
	}
	must.OK(t, elsewhere.CreateUsers(ctx, []storage.User{{ID: user, Handle: "one", Name: "old"}})[0].Err)
	moving, end := context.WithCancel(ctx)
	var moved sync.WaitGroup
	defer moved.Wait()
	defer end()
	bucket := user.Bucket()
	moved.Go(func() {
		_, _ = elsewhere.Move(moving, sqlstore.Move{Buckets: storage.BucketRange{First: bucket, Last: bucket}, From: 0, To: 1}, sqlstore.MoveConfig{Token: "mover", Keep: time.Hour})
	})
	for elsewhere.ShardOf(user) == 0 {
		time.Sleep(time.Millisecond)
	}
	name := "new"
	_, _, err = elsewhere.UpdateProfile(ctx, user, storage.ProfileChange{Name: &name}, 5)
	must.OK(t, err) // it waits for the move
	shown := func() string { return storage.ProfileLookups.Read(ctx, g.caches.Reader(), user)[0].Value.User.Name }
	must.That(t, shown() != name, "the gateway knows of the move: the test shows nothing")
	must.OK(t, store.Refresh(ctx))
	check.Equal(t, "what is shown", shown(), name)
	name = "newest"
	_, _, err = store.UpdateProfile(ctx, user, storage.ProfileChange{Name: &name}, 5)
	must.OK(t, err)
	sent := 0
	for ; sent == 0; sent = g.counted(t, "kith_events_sent_total") {
		time.Sleep(time.Millisecond)
	}
	check.Equal(t, "how often the other gateways were told: of the name only", sent, 1)
}
