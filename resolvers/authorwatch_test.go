package resolvers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/events"
)

// deed is a thing that others do with posts, and that their author is notified of.
type deed struct {
	field string // of the subscription, with the user's handle and the post's id
	// does has a user do it through the API. written writes it without sending the event, and returns that event.
	does    func(v *village, by storage.UserID, post string)
	written func(v *village, by storage.UserID, post string) events.Event
	undo    func(v *village, by storage.UserID, post string, e events.Event)
}

var deeds = []deed{
	{
		"favoriteAdded { edge { user: node { handle } } post { id } }",
		func(v *village, by storage.UserID, post string) { v.favorites(by, "favorite", post) },
		func(v *village, by storage.UserID, post string) events.Event {
			return events.Event{Row: storage.Row{Side: storage.FavoriteInbox, Edge: v.writeFavorite(by, post, storage.Favorited).Edge}}
		},
		func(v *village, by storage.UserID, post string, _ events.Event) {
			v.writeFavorite(by, post, storage.None)
		},
	},
	{
		"commentAdded { edge { node { author { handle } } } post { id } }",
		func(v *village, by storage.UserID, post string) {
			comment(v.t, v.api, by, post, fmt.Sprint("t", time.Now().UnixNano()))
		},
		func(v *village, by storage.UserID, post string) events.Event {
			id := v.postID(post)
			at := v.now()
			c, _, err := v.store.AddComment(v.t.Context(), storage.Comment{CommentID: storage.CommentID{Author: id.Author, Number: int64(at)}, Post: id.Number, By: by, Key: fmt.Sprint(at), Text: "x", CreatedAt: at})
			must.OK(v.t, err)
			return events.Event{Kind: events.PostChanged, Post: storage.ChangedPost{PostAt: storage.PostAt{PostID: id}, News: storage.PostCommented, Comment: c.Number}}
		},
		func(v *village, by storage.UserID, _ string, e events.Event) {
			_, err := v.store.DeleteComment(v.t.Context(), storage.CommentID{Author: e.Post.Author, Number: e.Post.Comment}, by)
			must.OK(v.t, err)
		},
	},
}

// begin has a user do it until it is reported, which is when a subscription has begun.
func (d deed) begin(t *testing.T, v *village, answers <-chan string, by storage.UserID, post string) {
	t.Helper()
	until(t, answers, func(i int) {
		if i%2 == 1 && strings.HasPrefix(d.field, "favoriteAdded") {
			v.favorites(by, "unfavorite", post)
			return
		}
		d.does(v, by, post)
	})
}

func (v *village) favorites(by storage.UserID, field, post string) {
	v.t.Helper()
	v.api.As(by).Ask(`mutation($p: ID!) { `+field+`(postId: $p) { changed } }`, apitest.Vars{"p": post}).Whole()
}

func (v *village) postID(text string) (id storage.PostID) {
	v.t.Helper()
	_, err := fmt.Sscanf(text, "post_%d_%d", &id.Author, &id.Number)
	must.OK(v.t, err)
	return id
}

// writeFavorite writes both sides of a favorite, without an event.
func (v *village) writeFavorite(by storage.UserID, post string, kind storage.EdgeType) storage.Row {
	v.t.Helper()
	id := v.postID(post)
	row := storage.Edge{From: by, To: id.Author, Item: id.Number, Type: kind, UpdateTime: v.now()}
	for _, side := range []storage.Side{storage.Favorites, storage.FavoriteInbox} {
		must.That(v.t, must.Value(v.t, v.store.Apply(v.t.Context(), side, []storage.Edge{row}, storage.IfNewer)[0]).Changed, "%+v is not new", row)
	}
	return storage.Row{Side: storage.Favorites, Edge: row}
}

// now is the time by the village's clock.
func (v *village) now() storage.Micros {
	return storage.MicrosOf(time.Now().Add(time.Duration(v.later.Load())))
}

// hears waits until an answer is about a user and a post. Before that answer, only answers about others may come.
func hears(t *testing.T, answers <-chan string, by storage.UserID, post string, others ...storage.UserID) {
	t.Helper()
	is := func(answer string, id storage.UserID) bool { return strings.Contains(answer, fmt.Sprintf(`"u%s"`, id)) }
	for {
		select {
		case answer := <-answers:
			if is(answer, by) && strings.Contains(answer, post) {
				return
			}
			known := false
			for _, other := range others {
				known = known || is(answer, other)
			}
			must.That(t, known, "%s came, and user %s with %s is awaited", answer, by, post)
		case <-time.After(generous):
			t.Fatalf("user %s with %s is not reported", by, post)
		}
	}
}

