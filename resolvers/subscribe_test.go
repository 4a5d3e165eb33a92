package resolvers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/logged"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/events"
)

// flaky is a store in which the look-ups of some names fail a given number of times.
type flaky struct {
	*faulty
	left   atomic.Int64
	failed atomic.Int64
}

func newFlaky(store storage.Store, lookups ...string) *flaky {
	f := &flaky{}
	f.faulty = &faulty{store, storage.NewShardMap(1), func(_ context.Context, lookup string, _ int) error {
		if !slices.Contains(lookups, lookup) || f.left.Add(-1) < 0 {
			return nil
		}
		f.failed.Add(1)
		return fmt.Errorf("read %s: %w", lookup, storage.ErrUnavailable)
	}}
	return f
}

// If the store does not answer, events that were missed in a gap are not lost. All of them are read
// again until that succeeds, and the log says so once.
func TestSubscriptionsReadAGapAgain(t *testing.T) {
	subscriptionsReadAgain(t, events.Event{Kind: events.Gap})
}

// A writer that dies before it reports a change also leaves a gap: the users of the change are
// reported as corrected.
func TestSubscriptionsReadACorrectedUserAgain(t *testing.T) {
	subscriptionsReadAgain(t, events.Event{Kind: events.UserChanged, User: &storage.UserChange{User: 1, What: storage.Missed}})
}

func subscriptionsReadAgain(t *testing.T, hidden events.Event) {
	const most = 250 // more than are read in one step
	for _, c := range []struct {
		field, lookup string
		begin         func(i int) storage.Edge // this change is sent at once
		side          storage.Side             // on which …
		missed        func(i int) storage.Edge // … these rows are missed
		reported      func(i int) string
	}{
		{`followerAdded { edge { node { id } } }`, "pages.follower",
			func(i int) storage.Edge { return storage.Edge{From: 2, To: 1, Type: storage.Following} }, storage.Forward,
			func(i int) storage.Edge {
				return storage.Edge{From: storage.UserID(10 + i), To: 1, Type: storage.Following}
			},
			func(i int) string {
				return fmt.Sprintf(`{"data":{"followerAdded":{"edge":{"node":{"id":"%d"}}}}}`, 10+i)
			}},
		{`requestChanged { request { id state } }`, "pages.friend_request_inbox",
			func(i int) storage.Edge { return storage.Edge{From: 2, To: 1, Type: storage.Pending} }, storage.Requests,
			func(i int) storage.Edge {
				return storage.Edge{From: storage.UserID(10 + i), To: 1, Type: []storage.EdgeType{storage.Pending, storage.Pending, storage.Pending, storage.Declined}[i%4]}
			},
			func(i int) string {
				return fmt.Sprintf(`{"data":{"requestChanged":{"request":{"id":"req_%d_1","state":%q}}}}`, 10+i, []string{"PENDING", "PENDING", "PENDING", "DECLINED"}[i%4])
			}},
		{`relationshipChanged(userIds: [2, 10, 11, 1]) { relationship { id status } }`, "edges.follower",
			func(i int) storage.Edge { return storage.Edge{From: 2, To: 1, Type: storage.Following} }, storage.Forward,
			func(i int) storage.Edge {
				return storage.Edge{From: storage.UserID(10 + i), To: 1, Type: storage.Following}
			},
			func(i int) string {
				if i > 1 {
					return ""
				}
				return fmt.Sprintf(`{"data":{"relationshipChanged":{"relationship":{"id":"rel_1_%d","status":"FOLLOWED_BY"}}}}`, 10+i)
			}},
	} {
		t.Run(c.field, func(t *testing.T) {
			at := storage.MicrosOf(time.Now())
			store := newFlaky(oracle.New(), c.lookup)
			apitest.Users(t, store, 10+most)
			hub, log := events.NewHub(nil), &logged.Text{}
			api := apitest.New(t, store, apitest.Options{Hub: hub, Log: log})
			answers := subscribe(t, api, hub, 1, `subscription { `+c.field+` }`)
			write := func(rows ...storage.Edge) {
				for _, side := range []storage.Side{c.side, c.side.Replica()} {
					for _, r := range store.Apply(t.Context(), side, rows, storage.IfNewer) {
						must.That(t, r.Err == nil && r.Value.Changed, "%+v: %v", r.Value, r.Err)
					}
				}
			}
			until(t, answers, func(i int) {
				first := c.begin(i)
				if first.UpdateTime = at + storage.Micros(i); i%2 == 1 && first.Type == storage.Following {
					first.Type = storage.None
				}
				write(first)
				hub.Publish(events.Event{Row: storage.Row{Side: c.side.Replica(), Edge: first}})
			})
			for len(answers) > 0 {
				<-answers
			}
			var rows []storage.Edge
			want := map[string]bool{}
			for i := range most {
				row := c.missed(i)
				row.UpdateTime = at + storage.Micros(10_000+i/200) // more of one microsecond than are read in one step
				rows = append(rows, row)
				if reported := c.reported(i); reported != "" {
					want[reported] = true
				}
			}
			write(rows...)
			store.left.Store(3)
			hub.Publish(hidden)
			for range len(want) {
				got := next(t, answers)
				must.That(t, want[got], "got %s, which is not new", got)
				delete(want, got)
			}
			check.Least(t, "failures of the store", store.failed.Load(), 1)
			check.Equal(t, "lines of the log", strings.Count(log.String(), "cannot read what has changed"), 1)
		})
	}
}

