package resolvers_test

import (
	"strings"
	"testing"
	"time"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/storage"
	"kith/storage/events"
)

// The viewer is told of each group that somebody joins, as `activity` then has it, and not of itself or of whom it must not see.
func TestActivityAdded(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		post := publish(t, v.api, v.a, "x", "1")
		answers := subscribe(t, v.api, v.hub, v.a, `subscription { activityAdded { edge { cursor node { kind actors { id } othersCount post { text } } } viewer { id } } }`)
		hears := func(want ...string) {
			t.Helper()
			check.Has(t, "the next", next(t, answers), want...)
		}
		until(t, answers, func(i int) { v.do(v.b, []string{"follow", "unfollow"}[i%2], v.a).Whole() })
		v.does(v.a, "block", v.d)
		comment(t, v.api, v.a, post, "mine")
		v.favorites(v.c, "favorite", post)
		hears(`"FAVORITE"`, `[{"id":"`+v.c.String()+`"}]`, `"text":"x"`, `"viewer_`+v.a.String()+`"`)
		comment(t, v.api, v.b, post, "theirs")
		hears(`"COMMENT"`, `[{"id":"`+v.b.String()+`"}]`)
		v.favorites(v.b, "favorite", post)
		hears(`"FAVORITE"`, `[{"id":"`+v.b.String()+`"},{"id":"`+v.c.String()+`"}]`)
		publish(t, v.api, v.b, "with @u"+v.a.String(), "1")
		hears(`"MENTION"`, `[{"id":"`+v.b.String()+`"}]`, `"text":"with @u`)
		v.does(v.c, "requestFriend", v.a)
		hears(`"FRIEND_REQUEST"`, v.c.String())
		v.api.As(v.c).Ask(`mutation { updateProfile(locked: true) { changed } }`, nil).Whole()
		v.does(v.a, "follow", v.c)
		v.does(v.c, "acceptRequest FOLLOW", v.a)
		hears(`"FOLLOW_ACCEPTED"`, v.c.String())

		// Clocks differ: who joins a group may have done it before the last one of it.
		v.does(v.c, "follow", v.a)
		hears(`"FOLLOW"`, v.c.String())
		late := storage.Row{Side: storage.Inverse, Edge: storage.Edge{From: 38, To: v.a, Type: storage.Following, UpdateTime: storage.MicrosOf(time.Now().Add(-10 * time.Second))}}
		for range 2 { // the second time it is not sent
			apitest.ApplyTo(t, v.store, storage.Forward, late.Edge)
			v.hub.Publish(events.Event{Row: late})
		}
		hears(`"FOLLOW"`, `{"id":"38"}`)
		v.does(39, "follow", v.a)
		hears(`"FOLLOW"`, `{"id":"39"}`)

		// Who ends it and does it again is told again, by any clock.
		v.does(38, "unfollow", v.a)
		v.does(38, "follow", v.a)
		hears(`"FOLLOW"`, `{"id":"38"}`)
	})
}

// An event is told with its own group alone: no other one that there was before the client subscribed. Replication may bring it long after its time.
func TestActivityAddedIsOfItsEvent(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		before, post := publish(t, v.api, v.a, "before", "1"), publish(t, v.api, v.a, "post", "2")
		v.favorites(v.b, "favorite", before)
		comment(t, v.api, v.b, before, "before")
		v.does(v.b, "follow", v.a)
		answers := subscribe(t, v.api, v.hub, v.a, `subscription { activityAdded { edge { node { kind day actors { id } post { text } } } } }`)
		until(t, answers, func(i int) { v.do(v.d, []string{"follow", "unfollow"}[i%2], v.a).Whole() })
		hears := func(kind string, who storage.UserID, more string) {
			t.Helper()
			answer := next(t, answers)
			for strings.Contains(answer, `{"id":"`+v.d.String()+`"}`) { // which has begun the subscription
				answer = next(t, answers)
			}
			check.Has(t, "the next", answer, kind, `[{"id":"`+who.String()+`"}]`, more)
		}
		v.does(v.a, "mute", 37) // nothing that it does is told, nor that it does anything
		v.favorites(37, "favorite", before)
		comment(t, v.api, 37, before, "muted")
		v.does(37, "follow", v.a)
		v.favorites(v.c, "favorite", post)
		hears(`"FAVORITE"`, v.c, `"post"`)
		comment(t, v.api, v.c, post, "theirs")
		hears(`"COMMENT"`, v.c, `"post"`)
		at := time.Now().Add(-72 * time.Hour)
		late := storage.Row{Side: storage.Inverse, Edge: storage.Edge{From: 38, To: v.a, Type: storage.Following, UpdateTime: storage.MicrosOf(at)}}
		apitest.ApplyTo(t, v.store, storage.Forward, late.Edge)
		v.hub.Publish(events.Event{Row: late})
		hears(`"FOLLOW"`, 38, at.UTC().Format("2006-01-02"))
	})
}
