package cluster

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/events"
	"kith/storage/sqlstore"
)

// keeps waits until the gateway keeps a post in memory as the store has it.
func (g *feedGateway) keeps(t *testing.T, what string, id storage.PostID) {
	t.Helper()
	var got, want []storage.Result[storage.Post]
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		got, want = storage.PostLookups.Read(t.Context(), g.caches.Reader(), id), storage.PostLookups.Read(t.Context(), g.caches.store, id)
		var b storage.Bundle
		asked := storage.PostLookups.Ask(&b, id)
		g.caches.local.AtHand(&b)
		if !asked.Open() && reflect.DeepEqual(asked.Results, want) && reflect.DeepEqual(got, want) {
			return
		}
	}
	t.Fatalf("%s: the gateway reads %+v, the store has %+v", what, got, want)
}

// TestWhatHappensToPostsReachesOtherGateways: both gateways keep a post in memory. Whatever one of them writes, it
// reads at once, and the other one soon. This also holds while Redis is away, and if a writer is killed before it reports.
func TestWhatHappensToPostsReachesOtherGateways(t *testing.T) {
	for name, inRedis := range map[string]bool{"in memory": false, "in Redis too": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whatHappensToPosts(t, inRedis)
		})
	}
}

func whatHappensToPosts(t *testing.T, inRedis bool) {
	server := testenv.Redis(t)
	d, of := Config{Redis: server.URL(), RedisCache: inRedis, Redundancy: Sync}, sqlstore.Config{Location: "sqlite:" + filepath.Join(t.TempDir(), "kith.db")}
	a := openFeedGatewayOf(t, d, of, 0)
	b := openFeedGatewayOf(t, d, of, 0)
	for id := range storage.UserID(3) {
		a.caches.store.CreateUsers(t.Context(), []storage.User{{ID: id + 1, Handle: fmt.Sprint("user_", id+1), Name: "A"}})
	}
	id := storage.PostID{Author: 1, Number: 5}
	w, ctx := a.caches.store, t.Context()
	text := "edited"
	comment := storage.Comment{CommentID: storage.CommentID{Author: id.Author, Number: 9}, Post: id.Number, By: 2, Key: "k", Text: "c", CreatedAt: 4}
	steps := []struct {
		what string
		do   func() error
	}{
		{"there is none", func() error { return nil }},
		{"published", func() error {
			_, _, err := w.Publish(ctx, storage.PostRow{PostID: id, Key: "p", Text: "first", At: 2})
			return err
		}},
		{"edited", func() error {
			_, _, err := w.EditPost(ctx, id, storage.PostChange{Text: &text}, 3)
			return err
		}},
		{"a comment", func() error { _, _, err := w.AddComment(ctx, comment); return err }},
		{"the comment is gone", func() error { _, err := w.DeleteComment(ctx, comment.CommentID, 2); return err }},
		{"a comment is restored", func() error { return w.Restore(ctx, storage.Restored{Comments: []storage.Comment{comment}})[0].Err }},
		{"a favorite", func() error {
			row := storage.Edge{From: 3, To: 1, Item: 5, Type: storage.Favorited, UpdateTime: storage.MicrosOf(time.Now())}
			err := w.Apply(ctx, storage.Favorites, []storage.Edge{row}, storage.IfNewer)[0].Err
			if err == nil {
				err = w.Apply(ctx, storage.FavoriteInbox, []storage.Edge{row}, storage.IfNewer)[0].Err
			}
			a.caches.bus.Publish(ctx, []storage.Row{{Side: storage.Favorites, Edge: row}})
			return err
		}},
		{"Redis is gone", func() error {
			server.Kill(t)
			text = "while Redis is gone"
			_, _, err := w.EditPost(ctx, id, storage.PostChange{Text: &text}, 6)
			return err
		}},
		{"Redis is back", func() error {
			server.Restart(t)
			for _, g := range []*feedGateway{a, b} {
				for !g.caches.local.IsOn() {
					time.Sleep(time.Millisecond)
				}
			}
			text = "it is back"
			_, _, err := w.EditPost(ctx, id, storage.PostChange{Text: &text}, 7)
			return err
		}},
		{"the writer was killed", func() error {
			newPresence(a.caches.store).alone(ctx) // its lease is never renewed
			text = "nobody reports it"
			dead, err := sqlstore.Open(ctx, of)
			if err != nil {
				return err
			}
			defer dead.Close()
			_, _, err = dead.EditPost(ctx, id, storage.PostChange{Text: &text}, 8)
			return err
		}},
		{"who has commented is erased", func() error {
			if _, err := w.SetState(ctx, 2, storage.Deleting, 9); err != nil {
				return err
			}
			return w.Erase(ctx, 2, 10)
		}},
		{"the author is erased", func() error {
			if _, err := w.SetState(ctx, 1, storage.Deleting, 11); err != nil {
				return err
			}
			return w.Erase(ctx, 1, 12)
		}},
	}
	for _, s := range steps {
		err := s.do()
		must.That(t, err == nil, "%s: %v", s.what, err)
		if own := storage.PostLookups.Read(ctx, a.caches.Reader(), id); s.what != "the writer was killed" && !reflect.DeepEqual(own, storage.PostLookups.Read(ctx, a.caches.store, id)) {
			t.Errorf("%s: the gateway of the writer reads %+v", s.what, own)
		}
		if strings.HasSuffix(s.what, "is gone") && s.what != "the comment is gone" {
			continue // nothing is kept
		}
		a.keeps(t, s.what, id)
		b.keeps(t, s.what, id)
	}
}

// TestTheLogReportsPosts: in the mode binlog the others are notified of a change whose writer was killed, or that was
// written without Kith.
func TestTheLogReportsPosts(t *testing.T) {
	s := openReported(t, Binlog)
	id := storage.PostID{Author: s.from, Number: 5}
	dead := s.dead(t)
	_, _, err := dead.Publish(t.Context(), storage.PostRow{PostID: id, Key: "p", Text: "first", At: 2})
	must.OK(t, err)
	await(t, s.heard, func(e events.Event) bool { return e.Kind == events.PostChanged && e.Post.PostID == id })
	comment := storage.Comment{CommentID: storage.CommentID{Author: id.Author, Number: 9}, Post: id.Number, By: s.to, Key: "k", Text: "c", CreatedAt: 4}
	_, _, err = dead.AddComment(t.Context(), comment)
	must.OK(t, err)
	await(t, s.heard, func(e events.Event) bool {
		return e.Post.News == storage.PostCommented && e.Post.PostID == id && e.Post.Comment == comment.Number
	})
	await(t, s.heard, func(e events.Event) bool { return e.Kind == events.PostChanged && e.Post.PostID == id })
}
