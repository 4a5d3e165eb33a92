package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/events"
	"kith/storage/sqlstore"
)

// TestAGatewayThatFollowsALogWaitsUntilItCanBeRead: the server logs a transaction and holds back what it has written, as it does for a
// moment under load. A gateway that is asked meanwhile does not keep the answer from before.
func TestAGatewayThatFollowsALogWaitsUntilItCanBeRead(t *testing.T) {
	t.Parallel()
	testenv.NeedsBinlog(t)
	server := testenv.MariaDB(t)
	of := sqlstore.Config{Location: "mysql:" + server.CreateDatabase(t, "kith_follow")}
	g := openFeedGatewayOf(t, Config{Redundancy: Sync}, of, 0)
	other := openFeedGatewayOf(t, Config{Redundancy: Sync}, of, 0)
	elsewhere := other.caches.store
	const held = 100 * time.Millisecond
	ctx, post := t.Context(), storage.PostID{Author: 1, Number: 5}
	create := func(user storage.UserID) error {
		return elsewhere.CreateUsers(ctx, []storage.User{{ID: user, Handle: user.ImportedHandle(), Name: "A"}})[0].Err
	}
	err := create(1)
	if err == nil {
		_, _, err = elsewhere.Publish(ctx, storage.PostRow{PostID: post, Key: "a", Text: "first", At: 5})
	}
	must.OK(t, err)
	for _, c := range []*Caches{g.caches, other.caches} { // on once the log is followed
		for !c.local.IsOn() {
			time.Sleep(time.Millisecond)
		}
	}
	hold := server.HoldsCommits(t, held)
	n := int64(0) // of the attempt
	textOf := func() *string { text := fmt.Sprint("text ", n); return &text }
	reader := g.caches.Reader()
	for _, change := range []struct {
		what  string
		write func() error
		right func() bool
	}{
		{"a comment", func() error {
			_, _, err := elsewhere.AddComment(ctx, storage.Comment{CommentID: storage.CommentID{Author: post.Author, Number: n}, Post: post.Number, By: 1, Key: fmt.Sprint(n), Text: "c", CreatedAt: 6})
			return err
		}, func() bool { return storage.PostLookups.Read(ctx, reader, post)[0].Value.Counts.Comments == n }},
		{"a new text", func() error {
			_, _, err := elsewhere.EditPost(ctx, post, storage.PostChange{Text: textOf()}, 7)
			return err
		}, func() bool { return storage.PostLookups.Read(ctx, reader, post)[0].Value.Text == *textOf() }},
		{"a new user", func() error { return create(storage.UserID(1 + n)) }, func() bool {
			return storage.UserLookups.Read(ctx, reader, storage.UserID(1+n))[0].Found
		}},
	} {
		n = 0
		for took := time.Duration(0); took < held; { // another commit may have been held in its place
			n++
			hold()
			done := make(chan error)
			began := time.Now()
			go func() { done <- change.write() }()
			for writing := true; writing; {
				select {
				case err := <-done:
					took, writing = time.Since(began), false
					must.OK(t, err)
				default:
					change.right()
					time.Sleep(time.Millisecond)
				}
			}
			must.Soon(t, change.what+": the answer from before it is not kept", change.right)
		}
	}
}

// While a gateway without a Redis does not follow the binlogs, it does not hear of what others write. When it follows them again, its
// subscriptions read what they have missed.
func TestSubscriptionsReadWhatNoLogHasTold(t *testing.T) {
	t.Parallel()
	testenv.NeedsBinlog(t)
	server := testenv.MariaDB(t)
	of := sqlstore.Config{Location: "mysql:" + server.CreateDatabase(t, "kith_follow")}
	g, other := openFeedGatewayOf(t, Config{Redundancy: Sync}, of, 0), openFeedGatewayOf(t, Config{Redundancy: Sync}, of, 0)
	follows := func() bool { return g.caches.local.IsOn() }
	must.Soon(t, "the gateway follows the binlog", follows)
	subscription, db := g.caches.cfg.Hub.Subscribe(t.Context(), 1), server.Open(t, "")
	must.Soon(t, "the gateway does not follow it", func() bool {
		var dump int64
		if db.QueryRow("SELECT MAX(id) FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'").Scan(&dump) == nil {
			_, _ = db.Exec(fmt.Sprint("KILL ", dump)) // it may have ended meanwhile
		}
		return !follows()
	})
	must.OK(t, other.caches.store.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "anna", Name: "Anna"}})[0].Err)
	must.That(t, !follows(), "the gateway has not been cut off for long enough")
	select {
	case <-subscription.Events():
	case <-time.After(time.Minute):
		t.Error("a subscription is not told that it has missed something")
	}
}