// The author of a post is notified, once, of everybody who favorites it or comments on it. The author is
// not notified of hidden users, of itself, or of what was taken back.
func TestAuthorsHear(t *testing.T) {
	for _, deed := range deeds {
		t.Run(deed.field[:10], func(t *testing.T) {
			onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
				v.t = t
				post, others := publish(t, v.api, v.a, "x", "1"), publish(t, v.api, v.b, "x", "1")
				answers := subscribe(t, v.api, v.hub, v.a, "subscription { "+deed.field+" }")
				const first, blocks, blocked, gone, sleeps = 30, 31, 32, 33, 34
				deed.begin(t, v, answers, first, post)
				deed.does(v, v.b, post)
				hears(t, answers, v.b, post, first)

				deed.does(v, v.c, others) // the post of another user
				deed.does(v, v.a, post)   // by the author itself
				var hidden []events.Event
				for _, by := range []storage.UserID{blocks, blocked, gone, sleeps} {
					hidden = append(hidden, deed.written(v, by, post))
				}
				v.does(blocks, "block", v.a)
				v.does(v.a, "block", blocked)
				deed.undo(v, gone, post, hidden[2])
				v.api.As(sleeps).Ask(`mutation { deactivateAccount { changed } }`, nil).Whole()
				v.hub.Publish(hidden...)
				v.hub.Publish(events.Event{Kind: events.Gap})
				deed.does(v, v.c, post)
				hears(t, answers, v.c, post)

				deleted := publish(t, v.api, v.a, "y", "2")
				late := deed.written(v, v.b, deleted)
				v.api.As(v.a).Ask(`mutation($p: ID!) { deletePost(postId: $p) { changed } }`, apitest.Vars{"p": deleted}).Whole()
				v.hub.Publish(late)
				deed.does(v, v.d, post)
				hears(t, answers, v.d, post)
			})
		})
	}
}

// Events that were missed in a gap are sent, oldest first and once, even if the store does not answer at first.
func TestAuthorsHearOfWhatAGapHasHidden(t *testing.T) {
	for _, deed := range deeds {
		for _, kind := range []events.Kind{events.Gap, events.UserChanged} {
			t.Run(fmt.Sprint(deed.field[:10], kind), func(t *testing.T) {
				store := newFlaky(oracle.New(), "users")
				v := settle(t, store, apitest.Options{})
				posts := []string{publish(t, v.api, v.a, "x", "1"), publish(t, v.api, v.a, "y", "2")}
				answers := subscribe(t, v.api, v.hub, v.a, "subscription { "+deed.field+" }")
				const first = 39
				deed.begin(t, v, answers, first, posts[0])
				v.later.Store(int64(time.Hour)) // what is ahead of the clock hides nothing
				deed.does(v, 38, posts[0])
				v.later.Store(0)
				hears(t, answers, 38, posts[0], first)
				var others []storage.UserID
				for by := storage.UserID(20); len(others) < 15; by++ {
					if by != v.a {
						others = append(others, by)
						deed.written(v, by, posts[by%2])
					}
				}
				store.left.Store(2)
				hidden := events.Event{Kind: kind}
				if kind == events.UserChanged {
					hidden.User = &storage.UserChange{User: v.a, What: storage.Missed}
				}
				v.hub.Publish(hidden)
				v.hub.Publish(hidden)
				for _, by := range others {
					hears(t, answers, by, posts[by%2], first)
				}
				deed.does(v, 1, posts[0])
				hears(t, answers, 1, posts[0])
				check.Least(t, "failures of the store", store.failed.Load(), 1)
			})
		}
	}
}

// What a gateway whose clock is behind has written in the first minute is sent after a gap, too, and nothing that was there before.
func TestAuthorsHearOfWhatASlowClockHasWritten(t *testing.T) {
	for _, deed := range deeds {
		t.Run(deed.field[:10], func(t *testing.T) {
			v := settle(t, oracle.New(), apitest.Options{})
			post := publish(t, v.api, v.a, "x", "1")
			const before, first, slow, last = 30, 31, 32, 33
			v.later.Store(-int64(20 * time.Second))
			deed.written(v, before, post)
			v.later.Store(0)
			answers := subscribe(t, v.api, v.hub, v.a, "subscription { "+deed.field+" }")
			deed.begin(t, v, answers, first, post)
			v.later.Store(-int64(30 * time.Second))
			deed.written(v, slow, post)
			v.later.Store(0)
			v.hub.Publish(events.Event{Kind: events.Gap})
			hears(t, answers, slow, post, first)
			deed.does(v, last, post)
			hears(t, answers, last, post, first)
		})
	}
}
