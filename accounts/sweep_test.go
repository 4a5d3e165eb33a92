package accounts_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// away is a shard that is down during ticks 1 to 3 and 5 of a sweeper.
type away struct{ asked atomic.Int32 }

func (a *away) do(context.Context, int, func() bool) error {
	if n := a.asked.Add(1); n <= 3 || n == 5 {
		return storage.ErrUnavailable
	}
	return nil
}

func TestSweeperLogsAnOutageOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, oracle.New(), time.Now)
		work := &away{}
		var log bytes.Buffer
		g.sweeper.Logger = slog.New(slog.NewTextHandler(&log, nil))
		g.sweeper.Shards = func() int { return 1 }
		g.sweeper.Due = append(g.sweeper.Due, work.do)
		ctx, cancel := context.WithTimeout(t.Context(), 13*time.Second)
		defer cancel()
		g.sweeper.Run(ctx)
		n := strings.Count(log.String(), "that are due: will retry")
		check.That(t, work.asked.Load() == 6 && n == 2, "%d lines for 2 outages in %d sweeps:\n%s", n, work.asked.Load(), &log)
	})
}

// What is due on shards does not wait for deletions that take longer than five seconds each. These are no failures.
func TestDeletionsHoldUpNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := oracle.New()
		makeUsers(t, store, 9)
		for id := storage.UserID(1); id <= 9; id++ {
			_, err := store.SetState(t.Context(), id, storage.Deleting, storage.MicrosOf(time.Now().Add(-time.Minute)))
			must.OK(t, err)
		}
		g := open(t, store, time.Now)
		must.OK(t, g.hiddenUsers.Refresh(t.Context()))
		work := &away{}
		var log bytes.Buffer
		g.sweeper.Logger = slog.New(slog.NewTextHandler(&log, nil))
		g.states.Relations, g.sweeper.Due = silent{}, append(g.sweeper.Due, work.do)
		ctx, cancel := context.WithTimeout(t.Context(), 13*time.Second)
		defer cancel()
		g.sweeper.Run(ctx)
		check.Equal(t, "how often what is due was done in 13 s", work.asked.Load(), 6)
		check.Lacks(t, "the log", log.String(), "deletion of an account")
	})
}

// silent is a shard that does not answer.
type silent struct{}

func (silent) EndAll(ctx context.Context, _ storage.UserID) error {
	<-ctx.Done()
	return ctx.Err()
}

// Another gateway finishes a deletion that was not finished, and ends edges, and removes comments, that a gateway wrote without
// knowing of the deletion.
func TestSweeperEndsDeletions(t *testing.T) {
	store := oracle.New()
	makeUsers(t, store, 9)
	ahead := 10 * time.Second // a deletion in this test is old enough at once
	g := open(t, store, func() time.Time { return time.Now().Add(ahead) })
	late := open(t, store, time.Now) // receives no events
	follow := func(from, to storage.UserID) {
		t.Helper()
		relations, _, err := late.relations.Follow(t.Context(), store, from, []storage.UserID{to})
		must.That(t, err == nil && relations[0].Err == nil, "%v, %v", err, relations[0].Err)
	}
	follow(1, 2)
	follow(2, 1)
	follow(3, 1)
	post, _, err := store.Publish(t.Context(), storage.PostRow{PostID: storage.PostID{Author: 2, Number: 1}, Key: "x", Text: "x", At: 1})
	must.OK(t, err)
	_, err = store.SetState(t.Context(), 1, storage.Deleting, storage.MicrosOf(time.Now()))
	must.OK(t, err)
	during(t, func(ctx context.Context) { g.hiddenUsers.Run(ctx, g.hub) })
	during(t, g.sweeper.Run)
	exists := func() bool { return storage.UserLookups.Read(t.Context(), store, 1)[0].Found }
	must.Soon(t, "the deletion ends", func() bool { return !exists() })

	// A user who has read the deleted user before the deletion follows it afterwards.
	late.relations.Follow(t.Context(), everybody{}, 4, []storage.UserID{1})
	edge := func() storage.Edge {
		return storage.EdgeLookups[storage.Forward].Read(t.Context(), store, storage.Pair{From: 4, To: 1})[0].Value
	}
	must.That(t, edge().Type == storage.Following, "the test makes no late follow")
	comment, _, err := store.AddComment(t.Context(), storage.Comment{CommentID: storage.CommentID{Author: post.Author, Number: 1}, Post: post.Number, By: 1, Key: "x", Text: "x", CreatedAt: 1})
	must.OK(t, err)
	must.Soon(t, "the late follow ends", func() bool { return edge().Type == storage.None })
	must.Soon(t, "the late comment goes", func() bool { return !storage.CommentLookups.Read(t.Context(), store, comment.CommentID)[0].Found })
	for _, r := range storage.CountLookups.Read(t.Context(), store, 2, 3, 4) {
		c := r.Value
		check.That(t, c.Following+c.Follower+c.Friend == 0, "counts %+v", c)
	}
}

// everybody reports that every user exists.
type everybody struct{}

func (everybody) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.UserLookups.Instead(ctx, b, func(_ context.Context, ids []storage.UserID) []storage.Result[storage.User] {
		return storage.Each(ids, func(id storage.UserID) storage.Result[storage.User] {
			return storage.Result[storage.User]{Value: storage.User{ID: id}, Found: true}
		})
	})
}