// While one server is away, a gateway without a Redis goes on following the others: it keeps what is on them, and its subscriptions hear of
// it. What is on the server that was away is not kept from before.
func TestOneServerThatIsAwayLeavesTheOthersFollowed(t *testing.T) {
	t.Parallel()
	testenv.NeedsBinlog(t)
	servers := []*testenv.MariaDBServer{testenv.MariaDB(t), testenv.MariaDB(t)}
	binlogOf := testenv.NewLink(t, servers[1].Addr()) // of which the gateway can be cut off, and nobody else
	locations := func(second string) sqlstore.Config {
		return sqlstore.Config{Location: "mysql:" + servers[0].DSN("kith_0") + ";" + second}
	}
	servers[0].CreateDatabase(t, "kith_0")
	direct := servers[1].CreateDatabase(t, "kith_1")
	other := openFeedGatewayOf(t, Config{Redundancy: Sync}, locations(direct), 0)
	g := openFeedGatewayOf(t, Config{Redundancy: Sync}, locations(strings.Replace(direct, servers[1].Addr(), binlogOf.Addr, 1)), 0)
	near, away := onTwoShards(t, g.caches.store)
	if g.caches.store.ShardOf(near) != 0 {
		near, away = away, near
	}
	elsewhere := other.caches.store.(*sqlstore.Store)
	rename := func(id storage.UserID, name string) {
		t.Helper()
		_, _, err := elsewhere.UpdateProfile(t.Context(), id, storage.ProfileChange{Name: &name}, storage.MicrosOf(time.Now()))
		must.OK(t, err)
	}
	name := func(id storage.UserID) string {
		return storage.UserLookups.Read(t.Context(), g.caches.Reader(), id)[0].Value.Name
	}
	keeps := func(id storage.UserID) bool {
		name(id)
		hits := countedUsers(t, g.registry, "kith_cache_hits_total")
		return storage.UserLookups.Read(t.Context(), g.caches.Reader(), id)[0].Found && countedUsers(t, g.registry, "kith_cache_hits_total") > hits
	}
	must.Soon(t, "the gateway keeps both users", func() bool { return keeps(near) && keeps(away) })

	binlogOf.Cut()
	must.Soon(t, "the user whose server is away is not kept", func() bool { return !keeps(away) })
	must.Soon(t, "the gateway keeps the user whose server is there", func() bool { return keeps(near) })
	subscription := g.caches.cfg.Hub.Subscribe(t.Context(), near)
	rename(near, "Near")
	select {
	case e := <-subscription.Events():
		check.Equal(t, "the event", e.Kind, events.UserChanged)
	case <-time.After(time.Minute):
		t.Fatal("a subscription does not hear of the server that is there")
	}
	must.Soon(t, "the new name is answered", func() bool { return name(near) == "Near" })
	rename(away, "Away")
	check.That(t, !keeps(away), "the user whose server is away is kept")

	missed := g.caches.cfg.Hub.Subscribe(t.Context(), away)
	binlogOf.Mend(t)
	must.Soon(t, "the gateway keeps both users again", func() bool { return keeps(near) && keeps(away) })
	check.Equal(t, "the name that nothing was heard of", name(away), "Away")
	select {
	case <-missed.Events():
	default:
		t.Error("a subscription is not told that it has missed something")
	}
}

// A gateway that keeps nothing in memory follows the binlogs, too: subscriptions hear of what others write.
func TestAGatewayWithoutACacheHearsOfOthers(t *testing.T) {
	t.Parallel()
	testenv.NeedsBinlog(t)
	d, of, hub := Config{Redundancy: Sync}, sqlstore.Config{Location: "mysql:" + testenv.MariaDB(t).CreateDatabase(t, "kith_follow")}, events.NewHub(nil)
	store, none := opened.Store(t, of), new(Redis)
	caches := d.OpenCaches(CacheConfig{
		Store: store, Bus: EventsOf(store, none, hub, nil), Redis: none, Hub: hub, Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
	})
	t.Cleanup(caches.Close)
	t.Cleanup(InBackground(func(ctx context.Context) { caches.Run(ctx, func() {}) }))
	other := openFeedGatewayOf(t, d, of, 0)
	must.OK(t, other.caches.store.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "anna", Name: "Anna"}})[0].Err)
	subscription := hub.Subscribe(t.Context(), 1)
	must.Soon(t, "the gateway hears of a follow", func() bool {
		other.caches.store.Apply(t.Context(), storage.Forward, []storage.Edge{{From: 1, To: 2, Type: storage.Following, UpdateTime: storage.MicrosOf(time.Now())}}, storage.IfNewer)
		select {
		case e := <-subscription.Events():
			return e.Kind == events.UserChanged
		case <-time.After(10 * time.Millisecond):
			return false
		}
	})
}
