package changes_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kith/files/changes"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/storage"
	"kith/storage/sides"
	"kith/storage/sqlstore"
)

// edgeCopy is a copy of edges, by kind and subject, as docs/how-to/changes.md makes one.
type edgeCopy struct {
	edges    map[string]storage.Edge
	compared map[string]int // digests by kind
	differed []string       // subjects of digests
}

func newEdgeCopy() *edgeCopy {
	return &edgeCopy{edges: map[string]storage.Edge{}, compared: map[string]int{}}
}

var typesOfRelations = map[string]storage.EdgeType{
	"following": 1, "blocking": 2, "follow_request": 3, "declined_follow_request": 4,
	"friend_request": storage.Pending, "accepted_request": storage.Accepted, "declined_request": storage.Declined, "cancelled_request": storage.Cancelled, "removed_request": storage.Removed,
	"true": 1, "mention": 2,
}

func (c *edgeCopy) take(e changes.Event) {
	kind := strings.TrimPrefix(e.Type, "kith.")
	number := func(s string) int64 {
		n, _ := strconv.ParseInt(s, 10, 64)
		return n
	}
	switch kind {
	case "follows", "requests", "favorites":
		ids := append(strings.Split(e.Subject, "/"), "0")
		edge := storage.Edge{
			From: storage.UserID(number(ids[0])), To: storage.UserID(number(ids[1])), Item: number(ids[2]),
			Type: typesOfRelations[e.Data["relation"]+e.Data["favorited"]], UpdateTime: storage.MicrosOf(e.Time),
		}
		if c.edges[kind+e.Subject] = edge; edge.Type == storage.None {
			delete(c.edges, kind+e.Subject)
		}
	case "digests":
		c.compared[e.Data["kind"]]++
		var own sides.Digest
		for key, edge := range c.edges {
			if id := int64(edge.From); strings.HasPrefix(key, e.Data["kind"]) && number(e.Data["after"]) < id && id <= number(e.Data["up_to"]) && strconv.Itoa(edge.From.Bucket()) == e.Data["bucket"] {
				own = own.Plus(sides.Digest{Rows: 1, Mixed: edge.Mix()})
			}
		}
		if strconv.FormatInt(own.Rows, 10) != e.Data["rows"] || fmt.Sprintf("%016x", own.Mixed) != e.Data["digest"] {
			c.differed = append(c.differed, e.Subject)
		}
	}
}

// prove reads all changes after a cursor, and the digests.
func (c *edgeCopy) prove(t *testing.T, store *sqlstore.Store, after string) (end string) {
	t.Helper()
	events, end := read(t, store, after, changes.Follows, changes.Requests, changes.Favorites, changes.Digests)
	for _, e := range events {
		c.take(e)
	}
	return end
}

// TestACopyProvesItself: digests are those of a copy that was made of the changes, while others write and buckets move, and one row that differs
// shows in the digest of its user's bucket.
func TestACopyProvesItself(t *testing.T) {
	t.Parallel()
	onEachLog(t, func(t *testing.T, store *sqlstore.Store, more []string) {
		ctx := t.Context()
		_, start := read(t, store, "")
		ids := append(ofShard(store, 0, 150), ofShard(store, 1, 150)...)
		var users []storage.User
		for _, id := range ids {
			users = append(users, storage.User{ID: id, Handle: "h" + id.String(), CreatedAt: 1e6})
		}
		must.All(t, store.CreateUsers(ctx, users))
		post := storage.PostID{Author: ids[0], Number: 71}
		_, _, err := store.Publish(ctx, storage.PostRow{PostID: post, Key: "key", Text: "hello", At: 3e6})
		must.OK(t, err)
		write := func(n int) {
			from, to := ids[n%len(ids)], ids[(n*7+1)%len(ids)]
			side, c := storage.Forward, storage.EdgeChange{To: to, Type: storage.Following, At: storage.MicrosOf(time.Now())}
			switch n % 5 {
			case 0:
				c.Type = storage.None
			case 1:
				c.Type = storage.Blocking
			case 2:
				side, c.Type = storage.Requests, storage.Pending
			case 3:
				side, c.To, c.Item, c.Type = storage.Favorites, post.Author, post.Number, storage.Favorited
			}
			if from == c.To {
				return
			}
			for _, r := range store.ChangeEdges(ctx, side, from, []storage.EdgeChange{c}, storage.ChangeOptions{}) {
				if r.Err != nil && !errors.Is(r.Err, context.Canceled) {
					t.Log(r.Err) // what may not follow is not of interest here
				}
			}
		}
		for n := range 600 {
			write(n)
		}
		shard, err := store.AddShard(ctx, more[0])
		must.OK(t, err)

		copied, begun := newEdgeCopy(), false
		writing, stop := context.WithCancel(ctx)
		var beside sync.WaitGroup
		defer beside.Wait()
		defer stop()
		beside.Go(func() {
			for n := 600; writing.Err() == nil; n++ {
				write(n)
				time.Sleep(5 * time.Millisecond)
			}
		})
		move := func() {
			first := ids[0].Bucket()
			_, err := store.Move(ctx, sqlstore.Move{Buckets: storage.BucketRange{First: first, Last: first}, From: 0, To: shard}, sqlstore.MoveConfig{Token: "test", Keep: time.Millisecond})
			check.That(t, err == nil, "%v", err)
		}
		asked := []changes.Kind{changes.Follows, changes.Requests, changes.Favorites, changes.Digests}
		end := ""
		err = changes.Run(ctx, changes.Config{Store: store, After: start, Kinds: asked, UntilNow: true, Logger: slog.New(slog.DiscardHandler)}, func(e changes.Event) error {
			if !begun {
				begun = true
				beside.Go(move)
			}
			if copied.take(e); e.Cursor != "" {
				end = e.Cursor
			}
			return nil
		})
		must.That(t, err == nil && len(copied.differed) == 0, "of %v digests differ %v: %v", copied.compared, copied.differed, err)
		t.Logf("while others wrote and buckets moved: %v digests", copied.compared)
		stop()
		beside.Wait()

		end = copied.prove(t, store, end)
		for _, kind := range []string{"follows", "requests", "favorites"} {
			check.Least(t, fmt.Sprint("digests of ", kind), copied.compared[kind], storage.Buckets)
		}
		must.That(t, len(copied.differed) == 0 && len(copied.edges) >= 200, "of a copy with %d edges differ %v", len(copied.edges), copied.differed)
		var damaged []string
		for _, kind := range []string{"follows", "requests", "favorites"} {
			for key, edge := range copied.edges {
				if strings.HasPrefix(key, kind) {
					edge.UpdateTime++
					copied.edges[key] = edge
					damaged = append(damaged, fmt.Sprintf("%s/%d/", kind, edge.From.Bucket()))
					break
				}
			}
		}
		copied.prove(t, store, end)
		must.That(t, len(copied.differed) == len(damaged), "damaged are %v, and digests differ of %v", damaged, copied.differed)
		for _, want := range damaged {
			check.That(t, strings.Contains(strings.Join(copied.differed, " "), want), "damaged is %s, and digests differ of %v", want, copied.differed)
		}
	})
}

func TestDigestsNeedEdges(t *testing.T) {
	t.Parallel()
	store := opened.Store(t, sqlstore.Config{Location: "sqlite:" + t.TempDir() + "/kith.db"})
	err := changes.Run(t.Context(), changes.Config{Store: store, Kinds: []changes.Kind{changes.Users, changes.Digests}, UntilNow: true, Logger: slog.New(slog.DiscardHandler)}, func(changes.Event) error { return nil })
	check.Is(t, "digests of users", err, changes.ErrDigests)
}