// A missed change may be older than a change that was sent in the meantime, because the clock of
// another gateway is ahead, or because another transaction was faster.
func TestSubscriptionsReadWhatIsOlderThanTheNewest(t *testing.T) {
	for _, c := range []struct {
		field string
		side  storage.Side
		kind  storage.EdgeType
	}{
		{`followerAdded { edge { node { id } } }`, storage.Forward, storage.Following},
		{`requestChanged { request { from { id } } }`, storage.Requests, storage.Pending},
	} {
		t.Run(c.field, func(t *testing.T) {
			store, hub := oracle.New(), events.NewHub(nil)
			apitest.Users(t, store, 200)
			at := storage.MicrosOf(time.Now())
			write := func(from storage.UserID, at storage.Micros) storage.Edge {
				row := storage.Edge{From: from, To: 1, Type: c.kind, UpdateTime: at}
				for _, side := range []storage.Side{c.side, c.side.Replica()} {
					must.That(t, must.Value(t, store.Apply(t.Context(), side, []storage.Edge{row}, storage.IfNewer)[0]).Changed, "%+v is not new", row)
				}
				return row
			}
			before := write(14, at-storage.Micros(10*time.Second/time.Microsecond)) // which is no news to a gap
			answers := subscribe(t, apitest.New(t, store, apitest.Options{Hub: hub}), hub, 1, `subscription { `+c.field+` }`)
			publish := func(row storage.Edge) { hub.Publish(events.Event{Row: storage.Row{Side: c.side.Replica(), Edge: row}}) }
			last := storage.UserID(20)
			until(t, answers, func(int) { last++; at++; publish(write(last, at)) })
			publish(write(10, at+storage.Micros(time.Hour/time.Microsecond)))
			comes(t, answers, `"id":"10"`)                                // other events had not been sent yet
			write(13, at-storage.Micros(20*time.Second/time.Microsecond)) // by a clock that is behind
			write(11, at+1)
			for range 2 { // they are read again, and sent once
				hub.Publish(events.Event{Kind: events.Gap})
			}
			for _, want := range []string{`"id":"13"`, `"id":"11"`} {
				check.Has(t, "the next", next(t, answers), want)
			}
			publish(write(12, at+2))
			check.Has(t, "the next", next(t, answers), `"id":"12"`)
			publish(before) // late
			check.Has(t, "the one after it", next(t, answers), `"id":"14"`)
		})
	}
}

// A client goes on elsewhere if the gateway closes before the connection does: to it, a subscription that is complete has nothing more to say.
func TestSubscriptionsOfAClosedHubAreNotComplete(t *testing.T) {
	for _, over := range apitest.Transports {
		hub := events.NewHub(nil)
		api, _ := withUsers(t, 2, apitest.Options{Hub: hub})
		answers := api.As(1).Subscribe(t.Context(), over, `subscription { followerAdded { edge { node { id } } } }`, nil)
		until(t, answers, func(i int) {
			api.As(2).Ask(`mutation { `+[]string{"follow", "unfollow"}[i%2]+`(userId: 1) { changed } }`, nil).Whole()
		})
		hub.Close()
		last := ""
		for got := range answers {
			last = got
		}
		check.Has(t, "the last answer", last, `"code":"UNAVAILABLE"`, `"retryable":true`)
	}
}

// What an event's answer could not read is null, and an error says so, as in a query.
func TestEventsSayWhatCouldNotBeRead(t *testing.T) {
	for _, over := range apitest.Transports {
		store, hub := newFlaky(oracle.New(), "users"), events.NewHub(nil)
		apitest.Users(t, store, 200)
		api := apitest.New(t, store, apitest.Options{Hub: hub})
		answers := api.As(1).Subscribe(t.Context(), over, `subscription { requestChanged { request { to { handle } id } } }`, nil)
		at, last := storage.MicrosOf(time.Now()), storage.UserID(1)
		ask := func(int) {
			last++
			row := storage.Edge{From: last, To: 1, Type: storage.Pending, UpdateTime: at + storage.Micros(last)}
			apitest.ApplyTo(t, store, storage.Requests, row)
			hub.Publish(events.Event{Row: storage.Row{Side: storage.Inbox, Edge: row}})
		}
		until(t, answers, ask)
		for _, want := range []string{
			`{"errors":[{"message":"a part of the data cannot be reached at the moment","path":["requestChanged","request","to"],"extensions":{"code":"UNAVAILABLE","reason":"UNREACHABLE","retryable":true}}],"data":{"requestChanged":{"request":{"to":null,"id":"req_%s_1"}}}}`,
			`{"data":{"requestChanged":{"request":{"to":{"handle":"u1"},"id":"req_%s_1"}}}}`,
		} {
			store.left.Store(int64(strings.Count(want, "null") * 1000))
			ask(0)
			got := ""
			for want = fmt.Sprintf(want, last); !strings.Contains(got, want[strings.Index(want, `"id"`):]); { // what is before is from the beginning
				got = next(t, answers)
			}
			check.Equal(t, "an event", got, want)
		}
	}
}
